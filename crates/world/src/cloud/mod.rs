//! The cloud of a world: the embedded AWS behind a line with latency, its machines, and the provider that uses it.

mod classes;
mod fleet;
mod machines;
mod meddled;
mod provider;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sim::{Aws, AwsSettings, CapacityType, Instance, Span};
use catalogue::Catalogue;
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::chance::Chance;
use crate::check::Machine;
use crate::clock::VirtualClock;

pub use fleet::tags;
pub use meddled::MeddledProvider;
pub use provider::AwsProvider;

/// The region of every world.
pub const REGION: &str = "us-east-1";
/// The zones in use, each with a subnet.
pub const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];

/// Longer than any story.
const REMEMBERED: Duration = Duration::from_secs(1000 * 3600);

/// How long things take in the cloud.
#[derive(Clone, Debug)]
pub struct CloudPace {
    /// A call to AWS, there and back.
    pub call: RangeInclusive<Duration>,
    /// From a running instance to its kubelet's first word.
    pub boot: RangeInclusive<Duration>,
    /// How much longer a boot takes when a fault plan wants it late.
    pub late_boot: RangeInclusive<Duration>,
}

impl Default for CloudPace {
    fn default() -> Self {
        Self {
            call: Duration::from_millis(40)..=Duration::from_millis(900),
            boot: Duration::from_secs(15)..=Duration::from_secs(45),
            late_boot: Duration::from_secs(120)..=Duration::from_secs(600),
        }
    }
}

/// What befalls instances that start now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boots {
    /// They join.
    #[default]
    Normally,
    /// They join late.
    Late,
    /// They never join.
    Never,
}

/// The embedded AWS, shared by everybody who calls it.
#[derive(Clone)]
pub struct AwsCloud {
    aws: Arc<Mutex<Aws>>,
    /// Told whenever somebody called, because the next change may be another now.
    called: Arc<Notify>,
    boots: Arc<Mutex<Boots>>,
    pace: CloudPace,
    chance: Chance,
    clock: VirtualClock,
}

impl AwsCloud {
    /// A healthy region.
    pub fn new(seed: u64, pace: CloudPace, clock: VirtualClock) -> Self {
        let mut settings = AwsSettings::new(seed, REGION, ZONES);
        // Checkers ask at the end for every instance there ever was.
        settings.delays.forgotten = Span::exactly(REMEMBERED);
        let aws = Aws::new(settings, Catalogue::bundled());
        Self {
            aws: Arc::new(Mutex::new(aws)),
            called: Arc::new(Notify::new()),
            boots: Arc::default(),
            pace,
            chance: Chance::of(seed, "cloud"),
            clock,
        }
    }

    /// A provider for one process.
    pub fn provider(&self, client: kube::Client) -> AwsProvider {
        AwsProvider::new(self.clone(), client)
    }

    pub(crate) fn aws(&self) -> MutexGuard<'_, Aws> {
        self.aws.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.timestamp()
    }

    /// A call over the network. It is carried out although the caller may be gone before the answer.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Aws, Timestamp) -> T + Send + 'static,
    ) -> Option<T> {
        let cloud = self.clone();
        let carried = tokio::spawn(async move {
            let half = cloud.chance.duration(&cloud.pace.call) / 2;
            tokio::time::sleep(half).await;
            let answer = call(&mut cloud.aws(), cloud.now());
            cloud.called.notify_one();
            tokio::time::sleep(half).await;
            answer
        });
        carried.await.ok()
    }

    /// What befalls instances from now on.
    pub fn set_boots(&self, boots: Boots) {
        *self.boots.lock().unwrap_or_else(PoisonError::into_inner) = boots;
    }

    fn boots(&self) -> Boots {
        *self.boots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing can be bought until then.
    pub fn set_sold_out(&self, until: Timestamp) {
        use aws_sim::{FaultPlan, FleetErrorCode, PoolFault, PoolPattern, Window};
        let window = Window { from: self.now(), until };
        let fault =
            PoolFault { pools: PoolPattern::default(), window, code: FleetErrorCode::InsufficientInstanceCapacity };
        self.aws().add_faults(FaultPlan { pools: vec![fault], ..FaultPlan::default() });
    }

    /// Instances that run now.
    pub fn running(&self) -> Vec<Instance> {
        let aws = self.aws();
        let mut running: Vec<Instance> = aws.instances().filter(|instance| instance.is_alive()).cloned().collect();
        running.sort_by(|one, other| one.id.cmp(&other.id));
        running
    }

    /// Takes a spot instance back: a warning now, the end two minutes later. Whether there was one.
    pub fn interrupt_any(&self, chance: &Chance) -> bool {
        let spots: Vec<Instance> =
            self.running().into_iter().filter(|instance| instance.capacity_type == CapacityType::Spot).collect();
        let Some(chosen) = chance.choose(&spots) else { return false };
        let interrupted = self.aws().interrupt(self.now(), &chosen.id).is_ok();
        self.called.notify_one();
        interrupted
    }

    /// Ends an instance without a warning. Whether there was one.
    pub fn crash_any(&self, chance: &Chance) -> bool {
        let running = self.running();
        let Some(chosen) = chance.choose(&running) else { return false };
        let crashed = self.aws().terminate_instances(self.now(), std::slice::from_ref(&chosen.id)).is_ok();
        self.called.notify_one();
        crashed
    }

    /// Every instance there ever was, for checkers.
    pub fn machines(&self) -> Vec<Machine> {
        let catalogue = Catalogue::bundled();
        let aws = self.aws();
        let tag = |tags: &BTreeMap<String, String>, key: &str| tags.get(key).cloned().unwrap_or_default();
        let mut machines: Vec<Machine> = aws
            .instances()
            .map(|instance| {
                let facts = catalogue.instance_type(&instance.instance_type);
                Machine {
                    id: instance.id.to_string(),
                    claim: tag(&instance.tags, tags::CLAIM),
                    pool: tag(&instance.tags, tags::POOL),
                    milli_cpu: facts.map_or(0, |facts| i64::from(facts.vcpus) * 1000),
                    started: instance.launched_at,
                    ended: instance.ending_at,
                }
            })
            .collect();
        machines.sort_by(|one, other| (one.started, &one.id).cmp(&(other.started, &other.id)));
        machines
    }
}
