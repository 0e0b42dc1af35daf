//! PodDisruptionBudgets: how many more pods may be evicted.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::caches::Caches;
use crate::key::Key;
use crate::pods::{
    Rounding, after_seconds, controller, controller_uid, is_deleting, is_finished, is_ready, name, scaled, time,
};
use crate::selector::matches;
use crate::write::{BUDGETS, Decision, Telling, Weight, Write, reference, replace_status};

/// For how long a pod that was allowed to be evicted counts as gone although it is still there.
const DELETION_TIMEOUT_SECONDS: i64 = 120;

/// Why the numbers of a budget cannot be told.
#[derive(Debug, PartialEq, Eq)]
struct NoController {
    pod: String,
}

/// What a budget asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Demand {
    expected: i32,
    desired_healthy: i32,
    unmanaged: bool,
}

/// Brings the status of a budget up to date.
pub(crate) fn reconcile(caches: &Caches, key: &Key, now: Timestamp) -> Decision {
    let Some(budget) = caches.budgets.get(key) else { return Decision::default() };
    let pods = selected(caches, budget);
    let (disrupted, look_again) = disrupted_pods(budget, &pods, now);
    let mut tellings = Vec::new();
    let mut tell = |weight: Weight, reason: &'static str, message: String| {
        let about = reference(BUDGETS, &budget.metadata);
        tellings.push(Write::Tell(Telling { about, weight, reason, message }));
    };
    let status = match demand(caches, budget, &pods) {
        Ok(demand) => {
            if demand.unmanaged {
                tell(Weight::Warning, "UnmanagedPods", UNMANAGED.to_owned());
            }
            healthy_status(budget, &pods, &demand, disrupted, now)
        }
        Err(NoController { pod }) => {
            let message = format!("found no controllers for pod \"{pod}\"");
            let told = format!("Failed to calculate the number of expected pods: {message}");
            tell(Weight::Warning, "CalculateExpectedPodCountFailed", told);
            failed_status(budget, message, now)
        }
    };
    let mut decision = Decision { writes: Vec::new(), look_again };
    if budget.status.as_ref() != Some(&status) {
        decision.writes.extend(replace_status(BUDGETS, &budget.metadata, &**budget, &status));
        decision.writes.extend(tellings);
    }
    decision
}

const UNMANAGED: &str = "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status \
    of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please \
    set \".spec.minAvailable\" field of the PDB to an integer value.";

/// Whether a budget speaks of a pod.
pub(crate) fn covers(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| matches(selector, pod.metadata.labels.as_ref()))
}

fn selected<'a>(caches: &'a Caches, budget: &PodDisruptionBudget) -> Vec<&'a Pod> {
    let namespace = budget.metadata.namespace.as_deref().unwrap_or("");
    let pods = caches.pods_in(namespace).map(|(_, known)| &*known.pod);
    pods.filter(|pod| covers(budget, pod) && !is_finished(pod)).collect()
}

fn demand(caches: &Caches, budget: &PodDisruptionBudget, pods: &[&Pod]) -> Result<Demand, NoController> {
    let Some(spec) = &budget.spec else { return Ok(Demand::default()) };
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(unavailable), _) => {
            let (expected, unmanaged) = expected_scale(caches, pods)?;
            let desired_healthy = (expected - scaled(unavailable, expected, Rounding::Up)).max(0);
            Ok(Demand { expected, desired_healthy, unmanaged })
        }
        (None, Some(IntOrString::Int(available))) => {
            let expected = i32::try_from(pods.len()).unwrap_or(i32::MAX);
            Ok(Demand { expected, desired_healthy: *available, unmanaged: false })
        }
        (None, Some(available)) => {
            let (expected, unmanaged) = expected_scale(caches, pods)?;
            Ok(Demand { expected, desired_healthy: scaled(available, expected, Rounding::Up), unmanaged })
        }
        (None, None) => Ok(Demand::default()),
    }
}

/// The sum of what the controllers of the pods want, and whether some pods have none.
fn expected_scale(caches: &Caches, pods: &[&Pod]) -> Result<(i32, bool), NoController> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut scales: BTreeMap<String, i32> = BTreeMap::new();
    let mut unmanaged = false;
    for pod in pods {
        let Some(owner) = controller_uid(&pod.metadata) else {
            unmanaged = true;
            continue;
        };
        if seen.insert(owner) {
            let missing = || NoController { pod: name(&pod.metadata).to_owned() };
            let (uid, scale) = controller_scale(caches, pod).ok_or_else(missing)?;
            scales.insert(uid, scale);
        }
    }
    Ok((scales.values().sum(), unmanaged))
}

/// The uid and the wanted replicas of what controls a pod: a Deployment through its ReplicaSet, else the set itself.
fn controller_scale(caches: &Caches, pod: &Pod) -> Option<(String, i32)> {
    let owner = controller(&pod.metadata)?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("");
    let key = Key::new(namespace, owner.name.as_str());
    match owner.kind.as_str() {
        "ReplicaSet" => {
            let set = caches.replica_sets.get(&key).filter(|set| set.metadata.uid.as_ref() == Some(&owner.uid))?;
            let above = controller(&set.metadata).filter(|above| above.kind == "Deployment");
            let Some(above) = above else {
                return Some((owner.uid.clone(), set.spec.as_ref()?.replicas.unwrap_or(1)));
            };
            let deployment = caches.deployments.get(&Key::new(namespace, above.name.as_str()))?;
            Some((above.uid.clone(), deployment.spec.as_ref()?.replicas.unwrap_or(1)))
        }
        "StatefulSet" => {
            let set = caches.stateful_sets.get(&key)?;
            Some((owner.uid.clone(), set.spec.as_ref()?.replicas.unwrap_or(1)))
        }
        _ => None,
    }
}

/// Evictions that were granted and whose pods are still there, and when the first of them is given up.
fn disrupted_pods(
    budget: &PodDisruptionBudget,
    pods: &[&Pod],
    now: Timestamp,
) -> (BTreeMap<String, Time>, Option<Timestamp>) {
    let noted = budget.status.as_ref().and_then(|status| status.disrupted_pods.clone()).unwrap_or_default();
    let waiting = pods.iter().filter(|pod| !is_deleting(pod)).filter_map(|pod| {
        let (name, at) = noted.get_key_value(name(&pod.metadata))?;
        let due = after_seconds(at.0, DELETION_TIMEOUT_SECONDS);
        (due >= now).then(|| (name.clone(), at.clone(), due))
    });
    let waiting: Vec<(String, Time, Timestamp)> = waiting.collect();
    let look_again = waiting.iter().map(|(_, _, due)| after_seconds(*due, 1)).min();
    (waiting.into_iter().map(|(name, at, _)| (name, at)).collect(), look_again)
}

fn healthy_status(
    budget: &PodDisruptionBudget,
    pods: &[&Pod],
    demand: &Demand,
    disrupted: BTreeMap<String, Time>,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    let gone = |pod: &Pod| is_deleting(pod) || disrupted.contains_key(name(&pod.metadata));
    let healthy = pods.iter().filter(|pod| !gone(pod) && is_ready(pod)).count();
    let current_healthy = i32::try_from(healthy).unwrap_or(i32::MAX);
    // With nothing expected there is nothing to disrupt.
    let allowed = if demand.expected <= 0 { 0 } else { (current_healthy - demand.desired_healthy).max(0) };
    let before = budget.status.clone().unwrap_or_default();
    let (state, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    PodDisruptionBudgetStatus {
        conditions: Some(conditions(budget, (state, reason, ""), now)),
        current_healthy: Some(current_healthy),
        desired_healthy: Some(demand.desired_healthy),
        disrupted_pods: Some(disrupted).filter(|pods| !pods.is_empty()),
        disruptions_allowed: Some(allowed),
        expected_pods: Some(demand.expected),
        observed_generation: budget.metadata.generation.or(before.observed_generation),
    }
}

/// Nothing may be disrupted while the numbers are not known.
fn failed_status(budget: &PodDisruptionBudget, message: String, now: Timestamp) -> PodDisruptionBudgetStatus {
    let mut status = budget.status.clone().unwrap_or_default();
    status.disruptions_allowed = Some(0);
    status.observed_generation = budget.metadata.generation;
    status.conditions = Some(conditions(budget, ("False", "SyncFailed", &message), now));
    status
}

fn conditions(
    budget: &PodDisruptionBudget,
    (state, reason, message): (&str, &str, &str),
    now: Timestamp,
) -> Vec<Condition> {
    let mut all = budget.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let known = all.iter().find(|condition| condition.type_ == "DisruptionAllowed");
    let since = known.filter(|known| known.status == state).map(|known| known.last_transition_time.clone());
    let condition = Condition {
        type_: "DisruptionAllowed".to_owned(),
        status: state.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: since.unwrap_or_else(|| time(now)),
        observed_generation: budget.metadata.generation,
    };
    all.retain(|condition| condition.type_ != "DisruptionAllowed");
    all.push(condition);
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn granted_evictions_count_as_gone_for_two_minutes() {
        let budget: PodDisruptionBudget = serde_json::from_value(json!({
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {}},
            "status": {"disruptedPods": {"a": "1970-01-01T00:01:40Z", "gone": "1970-01-01T00:01:40Z"}},
        }))
        .unwrap();
        let pod = |name: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": name},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            }))
            .unwrap()
        };
        let pods = [pod("a"), pod("b")];
        let pods: Vec<&Pod> = pods.iter().collect();
        let table = [(100, 1, 0, Some(221)), (220, 1, 0, Some(221)), (221, 2, 1, None)];
        for (second, healthy, allowed, again) in table {
            let now = Timestamp::from_second(second).unwrap();
            let (disrupted, look_again) = disrupted_pods(&budget, &pods, now);
            let demand = demand(&Caches::default(), &budget, &pods).unwrap();
            let status = healthy_status(&budget, &pods, &demand, disrupted, now);
            assert_eq!(
                (status.current_healthy, status.disruptions_allowed),
                (Some(healthy), Some(allowed)),
                "{second}"
            );
            assert_eq!(look_again, again.map(|second| Timestamp::from_second(second).unwrap()), "{second}");
        }
    }
}
