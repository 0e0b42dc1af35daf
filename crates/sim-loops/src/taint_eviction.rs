//! Pods that do not tolerate a `NoExecute` taint of their node are deleted, at once or when their time is over.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition, Taint};
use serde_json::json;

use crate::caches::Caches;
use crate::key::Key;
use crate::pods::{after_seconds, is_deleting, node_name, set_condition};
use crate::selector::tolerates;
use crate::write::{Decision, PODS, Telling, Weight, Write, delete, patch_status, reference};

/// Deletes a pod whose node it may no longer stay on, or says when that will be.
pub(crate) fn reconcile(caches: &Caches, key: &Key, now: Timestamp) -> Decision {
    let Some(known) = caches.pods.get(key) else { return Decision::default() };
    let pod = &known.pod;
    let Some((name, node)) = node_name(pod).and_then(|name| caches.nodes.get_key_value(name)) else {
        return Decision::default();
    };
    if is_deleting(pod) {
        return Decision::default();
    }
    let seen = caches.no_execute_seen_at.get(name).copied().unwrap_or(now);
    match eviction_time(pod, node, seen) {
        None => Decision::default(),
        Some(due) if due > now => Decision::at(due),
        Some(_) => Decision::of(eviction(pod, now)),
    }
}

/// The taints of a node that move pods away.
pub(crate) fn no_execute(node: &Node) -> impl Iterator<Item = &Taint> {
    let taints = node.spec.iter().filter_map(|spec| spec.taints.as_ref()).flatten();
    taints.filter(|taint| taint.effect == "NoExecute")
}

/// When a pod must leave its node; `None` if it may stay. `seen` stands in for taints that do not say since when.
fn eviction_time(pod: &Pod, node: &Node, seen: Timestamp) -> Option<Timestamp> {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let leave_at = |taint: &Taint| -> Option<Timestamp> {
        let covering: Vec<_> = tolerations.iter().filter(|toleration| tolerates(toleration, taint)).collect();
        if covering.is_empty() {
            return Some(Timestamp::MIN);
        }
        let seconds = covering.iter().filter_map(|toleration| toleration.toleration_seconds).min()?;
        let since = taint.time_added.as_ref().map_or(seen, |added| added.0);
        Some(after_seconds(since, seconds.max(0)))
    };
    no_execute(node).filter_map(leave_at).min()
}

fn eviction(pod: &Pod, now: Timestamp) -> Vec<Write> {
    let mut conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let target = PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some("DeletionByTaintManager".to_owned()),
        message: Some("Taint manager: deleting due to NoExecute taint".to_owned()),
        ..PodCondition::default()
    };
    set_condition(&mut conditions, target, now);
    let message = format!("Marking for deletion Pod {}", Key::of(&pod.metadata));
    let about = reference(PODS, &pod.metadata);
    vec![
        Write::Tell(Telling { about, weight: Weight::Normal, reason: "TaintManagerEviction", message }),
        patch_status(PODS, &pod.metadata, json!({ "conditions": conditions })),
        delete(PODS, &pod.metadata, None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_toleration_decides() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n"},
            "spec": {"taints": [
                {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "1970-01-01T00:01:40Z"},
                {"key": "other", "effect": "NoSchedule"},
            ]},
        }))
        .unwrap();
        let not_ready = |seconds: Option<i64>| {
            json!({
                "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": seconds,
            })
        };
        let table = [
            (json!([]), Some(i64::MIN)),
            (json!([not_ready(None)]), None),
            (json!([not_ready(Some(300))]), Some(400)),
            (json!([not_ready(Some(300)), not_ready(Some(10))]), Some(110)),
            (json!([{"operator": "Exists"}, not_ready(Some(10))]), Some(110)),
            (json!([{"key": "other", "operator": "Exists"}]), Some(i64::MIN)),
        ];
        for (tolerations, expected) in table {
            let pod: Pod =
                serde_json::from_value(json!({"metadata": {}, "spec": {"containers": [], "tolerations": tolerations}}))
                    .unwrap();
            let expected = expected.map(|second| Timestamp::from_second(second).unwrap_or(Timestamp::MIN));
            assert_eq!(eviction_time(&pod, &node, Timestamp::UNIX_EPOCH), expected, "{tolerations}");
        }
    }
}
