//! When the kube-scheduler can do no more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Pod;
use model::{NodeName, PodKey, Snapshot};
use referee::Question;
use tokio::time::{Instant, sleep};

use crate::bench::{Bench, complaint, node_of};
use crate::case::key_of;

const PAUSE: Duration = Duration::from_millis(100);

/// A cluster in which nothing happens any more.
pub(crate) struct Settled {
    pub(crate) snapshot: Arc<Snapshot>,
    /// The node of every pod that has one.
    pub(crate) homes: BTreeMap<PodKey, String>,
    /// What the kube-scheduler says about the others.
    pub(crate) complaints: BTreeMap<PodKey, String>,
}

impl Settled {
    /// Waits until there is word about every one of these pods, and the referee knows of no node that would take one
    /// that still waits. That is no question of time: while a node would, the kube-scheduler has something to do.
    pub(crate) async fn wait(bench: &Bench<'_>, expected: &BTreeSet<PodKey>) -> Result<Self> {
        let begin = Instant::now();
        let (mut versions, mut opening) = (None, None);
        loop {
            let pods: Vec<Pod> = bench.list().await?;
            let seen: Vec<_> = pods.iter().map(|pod| pod.metadata.resource_version.clone()).collect();
            let told = |pod: &&Pod| node_of(pod).is_some() || (complaint(pod).is_some() && !is_expected(pod));
            let silent: BTreeSet<PodKey> = {
                let heard: BTreeSet<PodKey> = pods.iter().filter(told).map(key_of).collect();
                expected.difference(&heard).cloned().collect()
            };
            if silent.is_empty() && versions.as_ref() != Some(&seen) {
                let snapshot = bench.snapshot(&pods).await?;
                opening = self::opening(&snapshot);
                if opening.is_none() {
                    return Ok(Self::told(snapshot, &pods, expected));
                }
                versions = Some(seen);
            }
            if begin.elapsed() > e2e::BOUND {
                let opening = opening.map(|(pod, node): (PodKey, NodeName)| format!("{node} would take {pod}"));
                let silent = pods.iter().filter(|pod| silent.contains(&key_of(pod)));
                let silent: Vec<String> = silent.map(|pod| format!("{}: {:?}", key_of(pod), pod.status)).collect();
                bail!("waited {:?} in vain; no word about {silent:?}; {opening:?}", e2e::BOUND);
            }
            sleep(PAUSE).await;
        }
    }

    fn told(snapshot: Arc<Snapshot>, pods: &[Pod], expected: &BTreeSet<PodKey>) -> Self {
        let own = || pods.iter().map(|pod| (key_of(pod), pod)).filter(|(key, _)| expected.contains(key));
        let homes = own().filter_map(|(key, pod)| Some((key, node_of(pod)?.to_owned())));
        let waiting = own().filter(|(_, pod)| node_of(pod).is_none());
        let complaints = waiting.filter_map(|(key, pod)| Some((key, complaint(pod)?.to_owned())));
        Self { snapshot, homes: homes.collect(), complaints: complaints.collect() }
    }
}

/// Whether the kube-scheduler has chosen a node and waits for something there, a volume perhaps.
fn is_expected(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| status.nominated_node_name.is_some())
}

/// A pod that waits, and a node that would take it.
fn opening(snapshot: &Snapshot) -> Option<(PodKey, NodeName)> {
    let situation = referee::situation(snapshot);
    let open = |pod: &referee::PodFacts| {
        let survey = Question::new(&situation, pod).survey();
        survey.feasible().next().map(|node| (pod.key.clone(), node.clone()))
    };
    referee::pending_pods(snapshot).iter().find_map(open)
}
