//! Conditions of nodes that fell silent, and taints that follow from conditions.
//!
//! Unlike the real controller, this one does not slow evictions down when many nodes of a zone are in trouble at once.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod, Taint};
use serde_json::json;

use crate::caches::Caches;
use crate::pods::{after_seconds, is_ready, set_condition, time};
use crate::write::{Decision, NODES, PODS, Telling, Weight, Write, patch, patch_status, reference};

/// How long a node may be silent before its conditions are unknown.
const GRACE_SECONDS: i64 = 40;
/// How long a node may exist without ever having reported.
const STARTUP_GRACE_SECONDS: i64 = 60;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions other than readiness, with the status that is bad and the taint it brings.
const TROUBLES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

/// Brings conditions and taints of a node in line with what is known of its kubelet.
pub(crate) fn reconcile(caches: &Caches, name: &str, now: Timestamp) -> Decision {
    let Some(node) = caches.nodes.get(name) else { return Decision::default() };
    let mut decision = Decision::default();
    match silence(caches, name, node) {
        Some(due) if due <= now => return Decision::of(unknown_writes(caches, name, node, now)),
        due => decision.look_again_at(due),
    }
    decision.writes.extend(taint_write(node, now));
    decision
}

/// When the conditions of this node become unknown; `None` if they are, or if its kubelet can be heard.
fn silence(caches: &Caches, name: &str, node: &Node) -> Option<Timestamp> {
    match (ready_status(node), caches.machines.get(name)) {
        (Some("Unknown"), _) => None,
        (None, Some(machine)) if machine.speaks() => None,
        (None, _) => {
            let created = node.metadata.creation_timestamp.as_ref()?;
            Some(after_seconds(created.0, STARTUP_GRACE_SECONDS))
        }
        (Some(_), Some(machine)) => machine.quiet_since().map(|since| after_seconds(since, GRACE_SECONDS)),
        (Some(_), None) => caches.node_seen_at.get(name).map(|seen| after_seconds(*seen, GRACE_SECONDS)),
    }
}

/// The status of the condition `Ready`.
pub(crate) fn ready_status(node: &Node) -> Option<&str> {
    condition(node, "Ready").map(|condition| condition.status.as_str())
}

fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
}

fn unknown_writes(caches: &Caches, name: &str, node: &Node, now: Timestamp) -> Vec<Write> {
    let never = ready_status(node).is_none();
    let (reason, message) = if never {
        ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
    } else {
        ("NodeStatusUnknown", "Kubelet stopped posting node status.")
    };
    let mut conditions = node.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    for kind in ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"] {
        let known = conditions.iter_mut().find(|condition| condition.type_ == kind);
        let heartbeat = known.as_ref().and_then(|known| known.last_heartbeat_time.clone());
        let unknown = NodeCondition {
            type_: kind.to_owned(),
            status: "Unknown".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: heartbeat.or_else(|| Some(time(now))),
            last_transition_time: Some(time(now)),
        };
        match known {
            Some(known) => *known = unknown,
            None => conditions.push(unknown),
        }
    }
    let mut writes = vec![patch_status(NODES, &node.metadata, json!({ "conditions": conditions }))];
    if !never {
        let message = format!("Node {name} status is now: NodeNotReady");
        let about = reference(NODES, &node.metadata);
        writes.push(Write::Tell(Telling { about, weight: Weight::Normal, reason: "NodeNotReady", message }));
    }
    let ready = caches.pods_on(name).map(|(_, known)| &*known.pod).filter(|pod| is_ready(pod));
    writes.extend(ready.map(|pod| not_ready(pod, now)));
    writes
}

/// Pods on a node that cannot be heard do not count as ready.
fn not_ready(pod: &Pod, now: Timestamp) -> Write {
    let mut conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    if let Some(mut ready) = conditions.iter().find(|condition| condition.type_ == "Ready").cloned() {
        ready.status = "False".to_owned();
        set_condition(&mut conditions, ready, now);
    }
    patch_status(PODS, &pod.metadata, json!({ "conditions": conditions }))
}

/// The taints that this controller would have on a node, as key and effect.
fn wanted_taints(node: &Node) -> Vec<(&'static str, &'static str)> {
    let mut wanted = Vec::new();
    match ready_status(node) {
        Some("False") => wanted.extend([(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
        Some("Unknown") => wanted.extend([(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]),
        Some(_) => {}
        // A node that has not reported yet keeps the taint it was registered with.
        None => wanted.push((NOT_READY, "NoSchedule")),
    }
    for (kind, taint) in TROUBLES {
        if condition(node, kind).is_some_and(|condition| condition.status == "True") {
            wanted.push((taint, "NoSchedule"));
        }
    }
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    wanted
}

fn is_managed(taint: &Taint) -> bool {
    match taint.effect.as_str() {
        "NoSchedule" => {
            [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&taint.key.as_str())
                || TROUBLES.iter().any(|(_, key)| *key == taint.key)
        }
        "NoExecute" => [NOT_READY, UNREACHABLE].contains(&taint.key.as_str()),
        _ => false,
    }
}

fn taint_write(node: &Node, now: Timestamp) -> Option<Write> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let wanted = wanted_taints(node);
    let is_wanted = |taint: &Taint| wanted.contains(&(taint.key.as_str(), taint.effect.as_str()));
    let mut next: Vec<Taint> = taints.iter().filter(|taint| !is_managed(taint) || is_wanted(taint)).cloned().collect();
    for (key, effect) in &wanted {
        if !next.iter().any(|taint| taint.key == *key && taint.effect == *effect) {
            next.push(Taint {
                key: (*key).to_owned(),
                effect: (*effect).to_owned(),
                time_added: Some(time(now)),
                value: None,
            });
        }
    }
    if next == taints {
        return None;
    }
    let value = if next.is_empty() { json!(null) } else { json!(next) };
    Some(patch(NODES, &node.metadata, json!({"spec": {"taints": value}})))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(conditions: &[(&str, &str)], unschedulable: bool, taints: &[(&str, &str)]) -> Node {
        let conditions: Vec<_> =
            conditions.iter().map(|(kind, status)| json!({"type": kind, "status": status})).collect();
        let taints: Vec<_> = taints.iter().map(|(key, effect)| json!({"key": key, "effect": effect})).collect();
        serde_json::from_value(json!({
            "metadata": {"name": "n"},
            "spec": {"unschedulable": unschedulable, "taints": taints},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn taints_after(node: &Node) -> String {
        match taint_write(node, Timestamp::UNIX_EPOCH) {
            None => "unchanged".to_owned(),
            Some(Write::Patch { patch, .. }) => {
                let taints = patch["spec"]["taints"].as_array().cloned().unwrap_or_default();
                let text = |taint: &serde_json::Value| {
                    let key = taint["key"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
                    format!("{key}:{}", taint["effect"].as_str().unwrap())
                };
                taints.iter().map(text).collect::<Vec<_>>().join(" ")
            }
            Some(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn taints_follow_conditions() {
        let both = [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")];
        let table = [
            (node(&[], false, &[(NOT_READY, "NoSchedule")]), "unchanged"),
            (node(&[], false, &[]), "not-ready:NoSchedule"),
            (node(&[("Ready", "False")], false, &[]), "not-ready:NoSchedule not-ready:NoExecute"),
            (node(&[("Ready", "True")], false, &both), ""),
            (node(&[("Ready", "True")], false, &[("team", "NoSchedule"), both[0]]), "team:NoSchedule"),
            (node(&[("Ready", "Unknown")], false, &both), "unreachable:NoSchedule unreachable:NoExecute"),
            (node(&[("Ready", "True")], true, &[]), "unschedulable:NoSchedule"),
            (node(&[("Ready", "True")], false, &[(UNSCHEDULABLE, "NoSchedule")]), ""),
            (node(&[("Ready", "True"), ("DiskPressure", "True")], false, &[]), "disk-pressure:NoSchedule"),
            (node(&[("Ready", "True")], false, &[("team", "NoExecute")]), "unchanged"),
        ];
        for (node, expected) in table {
            assert_eq!(taints_after(&node), expected, "{:?} {:?}", node.status, node.spec);
        }
    }
}
