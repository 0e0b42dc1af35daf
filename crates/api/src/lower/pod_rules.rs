//! Rules between pods, and what pods take of their host: spread, affinity, ports and volumes.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as core;
use model::{
    HostPort, Inclusion, LabelOperator, LabelRequirement, Labels, NamespaceScope, PodTerm, Selector, SpreadConstraint,
    Text, WeightedPodTerm, labels::current_spelling,
};

use super::selector::label_selector;

/// Topology spread constraints by whether they must hold.
#[derive(Default)]
pub(super) struct Spread {
    pub(super) hard: Vec<SpreadConstraint>,
    pub(super) soft: Vec<SpreadConstraint>,
}

impl Spread {
    pub(super) fn lower(spec: &core::PodSpec, labels: &Labels) -> Self {
        let mut spread = Self::default();
        for written in spec.topology_spread_constraints.iter().flatten() {
            let list = if written.when_unsatisfiable == "ScheduleAnyway" { &mut spread.soft } else { &mut spread.hard };
            list.push(constraint(written, labels));
        }
        spread
    }
}

fn constraint(written: &core::TopologySpreadConstraint, labels: &Labels) -> SpreadConstraint {
    let mut selector = label_selector(written.label_selector.as_ref());
    narrow(&mut selector, written.match_label_keys.as_deref(), LabelOperator::In, labels);
    SpreadConstraint {
        topology_key: Text::from(current_spelling(&written.topology_key)),
        max_skew: written.max_skew.max(0).unsigned_abs(),
        min_domains: written.min_domains.map_or(1, |count| count.max(1).unsigned_abs()),
        selector,
        node_affinity_policy: inclusion(written.node_affinity_policy.as_deref(), Inclusion::Honor),
        node_taints_policy: inclusion(written.node_taints_policy.as_deref(), Inclusion::Ignore),
    }
}

/// Reads an inclusion policy; anything but the two known words means the default.
pub(crate) fn inclusion(written: Option<&str>, default: Inclusion) -> Inclusion {
    match written {
        Some("Honor") => Inclusion::Honor,
        Some("Ignore") => Inclusion::Ignore,
        _ => default,
    }
}

/// Narrows a selector to pods that agree with this one about some labels, or that do not. Labels that the pod does not
/// carry say nothing, and no selector stays no selector. The API server may have done the same already.
fn narrow(selector: &mut Selector, keys: Option<&[String]>, operator: LabelOperator, labels: &Labels) {
    let Selector::All(requirements) = selector else { return };
    for key in keys.unwrap_or_default() {
        let Some((key, value)) = labels.get_key_value(key.as_str()) else { continue };
        let one = LabelRequirement { key: Text::clone(key), operator, values: vec![Text::clone(value)] };
        if !requirements.contains(&one) {
            requirements.push(one);
        }
    }
    requirements.sort();
}

/// Pod affinity and anti-affinity, required and preferred.
#[derive(Default)]
pub(super) struct PodTerms {
    pub(super) affinity: Vec<PodTerm>,
    pub(super) anti_affinity: Vec<PodTerm>,
    pub(super) soft_affinity: Vec<WeightedPodTerm>,
    pub(super) soft_anti_affinity: Vec<WeightedPodTerm>,
}

impl PodTerms {
    pub(super) fn lower(spec: &core::PodSpec, namespace: &Text, labels: &Labels) -> Self {
        let required = |terms: &Option<Vec<core::PodAffinityTerm>>| -> Vec<PodTerm> {
            terms.iter().flatten().map(|written| term(written, namespace, labels)).collect()
        };
        let preferred = |terms: &Option<Vec<core::WeightedPodAffinityTerm>>| -> Vec<WeightedPodTerm> {
            let one = |written: &core::WeightedPodAffinityTerm| WeightedPodTerm {
                weight: written.weight,
                term: term(&written.pod_affinity_term, namespace, labels),
            };
            terms.iter().flatten().map(one).collect()
        };
        let mut found = Self::default();
        let affinity = spec.affinity.as_ref();
        if let Some(near) = affinity.and_then(|affinity| affinity.pod_affinity.as_ref()) {
            found.affinity = required(&near.required_during_scheduling_ignored_during_execution);
            found.soft_affinity = preferred(&near.preferred_during_scheduling_ignored_during_execution);
        }
        if let Some(apart) = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref()) {
            found.anti_affinity = required(&apart.required_during_scheduling_ignored_during_execution);
            found.soft_anti_affinity = preferred(&apart.preferred_during_scheduling_ignored_during_execution);
        }
        found
    }
}

fn term(written: &core::PodAffinityTerm, namespace: &Text, labels: &Labels) -> PodTerm {
    let mut selector = label_selector(written.label_selector.as_ref());
    narrow(&mut selector, written.match_label_keys.as_deref(), LabelOperator::In, labels);
    narrow(&mut selector, written.mismatch_label_keys.as_deref(), LabelOperator::NotIn, labels);
    let listed: BTreeSet<Text> = written.namespaces.iter().flatten().map(|name| Text::from(name.as_str())).collect();
    let namespaces = match &written.namespace_selector {
        None if listed.is_empty() => NamespaceScope::only(Text::clone(namespace)),
        selected => {
            NamespaceScope { listed, selector: selected.as_ref().map(|selector| label_selector(Some(selector))) }
        }
    };
    PodTerm { topology_key: Text::from(current_spelling(&written.topology_key)), selector, namespaces }
}

/// Host ports of everything that runs as long as the pod: containers and sidecars.
pub(super) fn host_ports(spec: &core::PodSpec) -> Vec<HostPort> {
    let is_sidecar = |container: &&core::Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let host_port = |port: &core::ContainerPort| {
        Some(HostPort {
            address: Text::from(port.host_ip.as_deref().unwrap_or_default()),
            protocol: Text::from(port.protocol.as_deref().unwrap_or_default()),
            port: port.host_port.and_then(|number| u16::try_from(number).ok()).filter(|number| *number != 0)?,
        })
    };
    let distinct: BTreeSet<HostPort> = ports.filter_map(host_port).collect();
    distinct.into_iter().collect()
}

/// Names of the PersistentVolumeClaims behind a pod's volumes; those of ephemeral volumes are made from the pod's name.
pub(super) fn volume_claims(spec: &core::PodSpec, pod: &str) -> BTreeSet<Text> {
    let claim = |volume: &core::Volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => Some(Text::from(claim.claim_name.as_str())),
        (None, Some(_)) => Some(Text::from(format!("{pod}-{}", volume.name))),
        (None, None) => None,
    };
    spec.volumes.iter().flatten().filter_map(claim).collect()
}
