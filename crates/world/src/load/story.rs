//! The story: a cluster is made, a controller starts and is killed, another one works through an hour of changes, and a
//! last one finds a crowd of pods that wait.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;

use super::churn::{Churn, Progress};
use super::cluster::{self, Workload};
use super::figures::Spread;
use super::instruments::Instruments;
use super::ledger::Ledger;
use super::passes::Passes;
use super::report::{Report, Start, Window};
use super::settings::LoadSettings;
use super::shares::Shares;
use crate::controller::{Controller, ControllerSettings};
use crate::world::{CloudKind, World, WorldSettings, virtual_runtime};

/// Pods that wait when a controller starts in the middle of the story, one for so many that run.
const WAITING_SHARE: usize = 300;
/// Virtual time in which a controller that starts has to decide about all pods that wait.
const PATIENCE: Duration = Duration::from_secs(600);
/// Virtual time for everything to come to rest.
const REST: Duration = Duration::from_secs(60);
/// How often somebody looks whether it has.
const LOOK: Duration = Duration::from_millis(100);

/// Plays the whole story. `told` hears each window as it ends.
///
/// Fails if the cluster cannot be made or a controller never decides; demands that are missed are in the report.
pub fn run(settings: &LoadSettings, instruments: Instruments, told: &mut dyn FnMut(&Window)) -> Result<Report> {
    let shares = Shares::default();
    let mut builder = virtual_runtime(settings.seed);
    shares.watch(&mut builder, instruments.elapsed);
    let runtime = builder.build()?;
    let world = runtime.block_on(async { World::start(world_settings(settings)) });
    let mut stage = Stage {
        ledger: Ledger::default(),
        passes: Passes::default(),
        heap: 0,
        report: Report { settings: settings.clone(), ..Report::default() },
        runtime,
        world,
        settings,
        instruments,
        shares,
    };
    let listener = stage.passes.watch(instruments.elapsed, stage.world.plans().clone());
    tracing::subscriber::with_default(listener, || stage.play(told))?;
    Ok(stage.report)
}

/// Nothing is kept of the past, the scheduler is quick, workload controllers are as slow as those of a large cluster, and
/// nobody writes events but the controllers that are measured.
fn world_settings(settings: &LoadSettings) -> WorldSettings {
    let mut found = WorldSettings::new(settings.seed, CloudKind::Kwok);
    found.keep_history = false;
    found.loops.scheduler = sim_loops::Span::millis(0, 2);
    found.loops.controller = sim_loops::Span::millis(50, 500);
    found.loops.events = sim_loops::EventDetail::None;
    found
}

fn controller_settings() -> ControllerSettings {
    ControllerSettings::default().with("DISABLE_LEADER_ELECTION", "true")
}

struct Stage<'a> {
    settings: &'a LoadSettings,
    instruments: Instruments,
    runtime: Runtime,
    world: World,
    ledger: Ledger,
    passes: Passes,
    shares: Shares,
    /// Bytes allocated since the beginning.
    heap: i64,
    report: Report,
}

/// Who runs, and which start it was.
struct Running {
    controller: Controller,
    start: usize,
}

impl Stage<'_> {
    fn play(&mut self, told: &mut dyn FnMut(&Window)) -> Result<()> {
        let workloads = self.make_cluster()?;
        let waiting = (self.settings.pods / WAITING_SHARE).max(1);
        let first = self.start("first start", waiting)?;
        self.kill(first)?;
        let second = self.start("killed and started again", waiting)?;
        self.change(&workloads, told)?;
        self.kill(second)?;
        if self.settings.pending > 0 {
            let last = self.start("start with a crowd", self.settings.pending)?;
            self.kill(last)?;
        }
        Ok(())
    }

    /// Runs a part of the story; how many bytes it left allocated.
    fn part<T>(&mut self, part: impl AsyncFnOnce(&World, &Ledger) -> Result<T>) -> Result<(T, i64)> {
        let Self { runtime, world, ledger, instruments, .. } = self;
        let mut part = Some(part);
        let mut result = None;
        let grown = (instruments.heap)(&mut || {
            if let Some(part) = part.take() {
                result = Some(runtime.block_on(part(world, ledger)));
            }
        });
        self.heap += grown;
        Ok((result.context("a part was not played")??, grown))
    }

    fn make_cluster(&mut self) -> Result<Vec<Workload>> {
        let settings = self.settings;
        let began = (self.instruments.elapsed)();
        let (workloads, grown) = self.part(async |world, ledger| {
            let following = ledger.clone().follow(world.server().clone(), world.plans().clone(), world.clock());
            tokio::spawn(following);
            cluster::found(world, settings, &controller_settings()).await?;
            let nodes = cluster::grow(world, settings).await?;
            let workloads = cluster::deploy(world, settings)?;
            tokio::time::sleep(REST).await;
            for (pool, nodes) in nodes.iter().enumerate() {
                let namespace = cluster::pool_name(pool);
                let own: Vec<Workload> =
                    workloads.iter().filter(|workload| workload.namespace == namespace).cloned().collect();
                cluster::populate(world, &own, nodes)?;
                tokio::time::sleep(REST).await;
            }
            let (running, wanted) = (ledger.running(), settings.pods);
            if running != wanted {
                bail!("{running} of {wanted} pods run");
            }
            Ok(workloads)
        })?;
        self.report.made_in = (self.instruments.elapsed)().saturating_sub(began);
        self.report.cluster_bytes = grown;
        self.report.cluster_resident_bytes = (self.instruments.resident_bytes)();
        Ok(workloads)
    }

    /// Lets pods wait, starts a controller, and waits until it has decided about all of them.
    fn start(&mut self, title: &str, pending: usize) -> Result<Running> {
        let settings = self.settings;
        let start = self.report.starts.len();
        self.part(async |world, ledger| {
            cluster::crowd(world, settings, &format!("crowd-{start}"), pending)?;
            tokio::time::sleep(REST).await;
            ledger.decide_anew(world.clock().timestamp());
            Ok(())
        })?;
        self.shares.take();
        self.passes.take();
        self.ledger.take();
        let (nodes, pods, pending) = (self.ledger.count("nodes"), self.ledger.count("pods"), self.ledger.undecided());
        let elapsed = self.instruments.elapsed;
        let began = elapsed();
        let mut first_plan = Duration::ZERO;
        let (controller, heap_bytes) = self.part(async |world, ledger| {
            let plans = world.plans().made();
            let controller = world.start_controller("alpha", &controller_settings())?;
            let deadline = world.clock().elapsed() + PATIENCE;
            while world.plans().made() == plans || !ledger.is_settled() {
                if world.clock().elapsed() > deadline {
                    let (left, made) = (ledger.undecided(), world.plans().made() - plans);
                    bail!("{left} of {pending} pods are not decided about after {made} plans");
                }
                tokio::time::sleep(LOOK).await;
                ledger.hear_plans(world.plans());
                if first_plan.is_zero() && world.plans().made() > plans {
                    first_plan = elapsed().saturating_sub(began);
                }
            }
            Ok(controller)
        })?;
        let all_claims = elapsed().saturating_sub(began);
        self.report.starts.push(Start {
            title: title.to_owned(),
            nodes,
            pods,
            pending,
            first_plan,
            all_claims,
            used: self.shares.take(),
            claims: self.ledger.take().claims_made,
            heap_bytes,
            resident_bytes: (self.instruments.resident_bytes)(),
            held_bytes: 0,
        });
        Ok(Running { controller, start })
    }

    /// Kills a controller, and reads what it held.
    fn kill(&mut self, mut running: Running) -> Result<()> {
        let ((), grown) = self.part(async |_, _| {
            running.controller.kill();
            running.controller.ended().await;
            drop(running.controller);
            // Its watches and calls end when they notice.
            tokio::time::sleep(LOOK).await;
            Ok(())
        })?;
        if let Some(start) = self.report.starts.get_mut(running.start) {
            start.held_bytes = -grown;
        }
        Ok(())
    }

    fn change(&mut self, workloads: &[Workload], told: &mut dyn FnMut(&Window)) -> Result<()> {
        let settings = self.settings;
        self.part(async |_, _| {
            tokio::time::sleep(REST).await;
            Ok(())
        })?;
        let mut churn = Progress::default();
        self.ledger.take();
        let mut from = Duration::ZERO;
        while from < settings.length() {
            let length = settings.window().min(settings.length() - from);
            self.shares.take();
            self.passes.take();
            let (began, processor) = ((self.instruments.elapsed)(), (self.instruments.processor)());
            self.part(async |world, ledger| {
                let mut changes = Churn::new(world, settings, workloads, ledger.clone(), &mut churn);
                changes.go_on(length).await
            })?;
            let seen = self.ledger.take();
            let passes = self.passes.take();
            let window = Window {
                from,
                until: from + length,
                pod_changes: seen.pod_changes,
                other_changes: seen.other_changes,
                plans: seen.plans,
                decisions: Spread::of(passes.decisions),
                lags: Spread::of(seen.lags),
                claims_made: seen.claims_made,
                claims_gone: seen.claims_gone,
                nodes: self.ledger.count("nodes"),
                pods: self.ledger.count("pods"),
                undecided: self.ledger.undecided(),
                real: (self.instruments.elapsed)().saturating_sub(began),
                processor: (self.instruments.processor)().saturating_sub(processor),
                used: self.shares.take(),
                heap_bytes: self.heap,
                resident_bytes: (self.instruments.resident_bytes)(),
                passes: passes.controllers,
            };
            told(&window);
            self.report.windows.push(window);
            from += length;
        }
        Ok(())
    }
}
