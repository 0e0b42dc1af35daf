//! A world: an embedded Kubernetes, an embedded cloud, and controllers, on one thread and one clock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::definitions::{Flavour, custom_resource_definitions};
use jiff::Timestamp;
use model::{Plan, Snapshot};
use sim::{ApiServer, ServerSettings};
use sim_loops::{LoopSettings, Order, Pace};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::clock::{VirtualClock, WallClocks};
use crate::cloud::{AwsCloud, CloudPace};
use crate::process::Processes;
use crate::wire::{Caller, Wire, WirePace};

/// Which cloud a world has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloudKind {
    /// Machines are Node objects, made by the KWOK provider.
    Kwok,
    /// Machines are instances of the embedded AWS.
    Aws,
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldSettings {
    /// Everything that is left to chance follows from it.
    pub seed: u64,
    /// The cloud.
    pub cloud: CloudKind,
    /// Whether the API server keeps a history for checkers.
    pub keep_history: bool,
    /// Whether every plan is kept, with the snapshot it was made from, until somebody takes it.
    pub keep_plans: bool,
    /// The pace of the network.
    pub wire: WirePace,
    /// The pace of Kubernetes' own loops.
    pub loops: Pace,
    /// The pace of the cloud.
    pub machines: CloudPace,
}

impl WorldSettings {
    /// The usual paces.
    pub fn new(seed: u64, cloud: CloudKind) -> Self {
        Self {
            seed,
            cloud,
            keep_history: true,
            keep_plans: true,
            wire: WirePace::default(),
            loops: Pace::default(),
            machines: CloudPace::default(),
        }
    }
}

/// A solve that was made, with what it was made from.
#[derive(Clone, Debug)]
pub struct RecordedPlan {
    /// When.
    pub at: Timestamp,
    /// What the planner saw.
    pub snapshot: Arc<Snapshot>,
    /// What it decided.
    pub plan: Plan,
}

/// Every plan that was made, oldest first. Readers take from it; nobody else reads it.
#[derive(Clone, Debug, Default)]
pub struct PlanLog(Arc<Mutex<Plans>>);

#[derive(Debug, Default)]
struct Plans {
    made: u64,
    untaken: Vec<RecordedPlan>,
}

impl PlanLog {
    fn lock(&self) -> MutexGuard<'_, Plans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, plan: RecordedPlan) {
        let mut plans = self.lock();
        plans.made += 1;
        plans.untaken.push(plan);
    }

    /// How many plans were made.
    pub fn made(&self) -> u64 {
        self.lock().made
    }

    /// The plans since the last call.
    pub fn take(&self) -> Vec<RecordedPlan> {
        std::mem::take(&mut self.lock().untaken)
    }
}

/// Account names in the embedded API.
pub mod accounts {
    /// The person at the keyboard.
    pub const ADMINISTRATOR: &str = "kubernetes-admin";
    /// The controllers under test.
    pub const KARPENTER: &str = "system:serviceaccount:kube-system:karpenter";
    /// The cloud's own controller.
    pub const CLOUD_CONTROLLER: &str = "system:cloud-controller-manager";
}

/// An embedded cluster with its cloud. It ends with this value.
pub struct World {
    pub(crate) settings: WorldSettings,
    pub(crate) clock: VirtualClock,
    pub(crate) wall_clocks: WallClocks,
    pub(crate) server: ApiServer,
    pub(crate) wire: Wire,
    pub(crate) processes: Processes,
    pub(crate) plans: PlanLog,
    pub(crate) aws: Option<AwsCloud>,
    pub(crate) orders: mpsc::UnboundedSender<Order>,
    _tasks: JoinSet<()>,
}

impl World {
    /// Starts everything but the controllers. Must be called inside a runtime, see [`crate::runtime`].
    pub fn start(settings: WorldSettings) -> Self {
        let clock = VirtualClock::start();
        let now: Arc<dyn Fn() -> Timestamp + Send + Sync> = Arc::new(move || clock.timestamp());
        let server_settings =
            ServerSettings { seed: settings.seed, keep_history: settings.keep_history, watch_window: WATCH_WINDOW };
        let server = ApiServer::new(server_settings, Arc::clone(&now));
        install_definitions(&server, settings.cloud);
        let processes = Processes::default();
        let chance = Chance::of(settings.seed, "wire");
        let wire = Wire::new(server.clone(), settings.wire.clone(), chance, processes.clone());
        let mut tasks = JoinSet::new();
        let (orders, received) = mpsc::unbounded_channel();
        let loop_settings = LoopSettings { seed: settings.seed, pace: settings.loops.clone() };
        tasks.spawn(sim_loops::run(server.clone(), loop_settings, now, received));
        let aws = (settings.cloud == CloudKind::Aws).then(|| {
            let cloud = AwsCloud::new(settings.seed, settings.machines.clone(), clock);
            tasks.spawn(cloud.clone().run_machines(server.clone(), orders.clone()));
            tasks.spawn(cloud.clone().keep_classes(server.clone()));
            cloud
        });
        Self {
            settings,
            clock,
            wall_clocks: WallClocks::default(),
            server,
            wire,
            processes,
            plans: PlanLog::default(),
            aws,
            orders,
            _tasks: tasks,
        }
    }

    /// A client for the person at the keyboard; its calls take time but never go wrong.
    pub fn client(&self) -> kube::Client {
        let account = accounts::ADMINISTRATOR.to_owned();
        self.wire.client(Caller { account, process: "administrator".to_owned(), meddler: None })
    }

    /// The world's clock.
    pub fn clock(&self) -> VirtualClock {
        self.clock
    }

    /// What controllers take for the time, for those who set clocks wrong.
    pub fn wall_clocks(&self) -> &WallClocks {
        &self.wall_clocks
    }

    /// The network, for those who break watches.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// The API server, for those who read its history or serve it.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The embedded AWS, if this world has one.
    pub fn aws(&self) -> Option<&AwsCloud> {
        self.aws.as_ref()
    }

    /// The plans that were made.
    pub fn plans(&self) -> &PlanLog {
        &self.plans
    }

    /// Tells Kubernetes' own loops about machines.
    pub fn order(&self, order: Order) {
        // The loops end only with the world.
        let _ = self.orders.send(order);
    }

    /// Breaks every watch and forgets old revisions: watchers have to list again.
    pub fn compact(&self) {
        self.server.compact();
        self.wire.break_watches();
    }
}

/// Watch events kept per kind. Ten thousand are minutes of a busy cluster, as etcd's compaction leaves them.
const WATCH_WINDOW: usize = 10_000;

/// # Panics
///
/// If the server refuses our own definitions, which means that this build is broken.
fn install_definitions(server: &ApiServer, cloud: CloudKind) {
    let hands = server.act(accounts::ADMINISTRATOR);
    let flavour = match cloud {
        CloudKind::Aws => Flavour::Eks,
        CloudKind::Kwok => Flavour::Kwok,
    };
    for definition in custom_resource_definitions(flavour) {
        if let Err(status) = hands.create(&definition) {
            panic!("the embedded API server refuses {:?}: {status:?}", definition.metadata.name);
        }
    }
}

/// Runs a future in virtual time, on one thread, with all chance from the seed.
pub fn run_in_virtual_time<T>(seed: u64, future: impl Future<Output = T>) -> std::io::Result<T> {
    Ok(virtual_runtime(seed).build()?.block_on(future))
}

/// A runtime of one thread whose time moves only when everybody waits.
pub(crate) fn virtual_runtime(seed: u64) -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()));
    builder
}

/// Sleeps until a time since the beginning of a world.
pub async fn sleep_until(clock: VirtualClock, at: Duration) {
    if let Some(left) = at.checked_sub(clock.elapsed()) {
        tokio::time::sleep(left).await;
    }
}
