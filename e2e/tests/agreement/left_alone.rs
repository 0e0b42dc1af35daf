//! Left to itself: all pods at once, and one more round of planning for those that found no place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use model::{
    AttachLimits, BoundKind, NodeName, PendingPod, Place, PlaceId, Plan, PodKey, Price, Requirement, Requirements,
    Resources, Snapshot, Stage,
};
use planner::{PlaceConfig, place};

use crate::bench::{Bench, Cordon, complaint, node_of};
use crate::brute::{Cost, Outcome, best};
use crate::case::{Case, Machine};

/// What became of the pods that found no place at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// How many there were.
    pub(crate) second: usize,
    /// How many of them no plan could help any more: the scheduler filled the only node, or began in the only domain,
    /// where they could have gone.
    pub(crate) stranded: usize,
}

pub(crate) async fn run(bench: &Bench, case: &Case) -> Result<Rounds> {
    let placed: BTreeSet<&PodKey> = case.plan.sequence.iter().collect();
    let pods: Vec<&PendingPod> = case.snapshot().pending.iter().filter(|pod| placed.contains(&pod.key)).collect();
    try_join_all(pods.iter().map(|pod| bench.create(pod))).await?;
    let named = |seen: &e2e::Seen<Pod>, judge: &dyn Fn(&Pod) -> bool| {
        pods.iter().all(|pod| seen.get(&*pod.key.name).is_some_and(judge))
    };
    let heard = |pod: &Pod| node_of(pod).is_some() || complaint(pod).is_some();
    let seen = e2e::wait_for(bench.pods.clone(), "word about every pod", |seen| named(seen, &heard)).await?;
    let homes: BTreeMap<&PodKey, &str> =
        pods.iter().filter_map(|pod| Some((&pod.key, node_of(seen.get(&*pod.key.name)?)?))).collect();
    let left: Vec<&PendingPod> = pods.iter().copied().filter(|pod| !homes.contains_key(&pod.key)).collect();
    if left.is_empty() {
        return Ok(Rounds::default());
    }
    let snapshot = after_first_round(case, &pods, &homes);
    let plan = place(&snapshot, &PlaceConfig::default());
    let refused: BTreeSet<&PodKey> = plan.unplaced.iter().flat_map(|unplaced| &unplaced.pods).collect();
    if !refused.is_empty() {
        check_refusals(&snapshot, &plan).with_context(|| format!("the first round led to {homes:?}"))?;
    }
    let (machines, _) = case.carried_out(&snapshot, &plan, 2, 2);
    bench.add_nodes(&machines.iter().collect::<Vec<_>>(), &BTreeMap::new(), Cordon::None).await?;
    let what = format!("every pod to be bound after a second round\n{}\nfirst round: {homes:?}", case.shown());
    let bound =
        |seen: &e2e::Seen<Pod>, pod: &PendingPod| seen.get(&*pod.key.name).is_some_and(|pod| node_of(pod).is_some());
    let all = |seen: &e2e::Seen<Pod>| left.iter().all(|pod| refused.contains(&pod.key) || bound(seen, pod));
    e2e::wait_for(bench.pods.clone(), &what, all).await?;
    Ok(Rounds { second: left.len(), stranded: refused.len() })
}

/// Fails if some legal plan would have placed more pods.
fn check_refusals(snapshot: &Snapshot, plan: &Plan) -> Result<()> {
    let cost = Cost::of(snapshot, plan, Price::ZERO);
    match best(snapshot, Price::ZERO, Some(&cost)) {
        Outcome::Better(found) if found.cost.compare_unplaced(&cost).is_lt() => {
            bail!("the second round refuses pods that could be placed:\n{}", found.text)
        }
        Outcome::Better(_) | Outcome::NothingBetter | Outcome::TooLarge => Ok(()),
    }
}

/// The cluster as it is once the first pods are bound.
fn after_first_round(case: &Case, pods: &[&PendingPod], homes: &BTreeMap<&PodKey, &str>) -> Snapshot {
    let mut snapshot = case.snapshot().clone();
    let mut used: BTreeMap<&str, Resources> = BTreeMap::new();
    let running = std::mem::take(&mut snapshot.bound);
    for (kind, counts) in running.iter() {
        counts.iter().for_each(|(node, count)| {
            snapshot.bound.add_times(kind, &NodeName::new(case.real_name(node)), *count);
        });
    }
    for pod in pods {
        let Some(home) = homes.get(&pod.key) else { continue };
        used.entry(home).or_insert_with(Resources::none).add(&pod.class.requests);
        let kind = BoundKind {
            namespace: pod.key.namespace.clone(),
            labels: Arc::clone(&pod.labels),
            anti_affinity: pod.class.anti_affinity.clone(),
        };
        snapshot.bound.add(&Arc::new(kind), &NodeName::new(*home));
    }
    let place = |machine: &Machine| {
        let mut requirements = Requirements::none();
        machine.labels.iter().for_each(|(key, value)| requirements.add(key, Requirement::is(value.clone())));
        let ports = pods.iter().filter(|pod| homes.get(&pod.key) == Some(&machine.name.as_str()));
        Arc::new(Place {
            id: PlaceId::Node(NodeName::new(machine.name.as_str())),
            pool: None,
            stage: Stage::Ready,
            requirements,
            taints: machine.taints.clone(),
            allocatable: machine.allocatable.clone(),
            used: used.get(machine.name.as_str()).cloned().unwrap_or_default(),
            used_by_daemons: Resources::none(),
            host_ports: ports.flat_map(|pod| pod.class.host_ports.clone()).collect(),
            attached: BTreeSet::new(),
            attach_limits: AttachLimits::new(),
        })
    };
    snapshot.places = case.existing.iter().chain(&case.planned).map(place).collect();
    let waits = |pod: &PendingPod| pods.iter().any(|it| it.key == pod.key) && !homes.contains_key(&pod.key);
    snapshot.pending.retain(waits);
    snapshot
}
