//! A machine becomes a node, and the node becomes ready.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeSystemInfo, Taint};
use serde_json::{Value, json};

use crate::caches::Caches;
use crate::machine::Machine;
use crate::node_lifecycle::ready_status;
use crate::pace::{Draws, Step};
use crate::pods::{after, time, uid};
use crate::write::{Decision, NODES, Telling, Weight, Write, patch_status, reference};

/// The release that the played kubelets say they are.
const KUBELET_VERSION: &str = "v1.36.3";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Registers a machine's node, or makes it ready, when it is time.
pub(crate) fn reconcile(caches: &Caches, name: &str, draws: &Draws, now: Timestamp) -> Decision {
    let Some(machine) = caches.machines.get(name).filter(|machine| machine.speaks()) else {
        return Decision::default();
    };
    match (caches.nodes.get(name), &machine.to_register, machine.registered_at) {
        (None, Some(node), None) => {
            let due = after(machine.booted_at, draws.length(Step::NodeRegistration, name));
            if due > now { Decision::at(due) } else { Decision::of(registration(node, now)) }
        }
        (Some(node), _, _) => readiness(machine, node, draws, now),
        // A kubelet does not register again a node that was deleted under it.
        (None, _, _) => Decision::default(),
    }
}

/// The Node as the kubelet first writes it: not ready, and tainted so.
fn registration(node: &Node, now: Timestamp) -> Vec<Write> {
    let mut node = node.clone();
    let name = node.metadata.name.clone().unwrap_or_default();
    let labels = node.metadata.labels.get_or_insert_default();
    labels.entry("kubernetes.io/hostname".to_owned()).or_insert_with(|| name.clone());
    labels.entry("kubernetes.io/os".to_owned()).or_insert_with(|| "linux".to_owned());
    labels.entry("kubernetes.io/arch".to_owned()).or_insert_with(|| "amd64".to_owned());
    let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
    if !taints.iter().any(|taint| taint.key == NOT_READY && taint.effect == "NoSchedule") {
        taints.push(Taint { key: NOT_READY.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() });
    }
    let architecture = node.metadata.labels.as_ref().and_then(|labels| labels.get("kubernetes.io/arch")).cloned();
    let status = node.status.get_or_insert_default();
    let why = ("KubeletNotReady", "container runtime network not ready");
    status.conditions = Some(conditions(status.conditions.as_deref(), ("False", why.0, why.1), now));
    status.node_info.get_or_insert_with(|| system_info(&name, architecture));
    let object = json!(node);
    let part = object.get("status").cloned().unwrap_or(Value::Null);
    vec![
        Write::Create { resource: NODES, namespace: String::new(), object, owner: None },
        patch_status(NODES, &node.metadata, part),
    ]
}

fn readiness(machine: &Machine, node: &Node, draws: &Draws, now: Timestamp) -> Decision {
    let ready = ready_status(node);
    if ready == Some("True") || node.metadata.deletion_timestamp.is_some() && ready.is_some_and(|it| it != "Unknown") {
        return Decision::default();
    }
    let registered = machine.registered_at.unwrap_or(machine.booted_at);
    let due = after(registered, draws.length(Step::NodeReadiness, uid(&node.metadata)));
    // A kubelet that is heard again has nothing to start any more.
    if due > now && ready != Some("Unknown") {
        return Decision::at(due);
    }
    Decision::of(ready_writes(node, draws, now))
}

fn ready_writes(node: &Node, draws: &Draws, now: Timestamp) -> Vec<Write> {
    let name = node.metadata.name.clone().unwrap_or_default();
    let status = node.status.clone().unwrap_or_default();
    let why = ("True", "KubeletReady", "kubelet is posting ready status");
    let mut next = json!({ "conditions": conditions(status.conditions.as_deref(), why, now) });
    if status.addresses.as_ref().is_none_or(Vec::is_empty) {
        let address = |kind: &str, address: String| NodeAddress { type_: kind.to_owned(), address };
        let internal = internal_address(draws.number(uid(&node.metadata)));
        next["addresses"] = json!([address("InternalIP", internal), address("Hostname", name.clone())]);
    }
    if status.node_info.as_ref().is_none_or(|info| info.kubelet_version.is_empty()) {
        let labels = node.metadata.labels.as_ref();
        let architecture = labels.and_then(|labels| labels.get("kubernetes.io/arch")).cloned();
        next["nodeInfo"] = json!(system_info(&name, architecture));
    }
    if status.allocatable.is_none()
        && let Some(capacity) = &status.capacity
    {
        next["allocatable"] = json!(capacity);
    }
    let message = format!("Node {name} status is now: NodeReady");
    let about = reference(NODES, &node.metadata);
    vec![
        patch_status(NODES, &node.metadata, next),
        Write::Tell(Telling { about, weight: Weight::Normal, reason: "NodeReady", message }),
    ]
}

/// An address of a private network that belongs to a number.
pub(crate) fn internal_address(number: u64) -> String {
    let [_, _, _, _, _, second, third, fourth] = number.to_be_bytes();
    format!("10.{second}.{third}.{}", fourth.max(1))
}

fn conditions(
    known: Option<&[NodeCondition]>,
    (ready, reason, message): (&str, &str, &str),
    now: Timestamp,
) -> Vec<NodeCondition> {
    let mut all = known.unwrap_or_default().to_vec();
    let wanted = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", ready, reason, message),
    ];
    for (kind, status, reason, message) in wanted {
        let before = all.iter_mut().find(|condition| condition.type_ == kind);
        let since = before.as_ref().filter(|before| before.status == status);
        let since = since.and_then(|before| before.last_transition_time.clone());
        let condition = NodeCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(time(now)),
            last_transition_time: since.or_else(|| Some(time(now))),
        };
        match before {
            Some(before) => *before = condition,
            None => all.push(condition),
        }
    }
    all
}

fn system_info(name: &str, architecture: Option<String>) -> NodeSystemInfo {
    NodeSystemInfo {
        architecture: architecture.unwrap_or_else(|| "amd64".to_owned()),
        boot_id: format!("boot-{name}"),
        container_runtime_version: "containerd://2.1.0".to_owned(),
        kernel_version: "6.12.0".to_owned(),
        kube_proxy_version: String::new(),
        kubelet_version: KUBELET_VERSION.to_owned(),
        machine_id: format!("machine-{name}"),
        operating_system: "linux".to_owned(),
        os_image: "Simulated Linux".to_owned(),
        swap: None,
        system_uuid: format!("system-{name}"),
    }
}
