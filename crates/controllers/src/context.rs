//! What every reconciler has at hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::scheduler_config::DefaultSpread;
use cloud::CloudProvider;
use jiff::Timestamp;
use kube::Client;
use model::{ClaimName, NodeName};
use planner::PlaceConfig;
use state::{Cluster, Key, Kind, ManagedKind, Object, Wake};
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::deletion_cost;
use crate::events::Recorder;
use crate::metrics::Metrics;
use crate::planted::Planted;
use crate::process::Readiness;
use crate::solver::Solver;
use crate::work::{Signal, Work};

/// What the wiring hands in.
pub struct ContextParts {
    /// The API server.
    pub client: Client,
    /// The cloud.
    pub provider: Arc<dyn CloudProvider>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Where the planner runs.
    pub solver: Arc<dyn Solver>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Told when everything was listed once.
    pub readiness: Readiness,
    /// Bounds of the planner.
    pub place_config: PlaceConfig,
    /// Spread constraints of the cluster's scheduler for pods that state none.
    pub default_spread: DefaultSpread,
    /// Whether NodeOverlays change what instance types cost and have.
    pub uses_overlays: bool,
    /// Whether CapacityBuffers have room kept free.
    pub uses_buffers: bool,
    /// Whether pods are annotated with their cost of deletion.
    pub manages_deletion_costs: bool,
    /// Ends a batch when no new pod arrives for this long.
    pub batch_idle: Duration,
    /// Ends a batch at the latest.
    pub batch_max: Duration,
    /// A word that no other process uses; launch ids start with it.
    pub process_id: String,
    /// The mistake to make, in tests.
    pub planted: Planted,
}

/// Shared by all reconcilers of one process. The cluster is locked for moments only, never across an await.
pub struct Context {
    pub(crate) client: Client,
    pub(crate) provider: Arc<dyn CloudProvider>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) solver: Arc<dyn Solver>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) recorder: Recorder,
    pub(crate) readiness: Readiness,
    pub(crate) place_config: PlaceConfig,
    pub(crate) batch_idle: Duration,
    pub(crate) batch_max: Duration,
    pub(crate) planted: Planted,
    pub(crate) manages_deletion_costs: bool,
    process_id: String,
    cluster: Mutex<Cluster>,
    notes: Mutex<Notes>,
    signals: mpsc::UnboundedSender<Signal>,
}

/// The receiving end of a context's signals; the hub reads it.
#[derive(Debug)]
pub struct Signals(pub(crate) mpsc::UnboundedReceiver<Signal>);

/// Small facts of this process that are lost with it, and may be.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Launches drawn so far, for unique launch ids.
    launches: u64,
    /// Claims made by this process whose first launch was not tried yet: nothing to look for at the provider.
    pub(crate) fresh: BTreeMap<ClaimName, ()>,
    /// The last pod event on each node of ours; its claim's status shows it later and less exactly.
    pub(crate) pod_events: BTreeMap<NodeName, Timestamp>,
    /// Provisioning passes finished by this process.
    pub(crate) passes: u64,
    /// Deletion costs that are still to be written.
    pub(crate) deletion_costs: deletion_cost::Ledger,
    /// When the window of the running pass closed.
    pub(crate) window_closed: Option<tokio::time::Instant>,
}

impl Context {
    /// Builds the context and the receiving end of its signals.
    pub fn new(parts: ContextParts) -> (Arc<Self>, Signals) {
        let ContextParts {
            client,
            provider,
            clock,
            solver,
            metrics,
            readiness,
            place_config,
            default_spread,
            uses_overlays,
            uses_buffers,
            manages_deletion_costs,
            batch_idle,
            batch_max,
            process_id,
            planted,
        } = parts;
        let kind = provider.node_class_kind();
        let managed = ManagedKind { group: kind.group.to_owned(), kind: kind.kind.to_owned() };
        let cluster = Cluster::new(provider.vocabulary(), managed)
            .with_default_spread(default_spread)
            .with_unsupported_volumes(provider.unsupported_volumes());
        let cluster = if uses_overlays { cluster.with_overlays() } else { cluster };
        let cluster = if uses_buffers { cluster.with_buffers() } else { cluster };
        let (signals, receiver) = mpsc::unbounded_channel();
        let recorder = Recorder::start(client.clone(), Arc::clone(&clock));
        let context = Self {
            client,
            provider,
            clock,
            solver,
            metrics,
            recorder,
            readiness,
            place_config,
            batch_idle,
            batch_max,
            planted,
            manages_deletion_costs,
            process_id,
            cluster: Mutex::new(cluster),
            notes: Mutex::new(Notes::default()),
            signals,
        };
        (Arc::new(context), Signals(receiver))
    }

    /// The cluster, for a moment. A reader that panicked has not written, so its poison means nothing.
    pub(crate) fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The notes, for a moment.
    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Folds an object that a watch showed.
    pub(crate) fn apply(&self, object: Object) {
        let wakes = self.cluster().apply(object);
        self.send(wakes);
    }

    /// Folds the answer to one of our own writes.
    pub(crate) fn learn(&self, object: Object) {
        let wakes = self.cluster().learn(object);
        self.send(wakes);
    }

    /// Forgets an object.
    pub(crate) fn remove(&self, key: &Key) {
        let wakes = self.cluster().remove(key);
        self.send(wakes);
    }

    pub(crate) fn send(&self, wakes: Vec<Wake>) {
        for wake in wakes {
            self.signal(Signal::Woken(wake));
        }
    }

    /// Asks for work on another key, now.
    pub(crate) fn request(&self, work: Work) {
        self.signal(Signal::Wanted(work));
    }

    /// Says that there is work on another key, unless that is known already.
    pub(crate) fn offer(&self, work: Work) {
        self.signal(Signal::Offered(work));
    }

    fn signal(&self, signal: Signal) {
        // The hub is gone only when the process ends; then nobody needs waking.
        let _ = self.signals.send(signal);
    }

    /// A launch id that no other launch has.
    pub(crate) fn draw_launch_id(&self) -> String {
        let mut notes = self.notes();
        notes.launches += 1;
        format!("{}-{}", self.process_id, notes.launches)
    }

    /// The kinds of objects that have to be watched.
    pub fn wanted_kinds(&self) -> BTreeSet<Kind> {
        self.cluster().wanted()
    }

    /// Whether every kind of object was listed once.
    pub fn is_synced(&self) -> bool {
        self.cluster().is_complete()
    }
}
