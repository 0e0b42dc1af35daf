//! Pods as the story follows them: who waits, who got a node, and who left one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::PodKey;
use serde_json::Value;
use sim::Change;

use super::news::{News, PodsOf, Welcomed};
use super::read::{condition, full_name, is_deleting, owner, text, workload};

/// A pod that is there.
#[derive(Debug)]
struct Pod {
    workload: String,
    since: Duration,
    node: Option<String>,
    /// Daemons come with their node: they do not wait for one, and do not keep it.
    is_daemon: bool,
    was_told_pending: bool,
    /// Whether it needs a node, or has one and is not through with it.
    is_active: bool,
}

/// All pods, and how long those waited that got a node.
#[derive(Debug, Default)]
pub(crate) struct Pods {
    pods: BTreeMap<PodKey, Pod>,
    waits: Vec<Duration>,
}

/// What a change of a pod means.
#[derive(Debug, Default)]
pub(crate) struct PodChange {
    /// What to tell.
    pub(crate) news: Option<News>,
    /// The pod got a node, or is gone: what was planned for it is history.
    pub(crate) is_settled: bool,
    /// The node that it was the last to leave.
    pub(crate) left_empty: Option<String>,
}

impl Pods {
    /// Takes a change in.
    pub(crate) fn change(&mut self, at: Duration, key: &PodKey, change: Change, object: &Value) -> PodChange {
        if change == Change::Deleted {
            let gone = self.pods.remove(key);
            let left = gone.filter(|pod| pod.is_active && !pod.is_daemon).and_then(|pod| pod.node);
            return PodChange { news: None, is_settled: true, left_empty: left.filter(|node| self.is_empty(node)) };
        }
        let pod = self.pods.entry(key.clone()).or_insert_with(|| Pod {
            workload: workload(object),
            since: at,
            node: None,
            is_daemon: owner(object).is_some_and(|(kind, _)| kind == "DaemonSet"),
            was_told_pending: false,
            is_active: true,
        });
        let name = || full_name(&key.namespace, &key.name);
        let mut seen = PodChange::default();
        if let (None, Some(node)) = (&pod.node, text(object, "/spec/nodeName")) {
            pod.node = Some(node.to_owned());
            seen.is_settled = true;
            if !pod.is_daemon {
                let waited = at.saturating_sub(pod.since);
                self.waits.push(waited);
                let (workload, pods, nodes) = (pod.workload.clone(), vec![name()], BTreeSet::from([node.to_owned()]));
                seen.news = Some(News::Bound(Welcomed { workload, pods, nodes, waited }));
            }
        } else if pod.node.is_none() && !pod.was_told_pending && is_unschedulable(object) {
            pod.was_told_pending = true;
            seen.news = Some(News::Pending(PodsOf { workload: pod.workload.clone(), pods: vec![name()] }));
        }
        let was_active = std::mem::replace(&mut pod.is_active, is_active(object));
        if was_active && !pod.is_active && !pod.is_daemon {
            let left = pod.node.clone();
            seen.left_empty = left.filter(|node| self.is_empty(node));
        }
        seen
    }

    /// How many pods are on a node that are neither daemons nor through.
    pub(crate) fn on(&self, node: &str) -> usize {
        let holds = |pod: &&Pod| pod.is_active && !pod.is_daemon && pod.node.as_deref() == Some(node);
        self.pods.values().filter(holds).count()
    }

    fn is_empty(&self, node: &str) -> bool {
        self.on(node) == 0
    }

    /// The workload of a pod.
    pub(crate) fn workload(&self, key: &PodKey) -> String {
        self.pods.get(key).map_or_else(|| full_name(&key.namespace, &key.name), |pod| pod.workload.clone())
    }

    /// Pods that need a node and have none.
    pub(crate) fn pending(&self) -> usize {
        self.waiting().count()
    }

    fn waiting(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values().filter(|pod| pod.node.is_none() && pod.is_active)
    }

    /// How many pods got a node.
    pub(crate) fn bound(&self) -> usize {
        self.waits.len()
    }

    /// How long each pod waited, shortest first; one that still waits counts with the time so far.
    pub(crate) fn waits(&self, now: Duration) -> Vec<Duration> {
        let so_far = self.waiting().filter(|pod| !pod.is_daemon).map(|pod| now.saturating_sub(pod.since));
        let mut waits: Vec<Duration> = self.waits.iter().copied().chain(so_far).collect();
        waits.sort();
        waits
    }
}

fn is_unschedulable(pod: &Value) -> bool {
    condition(pod, "PodScheduled").is_some_and(|scheduled| {
        scheduled.get("status").and_then(Value::as_str) == Some("False")
            && scheduled.get("reason").and_then(Value::as_str) == Some("Unschedulable")
    })
}

fn is_active(pod: &Value) -> bool {
    let is_over = matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed"));
    // A pod that is on its way out still holds its node; one that never got a node does not need one any more.
    let is_unwanted = is_deleting(pod) && text(pod, "/spec/nodeName").is_none();
    !is_over && !is_unwanted
}
