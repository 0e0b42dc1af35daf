//! Pods: where each is, and how long they waited.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::labels;
use api::lower::{NodeFacts, PodFacts, PodPhase};
use jiff::Timestamp;
use model::{NodeName, PodKey, Rule};

use super::seconds;
use crate::context::Context;
use crate::metrics::pods::{PROVISIONING_UNBOUND, PROVISIONING_UNSTARTED, STATE, UNBOUND, UNDECIDED, UNSTARTED};
use crate::metrics::{Metrics, Page};

/// Pods that are not ready yet, and what is known of their wait. All others are not remembered.
#[derive(Debug, Default)]
pub(super) struct Waits(BTreeMap<PodKey, Wait>);

#[derive(Clone, Debug)]
struct Wait {
    uid: model::Text,
    created: Timestamp,
    uses_dynamic_resources: bool,
    /// When it was first seen to need a node of ours.
    seen: Option<Timestamp>,
    /// When a plan first said something about it.
    decided: Option<Timestamp>,
    /// When a plan first had a place for it.
    planned: Option<Timestamp>,
    is_bound: bool,
    is_started: bool,
}

/// Something that a pod waited for has happened.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Waited {
    /// It was bound, so long after its creation, and after the first plan for it.
    Bound { seconds: f64, since_plan: Option<f64>, uses_dynamic_resources: bool },
    /// It became ready.
    Started { seconds: f64, since_plan: Option<f64> },
}

impl Waited {
    pub(super) fn count(&self, metrics: &Metrics) {
        match self {
            Self::Bound { seconds, since_plan, uses_dynamic_resources } => {
                let dynamic = [truth(*uses_dynamic_resources)];
                metrics.pods.bound_seconds.observe(dynamic, *seconds);
                since_plan.iter().for_each(|wait| metrics.pods.provisioning_bound_seconds.observe(dynamic, *wait));
            }
            Self::Started { seconds, since_plan } => {
                metrics.pods.startup_seconds.observe([], *seconds);
                since_plan.iter().for_each(|wait| metrics.pods.provisioning_startup_seconds.observe([], *wait));
            }
        }
    }
}

impl Waits {
    /// Notes a pod as it is now; nothing means that it is gone.
    pub(super) fn note(&mut self, key: &PodKey, pod: Option<&PodFacts>, now: Timestamp) -> Vec<Waited> {
        let Some(pod) = pod else {
            self.0.remove(key);
            return Vec::new();
        };
        if self.0.get(key).is_some_and(|wait| wait.uid != pod.uid) {
            self.0.remove(key);
        }
        if pod.story.phase == PodPhase::Pending {
            let wait = self.0.entry(key.clone()).or_insert_with(|| Wait::of(pod));
            if wait.seen.is_none() && pod.is_provisionable() {
                wait.seen = Some(now);
            }
        }
        let Some(wait) = self.0.get_mut(key) else { return Vec::new() };
        let waited = wait.follow(pod);
        if wait.is_started || pod.is_terminal {
            self.0.remove(key);
        }
        waited
    }

    /// Notes what a plan said; answers how long each pod that heard of one for the first time had been seen before.
    pub(super) fn decide<'a>(
        &mut self,
        placed: impl IntoIterator<Item = &'a PodKey>,
        unplaced: impl IntoIterator<Item = &'a PodKey>,
        now: Timestamp,
    ) -> Vec<f64> {
        let mut waited = Vec::new();
        let said = placed.into_iter().map(|pod| (pod, true)).chain(unplaced.into_iter().map(|pod| (pod, false)));
        for (pod, has_place) in said {
            let Some(wait) = self.0.get_mut(pod) else { continue };
            if wait.decided.replace(wait.decided.unwrap_or(now)).is_none() {
                waited.extend(wait.seen.map(|seen| seconds(seen, now)));
            }
            wait.planned = has_place.then(|| wait.planned.unwrap_or(now));
        }
        waited
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = PodKey> {
        self.0.keys().cloned()
    }

    /// Tells for how long each has been waiting for what.
    pub(super) fn tell(&self, now: Timestamp, page: &mut Page) {
        let unbound = || self.0.iter().filter(|(_, wait)| !wait.is_bound);
        page.metric(&UNSTARTED, self.0.iter().map(|(pod, wait)| (named(pod), seconds(wait.created, now))));
        let planned = self.0.iter().filter_map(|(pod, wait)| Some((named(pod), seconds(wait.planned?, now))));
        page.metric(&PROVISIONING_UNSTARTED, planned);
        page.metric(&UNBOUND, unbound().map(|(pod, wait)| (named_with(pod, wait), seconds(wait.created, now))));
        let planned = unbound().filter_map(|(pod, wait)| Some((named_with(pod, wait), seconds(wait.planned?, now))));
        page.metric(&PROVISIONING_UNBOUND, planned);
        let undecided = unbound().filter(|(_, wait)| wait.decided.is_none());
        let undecided = undecided.filter_map(|(pod, wait)| Some((named(pod), seconds(wait.seen?, now))));
        page.metric(&UNDECIDED, undecided);
    }
}

impl Wait {
    fn of(pod: &PodFacts) -> Self {
        Self {
            uid: pod.uid.clone(),
            created: pod.created,
            uses_dynamic_resources: pod.class.unplanned_rules.contains(&Rule::ResourceClaim),
            seen: None,
            decided: None,
            planned: None,
            is_bound: false,
            is_started: false,
        }
    }

    fn follow(&mut self, pod: &PodFacts) -> Vec<Waited> {
        let mut waited = Vec::new();
        if let Some(bound) = pod.story.scheduled.filter(|_| !self.is_bound) {
            self.is_bound = true;
            waited.push(Waited::Bound {
                seconds: seconds(self.created, bound),
                since_plan: self.planned.map(|planned| seconds(planned, bound).max(0.0)),
                uses_dynamic_resources: self.uses_dynamic_resources,
            });
        }
        if let Some(ready) = pod.story.ready.filter(|_| pod.story.phase == PodPhase::Running && !self.is_started) {
            self.is_started = true;
            waited.push(Waited::Started {
                seconds: seconds(self.created, ready),
                since_plan: self.planned.map(|planned| seconds(planned, ready).max(0.0)),
            });
        }
        waited
    }
}

fn named(pod: &PodKey) -> [(&'static str, &str); 2] {
    [("name", &pod.name), ("namespace", &pod.namespace)]
}

fn named_with<'a>(pod: &'a PodKey, wait: &Wait) -> [(&'static str, &'a str); 3] {
    let [name, namespace] = named(pod);
    [name, namespace, ("dynamic_resources", truth(wait.uses_dynamic_resources))]
}

fn truth(holds: bool) -> &'static str {
    if holds { "true" } else { "false" }
}

/// One series for each pod. The state is locked only to note who is there.
pub(super) fn tell(context: &Context, page: &mut Page) {
    let (pods, nodes) = {
        let cluster = context.cluster();
        let pods: Vec<Arc<PodFacts>> = cluster.pods().cloned().collect();
        let nodes: BTreeMap<NodeName, Arc<NodeFacts>> =
            cluster.nodes().map(|node| (node.name.clone(), Arc::clone(node))).collect();
        (pods, nodes)
    };
    page.metric(&STATE, pods.iter().map(|pod| (state(pod, pod.node.as_ref().and_then(|node| nodes.get(node))), 1.0)));
}

fn state<'a>(pod: &'a PodFacts, node: Option<&'a Arc<NodeFacts>>) -> [(&'static str, &'a str); 13] {
    let label = |key: &str| node.and_then(|node| node.labels.get(key)).map_or("", String::as_str);
    let pool = label(labels::NODE_POOL);
    [
        ("name", &pod.key.name),
        ("namespace", &pod.key.namespace),
        ("owner", pod.story.owner.as_deref().unwrap_or_default()),
        ("node", pod.node.as_ref().map_or("", |node| node.as_str())),
        ("scheduled", truth(pod.node.is_some())),
        ("nodepool", pool),
        ("zone", label(labels::ZONE)),
        ("arch", label(labels::ARCH)),
        ("capacity_type", label(labels::CAPACITY_TYPE)),
        ("instance_type", label(labels::INSTANCE_TYPE)),
        ("phase", pod.story.phase.as_str()),
        ("ready", truth(pod.is_ready)),
        ("managed", truth(!pool.is_empty())),
    ]
}

#[cfg(test)]
#[path = "pods_tests.rs"]
mod tests;
