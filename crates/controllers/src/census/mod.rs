//! What there is, told: pods, nodes, pools and conditions as metrics and events.
//!
//! Reconcilers never read anything here. The census watches what the state learns, counts changes as they happen, and
//! answers a scrape with what is. Large things (one series for each pod) are not kept: they are read off the state.

mod conditions;
mod nodes;
mod pods;
mod pools;
mod queue;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use jiff::Timestamp;
use model::PodKey;
use state::{ClaimPrice, Key, Kind};

pub(crate) use queue::QueueTold;

use crate::context::Context;
use crate::metrics::cluster::UNSYNCED;
use crate::metrics::scheduler::{QUEUE_DEPTH, UNFINISHED_WORK};
use crate::metrics::{Collector, Page};
use crate::process::SoftLimit;
use conditions::{Conditions, Subject};
use pods::Waits;

/// How much is told of single objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observability {
    /// Everything.
    Full,
    /// Neither metrics of single pods, nodes and pools, nor anything about conditions.
    Reduced,
}

/// What is remembered to tell changes.
#[derive(Debug)]
pub(crate) struct Census {
    observability: Observability,
    soft_limit: SoftLimit,
    began: Timestamp,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    is_synced: bool,
    is_leading: bool,
    solve: Option<Solve>,
    waits: Waits,
    conditions: Conditions,
}

/// A solve that is under way.
#[derive(Clone, Debug)]
struct Solve {
    id: String,
    pods: usize,
    began: Timestamp,
}

impl Census {
    pub(crate) fn new(observability: Observability, soft_limit: SoftLimit, now: Timestamp) -> Self {
        Self { observability, soft_limit, began: now, memory: Mutex::default() }
    }

    /// Everything was listed once.
    pub(crate) fn synced(&self) {
        self.memory().is_synced = true;
    }

    /// This process leads. Before, it sees what happens and tells nobody: the leader does.
    pub(crate) fn leads(&self) {
        self.memory().is_leading = true;
    }

    /// A solve begins.
    pub(crate) fn solving(&self, now: Timestamp, id: String, pods: usize) {
        self.memory().solve = Some(Solve { id, pods, began: now });
    }

    /// The solve is over.
    pub(crate) fn solved(&self) {
        self.memory().solve = None;
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // A reader that panicked has not written half of anything that matters.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an object as the state has it now, or that it is gone.
    pub(crate) fn note(&self, context: &Context, key: &Key) {
        match key {
            Key::Pod(key) => self.note_pod(context, key),
            Key::Claim(_) | Key::Node(_) | Key::Pool(_) | Key::Buffer(_) => self.note_conditions(context, key),
            _ => {}
        }
    }

    fn note_pod(&self, context: &Context, key: &PodKey) {
        let pod = context.cluster().pod(key).cloned();
        let mut memory = self.memory();
        let news = memory.waits.note(key, pod.as_deref(), context.now());
        if memory.is_leading && self.observability == Observability::Full {
            news.iter().for_each(|news| news.count(&context.metrics));
        }
    }

    fn note_conditions(&self, context: &Context, key: &Key) {
        let now = context.now();
        let (subject, mispriced) = {
            let cluster = context.cluster();
            let label = context.provider.node_class_kind().label();
            let mispriced = match key {
                Key::Claim(name) => cluster.claim(name).filter(|claim| cluster.price_of(claim) == ClaimPrice::Unknown),
                _ => None,
            };
            (Subject::read(&cluster, key, &label, now), mispriced.cloned())
        };
        let mut memory = self.memory();
        let changes = match subject {
            Some(subject) => memory.conditions.note(subject),
            None => memory.conditions.forget(key, now),
        };
        let is_leading = memory.is_leading;
        drop(memory);
        if !is_leading {
            return;
        }
        changes.count_lifetimes(&context.metrics, now);
        if self.observability == Observability::Full {
            changes.tell(context, now);
        }
        if let Some(claim) = mispriced
            && changes.is_new_label
        {
            context.metrics.pools.cost_tracker_errors.inc([&crate::lifecycle::labels_of(&claim).pool]);
        }
    }

    /// Forgets what a complete list of one kind no longer had.
    pub(crate) fn settle(&self, context: &Context, kind: Kind) {
        let keys = self.memory().keys(kind);
        keys.iter().for_each(|key| self.note(context, key));
    }

    /// Notes what a plan said: these pods have a place, these have none.
    pub(crate) fn decided<'a>(
        &self,
        context: &Context,
        placed: impl IntoIterator<Item = &'a PodKey>,
        unplaced: impl IntoIterator<Item = &'a PodKey>,
    ) {
        let now = context.now();
        let mut memory = self.memory();
        for seconds in memory.waits.decide(placed, unplaced, now) {
            context.metrics.pods.scheduling_decision_seconds.observe([], seconds);
        }
    }
}

impl Memory {
    fn keys(&self, kind: Kind) -> Vec<Key> {
        match kind {
            Kind::Pod => self.waits.keys().map(Key::Pod).collect(),
            kind => self.conditions.keys().filter(|key| key.kind() == kind).cloned().collect(),
        }
    }
}

/// Seconds from one moment to another.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

/// The name of a resource in a label, and an amount in cores or base units.
fn amount(name: &model::ResourceName, amount: i64) -> (String, f64) {
    #[expect(clippy::cast_precision_loss, reason = "a gauge has no use for the last digit")]
    let value = amount as f64;
    let label = name.as_str().to_lowercase().replace('-', "_");
    (label, if name.is_cpu() { value / 1000.0 } else { value })
}

/// Tells of the cluster at a scrape, for as long as the controllers run.
pub(crate) struct ClusterTold {
    context: Weak<Context>,
}

impl ClusterTold {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self { context: Arc::downgrade(context) }
    }
}

impl Collector for ClusterTold {
    fn collect(&self, page: &mut Page) {
        let Some(context) = self.context.upgrade() else { return };
        let now = context.now();
        tell_progress(&context.census, now, page);
        let is_leading = context.census.memory().is_leading;
        if !is_leading || context.census.observability == Observability::Reduced {
            return;
        }
        nodes::tell(&context, now, page);
        if !context.census.soft_limit.is_exceeded() {
            pods::tell(&context, page);
        }
        pools::tell(&context, page);
        let memory = context.census.memory();
        memory.waits.tell(now, page);
        memory.conditions.tell(context.metrics.naming(), now, page);
    }
}

/// How far the process itself is.
#[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^53")]
fn tell_progress(census: &Census, now: Timestamp, page: &mut Page) {
    let memory = census.memory();
    let unsynced = if memory.is_synced { 0.0 } else { seconds(census.began, now) };
    page.metric(&UNSYNCED, [([], unsynced)]);
    if let Some(Solve { id, pods, began }) = &memory.solve {
        let labels = [("controller", "provisioner"), ("scheduling_id", id.as_str())];
        page.metric(&QUEUE_DEPTH, [(labels, *pods as f64)]);
        page.metric(&UNFINISHED_WORK, [(labels, seconds(*began, now))]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(census: &Census, second: i64) -> Vec<String> {
        let mut page = Page::default();
        tell_progress(census, Timestamp::from_second(second).unwrap(), &mut page);
        page.into_text().lines().filter(|line| !line.starts_with('#')).map(ToOwned::to_owned).collect()
    }

    /// OBS-01: the solve under way and the time without a complete state are told while they last.
    #[test]
    fn progress_is_told_while_it_lasts() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let census = Census::new(Observability::Reduced, SoftLimit::default(), at(100));
        assert_eq!(told(&census, 130), ["karpenter_cluster_state_unsynced_time_seconds 30"]);
        census.synced();
        census.solving(at(200), "7".to_owned(), 12);
        let labels = r#"{controller="provisioner",scheduling_id="7"}"#;
        let expected = [
            "karpenter_cluster_state_unsynced_time_seconds 0".to_owned(),
            format!("karpenter_scheduler_queue_depth{labels} 12"),
            format!("karpenter_scheduler_unfinished_work_seconds{labels} 3"),
        ];
        assert_eq!(told(&census, 203), expected);
        census.solved();
        assert_eq!(told(&census, 204), expected[..1]);
    }
}
