//! What it costs to move pods, and what there is to gain. Pure.

use std::collections::BTreeMap;

use api::labels;
use api::lower::{CostAnnotations, PodFacts};
use model::{InstanceType, Price};

/// Whose the annotation `controller.kubernetes.io/pod-deletion-cost` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionCosts {
    /// People wrote it: it tells how much a pod matters to them.
    Theirs,
    /// We write it ourselves: it tells nothing but what we think anyway.
    Ours,
}

/// What it costs to disrupt a node on which nothing runs.
const EMPTY_NODE: f64 = 1.0;
/// What it costs to evict a pod that says nothing.
const PLAIN_POD: f64 = 1.0;
/// The largest cost that people can state makes one pod about as dear as seventeen.
const STATED_UNIT: f64 = (1_u32 << 27) as f64;
/// The priority of a pod weighs four times as much.
const PRIORITY_UNIT: f64 = (1_u32 << 25) as f64;
/// No pod is dearer, nor more welcome to leave, than ten.
const BOUND: f64 = 10.0;

/// What it costs to evict a pod. What cannot be read counts as not said, and nothing else is read in its place.
pub(crate) fn eviction_cost(pod: &PodFacts, deletion_costs: DeletionCosts) -> f64 {
    let stated = pod.costs.as_deref().and_then(|costs| stated(costs, deletion_costs)).unwrap_or(0);
    let cost = PLAIN_POD + f64::from(stated) / STATED_UNIT + f64::from(pod.class.priority) / PRIORITY_UNIT;
    cost.clamp(-BOUND, BOUND)
}

fn stated(costs: &CostAnnotations, deletion_costs: DeletionCosts) -> Option<i32> {
    let deletion = costs.deletion.as_ref().filter(|_| deletion_costs == DeletionCosts::Theirs);
    costs.disruption.as_ref().or(deletion)?.parse().ok()
}

/// What it costs to give a node up: a pod that is welcome to leave does not make that cheaper than an empty node.
pub(crate) fn reschedule_cost<'a>(pods: impl Iterator<Item = &'a PodFacts>, deletion_costs: DeletionCosts) -> f64 {
    let moving = pods.filter(|pod| pod.is_reschedulable());
    EMPTY_NODE + moving.map(|pod| eviction_cost(pod, deletion_costs).max(0.0)).sum::<f64>()
}

/// What a node costs: the first offering of its type in its zone and capacity type, be it sold out; nothing if there is
/// none.
pub(crate) fn price(node_labels: &BTreeMap<String, String>, kinds: &[&InstanceType]) -> Price {
    let label = |key: &str| node_labels.get(key).map_or("", String::as_str);
    let (zone, capacity_type) = (label(labels::ZONE), label(labels::CAPACITY_TYPE));
    let is_own = |offering: &&model::Offering| {
        offering.zone().is_some_and(|found| **found == *zone) && offering.capacity_type().as_str() == capacity_type
    };
    kinds.iter().flat_map(|kind| &kind.offerings).find(is_own).map_or(Price::ZERO, |offering| offering.price)
}

/// What is saved for each unit of disruption; nodes with more are disrupted first.
pub(crate) fn savings_ratio(price: Price, reschedule_cost: f64) -> f64 {
    price.dollars() / reschedule_cost
}

#[cfg(test)]
mod tests {
    use model::{Offering, Requirement, Requirements, Resources, TypeName, Vocabulary};
    use serde_json::{Value, json};

    use super::*;

    fn pod(annotations: &Value, priority: i32, owner: &str) -> PodFacts {
        let owners = json!([{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o"}]);
        let pod = json!({"metadata": {"name": "pod", "namespace": "shop", "annotations": annotations,
            "ownerReferences": owners}, "spec": {"containers": [], "priority": priority, "nodeName": "n"}});
        PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core()).unwrap()
    }

    /// PDC-06, CONS-14: our own annotation is read first; the other one only while we do not write it.
    #[test]
    fn pods_state_their_cost() {
        let own = "karpenter.sh/disruption-cost";
        let other = "controller.kubernetes.io/pod-deletion-cost";
        let half = (1 << 26).to_string();
        let table = [
            (json!({}), 0, [1.0, 1.0]),
            (json!({own: half}), 0, [1.5, 1.5]),
            (json!({other: half}), 0, [1.5, 1.0]),
            (json!({own: format!("-{half}"), other: half}), 0, [0.5, 0.5]),
            (json!({own: "dear", other: half}), 0, [1.0, 1.0]),
            (json!({own: "1.5"}), 0, [1.0, 1.0]),
            (json!({own: "2147483648"}), 0, [1.0, 1.0]),
            (json!({own: "2147483647"}), 0, [10.0, 10.0]),
            (json!({own: "-2147483648"}), 0, [-10.0, -10.0]),
            (json!({}), 1 << 24, [1.5, 1.5]),
            (json!({}), -(1 << 26), [-1.0, -1.0]),
            (json!({}), 1_000_000_000, [10.0, 10.0]),
        ];
        for (annotations, priority, expected) in table {
            let pod = pod(&annotations, priority, "ReplicaSet");
            let found = [DeletionCosts::Theirs, DeletionCosts::Ours].map(|costs| eviction_cost(&pod, costs));
            assert_eq!(found, expected, "{annotations} {priority}");
        }
    }

    #[test]
    fn nodes_cost_what_their_pods_cost() {
        let welcome = json!({"karpenter.sh/disruption-cost": "-2147483648"});
        let none = json!({});
        let table = [
            (vec![], 1.0),
            (vec![pod(&none, 0, "ReplicaSet"), pod(&none, 0, "StatefulSet")], 3.0),
            (vec![pod(&none, 0, "DaemonSet")], 1.0),
            (vec![pod(&welcome, 0, "ReplicaSet"), pod(&none, 0, "ReplicaSet")], 2.0),
        ];
        for (pods, expected) in table {
            assert_eq!(reschedule_cost(pods.iter(), DeletionCosts::Theirs), expected);
        }
    }

    #[test]
    fn a_node_costs_what_its_offering_costs() {
        let offering = |zone: &str, capacity_type: &str, dollars: f64, available: bool| Offering {
            requirements: Requirements::none()
                .with(labels::ZONE, Requirement::is(zone))
                .with(labels::CAPACITY_TYPE, Requirement::is(capacity_type)),
            price: Price::from_dollars(dollars),
            available,
            reservation_capacity: None,
        };
        let offerings = vec![offering("a", "spot", 1.0, true), offering("b", "spot", 2.0, false)];
        let none = Resources::none;
        let kind = InstanceType::new(TypeName::new("m"), Requirements::none(), none(), none(), offerings);
        let found = |zone: &str, capacity_type: &str| {
            let labels = [(labels::ZONE, zone), (labels::CAPACITY_TYPE, capacity_type)];
            let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect();
            price(&labels, &[&kind]).dollars()
        };
        assert_eq!(
            [found("a", "spot"), found("b", "spot"), found("a", "on-demand"), found("", "")],
            [1.0, 2.0, 0.0, 0.0]
        );
        assert_eq!(price(&BTreeMap::new(), &[]), Price::ZERO);
        assert_eq!(savings_ratio(Price::from_dollars(3.0), 2.0), 1.5);
    }
}
