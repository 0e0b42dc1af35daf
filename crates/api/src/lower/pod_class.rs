//! What a pod's spec says about where it may run.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as core;
use model::{
    Labels, Operator, PodClass, Preference, Requirement, Requirements, ResourceName, Resources, Rule, Text, Vocabulary,
    labels,
};

use super::pod_fault::PodFault;
use super::pod_requests::{MissingRequests, effective};
use super::pod_rules::{PodTerms, Spread, host_ports};
use super::selector::{expression, tolerations};

/// A pod, or what a template says about the pods to come.
pub(super) struct Written<'a> {
    pub(super) namespace: &'a Text,
    pub(super) labels: &'a Labels,
    pub(super) spec: &'a core::PodSpec,
    pub(super) status: Option<&'a core::PodStatus>,
    pub(super) missing: MissingRequests,
}

/// Lowers what decides where a pod may run; what cannot be planned for is told in `faults`.
pub(super) fn class(written: &Written<'_>, vocabulary: &Vocabulary, faults: &mut BTreeSet<PodFault>) -> PodClass {
    let Written { namespace, labels, spec, status, missing } = *written;
    let alternatives = alternatives(spec, vocabulary, faults);
    let spread = Spread::lower(spec, labels);
    let terms = PodTerms::lower(spec, namespace, labels);
    PodClass {
        priority: spec.priority.unwrap_or(0),
        requests: without_zeros(&effective(spec, status, missing)),
        preferences: preferences(spec, vocabulary, &alternatives),
        alternatives,
        tolerations: tolerations(spec.tolerations.iter().flatten()),
        spread: spread.hard,
        soft_spread: spread.soft,
        affinity: terms.affinity,
        anti_affinity: terms.anti_affinity,
        soft_affinity: terms.soft_affinity,
        soft_anti_affinity: terms.soft_anti_affinity,
        host_ports: host_ports(spec),
        unplanned_rules: claims_resources(spec).then_some(Rule::ResourceClaim).into_iter().collect(),
    }
}

/// Two pods that differ only in a resource of which they ask nothing are equal.
fn without_zeros(requests: &Resources) -> Resources {
    let asked = |(name, amount): (&ResourceName, i64)| (amount != 0).then(|| (name.clone(), amount));
    requests.iter().filter_map(asked).collect()
}

/// Whether the pod or one of its containers asks for a dynamic resource claim.
pub(super) fn claims_resources(spec: &core::PodSpec) -> bool {
    let of_container = |container: &core::Container| {
        let claims = container.resources.as_ref().and_then(|resources| resources.claims.as_ref());
        claims.is_some_and(|claims| !claims.is_empty())
    };
    spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty())
        || spec.containers.iter().any(of_container)
        || spec.init_containers.iter().flatten().any(of_container)
}

fn node_affinity(spec: &core::PodSpec) -> Option<&core::NodeAffinity> {
    spec.affinity.as_ref()?.node_affinity.as_ref()
}

/// What may be met instead of one another. A contradiction is no alternative: no node could ever satisfy it.
fn alternatives(spec: &core::PodSpec, vocabulary: &Vocabulary, faults: &mut BTreeSet<PodFault>) -> Vec<Requirements> {
    let mut selected = Requirements::none();
    for (key, value) in spec.node_selector.iter().flatten() {
        let requirement = Requirement::is(value.as_str());
        check(key, &requirement, vocabulary, faults);
        selected.add(key, vocabulary.meant(key, requirement));
    }
    let required =
        node_affinity(spec).and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let terms = match required {
        None => vec![selected.clone()],
        Some(required) => affinity_terms(required, &selected, vocabulary, faults),
    };
    if terms.is_empty() {
        faults.insert(PodFault::EmptyAffinity);
    }
    let (impossible, mut possible): (Vec<_>, Vec<_>) =
        terms.into_iter().partition(|term| term.contradiction().is_some());
    if possible.is_empty() {
        let parted = impossible.iter().filter_map(Requirements::contradiction).cloned();
        faults.extend(parted.map(|key| PodFault::Contradiction { key }));
        possible.push(selected);
    }
    possible
}

/// The terms of a node affinity, each with the node selector; a term that says nothing matches nothing.
fn affinity_terms(
    required: &core::NodeSelector,
    selected: &Requirements,
    vocabulary: &Vocabulary,
    faults: &mut BTreeSet<PodFault>,
) -> Vec<Requirements> {
    let mut terms = Vec::new();
    for term in &required.node_selector_terms {
        let has_fields = term.match_fields.as_ref().is_some_and(|fields| !fields.is_empty());
        if has_fields {
            faults.insert(PodFault::MatchFields);
        }
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        if expressions.is_empty() && !has_fields {
            continue;
        }
        let mut both = selected.clone();
        for written in expressions {
            match expression(written) {
                None => {
                    faults.insert(PodFault::Unreadable { key: Text::from(written.key.as_str()) });
                }
                Some(requirement) => {
                    check(&written.key, &requirement, vocabulary, faults);
                    both.add(&written.key, vocabulary.meant(&written.key, requirement));
                }
            }
        }
        terms.push(both);
    }
    terms
}

fn check(key: &str, requirement: &Requirement, vocabulary: &Vocabulary, faults: &mut BTreeSet<PodFault>) {
    let key = labels::current_spelling(key);
    if key == labels::NODE_POOL && requirement.operator() == Operator::DoesNotExist {
        faults.insert(PodFault::KeepsAway);
    }
    if vocabulary.is_restricted(key) {
        faults.insert(PodFault::Restricted { key: Text::from(key) });
    }
}

/// Wishes that cannot be read or fulfilled are dropped: they are wishes.
fn preferences(spec: &core::PodSpec, vocabulary: &Vocabulary, alternatives: &[Requirements]) -> Vec<Preference> {
    let written =
        node_affinity(spec).and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    let lower = |term: &core::PreferredSchedulingTerm| {
        let mut wish = Requirements::none();
        for one in term.preference.match_expressions.iter().flatten() {
            wish.add(&one.key, vocabulary.meant(&one.key, expression(one)?));
        }
        let can_be = wish.contradiction().is_none() && alternatives.iter().any(|own| own.intersect(&wish).is_ok());
        can_be.then_some(Preference { weight: term.weight, requirements: wish })
    };
    written.into_iter().flatten().filter_map(lower).collect()
}
