//! The embedded world that is ready for the controller: everything in this process, in virtual time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use sim::{ApiServer, ServerSettings};
use world::accounts::ADMINISTRATOR;
use world::clock::VirtualClock;
use world::process::End;
use world::{Call, CallFault, CloudKind, Meddler, World, WorldSettings, run_in_virtual_time};

use crate::bed::{Bed, Controller, ControllerSettings, Target, Wait};
use crate::by_client;
use crate::kill::{KillEverywhere, Side, effect};
use crate::weather::{Fate, Sky};

/// Each seed is another order of everything that happens at once. Three cost less than a second.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;
/// More than any test writes, so that no watch is too old by itself.
const WATCH_WINDOW: usize = 10_000;

/// An embedded cluster with the KWOK provider. What a person does is done with a client, and the controller is a set of
/// tasks that can be killed where they stand.
pub struct WorldBed {
    world: World,
    observer: Mutex<Option<Arc<Observer>>>,
    sky: Sky,
    is_cut_off: Arc<AtomicBool>,
}

impl WorldBed {
    fn observer(&self) -> MutexGuard<'_, Option<Arc<Observer>>> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bed for WorldBed {
    type Controller = WorldController;

    fn run(story: impl AsyncFn(&Self) -> Result<()>) -> Result<()> {
        for seed in SEEDS {
            let told = run_in_virtual_time(seed, async {
                let world = World::start(WorldSettings::new(seed, CloudKind::Kwok));
                story(&Self { world, observer: Mutex::default(), sky: Sky::default(), is_cut_off: Arc::default() })
                    .await
            });
            told.context("start a runtime")?.with_context(|| format!("in the world of seed {seed}"))?;
        }
        Ok(())
    }

    fn run_on_api_server(story: impl AsyncFn(Client) -> Result<()>) -> Result<()> {
        let told = run_in_virtual_time(*SEEDS.start(), async {
            let clock = VirtualClock::start();
            let settings = ServerSettings { seed: *SEEDS.start(), keep_history: false, watch_window: WATCH_WINDOW };
            let server = ApiServer::new(settings, Arc::new(move || clock.timestamp()));
            story(server.client(ADMINISTRATOR)).await
        });
        told.context("start a runtime")?
    }

    fn client(&self) -> Client {
        self.world.client()
    }

    async fn apply(&self, manifest: &str) -> Result<()> {
        by_client::apply(&self.client(), manifest).await
    }

    async fn scale(&self, deployment: &str, replicas: u32) -> Result<()> {
        by_client::scale(&self.client(), deployment, replicas).await
    }

    async fn scale_pool(&self, pool: &str, replicas: u32) -> Result<()> {
        by_client::scale_pool(&self.client(), pool, replicas).await
    }

    async fn delete(&self, target: Target<'_>, wait: Wait) -> Result<()> {
        by_client::delete(&self.client(), target, wait).await
    }

    async fn untaint(&self, node: &str, key: &str) -> Result<()> {
        by_client::untaint(&self.client(), node, key).await
    }

    /// Nothing: a program outside would find time standing still or jumping.
    fn kubectl(&self, _: &[&str]) -> Result<Option<String>> {
        Ok(None)
    }

    async fn start_controller(&self, name: &str, settings: &ControllerSettings) -> Result<WorldController> {
        let observer = self.observer().clone();
        let way = Way { observer: observer.clone(), sky: self.sky.clone(), is_cut_off: Arc::clone(&self.is_cut_off) };
        let settings = world::ControllerSettings {
            environment: settings.environment.clone(),
            meddler: Some(Arc::new(way)),
            ..world::ControllerSettings::default()
        };
        let controller = self.world.start_controller(name, &settings)?;
        Ok(WorldController { name: name.to_owned(), controller, observer })
    }

    async fn observe_writes(&self, plan: &KillEverywhere) -> Result<()> {
        let observer = Observer { plan: plan.clone(), doomed: Mutex::default() };
        *self.observer() = Some(Arc::new(observer));
        Ok(())
    }

    async fn under_sky(&self) -> Result<Sky> {
        let (sky, wire) = (self.sky.clone(), self.world.wire().clone());
        // Cuts find the watches of everybody, which nobody minds who can watch again.
        tokio::spawn(async move {
            loop {
                sky.cut().await;
                wire.break_watches();
            }
        });
        Ok(self.sky.clone())
    }

    async fn lose_api_server(&self) -> Result<()> {
        self.is_cut_off.store(true, Ordering::Relaxed);
        self.world.wire().break_watches();
        Ok(())
    }

    async fn restore_api_server(&self) -> Result<()> {
        self.is_cut_off.store(false, Ordering::Relaxed);
        Ok(())
    }

    async fn compact(&self) -> Result<()> {
        self.world.compact();
        Ok(())
    }

    async fn endure(&self, _: Duration, free: Duration) {
        tokio::time::sleep(free).await;
    }
}

/// A controller of the embedded world; it ends with this value.
pub struct WorldController {
    name: String,
    controller: world::Controller,
    observer: Option<Arc<Observer>>,
}

impl Controller for WorldController {
    async fn metrics(&self) -> Result<String> {
        Ok(self.controller.metrics())
    }

    /// All controllers of this process write to one place; nothing there says which of them did.
    fn log(&self) -> Option<String> {
        None
    }

    async fn ended(&mut self) -> Result<()> {
        self.controller.ended().await;
        Ok(())
    }

    async fn stop(mut self) -> Result<()> {
        self.controller.stop();
        match self.controller.ended().await {
            End::Finished => Ok(()),
            end => bail!("controller `{}` was asked to stop and ended otherwise: {end:?}", self.name),
        }
    }

    async fn kill(mut self) -> Result<()> {
        // Who dies by a write that was struck dies at the very moment that was asked for, which may be still to come.
        if !self.observer.as_ref().is_some_and(|observer| observer.doomed().contains(&self.name)) {
            self.controller.kill();
        }
        self.controller.ended().await;
        Ok(())
    }
}

impl Drop for WorldController {
    fn drop(&mut self) {
        self.controller.kill();
    }
}

/// What the calls of a controller pass.
struct Way {
    observer: Option<Arc<Observer>>,
    sky: Sky,
    /// Whether nothing arrives at all.
    is_cut_off: Arc<AtomicBool>,
}

impl Meddler for Way {
    fn meddle(&self, call: &Call<'_>) -> Option<CallFault> {
        // What is asked of the provider itself goes another way; with KWOK it ends in calls that come by here again.
        if call.effect.is_cloud() {
            return None;
        }
        if self.is_cut_off.load(Ordering::Relaxed) {
            return Some(CallFault::RequestLost);
        }
        let weather = match self.sky.meet() {
            Fate::Passes => None,
            Fate::Throttled => Some(CallFault::Throttled),
            Fate::Fails | Fate::Unavailable => Some(CallFault::Fails),
            Fate::RequestLost => Some(CallFault::RequestLost),
            Fate::AnswerLost => Some(CallFault::AnswerLost),
            Fate::Late => Some(CallFault::Late),
        };
        weather.or_else(|| self.observer.as_ref()?.meddle(call))
    }

    fn news_delay(&self) -> Duration {
        self.sky.news_delay()
    }
}

/// Shows a plan every write of a controller.
struct Observer {
    plan: KillEverywhere,
    /// Controllers whose write was struck.
    doomed: Mutex<BTreeSet<String>>,
}

impl Observer {
    fn doomed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.doomed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meddler for Observer {
    fn meddle(&self, call: &Call<'_>) -> Option<CallFault> {
        let write = call.effect.as_str();
        let is_write = ["create ", "update ", "patch ", "delete "].iter().any(|verb| write.starts_with(verb));
        if !is_write {
            return None;
        }
        let effect = effect(write, call.body);
        // Who is about to die may be struck again by what it does at the same time: that was on its way too.
        let side = [Side::Before, Side::After].into_iter().find(|side| self.plan.strikes(&effect, *side))?;
        self.doomed().insert(call.process.to_owned());
        Some(match side {
            Side::Before => CallFault::KillBefore,
            Side::After => CallFault::KillAfter,
        })
    }
}
