//! Required pod affinity and anti-affinity, in both directions.

use std::collections::{BTreeMap, BTreeSet};

use model::{PodKey, Text};

use crate::{NodeFacts, Objection, PodAffinityTerm, PodFacts, Situation};

/// A label of nodes with one of its values.
type Domain = (Text, Text);

/// What the pods that are there mean for the new one.
pub(crate) struct Neighbours {
    /// Domains with a pod that all affinity terms of the new pod speak of.
    liked: BTreeSet<Domain>,
    /// Domains with a pod that the new one wants to stay away from, and the last such pod.
    disliked: BTreeMap<Domain, PodKey>,
    /// Domains with a pod that wants the new one to stay away, and the last such pod.
    disliking: BTreeMap<Domain, PodKey>,
}

impl Neighbours {
    pub(crate) fn new(situation: &Situation, pod: &PodFacts) -> Self {
        let mut neighbours = Self { liked: BTreeSet::new(), disliked: BTreeMap::new(), disliking: BTreeMap::new() };
        for (node, other) in situation.aloof().filter(|(_, other)| other.key != pod.key) {
            let terms = other.anti_affinity.iter().filter(|term| term.matches(pod));
            let domains = terms.filter_map(|term| domain(term, node));
            neighbours.disliking.extend(domains.map(|domain| (domain, other.key.clone())));
        }
        if pod.affinity.is_empty() && pod.anti_affinity.is_empty() {
            return neighbours;
        }
        for (node, other) in situation.placed().filter(|(_, other)| other.key != pod.key) {
            if suits_all(&pod.affinity, other) {
                neighbours.liked.extend(pod.affinity.iter().filter_map(|term| domain(term, node)));
            }
            let terms = pod.anti_affinity.iter().filter(|term| term.matches(other));
            let domains = terms.filter_map(|term| domain(term, node));
            neighbours.disliked.extend(domains.map(|domain| (domain, other.key.clone())));
        }
        neighbours
    }

    /// The first rule that speaks against the node.
    pub(crate) fn objection(&self, pod: &PodFacts, node: &NodeFacts) -> Option<Objection> {
        let own = || pod.anti_affinity.iter().filter_map(|term| domain(term, node));
        let here = || node.labels.iter().map(|(key, value)| (key.clone(), value.clone()));
        if !self.is_liked(pod, node) {
            return Some(Objection::Affinity);
        }
        if let Some(other) = own().find_map(|domain| self.disliked.get(&domain)) {
            return Some(Objection::AntiAffinity { pod: other.clone() });
        }
        if self.disliking.is_empty() {
            return None;
        }
        here()
            .find_map(|domain| self.disliking.get(&domain))
            .map(|other| Objection::ExistingAntiAffinity { pod: other.clone() })
    }

    fn is_liked(&self, pod: &PodFacts, node: &NodeFacts) -> bool {
        let domains: Option<Vec<Domain>> = pod.affinity.iter().map(|term| domain(term, node)).collect();
        let Some(domains) = domains else { return false };
        // The first pod of a group that wants to be together has nobody to join; it may begin anywhere.
        let begins = self.liked.is_empty() && suits_all(&pod.affinity, pod);
        begins || domains.iter().all(|domain| self.liked.contains(domain))
    }
}

fn domain(term: &PodAffinityTerm, node: &NodeFacts) -> Option<Domain> {
    node.labels.get(&term.topology_key).map(|value| (term.topology_key.clone(), value.clone()))
}

/// Whether all terms speak of this pod; without terms, none does.
fn suits_all(terms: &[PodAffinityTerm], pod: &PodFacts) -> bool {
    !terms.is_empty() && terms.iter().all(|term| term.matches(pod))
}
