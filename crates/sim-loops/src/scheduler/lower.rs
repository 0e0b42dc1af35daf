//! Pods and nodes as the plain facts that the referee judges.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use model::{Effect, NodeName, PodKey, Taint, Text, Toleration, TolerationOperator};
use referee::{
    HostPort, Inclusion, LabelOperator, LabelRequirement, Labels, Namespaces, NodeFacts, NodeTerm, PodAffinityTerm,
    PodFacts, Selector, SpreadConstraint,
};

use super::volumes;
use crate::caches::Caches;
use crate::key::Key;
use crate::pods::{is_deleting, name, node_name};
use crate::requests::{requests, resources};
use crate::selector::matches;

/// A node as the scheduler sees it.
pub(crate) fn node_facts(caches: &Caches, node: &core::Node) -> NodeFacts {
    let spec = node.spec.as_ref();
    let status = node.status.as_ref();
    let taint = |taint: &core::Taint| {
        Some(Taint::new(taint.key.as_str(), taint.value.as_deref().unwrap_or(""), Effect::parse(&taint.effect)?))
    };
    NodeFacts {
        name: NodeName::new(name(&node.metadata)),
        labels: labels(node.metadata.labels.as_ref()),
        taints: spec.iter().filter_map(|spec| spec.taints.as_ref()).flatten().filter_map(taint).collect(),
        unschedulable: spec.and_then(|spec| spec.unschedulable) == Some(true),
        allocatable: resources(status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()))),
        attach_limits: attach_limits(caches, name(&node.metadata)),
    }
}

fn attach_limits(caches: &Caches, node: &str) -> BTreeMap<Text, u32> {
    let drivers = caches.csi_nodes.get(&Key::cluster(node)).map(|csi| csi.spec.drivers.as_slice()).unwrap_or_default();
    let limit = |driver: &k8s_openapi::api::storage::v1::CSINodeDriver| {
        let count = driver.allocatable.as_ref()?.count?;
        Some((driver.name.as_str().into(), u32::try_from(count).ok()?))
    };
    drivers.iter().filter_map(limit).collect()
}

/// A pod as the scheduler sees it.
pub(crate) fn pod_facts(caches: &Caches, pod: &core::Pod) -> PodFacts {
    let key = PodKey::new(pod.metadata.namespace.as_deref().unwrap_or(""), name(&pod.metadata));
    let mut facts = PodFacts::new(key);
    facts.labels = labels(pod.metadata.labels.as_ref());
    facts.requests = requests(pod);
    facts.terminating = is_deleting(pod);
    facts.node_name = node_name(pod).map(NodeName::new);
    let Some(spec) = &pod.spec else { return facts };
    facts.node_selector = labels(spec.node_selector.as_ref());
    facts.tolerations = spec.tolerations.iter().flatten().filter_map(toleration).collect();
    facts.host_ports = host_ports(spec);
    facts.spread = spread(pod, spec);
    facts.priority = spec.priority.unwrap_or(0);
    facts.may_preempt = spec.preemption_policy.as_deref() != Some("Never");
    let affinity = spec.affinity.as_ref();
    let required = affinity
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    facts.node_terms = required.map(|required| required.node_selector_terms.iter().map(node_term).collect());
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let near = near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref());
    facts.affinity = near.into_iter().flatten().map(|term| affinity_term(caches, pod, term)).collect();
    let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let far = far.and_then(|far| far.required_during_scheduling_ignored_during_execution.as_ref());
    facts.anti_affinity = far.into_iter().flatten().map(|term| affinity_term(caches, pod, term)).collect();
    let (volumes, blocker) = volumes::of(caches, pod, spec);
    facts.volumes = volumes;
    facts.blocker = blocker;
    facts
}

pub(crate) fn labels(labels: Option<&BTreeMap<String, String>>) -> Labels {
    labels.into_iter().flatten().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

/// A toleration whose operator or effect the API does not know tolerates nothing.
fn toleration(toleration: &core::Toleration) -> Option<Toleration> {
    let operator = match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => TolerationOperator::Exists,
        "Equal" | "" => TolerationOperator::Equal,
        "Gt" => TolerationOperator::GreaterThan,
        "Lt" => TolerationOperator::LessThan,
        _ => return None,
    };
    let effect = match toleration.effect.as_deref().unwrap_or("") {
        "" => None,
        effect => Some(Effect::parse(effect)?),
    };
    Some(Toleration {
        key: toleration.key.as_deref().filter(|key| !key.is_empty()).map(Text::from),
        operator,
        value: toleration.value.as_deref().unwrap_or("").into(),
        effect,
    })
}

fn host_ports(spec: &core::PodSpec) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().flatten().filter(|it| it.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).filter_map(|container| container.ports.as_ref()).flatten();
    let host_port = |port: &core::ContainerPort| {
        let number = u16::try_from(port.host_port?).ok().filter(|number| *number > 0)?;
        Some(HostPort {
            address: port.host_ip.as_deref().unwrap_or("").into(),
            protocol: port.protocol.as_deref().unwrap_or("TCP").into(),
            port: number,
        })
    };
    ports.filter_map(host_port).collect()
}

fn spread(pod: &core::Pod, spec: &core::PodSpec) -> Vec<SpreadConstraint> {
    let hard = spec.topology_spread_constraints.iter().flatten().filter(|it| it.when_unsatisfiable == "DoNotSchedule");
    let policy = |text: Option<&str>, default: Inclusion| match text {
        Some("Honor") => Inclusion::Honor,
        Some("Ignore") => Inclusion::Ignore,
        _ => default,
    };
    hard.map(|constraint| SpreadConstraint {
        topology_key: constraint.topology_key.as_str().into(),
        max_skew: u32::try_from(constraint.max_skew).unwrap_or(1),
        min_domains: constraint.min_domains.and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
        selector: spread_selector(pod, constraint),
        node_affinity_policy: policy(constraint.node_affinity_policy.as_deref(), Inclusion::Honor),
        node_taints_policy: policy(constraint.node_taints_policy.as_deref(), Inclusion::Ignore),
    })
    .collect()
}

/// The pods that a spread constraint counts, its label keys folded in.
pub(crate) fn spread_selector(pod: &core::Pod, constraint: &core::TopologySpreadConstraint) -> Selector {
    let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
    with_keys(selector(constraint.label_selector.as_ref()), pod, keys, LabelOperator::In)
}

/// A label selector; without one nothing is selected.
pub(crate) fn selector(selector: Option<&LabelSelector>) -> Selector {
    let Some(selector) = selector else { return Selector::Nothing };
    let exact = selector.match_labels.iter().flatten();
    let mut all: Vec<LabelRequirement> =
        exact.map(|(key, value)| LabelRequirement::is(key.as_str(), value.as_str())).collect();
    for expression in selector.match_expressions.iter().flatten() {
        let Some(operator) = LabelOperator::parse(&expression.operator) else { return Selector::Nothing };
        let values = expression.values.iter().flatten().map(|value| value.as_str().into()).collect();
        all.push(LabelRequirement { key: expression.key.as_str().into(), operator, values });
    }
    Selector::All(all)
}

fn with_keys(selector: Selector, pod: &core::Pod, keys: &[String], operator: LabelOperator) -> Selector {
    let Selector::All(mut all) = selector else { return selector };
    let own = pod.metadata.labels.as_ref();
    for key in keys {
        if let Some(value) = own.and_then(|labels| labels.get(key)) {
            all.push(LabelRequirement { key: key.as_str().into(), operator, values: vec![value.as_str().into()] });
        }
    }
    Selector::All(all)
}

pub(crate) fn node_term(term: &core::NodeSelectorTerm) -> NodeTerm {
    let lower = |wanted: &core::NodeSelectorRequirement| {
        Some(LabelRequirement {
            key: wanted.key.as_str().into(),
            operator: LabelOperator::parse(&wanted.operator)?,
            values: wanted.values.iter().flatten().map(|value| value.as_str().into()).collect(),
        })
    };
    NodeTerm {
        labels: term.match_expressions.iter().flatten().filter_map(lower).collect(),
        fields: term.match_fields.iter().flatten().filter_map(lower).collect(),
    }
}

/// A term of pod affinity with its namespaces looked up and its label keys folded in.
pub(crate) fn affinity_term(caches: &Caches, pod: &core::Pod, term: &core::PodAffinityTerm) -> PodAffinityTerm {
    let same = term.match_label_keys.as_deref().unwrap_or_default();
    let other = term.mismatch_label_keys.as_deref().unwrap_or_default();
    let base = with_keys(selector(term.label_selector.as_ref()), pod, same, LabelOperator::In);
    PodAffinityTerm {
        topology_key: term.topology_key.as_str().into(),
        selector: with_keys(base, pod, other, LabelOperator::NotIn),
        namespaces: namespaces(caches, pod, term),
    }
}

fn namespaces(caches: &Caches, pod: &core::Pod, term: &core::PodAffinityTerm) -> Namespaces {
    let mut listed: BTreeSet<Text> = term.namespaces.iter().flatten().map(|name| name.as_str().into()).collect();
    let Some(selector) = &term.namespace_selector else {
        if listed.is_empty() {
            return Namespaces::only(pod.metadata.namespace.as_deref().unwrap_or(""));
        }
        return Namespaces::Listed(listed);
    };
    let everything = selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty);
    if everything {
        return Namespaces::All;
    }
    let chosen = caches.namespaces.values().filter(|it| matches(selector, it.metadata.labels.as_ref()));
    listed.extend(chosen.map(|namespace| name(&namespace.metadata).into()));
    Namespaces::Listed(listed)
}
