//! Which of the nodes that may take a pod should: an approximation of the default profile, without chance.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm};
use model::{ResourceName, Resources, Text};
use referee::{Labels, NodeFacts, PodFacts, Selector};

use super::lower::{affinity_term, labels, node_term, spread_selector};
use crate::caches::Caches;
use crate::pods::{controller_uid, is_active};

/// What pods without requests count for when nodes are compared: a tenth of a core and 200 MiB.
const UNASKED_CPU: i64 = 100;
const UNASKED_MEMORY: i64 = 200 << 20;

/// Weights as in the default profile: taints 3, the preferences and spread 2 each, room 1.
const TAINT_WEIGHT: i64 = 3;
const PREFERENCE_WEIGHT: i64 = 2;
/// The best score of one rule.
const FULL: i64 = 100;

/// A node in numbers: what it has and what is taken, kept up to date pod by pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeNumbers {
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) pods: i64,
    pub(crate) cpu_taken: i64,
    pub(crate) memory_taken: i64,
    pub(crate) pods_taken: i64,
    /// Counts the changes of the Node object that the scheduler saw.
    pub(crate) version: u64,
    /// The node itself, kept here so that a walk over the numbers needs no look-up; `None` while it does not exist.
    pub(crate) facts: Option<NodeFacts>,
}

impl NodeNumbers {
    /// Takes over what the node has.
    pub(crate) fn set_node(&mut self, facts: NodeFacts, version: u64) {
        let allocatable = &facts.allocatable;
        self.cpu = allocatable.get(&ResourceName::cpu());
        self.memory = allocatable.get(&ResourceName::memory());
        self.pods = allocatable.get(&ResourceName::pods());
        self.version = version;
        self.facts = Some(facts);
    }

    /// Counts a pod in (`times` 1) or out (`times` -1).
    pub(crate) fn count(&mut self, requests: &Resources, times: i64) {
        self.cpu_taken += times * requests.get(&ResourceName::cpu());
        self.memory_taken += times * requests.get(&ResourceName::memory());
        self.pods_taken += times;
    }

    /// Whether the pod could fit by what is counted here; other resources are left to the referee.
    pub(crate) fn may_fit(&self, cpu: i64, memory: i64) -> bool {
        self.pods_taken < self.pods
            && (cpu == 0 || self.cpu_taken + cpu <= self.cpu)
            && (memory == 0 || self.memory_taken + memory <= self.memory)
    }

    /// The share that is left when the pod is there too, and how evenly cpu and memory are used.
    fn room(&self, cpu: i64, memory: i64) -> i64 {
        let part = |taken: i64, all: i64| if all <= 0 { FULL } else { (taken * FULL / all).clamp(0, FULL) };
        let cpu_used = part(self.cpu_taken + cpu, self.cpu);
        let memory_used = part(self.memory_taken + memory, self.memory);
        let left = (FULL - cpu_used + FULL - memory_used) / 2;
        let balance = FULL - (cpu_used - memory_used).abs() / 2;
        left + balance
    }
}

/// What a pod prefers, worked out once for all nodes.
pub(crate) struct Preferences<'a> {
    cpu: i64,
    memory: i64,
    facts: &'a PodFacts,
    node_terms: Vec<(i64, referee::NodeTerm)>,
    /// Penalty or bonus by label value of a topology key.
    domains: Vec<(Text, BTreeMap<Text, i64>)>,
    /// Pods of the same controller by node: fewer is better.
    siblings: BTreeMap<&'a str, i64>,
}

impl<'a> Preferences<'a> {
    pub(crate) fn new(caches: &'a Caches, pod: &'a Pod, facts: &'a PodFacts) -> Self {
        let (cpu, memory) = (facts.requests.get(&ResourceName::cpu()), facts.requests.get(&ResourceName::memory()));
        let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
        let preferred = affinity
            .and_then(|affinity| affinity.node_affinity.as_ref())
            .and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
        let node_terms = preferred.into_iter().flatten();
        let node_terms = node_terms.map(|term| (i64::from(term.weight), node_term(&term.preference))).collect();
        Self {
            cpu: if cpu == 0 { UNASKED_CPU } else { cpu },
            memory: if memory == 0 { UNASKED_MEMORY } else { memory },
            facts,
            node_terms,
            domains: soft_domains(caches, pod),
            siblings: siblings(caches, pod),
        }
    }

    /// The higher the better.
    pub(crate) fn score(&self, node: &NodeFacts, numbers: &NodeNumbers) -> i64 {
        let soft = node.taints.iter().filter(|taint| taint.effect == model::Effect::PreferNoSchedule);
        let disliked = soft.filter(|taint| !self.facts.tolerations.iter().any(|it| it.tolerates(taint))).count();
        let terms = self.node_terms.iter().filter(|(_, term)| term.matches(&node.name, &node.labels));
        let liked: i64 = terms.map(|(weight, _)| *weight).sum();
        let domains: i64 = self.domains.iter().filter_map(|(key, values)| values.get(node.labels.get(key)?)).sum();
        let siblings = self.siblings.get(node.name.as_str()).copied().unwrap_or(0);
        numbers.room(self.cpu, self.memory) - TAINT_WEIGHT * FULL * i64::try_from(disliked).unwrap_or(0)
            + PREFERENCE_WEIGHT * (liked + domains)
            - PREFERENCE_WEIGHT * siblings
    }
}

/// Soft spread constraints and preferred pod affinity, as points per domain.
fn soft_domains(caches: &Caches, pod: &Pod) -> Vec<(Text, BTreeMap<Text, i64>)> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let mut domains = Vec::new();
    let namespace: Text = pod.metadata.namespace.as_deref().unwrap_or("").into();
    for constraint in spec.topology_spread_constraints.iter().flatten() {
        if constraint.when_unsatisfiable == "ScheduleAnyway" {
            let selector = spread_selector(pod, constraint);
            let wanted = |other: &Pod, labels: &Labels| {
                other.metadata.namespace.as_deref() == Some(&*namespace) && selector.matches(labels)
            };
            domains.push(domain_points(caches, &constraint.topology_key, -10, wanted));
        }
    }
    let affinity = spec.affinity.as_ref();
    let near = affinity.and_then(|it| it.pod_affinity.as_ref());
    let near = near.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_ref());
    let far = affinity.and_then(|it| it.pod_anti_affinity.as_ref());
    let far = far.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_ref());
    let near = near.into_iter().flatten().map(|term| (i64::from(term.weight), &term.pod_affinity_term));
    let far = far.into_iter().flatten().map(|term| (-i64::from(term.weight), &term.pod_affinity_term));
    for (weight, term) in near.chain(far) {
        domains.push(term_points(caches, pod, weight, term));
    }
    domains
}

fn term_points(caches: &Caches, pod: &Pod, weight: i64, term: &PodAffinityTerm) -> (Text, BTreeMap<Text, i64>) {
    let lowered = affinity_term(caches, pod, term);
    if lowered.selector == Selector::Nothing {
        return (lowered.topology_key, BTreeMap::new());
    }
    domain_points(caches, &term.topology_key, weight, |other: &Pod, labels: &Labels| {
        let namespace: Text = other.metadata.namespace.as_deref().unwrap_or("").into();
        lowered.namespaces.contains(&namespace) && lowered.selector.matches(labels)
    })
}

fn domain_points(
    caches: &Caches,
    topology_key: &str,
    points: i64,
    counts: impl Fn(&Pod, &Labels) -> bool,
) -> (Text, BTreeMap<Text, i64>) {
    let mut values: BTreeMap<Text, i64> = BTreeMap::new();
    for (name, node) in &caches.nodes {
        let Some(value) = node.metadata.labels.as_ref().and_then(|labels| labels.get(topology_key)) else { continue };
        let pods = caches.pods_on(name).map(|(_, known)| &*known.pod).filter(|pod| is_active(pod));
        let found = pods.filter(|pod| counts(pod, &labels(pod.metadata.labels.as_ref()))).count();
        *values.entry(value.as_str().into()).or_insert(0) += points * i64::try_from(found).unwrap_or(0);
    }
    (topology_key.into(), values)
}

/// By default the pods of one controller are spread over nodes when nothing else is asked for.
fn siblings<'a>(caches: &'a Caches, pod: &Pod) -> BTreeMap<&'a str, i64> {
    let mut by_node = BTreeMap::new();
    let constrained = pod.spec.as_ref().and_then(|spec| spec.topology_spread_constraints.as_ref());
    if constrained.is_some_and(|constraints| !constraints.is_empty()) {
        return by_node;
    }
    let Some(controller) = controller_uid(&pod.metadata) else { return by_node };
    for (_, known) in caches.pods_of(controller) {
        if let Some(node) = crate::pods::node_name(&known.pod).filter(|_| is_active(&known.pod)) {
            *by_node.entry(node).or_insert(0) += 1;
        }
    }
    by_node
}
