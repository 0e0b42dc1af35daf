//! Pods and nodes of a snapshot as Kubernetes objects.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::PostParams;
use kube::{Api, Client};
use model::{
    BoundKind, HostPort, Inclusion, LabelOperator, LabelRequirement, Operator, PendingPod, PodTerm, Requirement,
    Requirements, ResourceName, Resources, Selector, SpreadConstraint, Taint, Text, Toleration, TolerationOperator,
};
use serde_json::{Value, json};

use crate::case::Machine;

/// The priorities that made-up pods have.
const PRIORITIES: [i32; 2] = [5, -1];

/// Makes a class for every priority. None preempts: a pod that is pushed out would only blur who was pending.
pub(crate) async fn create_priorities(client: &Client) -> Result<()> {
    for value in PRIORITIES {
        let class = json!({"metadata": {"name": class_name(value)}, "value": value, "preemptionPolicy": "Never"});
        let class: PriorityClass = serde_json::from_value(class)?;
        Api::all(client.clone()).create(&PostParams::default(), &class).await?;
    }
    Ok(())
}

fn class_name(priority: i32) -> String {
    if priority < 0 { format!("minus-{}", -i64::from(priority)) } else { format!("plus-{priority}") }
}

/// A node that KWOK keeps ready. `guests` are pods of the seed that run there from the beginning and take no room.
pub(crate) fn node(machine: &Machine, guests: i64, cordoned: bool) -> Result<Node> {
    let pods = ResourceName::pods();
    let seats = machine.allocatable.get(&pods) + guests;
    let room = quantities(&machine.allocatable.clone().floored().with(pods, seats));
    let taint = |taint: &Taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect.as_str()});
    let node = json!({
        "metadata": {
            "name": machine.name,
            "labels": machine.labels,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": machine.taints.iter().map(taint).collect::<Vec<_>>(), "unschedulable": cordoned},
        "status": {"allocatable": room, "capacity": room},
    });
    Ok(serde_json::from_value(node)?)
}

/// A pod that runs on a node already.
pub(crate) fn running(kind: &BoundKind, name: &str, node: &str) -> Result<Pod> {
    let away: Vec<Value> = kind.anti_affinity.iter().map(term).collect();
    let mut spec = plain_spec(&Resources::none(), &[]);
    spec["nodeName"] = json!(node);
    spec["affinity"] = json!({"podAntiAffinity": {REQUIRED: away}});
    Ok(serde_json::from_value(json!({"metadata": {"name": name, "labels": *kind.labels}, "spec": spec}))?)
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// A pod that waits.
pub(crate) fn pending(pod: &PendingPod) -> Result<Pod> {
    let class = &pod.class;
    let mut spec = plain_spec(&class.requests, &class.host_ports);
    spec["tolerations"] = class.tolerations.iter().map(toleration).collect();
    spec["topologySpreadConstraints"] = class.spread.iter().map(spread).collect();
    let mut affinity = json!({
        "podAffinity": {REQUIRED: class.affinity.iter().map(term).collect::<Vec<_>>()},
        "podAntiAffinity": {REQUIRED: class.anti_affinity.iter().map(term).collect::<Vec<_>>()},
    });
    if !class.alternatives.iter().any(Requirements::is_empty) {
        let terms: Vec<Value> = class.alternatives.iter().map(node_term).collect();
        affinity["nodeAffinity"] = json!({REQUIRED: {"nodeSelectorTerms": terms}});
    }
    spec["affinity"] = affinity;
    if class.priority != 0 {
        spec["priorityClassName"] = json!(class_name(class.priority));
    }
    Ok(serde_json::from_value(json!({"metadata": {"name": pod.key.name, "labels": *pod.labels}, "spec": spec}))?)
}

fn plain_spec(requests: &Resources, ports: &[HostPort]) -> Value {
    let port = |port: &HostPort| {
        let protocol = if port.protocol.is_empty() { "TCP" } else { &port.protocol };
        json!({"containerPort": port.port, "hostPort": port.port, "protocol": protocol, "hostIP": port.address})
    };
    let requests: Resources = requests
        .iter()
        .filter(|(name, _)| **name != ResourceName::pods())
        .map(|(name, it)| (name.clone(), it))
        .collect();
    json!({
        "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "main",
            "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": quantities(&requests)},
            "ports": ports.iter().map(port).collect::<Vec<_>>(),
        }],
    })
}

fn quantities(resources: &Resources) -> Value {
    let quantity = |(name, amount): (&ResourceName, i64)| {
        let text = if name.is_cpu() { format!("{amount}m") } else { amount.to_string() };
        (name.to_string(), json!(text))
    };
    Value::Object(resources.iter().map(quantity).collect())
}

fn toleration(toleration: &Toleration) -> Value {
    let operator = match toleration.operator {
        TolerationOperator::Exists => "Exists",
        TolerationOperator::Equal => "Equal",
        TolerationOperator::GreaterThan => "Gt",
        TolerationOperator::LessThan => "Lt",
    };
    let Toleration { key, value, effect, .. } = toleration;
    let mut written = json!({"operator": operator, "value": value});
    if let Some(key) = key {
        written["key"] = json!(key);
    }
    if let Some(effect) = effect {
        written["effect"] = json!(effect.as_str());
    }
    written
}

fn spread(constraint: &SpreadConstraint) -> Value {
    let policy = |inclusion: Inclusion| match inclusion {
        Inclusion::Honor => "Honor",
        Inclusion::Ignore => "Ignore",
    };
    let mut written = json!({
        "topologyKey": constraint.topology_key,
        "maxSkew": constraint.max_skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector(&constraint.selector),
        "nodeAffinityPolicy": policy(constraint.node_affinity_policy),
        "nodeTaintsPolicy": policy(constraint.node_taints_policy),
    });
    if constraint.min_domains > 1 {
        written["minDomains"] = json!(constraint.min_domains);
    }
    written
}

/// Made-up rules only look into the pod's own namespace.
fn term(term: &PodTerm) -> Value {
    json!({"topologyKey": term.topology_key, "labelSelector": selector(&term.selector)})
}

fn selector(selector: &Selector) -> Value {
    let expression = |wanted: &LabelRequirement| {
        let operator = match wanted.operator {
            LabelOperator::In => "In",
            LabelOperator::NotIn => "NotIn",
            LabelOperator::Exists => "Exists",
            LabelOperator::DoesNotExist => "DoesNotExist",
            LabelOperator::Gt | LabelOperator::Lt => unreachable!("not for labels of pods"),
        };
        json!({"key": wanted.key, "operator": operator, "values": wanted.values})
    };
    match selector {
        Selector::Nothing => Value::Null,
        Selector::All(wanted) => json!({"matchExpressions": wanted.iter().map(expression).collect::<Vec<_>>()}),
    }
}

fn node_term(alternative: &Requirements) -> Value {
    let expressions: Vec<Value> = alternative.iter().flat_map(|(key, wanted)| expressions(key, wanted)).collect();
    json!({"matchExpressions": expressions})
}

fn expressions(key: &Text, wanted: &Requirement) -> Vec<Value> {
    let expression =
        |operator: Operator, values: Vec<String>| json!({"key": key, "operator": operator.as_str(), "values": values});
    let (lower, upper) = wanted.bounds();
    let above = lower.map(|lower| expression(Operator::Gt, vec![(lower - 1).to_string()]));
    let below = upper.map(|upper| expression(Operator::Lt, vec![(upper + 1).to_string()]));
    let listed = expression(wanted.operator(), wanted.values().map(ToString::to_string).collect());
    std::iter::once(listed).chain(above).chain(below).collect()
}
