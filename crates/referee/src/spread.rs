//! Topology spread constraints with `DoNotSchedule`.

use std::collections::BTreeMap;

use model::Text;

use crate::filters::untolerated;
use crate::{Gates, Inclusion, NodeFacts, Objection, PodFacts, Situation, SpreadConstraint};

/// How many matching pods each domain has, one map per constraint of the pod.
#[derive(Clone)]
pub(crate) struct SpreadCounts(Vec<BTreeMap<Text, i64>>);

impl SpreadCounts {
    pub(crate) fn new(situation: &Situation, pod: &PodFacts) -> Self {
        Self(pod.spread.iter().map(|constraint| count(situation, pod, constraint)).collect())
    }

    /// Counts one more pod that was bound to a node, as counting anew would.
    pub(crate) fn note(&mut self, gates: Gates, pod: &PodFacts, bound: &PodFacts, node: &NodeFacts) {
        for (constraint, counts) in pod.spread.iter().zip(&mut self.0) {
            let counted = counts_for(pod, constraint, bound) && takes_part(gates, pod, constraint, node);
            if let Some(domain) = node.labels.get(&constraint.topology_key).filter(|_| counted) {
                *counts.entry(domain.clone()).or_insert(0) += 1;
            }
        }
    }

    /// The first constraint that speaks against the node.
    pub(crate) fn objection(&self, pod: &PodFacts, node: &NodeFacts) -> Option<Objection> {
        pod.spread.iter().zip(&self.0).find_map(|(constraint, counts)| judge(constraint, counts, pod, node))
    }
}

fn count(situation: &Situation, pod: &PodFacts, constraint: &SpreadConstraint) -> BTreeMap<Text, i64> {
    let mut counts = BTreeMap::new();
    for node in situation.nodes().filter(|node| takes_part(situation.gates(), pod, constraint, node)) {
        if let Some(domain) = node.labels.get(&constraint.topology_key) {
            *counts.entry(domain.clone()).or_insert(0) += matching_pods(situation, pod, constraint, node);
        }
    }
    counts
}

/// A node counts when it has the labels of all constraints and, as far as the constraint asks, could take the pod.
fn takes_part(gates: Gates, pod: &PodFacts, constraint: &SpreadConstraint, node: &NodeFacts) -> bool {
    let labelled = pod.spread.iter().all(|other| node.labels.contains_key(&other.topology_key));
    let by_affinity = constraint.node_affinity_policy == Inclusion::Ignore || pod.selects(node);
    let by_taints = constraint.node_taints_policy == Inclusion::Ignore || untolerated(gates, pod, node).is_none();
    labelled && by_affinity && by_taints
}

fn matching_pods(situation: &Situation, pod: &PodFacts, constraint: &SpreadConstraint, node: &NodeFacts) -> i64 {
    let others = situation.pods_on(&node.name).filter(|other| other.key != pod.key);
    i64::try_from(others.filter(|other| counts_for(pod, constraint, other)).count()).unwrap_or(i64::MAX)
}

/// Whether another pod counts for a constraint. A selector that would match everything counts nobody, though the pod
/// itself still counts for one.
fn counts_for(pod: &PodFacts, constraint: &SpreadConstraint, other: &PodFacts) -> bool {
    let selected = other.key.namespace == pod.key.namespace && constraint.selector.matches(&other.labels);
    selected && !other.terminating && !constraint.selector.is_everything()
}

fn judge(
    constraint: &SpreadConstraint,
    counts: &BTreeMap<Text, i64>,
    pod: &PodFacts,
    node: &NodeFacts,
) -> Option<Objection> {
    let topology_key = constraint.topology_key.clone();
    let Some(domain) = node.labels.get(&topology_key) else {
        return Some(Objection::SpreadLabelMissing { topology_key });
    };
    // Without any domain the emptiest counts as unreachably full, so that nothing is skewed.
    let few_domains = counts.len() < usize::try_from(constraint.min_domains).unwrap_or(usize::MAX);
    let fullest_possible = i64::from(i32::MAX);
    let emptiest = if few_domains { 0 } else { counts.values().copied().min().unwrap_or(fullest_possible) };
    let own = i64::from(constraint.selector.matches(&pod.labels));
    let skew = counts.get(domain).copied().unwrap_or(0) + own - emptiest;
    let max_skew = constraint.max_skew;
    (skew > i64::from(max_skew)).then_some(Objection::Skewed { topology_key, skew, max_skew })
}
