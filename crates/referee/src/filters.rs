//! The filters that look at one node alone.

use std::iter::once;

use model::{Effect, NodeName, ResourceName, Taint, Toleration, TolerationOperator};

use crate::{Gates, HostPort, NodeFacts, Objection, PodFacts, Situation};

/// The taint that stands for a cordon.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

pub(crate) fn node_unschedulable(gates: Gates, pod: &PodFacts, node: &NodeFacts) -> Option<Objection> {
    let tolerated = || is_tolerated(gates, pod, &Taint::new(UNSCHEDULABLE, "", Effect::NoSchedule));
    (node.unschedulable && !tolerated()).then_some(Objection::Unschedulable)
}

pub(crate) fn node_name(pod: &PodFacts, node: &NodeFacts) -> Option<Objection> {
    let other = |name: &NodeName| *name != node.name;
    pod.node_name.as_ref().is_some_and(other).then_some(Objection::OtherNodeNamed)
}

pub(crate) fn taint_toleration(gates: Gates, pod: &PodFacts, node: &NodeFacts) -> Option<Objection> {
    untolerated(gates, pod, node).map(|taint| Objection::Untolerated { taint: taint.clone() })
}

/// The first taint that keeps the pod away.
pub(crate) fn untolerated<'a>(gates: Gates, pod: &PodFacts, node: &'a NodeFacts) -> Option<&'a Taint> {
    let keeps_away = |taint: &&Taint| taint.effect != Effect::PreferNoSchedule && !is_tolerated(gates, pod, taint);
    node.taints.iter().find(keeps_away)
}

fn is_tolerated(gates: Gates, pod: &PodFacts, taint: &Taint) -> bool {
    let counts = |toleration: &&Toleration| match toleration.operator {
        TolerationOperator::Exists | TolerationOperator::Equal => true,
        TolerationOperator::GreaterThan | TolerationOperator::LessThan => gates.taint_toleration_comparison_operators,
    };
    pod.tolerations.iter().filter(counts).any(|toleration| toleration.tolerates(taint))
}

pub(crate) fn node_affinity(pod: &PodFacts, node: &NodeFacts) -> Option<Objection> {
    (!pod.selects(node)).then_some(Objection::NodeAffinity)
}

pub(crate) fn node_ports(situation: &Situation, pod: &PodFacts, node: &NodeFacts) -> Option<Objection> {
    let others = || situation.pods_on(&node.name).filter(|other| other.key != pod.key);
    let taken = |port: &&HostPort| others().flat_map(|other| &other.host_ports).any(|used| collide(port, used));
    pod.host_ports.iter().find(taken).map(|port| Objection::PortTaken { port: port.clone() })
}

fn collide(one: &HostPort, other: &HostPort) -> bool {
    fn is_any(port: &HostPort) -> bool {
        matches!(&*port.address, "" | "0.0.0.0")
    }
    fn protocol(port: &HostPort) -> &str {
        if port.protocol.is_empty() { "TCP" } else { &port.protocol }
    }
    let addresses = is_any(one) || is_any(other) || one.address == other.address;
    one.port != 0 && one.port == other.port && protocol(one) == protocol(other) && addresses
}

pub(crate) fn node_resources_fit(
    situation: &Situation,
    pods: &ResourceName,
    pod: &PodFacts,
    node: &NodeFacts,
) -> Vec<Objection> {
    let here_already = situation.node_of(&pod.key) == Some(&node.name);
    let own = |resource: &ResourceName| if here_already { pod.requests.get(resource) } else { 0 };
    let others = situation.pod_count(&node.name) - i64::from(here_already);
    let allowed = node.allocatable.get(pods);
    let too_many = (others + 1 > allowed).then_some(Objection::TooManyPods { allowed });
    let wanted = pod.requests.iter().filter(|(resource, amount)| *resource != pods && *amount > 0);
    let short = wanted.filter_map(|(resource, wanted)| {
        let allocatable = node.allocatable.get(resource);
        let free = allocatable - (situation.requested(&node.name, resource) - own(resource));
        let lacking = || Objection::Insufficient { resource: resource.clone(), wanted, free, allocatable };
        (wanted > free).then(lacking)
    });
    once(too_many).flatten().chain(short).collect()
}
