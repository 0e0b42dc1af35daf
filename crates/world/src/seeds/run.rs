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

use super::draw::{Drawn, EMPTY, HEALED, SETTLED, draw};
use crate::blows::Blows;
use crate::check::{self, Machine, Rest, Timeline, Violation, history_hash};
use crate::controller::ControllerSettings;
use crate::effect::Effect;
use crate::fault::{Coverage, FaultPlan, PlannedFaults};
use crate::play::Player;
use crate::world::{World, WorldSettings, run_in_virtual_time, sleep_until};

/// How a seed is run.
#[derive(Clone, Debug, Default)]
pub struct RunSettings {
    /// Another plan than the drawn one.
    pub plan: Option<FaultPlan>,
    /// The mistake that the controllers make, in tests.
    pub planted: Planted,
    /// Tells of the writes to objects with this in their name.
    pub trace: Option<String>,
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
    /// The writes that were asked for, one line each.
    pub trace: Vec<String>,
}

/// Runs a seed. Fails only if the machine cannot run it at all.
pub fn run(seed: u64, settings: &RunSettings) -> Result<Report> {
    let mut drawn = draw(seed);
    if let Some(plan) = &settings.plan {
        drawn.plan = plan.clone();
    }
    run_in_virtual_time(seed, play(seed, drawn, settings))?
}

type Recorded = Arc<Mutex<Vec<(Timestamp, Arc<StoreEvent>)>>>;

async fn play(seed: u64, drawn: Drawn, run: &RunSettings) -> Result<Report> {
    // Nobody reads the plans of a seed: checkers know only what can be seen from outside.
    let settings = WorldSettings { keep_plans: false, ..WorldSettings::new(seed, drawn.scenario.cloud) };
    let world = World::start(settings);
    let recorded = record(&world);
    let faults = PlannedFaults::new(&drawn.plan);
    let mut settings = ControllerSettings {
        meddler: Some(Arc::clone(&faults) as _),
        planted: run.planted,
        ..ControllerSettings::default()
    };
    settings.environment.extend(drawn.scenario.settings.clone());
    let player = Player::new(&world);
    let blows = Blows::new(&world, drawn.processes);
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
        trace: run.trace.as_deref().map(|name| trace(&timeline, name)).unwrap_or_default(),
    })
}

/// Writes to objects with this in their name: when, who, what, and how it was answered.
fn trace(timeline: &Timeline, name: &str) -> Vec<String> {
    let named = timeline.writes.iter().filter(|record| record.name.as_deref().is_some_and(|own| own.contains(name)));
    let told = named.map(|record| {
        let part = record.subresource.as_deref().map(|part| format!("/{part}")).unwrap_or_default();
        let body = record.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        format!(
            "{} {} {} {}{part} {} {} {body}",
            record.at,
            record.actor,
            record.verb.as_str(),
            record.resource,
            record.name.as_deref().unwrap_or_default(),
            record.code,
        )
    });
    told.collect()
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
                milli_cpu: parse_quantity(&ResourceName::cpu(), &text("/status/capacity/cpu")).unwrap_or(0),
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
