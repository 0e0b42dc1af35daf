//! What every reconciler has at hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::NodePool;
use api::scheduler_config::DefaultSpread;
use cloud::CloudProvider;
use jiff::Timestamp;
use kube::Client;
use model::{ClaimName, NodeName, PodKey, PoolName};
use planner::PlaceConfig;
use state::{Cluster, Key, Kind, ManagedKind, Object, Wake};
use tokio::sync::mpsc;

use crate::census::{Census, ClusterTold, Observability};
use crate::clock::Clock;
use crate::deletion_cost;
use crate::disruption::cost::DeletionCosts;
use crate::events::Recorder;
use crate::lifecycle::{Company, Rehearsed};
use crate::measured::MeasuredProvider;
use crate::metrics::Metrics;
use crate::planted::Planted;
use crate::pools::Health;
use crate::process::{FeatureGates, Mode, Readiness, SoftLimit};
use crate::solver::Solver;
use crate::static_capacity::Attempts;
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
    /// Which optional features are on.
    pub gates: FeatureGates,
    /// Whether metrics and events tell of every pod, node, pool and claim.
    pub observability: Observability,
    /// Ends a batch when no new pod arrives for this long.
    pub batch_idle: Duration,
    /// Ends a batch at the latest.
    pub batch_max: Duration,
    /// A word that no other process uses; launch ids start with it.
    pub process_id: String,
    /// The mistake to make, in tests.
    pub planted: Planted,
    /// Whether the process acts or only observes.
    pub mode: Mode,
    /// Passes that may be under way at once.
    pub running_max: usize,
    /// How much memory should be enough.
    pub(crate) soft_limit: SoftLimit,
}

/// Shared by all reconcilers of one process. The cluster is locked for moments only, never across an await.
pub struct Context {
    pub(crate) client: Client,
    pub(crate) provider: Arc<dyn CloudProvider>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) solver: Arc<dyn Solver>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) recorder: Recorder,
    pub(crate) census: Census,
    pub(crate) readiness: Readiness,
    pub(crate) place_config: PlaceConfig,
    pub(crate) gates: FeatureGates,
    pub(crate) batch_idle: Duration,
    pub(crate) batch_max: Duration,
    pub(crate) planted: Planted,
    pub(crate) mode: Mode,
    pub(crate) running_max: usize,
    pub(crate) rehearsed: Rehearsed,
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
    /// Pods that the last plan put on claims which are not launched yet.
    pub(crate) expected: BTreeMap<ClaimName, Vec<PodKey>>,
    /// Since when a claim has reasons to show that are not written down yet.
    pub(crate) words_since: BTreeMap<ClaimName, Timestamp>,
    /// When the node of a claim was first seen.
    pub(crate) joined: BTreeMap<ClaimName, Timestamp>,
    /// The machines of the last plan, and when they were looked at.
    pub(crate) company: Option<(Timestamp, Arc<Company>)>,
    /// When the provider last asked for a pause before it launches a claim, and how long it is.
    pub(crate) launches_paused: BTreeMap<ClaimName, (Timestamp, Duration)>,
    /// When the provider last promised to end an instance that is not gone yet.
    pub(crate) ends_asked: BTreeMap<ClaimName, Timestamp>,
    /// The last pod event on each node of ours; its claim's status shows it later and less exactly.
    pub(crate) pod_events: BTreeMap<NodeName, Timestamp>,
    /// Since when a node has had pod events that its claim's status does not show.
    pub(crate) pod_events_since: BTreeMap<NodeName, Timestamp>,
    /// Since when claims have been put off because the scheduler is still at work.
    pub(crate) put_off_since: Option<Timestamp>,
    /// Provisioning passes finished by this process.
    pub(crate) passes: u64,
    /// Deletion costs that are still to be written.
    pub(crate) deletion_costs: deletion_cost::Ledger,
    /// When the window of the running pass closed.
    pub(crate) window_closed: Option<tokio::time::Instant>,
    /// What became of the claims of static pools.
    pub(crate) growth: BTreeMap<PoolName, Attempts>,
    /// How the last nodes of each pool fared.
    health: BTreeMap<PoolName, Health>,
    /// When the status of each pool was last written.
    pub(crate) counted: BTreeMap<PoolName, Timestamp>,
    /// Pods whose plan was told of by a process that only observes.
    observed_pods: BTreeSet<PodKey>,
    /// Claims whose end was told of by a process that only observes.
    pub(crate) observed_claims: BTreeSet<String>,
}

impl Notes {
    /// How the last nodes of this pool fared.
    pub(crate) fn health_of(&mut self, name: &PoolName, pool: &NodePool) -> &mut Health {
        if self.health.get(name).is_some_and(|health| !health.is_of(pool)) {
            self.health.remove(name);
        }
        self.health.entry(name.clone()).or_insert_with(|| Health::seeded(pool))
    }

    /// Nothing is kept of a pool that is gone.
    pub(crate) fn forget_pool(&mut self, name: &PoolName) {
        self.growth.remove(name);
        self.health.remove(name);
        self.counted.remove(name);
    }

    /// A claim is gone, and all that was noted about it.
    pub(crate) fn forget(&mut self, claim: &ClaimName) {
        self.fresh.remove(claim);
        self.expected.remove(claim);
        self.words_since.remove(claim);
        self.joined.remove(claim);
        self.ends_asked.remove(claim);
        self.launches_paused.remove(claim);
    }

    /// A node is gone, and all that was noted about it.
    pub(crate) fn forget_node(&mut self, node: &NodeName) {
        self.pod_events.remove(node);
        self.pod_events_since.remove(node);
    }

    /// Whether any of these pods was not told of yet; from now on they are.
    pub(crate) fn observed_pods(&mut self, pods: &[PodKey]) -> bool {
        let known = self.observed_pods.len();
        self.observed_pods.extend(pods.iter().cloned());
        self.observed_pods.len() > known
    }
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
            gates,
            observability,
            batch_idle,
            batch_max,
            process_id,
            planted,
            mode,
            running_max,
            soft_limit,
        } = parts;
        let provider: Arc<dyn CloudProvider> = Arc::new(MeasuredProvider::new(provider, Arc::clone(&metrics), mode));
        let kind = provider.node_class_kind();
        let managed = ManagedKind { group: kind.group.to_owned(), kind: kind.kind.to_owned() };
        let cluster = Cluster::new(provider.vocabulary(), managed)
            .with_default_spread(default_spread)
            .with_unsupported_volumes(provider.unsupported_volumes());
        let cluster = if gates.node_overlay { cluster.with_overlays() } else { cluster };
        let cluster = if gates.capacity_buffer { cluster.with_buffers() } else { cluster };
        let now = clock.now();
        let (signals, receiver) = mpsc::unbounded_channel();
        let recorder = match mode {
            Mode::Act => Recorder::start(client.clone(), Arc::clone(&clock)),
            Mode::Observe => Recorder::silent(),
        };
        let context = Self {
            client,
            provider,
            clock,
            solver,
            metrics,
            recorder,
            census: Census::new(observability, soft_limit, now),
            readiness,
            place_config,
            gates,
            batch_idle,
            batch_max,
            planted,
            mode,
            running_max,
            rehearsed: Rehearsed::default(),
            process_id,
            cluster: Mutex::new(cluster),
            notes: Mutex::new(Notes::default()),
            signals,
        };
        let context = Arc::new(context);
        context.metrics.collect_from(Arc::new(ClusterTold::new(&context)));
        (context, Signals(receiver))
    }

    /// The cluster, for a moment. A reader that panicked has not written, so its poison means nothing.
    pub(crate) fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The notes, for a moment.
    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose the deletion costs of pods are.
    pub(crate) fn deletion_costs(&self) -> DeletionCosts {
        if self.gates.pod_deletion_cost_management { DeletionCosts::Ours } else { DeletionCosts::Theirs }
    }

    /// Now.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Folds an object that a watch showed.
    pub(crate) fn apply(&self, object: Object) {
        let key = object.key();
        let wakes = self.cluster().apply(object);
        self.note(key.as_ref());
        self.send(wakes);
    }

    /// Folds the answer to one of our own writes.
    pub(crate) fn learn(&self, object: Object) {
        let key = object.key();
        let wakes = self.cluster().learn(object);
        self.note(key.as_ref());
        self.send(wakes);
    }

    /// Forgets an object.
    pub(crate) fn remove(&self, key: &Key) {
        let wakes = self.cluster().remove(key);
        self.note(Some(key));
        self.send(wakes);
    }

    /// Notes what became of an object, for metrics and events.
    fn note(&self, key: Option<&Key>) {
        if let Some(key) = key {
            self.census.note(self, key);
        }
    }

    /// Notes what a complete list of one kind no longer had.
    pub(crate) fn settle(&self, kind: Kind) {
        self.census.settle(self, kind);
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

    /// Notes a claim that was just made. Nothing has to be looked for at the provider when it is launched, unless our watch
    /// was faster than the answer: then somebody may have tried already.
    pub(crate) fn note_fresh(&self, claim: &ClaimName) {
        let is_seen = self.cluster().claim(claim).is_some();
        if !is_seen {
            self.notes().fresh.insert(claim.clone(), ());
        }
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
