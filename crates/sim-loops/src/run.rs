//! The one task that runs every loop.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use model::Text;
use sim::{ApiServer, StoreEvent};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::caches::Caches;
use crate::carry::{Carrier, Refused};
use crate::key::Task;
use crate::machine::{Machine, Voice};
use crate::pace::{Draws, draw};
use crate::pods::after;
use crate::queue::WorkQueue;
use crate::scheduler::Scheduler;
use crate::tasks::{actor, decide, reaction};
use crate::wake;
use crate::write::Decision;
use crate::{LoopSettings, Order};

/// Says what time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A task whose writes were refused is tried again after a second, doubled with each refusal up to five minutes.
const RETRY_MILLIS: i64 = 1_000;
const RETRY_MILLIS_MAX: i64 = 300_000;
/// How many objects one pass of the garbage collector looks at.
const GARBAGE_MAX: usize = 500;
/// A conflict only means that something changed in between.
const CONFLICT: u16 = 409;

/// Runs all loops for ever, in virtual or real time: it sleeps with [`tokio::time`] and reads the time from `clock`,
/// which must advance alike. Dropping the future stops everything.
pub async fn run(server: ApiServer, settings: LoopSettings, clock: Clock, mut orders: UnboundedReceiver<Order>) {
    let mut subscription = server.subscribe();
    let mut engine = Engine::new(server, settings);
    loop {
        while let Some(event) = subscription.try_next() {
            engine.observe(&event, clock());
        }
        while let Ok(order) = orders.try_recv() {
            engine.obey(order, clock());
        }
        let now = clock();
        if let Some(task) = engine.queue.take(now) {
            engine.perform(task, now);
            tokio::task::yield_now().await;
            continue;
        }
        let due = engine.queue.next_due();
        tokio::select! {
            biased;
            Some(event) = subscription.next() => engine.observe(&event, clock()),
            Some(order) = orders.recv() => engine.obey(order, clock()),
            () = sleep_until(due, now) => {}
        }
    }
}

async fn sleep_until(due: Option<Timestamp>, now: Timestamp) {
    match due {
        None => pending().await,
        Some(due) => tokio::time::sleep(Duration::try_from(due.duration_since(now)).unwrap_or_default()).await,
    }
}

struct Engine {
    server: ApiServer,
    carrier: Carrier,
    caches: Caches,
    scheduler: Scheduler,
    queue: WorkQueue,
    draws: Draws,
    rng: fastrand::Rng,
    refusals: BTreeMap<Task, u32>,
}

impl Engine {
    fn new(server: ApiServer, settings: LoopSettings) -> Self {
        let LoopSettings { seed, pace } = settings;
        Self {
            carrier: Carrier::new(server.clone(), pace.events),
            server,
            caches: Caches::default(),
            scheduler: Scheduler::new(),
            queue: WorkQueue::default(),
            draws: Draws { seed, pace },
            rng: fastrand::Rng::with_seed(seed),
            refusals: BTreeMap::new(),
        }
    }

    fn observe(&mut self, event: &StoreEvent, now: Timestamp) {
        // The server notes by itself what has lost its owner or namespace; asking costs nothing when there is nothing.
        if event.key.resource != "events" {
            self.wake(Task::Garbage, now);
        }
        let Some(noted) = self.caches.apply(event, now) else { return };
        for task in wake::tasks(&self.caches, &noted) {
            self.wake(task, now);
        }
        if self.scheduler.observe(&self.caches, &noted, now) {
            self.wake(Task::Schedule, now);
        }
    }

    /// Queues a task after its reaction time, unless it is queued for an earlier time already.
    fn wake(&mut self, task: Task, now: Timestamp) {
        let span = reaction(&self.draws, &task);
        if self.queue.due_of(&task).is_some_and(|due| due <= after(now, whole(span.min))) {
            return;
        }
        let due = after(now, draw(&mut self.rng, span));
        self.queue.add(task, due);
    }

    fn perform(&mut self, task: Task, now: Timestamp) {
        match task {
            Task::Garbage => self.collect_garbage(now),
            Task::Schedule => {
                let decision = self.scheduler.next(&self.caches, now);
                self.carry_out(task, decision, now);
            }
            task => {
                let decision = decide(&self.caches, &task, &self.draws, now);
                self.carry_out(task, decision, now);
            }
        }
    }

    fn collect_garbage(&mut self, now: Timestamp) {
        if self.server.collect_garbage(GARBAGE_MAX) > 0 {
            self.wake(Task::Garbage, now);
        }
    }

    fn carry_out(&mut self, task: Task, decision: Decision, now: Timestamp) {
        let Decision { writes, look_again } = decision;
        let actor = actor(&self.caches, &task);
        for write in writes {
            if let Err(refused) = self.carrier.carry(&actor, write, now) {
                return self.retry(task, &refused, now);
            }
        }
        self.refusals.remove(&task);
        let Some(at) = look_again else { return };
        if at <= now {
            self.wake(task, now);
        } else {
            self.queue.add(task, at);
        }
    }

    fn retry(&mut self, task: Task, refused: &Refused, now: Timestamp) {
        if refused.code == CONFLICT {
            return self.wake(task, now);
        }
        let refusals = self.refusals.entry(task.clone()).or_insert(0);
        *refusals = refusals.saturating_add(1);
        let millis = (RETRY_MILLIS << (*refusals - 1).min(16)).min(RETRY_MILLIS_MAX);
        self.queue.add(task, after(now, SignedDuration::from_millis(millis)));
    }

    fn obey(&mut self, order: Order, now: Timestamp) {
        match order {
            Order::Boot(node) => {
                let name: Text = node.metadata.name.as_deref().unwrap_or("").into();
                self.caches.machines.insert(name.clone(), Machine::booted(node, now));
                self.wake(Task::KubeletNode(name), now);
            }
            Order::Silence(name) => self.set_voice(&name, Voice::Silent(now), now),
            Order::Speak(name) => self.set_voice(&name, Voice::Speaks, now),
            Order::PowerOff(name) => self.set_voice(&name, Voice::Off(now), now),
        }
    }

    fn set_voice(&mut self, name: &str, voice: Voice, now: Timestamp) {
        let Some(machine) = self.caches.machines.get_mut(name) else { return };
        match (machine.voice, voice) {
            (Voice::Off(_), _) | (Voice::Speaks, Voice::Speaks) | (Voice::Silent(_), Voice::Silent(_)) => return,
            // Silence that ends in darkness began with the silence.
            (Voice::Silent(since), Voice::Off(_)) => machine.voice = Voice::Off(since),
            (_, voice) => machine.voice = voice,
        }
        self.wake(Task::KubeletNode(name.into()), now);
        self.wake(Task::NodeLifecycle(name.into()), now);
        let pods: Vec<Task> = self.caches.pods_on(name).map(|(key, _)| Task::KubeletPod(key.clone())).collect();
        for pod in pods {
            self.wake(pod, now);
        }
    }
}

fn whole(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
