//! Controllers as processes of a world.

use std::sync::Arc;
use std::time::Duration;

use cloud::CloudProvider;
use controllers::clock::Clock;
use controllers::metrics::{Build, Metrics, Naming};
use controllers::planted::Planted;
use controllers::process::{Calls, Options, Program, Readiness};
use controllers::run::{Operation, operate};
use controllers::solver::Solver;
use futures::FutureExt;
use futures::future::BoxFuture;
use karpenter_kwok::{KwokProvider, instance_types};
use model::{Plan, Snapshot};
use planner::PlaceConfig;

use crate::chance::Chance;
use crate::clock::{VirtualClock, WallClock};
use crate::cloud::MeddledProvider;
use crate::fault::Meddler;
use crate::process::{End, Ending};
use crate::wire::Caller;
use crate::world::{CloudKind, PlanLog, RecordedPlan, World, accounts};

/// How a controller is started.
#[derive(Clone, Default)]
pub struct ControllerSettings {
    /// Environment variables, as the binaries read them.
    pub environment: Vec<(String, String)>,
    /// Decides which of its calls go wrong.
    pub meddler: Option<Arc<dyn Meddler>>,
    /// The mistake to make, in tests.
    pub planted: Planted,
    /// What stands between the controllers and their provider, in tests.
    pub around: Option<Around>,
}

/// Puts a provider around another.
pub type Around = Arc<dyn Fn(Arc<dyn CloudProvider>) -> Arc<dyn CloudProvider> + Send + Sync>;

impl ControllerSettings {
    /// With one more environment variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A controller that was started; it goes on without this value.
pub struct Controller {
    name: String,
    processes: crate::process::Processes,
    ending: Ending,
    metrics: Arc<Metrics>,
    readiness: Readiness,
}

impl Controller {
    /// Kills it where it stands.
    pub fn kill(&self) {
        self.processes.kill(&self.name);
    }

    /// Asks it to stop in order.
    pub fn stop(&self) {
        self.processes.stop(&self.name);
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> End {
        self.ending.wait().await
    }

    /// Its metrics as the endpoint would show them.
    pub fn metrics(&self) -> String {
        self.metrics.scrape()
    }

    /// How far it is, as its probe would say once its resources were looked up.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }
}

const PROGRAM: Program = Program {
    name: "karpenter",
    version: env!("CARGO_PKG_VERSION"),
    about: "Karpenter in a world",
    provider_flags: &[],
};

impl World {
    /// Starts a controller. One of the same name that still runs is killed first.
    ///
    /// Fails if the settings are none that a binary would take.
    pub fn start_controller(&self, name: &str, settings: &ControllerSettings) -> anyhow::Result<Controller> {
        let environment = |key: &str| {
            let own = settings.environment.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
            own.or_else(|| (key == "SYSTEM_NAMESPACE").then(|| "kube-system".to_owned()))
        };
        let options = Options::from_args(&PROGRAM, std::iter::empty::<String>(), &environment)?;
        let caller = Caller {
            account: accounts::KARPENTER.to_owned(),
            process: name.to_owned(),
            meddler: settings.meddler.clone(),
        };
        let calls = Calls::new(&options);
        let client = calls.client(self.wire.client(caller.clone()));
        let clock = WallClock::of(name, self.clock, &self.wall_clocks);
        let Wired { provider, on_leading } = self.provider(client.clone(), caller, clock.clone());
        let provider = settings.around.as_ref().map_or(Arc::clone(&provider), |around| around(provider));
        let metrics = Arc::new(Metrics::new(&build(), Naming::of(provider.as_ref())));
        metrics.collect_from(calls);
        let launches = Chance::of(self.settings.seed, &format!("{name} at {}", self.clock.elapsed().as_nanos()));
        let readiness = Readiness::default();
        let operation = Operation {
            options,
            client,
            provider,
            clock: Arc::new(clock),
            solver: Arc::new(RecordingSolver {
                clock: self.clock,
                plans: self.settings.keep_plans.then(|| self.plans.clone()),
            }),
            metrics: Arc::clone(&metrics),
            readiness: readiness.clone(),
            host_name: name.to_owned(),
            process_id: launches.word(),
            on_leading,
            planted: settings.planted,
        };
        let ending = self.processes.start(name, |stop| async move {
            let stopping = async {
                if stop.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            operate(operation, stopping).await.map_err(|error| error.to_string())
        });
        Ok(Controller { name: name.to_owned(), processes: self.processes.clone(), ending, metrics, readiness })
    }

    /// Keeps controllers of these names running: one that ends is started again after a pause. Never returns but with
    /// an error.
    pub async fn keep_running(
        &self,
        names: &[&str],
        settings: &ControllerSettings,
        pause: Duration,
    ) -> anyhow::Result<()> {
        let keep = |name: &str| {
            let name = name.to_owned();
            async move {
                loop {
                    let mut controller = self.start_controller(&name, settings)?;
                    controller.ended().await;
                    tokio::time::sleep(pause).await;
                }
            }
        };
        let kept: Vec<BoxFuture<'_, anyhow::Result<()>>> = names.iter().map(|name| keep(name).boxed()).collect();
        futures::future::try_join_all(kept).await.map(|_| ())
    }

    fn provider(&self, client: kube::Client, caller: Caller, clock: WallClock) -> Wired {
        match (&self.aws, self.settings.cloud) {
            (Some(aws), CloudKind::Aws) => {
                let provider = Arc::new(aws.provider(client));
                let provider = MeddledProvider::new(provider, caller, self.processes.clone(), self.settings.seed);
                Wired { provider: Arc::new(provider), on_leading: std::future::ready(()).boxed() }
            }
            _ => {
                let kwok = Arc::new(KwokProvider::new(client.clone(), instance_types::built_in().into()));
                let resuming = karpenter_kwok::resume_launches(client, Arc::clone(&kwok), move || clock.now());
                let provider = MeddledProvider::new(kwok, caller, self.processes.clone(), self.settings.seed);
                Wired { provider: Arc::new(provider), on_leading: resuming.boxed() }
            }
        }
    }
}

struct Wired {
    provider: Arc<dyn CloudProvider>,
    on_leading: BoxFuture<'static, ()>,
}

fn build() -> Build {
    Build {
        version: PROGRAM.version.to_owned(),
        goversion: "rust".to_owned(),
        goarch: "simulated".to_owned(),
        commit: "unknown".to_owned(),
    }
}

/// Solves inline and writes every plan down, if somebody wants to read them.
struct RecordingSolver {
    clock: VirtualClock,
    plans: Option<PlanLog>,
}

impl Solver for RecordingSolver {
    fn solve(&self, snapshot: Arc<Snapshot>, config: PlaceConfig) -> BoxFuture<'static, Option<Plan>> {
        let plan = planner::place(&snapshot, &config);
        if let Some(plans) = &self.plans {
            plans.push(RecordedPlan { at: self.clock.timestamp(), snapshot, plan: plan.clone() });
        }
        std::future::ready(Some(plan)).boxed()
    }

    fn room_to_spare(&self, snapshot: Arc<Snapshot>, plan: Arc<Plan>) -> BoxFuture<'static, Option<Snapshot>> {
        std::future::ready(planner::room_to_spare(&snapshot, &plan)).boxed()
    }
}
