//! Pods of a snapshot as the facts that the filters judge.

use std::collections::BTreeSet;

use model::{
    BoundKind, HostPort, LabelOperator, LabelRequirement, Labels, NamespaceScope, PendingPod, PodKey, PodTerm,
    Requirement, Requirements, Snapshot, Text,
};

use crate::{Namespaces, NodeTerm, PodAffinityTerm, PodFacts, VolumeFacts, VolumePlace};

/// Every namespace that a pod of the snapshot lives in or that has labels.
pub(super) fn namespaces(snapshot: &Snapshot) -> BTreeSet<Text> {
    let pending = snapshot.pending.iter().map(|pod| &pod.key.namespace);
    let bound = snapshot.bound.iter().map(|(kind, _)| &kind.namespace);
    snapshot.namespaces.keys().chain(pending).chain(bound).cloned().collect()
}

/// A pod that waits.
pub(super) fn pending(snapshot: &Snapshot, namespaces: &BTreeSet<Text>, pod: &PendingPod) -> PodFacts {
    let terms = |terms: &[PodTerm]| terms.iter().map(|term| self::term(snapshot, namespaces, term)).collect();
    let mut facts = PodFacts::new(pod.key.clone());
    facts.labels = Labels::clone(&pod.labels);
    facts.requests = pod.class.requests.clone();
    facts.node_terms = node_terms(&pod.class.alternatives);
    facts.tolerations = pod.class.tolerations.clone();
    facts.host_ports = pod.class.host_ports.clone();
    facts.spread = pod.class.spread.clone();
    facts.affinity = terms(&pod.class.affinity);
    facts.anti_affinity = terms(&pod.class.anti_affinity);
    facts.volumes = volumes(pod);
    facts.priority = pod.class.priority;
    facts
}

/// A pod that runs, as far as it is known; its room is part of what its node has used.
pub(super) fn bound(snapshot: &Snapshot, namespaces: &BTreeSet<Text>, kind: &BoundKind, name: &str) -> PodFacts {
    let mut facts = PodFacts::new(PodKey::new(kind.namespace.clone(), name));
    facts.labels = Labels::clone(&kind.labels);
    facts.anti_affinity = kind.anti_affinity.iter().map(|term| self::term(snapshot, namespaces, term)).collect();
    facts
}

/// A stand-in for the pods of which only ports and volumes are known.
pub(super) fn filler(name: &str, ports: Vec<HostPort>, attached: impl Iterator<Item = model::Attachment>) -> PodFacts {
    // No namespace is empty, so that no rule speaks of this one.
    let mut facts = PodFacts::new(PodKey::new("", name));
    facts.host_ports = ports;
    facts.volumes = attached.map(|it| volume(it.driver, it.handle, None)).collect();
    facts
}

fn term(snapshot: &Snapshot, namespaces: &BTreeSet<Text>, term: &PodTerm) -> PodAffinityTerm {
    let NamespaceScope { selector, .. } = &term.namespaces;
    let everywhere = selector.as_ref().is_some_and(model::Selector::is_everything);
    let within = |namespace: &&Text| term.namespaces.contains(namespace, snapshot.namespaces.get(*namespace));
    let listed = || namespaces.iter().filter(within).cloned().collect();
    PodAffinityTerm {
        topology_key: term.topology_key.clone(),
        selector: term.selector.clone(),
        namespaces: if everywhere { Namespaces::All } else { Namespaces::Listed(listed()) },
    }
}

fn volumes(pod: &PendingPod) -> Vec<VolumeFacts> {
    let attachments = pod.volumes.attachments.iter().cloned();
    let mut volumes: Vec<VolumeFacts> = attachments.map(|it| volume(it.driver, it.handle, None)).collect();
    let terms = node_terms(&pod.volumes.alternatives);
    // Where all volumes can be reached from is said of a volume that no driver attaches.
    volumes.extend(terms.map(|terms| volume(Text::from(""), Text::from(pod.key.to_string()), Some(terms))));
    volumes
}

fn volume(driver: Text, handle: Text, terms: Option<Vec<NodeTerm>>) -> VolumeFacts {
    let place = VolumePlace::Bound(terms);
    VolumeFacts { handle, driver, place, zone_labels: Vec::new(), one_pod_only: false }
}

/// Alternatives as terms of a node selector; `None` when one of them asks for nothing.
fn node_terms(alternatives: &[Requirements]) -> Option<Vec<NodeTerm>> {
    let term = |alternative: &Requirements| {
        let labels = alternative.iter().flat_map(|(key, requirement)| demands(key, requirement)).collect();
        NodeTerm { labels, fields: Vec::new() }
    };
    let terms: Vec<NodeTerm> = alternatives.iter().map(term).collect();
    (!terms.iter().any(|term| term.labels.is_empty())).then_some(terms)
}

/// One requirement in the words of a node selector.
fn demands(key: &Text, requirement: &Requirement) -> Vec<LabelRequirement> {
    let demand = |operator, values: Vec<Text>| LabelRequirement { key: key.clone(), operator, values };
    let values: Vec<Text> = requirement.values().cloned().collect();
    let number = |number: i64| vec![Text::from(number.to_string())];
    match requirement.operator() {
        model::Operator::DoesNotExist if !requirement.is_impossible() => {
            vec![demand(LabelOperator::DoesNotExist, Vec::new())]
        }
        model::Operator::DoesNotExist | model::Operator::In => vec![demand(LabelOperator::In, values)],
        _ => {
            let (lower, upper) = requirement.bounds();
            let presence = requirement.demands_presence().then(|| demand(LabelOperator::Exists, Vec::new()));
            let excluded = (!values.is_empty()).then(|| demand(LabelOperator::NotIn, values));
            let above = lower.map(|lower| demand(LabelOperator::Gt, number(lower.saturating_sub(1))));
            let below = upper.map(|upper| demand(LabelOperator::Lt, number(upper.saturating_add(1))));
            let demands: Vec<_> = presence.into_iter().chain(excluded).chain(above).chain(below).collect();
            demands
        }
    }
}
