//! Pods that nobody else would remove: those of nodes that are gone, and those deleted before they were bound.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use serde_json::json;

use crate::caches::Caches;
use crate::key::Key;
use crate::pods::{after_seconds, is_deleting, is_finished, node_name, set_condition};
use crate::write::{Decision, PODS, Write, delete_now, patch_status};

/// How long a node must be gone before its pods are removed.
const QUARANTINE_SECONDS: i64 = 40;

/// Removes a pod that nobody else would remove, or says when.
pub(crate) fn reconcile(caches: &Caches, key: &Key, now: Timestamp) -> Decision {
    let Some(known) = caches.pods.get(key) else { return Decision::default() };
    let pod = &known.pod;
    let Some(node) = node_name(pod) else {
        let writes = if is_deleting(pod) { vec![delete_now(PODS, &pod.metadata)] } else { Vec::new() };
        return Decision::of(writes);
    };
    let Some(gone) = caches.node_gone_at.get(node).filter(|_| caches.is_node_gone(node)) else {
        return Decision::default();
    };
    let due = after_seconds(*gone, QUARANTINE_SECONDS);
    if due > now { Decision::at(due) } else { Decision::of(removal(pod, now)) }
}

fn removal(pod: &Pod, now: Timestamp) -> Vec<Write> {
    let mut writes = Vec::new();
    if !is_finished(pod) {
        let mut conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        let target = PodCondition {
            type_: "DisruptionTarget".to_owned(),
            status: "True".to_owned(),
            reason: Some("DeletionByPodGC".to_owned()),
            message: Some("PodGC: node no longer exists".to_owned()),
            ..PodCondition::default()
        };
        set_condition(&mut conditions, target, now);
        writes.push(patch_status(PODS, &pod.metadata, json!({"phase": "Failed", "conditions": conditions})));
    }
    writes.push(delete_now(PODS, &pod.metadata));
    writes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, lose_node, see, text};

    #[test]
    fn pods_of_a_lost_node_go_after_a_quarantine() {
        let node = json!({"kind": "Node", "metadata": {"name": "n"}});
        let pod = |name: &str, node: Option<&str>, deleting: bool| {
            let ends = deleting.then_some("1970-01-01T00:00:00Z");
            json!({
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "deletionTimestamp": ends},
                "spec": {"containers": [], "nodeName": node},
                "status": {"phase": "Running"},
            })
        };
        let mut caches = Caches::default();
        see(&mut caches, 0, &node);
        for (name, node, deleting) in [("bound", Some("n"), false), ("free", None, false), ("ending", None, true)] {
            see(&mut caches, 0, &pod(name, node, deleting));
        }
        let step =
            |caches: &Caches, name: &str, second: i64| text(&reconcile(caches, &Key::new("default", name), at(second)));
        assert_eq!(step(&caches, "bound", 5), "");
        lose_node(&mut caches, 10, "n");
        let table = [
            ("bound", 10, "again@50"),
            ("bound", 49, "again@50"),
            ("bound", 50, "status:bound=Failed delete:bound!"),
            ("free", 50, ""),
            ("ending", 50, "delete:ending!"),
        ];
        for (name, second, expected) in table {
            assert_eq!(step(&caches, name, second), expected, "{name} at {second}");
        }
    }
}
