//! One run: a world, a story, faults, and what the checkers say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use controllers::planted::Planted;
use futures::future::{Either, select};
use jiff::Timestamp;
use model::{ResourceName, parse_quantity};
use sim::StoreEvent;
use sim_loops::Order;

use super::draw::{Drawn, EMPTY, HEALED, SETTLED, draw};
use crate::chance::Chance;
use crate::check::{self, Machine, Rest, Timeline, Violation, history_hash};
use crate::cloud::Boots;
use crate::controller::ControllerSettings;
use crate::effect::Effect;
use crate::fault::{Blow, Coverage, Fault, FaultPlan, PlannedFaults};
use crate::play::Player;
use crate::world::{World, WorldSettings, run_in_virtual_time, sleep_until};

/// How a seed is run.
#[derive(Clone, Debug, Default)]
pub struct RunSettings {
    /// Another plan than the drawn one.
    pub plan: Option<FaultPlan>,
    /// The mistake that the controllers make, in tests.
    pub planted: Planted,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What went wrong by plan.
    pub plan: FaultPlan,
    /// The whole API history in one number.
    pub hash: u64,
    /// Calls to the API.
    pub calls: usize,
    /// Virtual time.
    pub elapsed: Duration,
    /// Effects, and how often they happened.
    pub seen: BTreeMap<Effect, u32>,
    /// Faults of calls that hit.
    pub coverage: Coverage,
    /// Blows that hit.
    pub blows: BTreeMap<&'static str, u64>,
    /// Rules that were broken.
    pub violations: Vec<Violation>,
}

/// How long a blow lasts.
const BLOW: Duration = Duration::from_secs(300);

/// Runs a seed. Fails only if the machine cannot run it at all.
pub fn run(seed: u64, settings: &RunSettings) -> Result<Report> {
    let mut drawn = draw(seed);
    if let Some(plan) = &settings.plan {
        drawn.plan = plan.clone();
    }
    run_in_virtual_time(seed, play(seed, drawn, settings.planted))?
}

type Recorded = Arc<Mutex<Vec<(Timestamp, Arc<StoreEvent>)>>>;

async fn play(seed: u64, drawn: Drawn, planted: Planted) -> Result<Report> {
    // Nobody reads the plans of a seed: checkers know only what can be seen from outside.
    let settings = WorldSettings { keep_plans: false, ..WorldSettings::new(seed, drawn.scenario.cloud) };
    let world = World::start(settings);
    let recorded = record(&world);
    let faults = PlannedFaults::new(&drawn.plan);
    let mut settings =
        ControllerSettings { meddler: Some(Arc::clone(&faults) as _), planted, ..ControllerSettings::default() };
    settings.environment.extend(drawn.scenario.settings.clone());
    let player = Player::new(&world);
    let blows = Blows { world: &world, chance: Chance::of(seed, "blows"), processes: drawn.processes };
    let story = async {
        let (played, hit, ()) = tokio::join!(player.play(&drawn.scenario), blows.strike_all(&drawn.plan), async {
            sleep_until(world.clock(), HEALED).await;
            faults.heal();
        });
        played.map(|()| hit)
    };
    let kept = world.keep_running(drawn.processes, &settings, drawn.pause);
    let hit = match select(Box::pin(story), Box::pin(kept)).await {
        Either::Left((hit, _)) => hit?,
        Either::Right((ended, _)) => {
            ended?;
            anyhow::bail!("the controllers are not kept running any more")
        }
    };
    let history = world.server().history();
    let events = std::mem::take(&mut *recorded.lock().unwrap_or_else(PoisonError::into_inner));
    let machines = machines(&world, &events);
    let timeline = Timeline::new(events, &history, machines);
    // A moment before the next step begins.
    let moment = |at: Duration| world.clock().beginning() + (at - Duration::from_secs(1));
    let rest = Rest { settled: moment(SETTLED), empty: moment(EMPTY) };
    Ok(Report {
        seed,
        plan: drawn.plan,
        hash: history_hash(&history),
        calls: history.len(),
        elapsed: world.clock().elapsed(),
        seen: faults.seen(),
        coverage: faults.coverage(),
        blows: hit,
        violations: check::check(&timeline, rest),
    })
}

/// Writes down every change with its time.
fn record(world: &World) -> Recorded {
    let recorded = Recorded::default();
    let (writing, clock, mut news) = (Arc::clone(&recorded), world.clock(), world.server().subscribe());
    tokio::spawn(async move {
        while let Some(event) = news.next().await {
            writing.lock().unwrap_or_else(PoisonError::into_inner).push((clock.timestamp(), event));
        }
    });
    recorded
}

/// The machines there ever were: instances, or the Nodes that stand for them.
fn machines(world: &World, events: &[(Timestamp, Arc<StoreEvent>)]) -> Vec<Machine> {
    world.aws().map_or_else(|| kwok_machines(events), |aws| aws.machines())
}

fn kwok_machines(events: &[(Timestamp, Arc<StoreEvent>)]) -> Vec<Machine> {
    let mut machines: Vec<Machine> = Vec::new();
    for (at, event) in events.iter().filter(|(_, event)| event.key.resource == "nodes") {
        let node: serde_json::Value = serde_json::from_slice(&event.object).unwrap_or_default();
        let text =
            |pointer: &str| node.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let amount = |name: &str| {
            let quantity = text(&format!("/status/capacity/{name}"));
            parse_quantity(&ResourceName::new(name), &quantity).unwrap_or(0)
        };
        let id = text("/spec/providerID");
        if !id.starts_with("kwok://") {
            continue;
        }
        match event.change {
            sim::Change::Added => machines.push(Machine {
                id,
                // The KWOK provider names a node's host after its claim.
                claim: text("/metadata/labels/kubernetes.io~1hostname"),
                pool: text("/metadata/labels/karpenter.sh~1nodepool"),
                milli_cpu: amount("cpu"),
                memory: amount("memory"),
                started: *at,
                ended: None,
            }),
            sim::Change::Modified => {}
            sim::Change::Deleted => {
                if let Some(machine) = machines.iter_mut().rev().find(|machine| machine.id == id) {
                    machine.ended = Some(*at);
                }
            }
        }
    }
    machines
}

/// Strikes a plan's blows at their times.
struct Blows<'a> {
    world: &'a World,
    chance: Chance,
    processes: &'static [&'static str],
}

impl Blows<'_> {
    async fn strike_all(&self, plan: &FaultPlan) -> BTreeMap<&'static str, u64> {
        let blows = plan.faults.iter().filter_map(|fault| match fault {
            Fault::Blow { at, blow } => Some((*at, *blow)),
            Fault::Call { .. } => None,
        });
        let struck = futures::future::join_all(blows.map(|(at, blow)| async move {
            sleep_until(self.world.clock(), at).await;
            (blow, self.strike(blow).await)
        }));
        let mut hits = BTreeMap::new();
        for (blow, _) in struck.await.into_iter().filter(|(_, hit)| *hit) {
            *hits.entry(blow.name()).or_insert(0) += 1;
        }
        hits
    }

    /// Whether there was something to strike.
    async fn strike(&self, blow: Blow) -> bool {
        match blow {
            Blow::Kill => {
                let victim = self.chance.choose(self.processes).copied().unwrap_or_default();
                self.world.processes.kill(victim);
                true
            }
            Blow::Compaction => {
                self.world.compact();
                true
            }
            Blow::Silence => self.silence().await,
            Blow::Interruption | Blow::Crash | Blow::SoldOut | Blow::NeverJoins | Blow::JoinsLate => {
                self.strike_cloud(blow).await
            }
        }
    }

    async fn strike_cloud(&self, blow: Blow) -> bool {
        let Some(aws) = self.world.aws() else { return false };
        match blow {
            Blow::Interruption => aws.interrupt_any(&self.chance),
            Blow::Crash => aws.crash_any(&self.chance),
            Blow::SoldOut => {
                aws.set_sold_out(self.world.clock().timestamp() + BLOW);
                true
            }
            Blow::NeverJoins | Blow::JoinsLate => {
                aws.set_boots(if blow == Blow::NeverJoins { Boots::Never } else { Boots::Late });
                tokio::time::sleep(BLOW).await;
                aws.set_boots(Boots::Normally);
                true
            }
            Blow::Kill | Blow::Compaction | Blow::Silence => false,
        }
    }

    async fn silence(&self) -> bool {
        use kube::ResourceExt;
        let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(self.world.client());
        let ours = kube::api::ListParams::default().labels("karpenter.sh/nodepool");
        let Ok(listed) = nodes.list(&ours).await else { return false };
        let names: Vec<String> = listed.items.iter().map(ResourceExt::name_any).collect();
        let Some(name) = self.chance.choose(&names) else { return false };
        self.world.order(Order::Silence(name.clone()));
        tokio::time::sleep(BLOW).await;
        self.world.order(Order::Speak(name.clone()));
        true
    }
}
