//! What was seen from outside: changes of the store, and how long pods waited for a decision.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Deserialize;
use sim::{ApiServer, Change, StoreEvent};

use crate::chance::Chance;
use crate::clock::VirtualClock;
use crate::world::{PlanLog, RecordedPlan};

/// A pod by namespace and name.
pub(crate) type PodName = (String, String);

/// Counts, shared between the task that follows the store and those who read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<Book>>);

/// What is there, and what happened since somebody asked.
#[derive(Debug, Default)]
struct Book {
    objects: BTreeMap<String, i64>,
    since: Since,
    running: RunningPods,
    waiting: Waiting,
}

/// What happened since somebody asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    /// Changes of pods.
    pub(crate) pod_changes: u64,
    /// Changes of anything else.
    pub(crate) other_changes: u64,
    /// Claims made.
    pub(crate) claims_made: u64,
    /// Claims gone.
    pub(crate) claims_gone: u64,
    /// Plans made.
    pub(crate) plans: u64,
    /// For every pod that a plan had a place for, seconds of virtual time since the scheduler gave it up: until its claim
    /// was there, or until the plan named a machine that is there or on its way.
    pub(crate) lags: Vec<f64>,
}

/// Pods that nobody has decided about yet, and claims that were decided and are not there yet.
#[derive(Debug, Default)]
struct Waiting {
    /// Since when the scheduler says so.
    undecided: BTreeMap<PodName, Timestamp>,
    /// For each claim of the last plan that is still to be seen, since when its pods have waited.
    expected: VecDeque<Vec<Timestamp>>,
}

/// Pods that run, so that one of them can be drawn.
#[derive(Debug, Default)]
struct RunningPods {
    all: Vec<PodName>,
    places: BTreeMap<PodName, usize>,
}

impl RunningPods {
    fn insert(&mut self, pod: PodName) {
        if !self.places.contains_key(&pod) {
            self.places.insert(pod.clone(), self.all.len());
            self.all.push(pod);
        }
    }

    fn remove(&mut self, pod: &PodName) {
        let Some(place) = self.places.remove(pod) else { return };
        self.all.swap_remove(place);
        if let Some(moved) = self.all.get(place) {
            self.places.insert(moved.clone(), place);
        }
    }
}

/// The few fields of a pod that are looked at.
#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default, rename = "deletionTimestamp")]
    deletion: Option<String>,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default, rename = "nodeName")]
    node: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    phase: String,
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a server's store, each change at the time it happens. Never returns while the server lives.
    pub(crate) async fn follow(self, server: ApiServer, plans: PlanLog, clock: VirtualClock) {
        let mut news = server.subscribe();
        while let Some(event) = news.next().await {
            let now = clock.timestamp();
            // A plan comes before the claims that follow from it.
            self.hear_plans(&plans);
            self.lock().hear(&event, now);
        }
    }

    /// Reads the plans that were made since the last time.
    pub(crate) fn hear_plans(&self, plans: &PlanLog) {
        for made in plans.take() {
            self.lock().planned(&made);
        }
    }

    /// How many objects of a kind there are, by its plural name.
    pub(crate) fn count(&self, resource: &str) -> usize {
        let book = self.lock();
        book.objects.get(resource).and_then(|count| usize::try_from(*count).ok()).unwrap_or(0)
    }

    /// How many pods run.
    pub(crate) fn running(&self) -> usize {
        self.lock().running.all.len()
    }

    /// How many pods wait for a decision.
    pub(crate) fn undecided(&self) -> usize {
        self.lock().waiting.undecided.len()
    }

    /// Whether every pod that waits was decided about, and every claim that was decided is there.
    pub(crate) fn is_settled(&self) -> bool {
        let book = self.lock();
        book.waiting.undecided.is_empty() && book.waiting.expected.is_empty()
    }

    /// All changes of pods since somebody asked.
    pub(crate) fn pod_changes(&self) -> u64 {
        self.lock().since.pod_changes
    }

    /// One of the running pods.
    pub(crate) fn draw(&self, chance: &Chance) -> Option<PodName> {
        chance.choose(&self.lock().running.all).cloned()
    }

    /// Forgets decisions: pods that still wait are waited for anew. For when a controller is gone.
    pub(crate) fn decide_anew(&self, now: Timestamp) {
        let waiting = &mut self.lock().waiting;
        waiting.expected.clear();
        waiting.undecided.values_mut().for_each(|since| *since = now);
    }

    /// What happened since the last call.
    pub(crate) fn take(&self) -> Since {
        std::mem::take(&mut self.lock().since)
    }
}

impl Book {
    fn hear(&mut self, event: &StoreEvent, now: Timestamp) {
        let StoreEvent { change, key, object, .. } = event;
        let step = match change {
            Change::Added => 1,
            Change::Modified => 0,
            Change::Deleted => -1,
        };
        if step != 0 {
            *self.objects.entry(key.resource.clone()).or_default() += step;
        }
        if key.resource == "pods" && key.group.is_empty() {
            self.since.pod_changes += 1;
            let name = (key.namespace.clone().unwrap_or_default(), key.name.clone());
            let pod = (*change != Change::Deleted).then(|| serde_json::from_slice(object).ok()).flatten();
            return self.hear_pod(name, pod, now);
        }
        self.since.other_changes += 1;
        if key.resource == "nodeclaims" && step > 0 {
            self.since.claims_made += 1;
            let waited = self.waiting.expected.pop_front().unwrap_or_default();
            self.since.lags.extend(waited.into_iter().map(|since| seconds(since, now)));
        } else if key.resource == "nodeclaims" && step < 0 {
            self.since.claims_gone += 1;
        }
    }

    fn hear_pod(&mut self, name: PodName, pod: Option<Pod>, now: Timestamp) {
        let Some(pod) = pod.filter(|pod| pod.metadata.deletion.is_none()) else {
            self.running.remove(&name);
            self.waiting.undecided.remove(&name);
            return;
        };
        if pod.spec.node.is_some() {
            self.waiting.undecided.remove(&name);
            if pod.status.phase == "Running" {
                self.running.insert(name);
            }
            return;
        }
        let is_given_up = |condition: &Condition| condition.kind == "PodScheduled" && condition.status == "False";
        if pod.status.conditions.iter().any(is_given_up) {
            self.waiting.undecided.entry(name).or_insert(now);
        }
    }

    fn planned(&mut self, made: &RecordedPlan) {
        self.since.plans += 1;
        // Claims of an earlier plan that were never seen will not come any more.
        self.waiting.expected.clear();
        let name = |pod: &model::PodKey| (pod.namespace.to_string(), pod.name.to_string());
        for nomination in &made.plan.nominations {
            for pod in &nomination.pods {
                if let Some(since) = self.waiting.undecided.remove(&name(pod)) {
                    self.since.lags.push(seconds(since, made.at));
                }
            }
        }
        for claim in &made.plan.claims {
            let pods = claim.pods.iter().filter_map(|pod| self.waiting.undecided.remove(&name(pod))).collect();
            self.waiting.expected.push_back(pods);
        }
    }
}

fn seconds(since: Timestamp, until: Timestamp) -> f64 {
    until.duration_since(since).as_secs_f64()
}
