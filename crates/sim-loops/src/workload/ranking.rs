//! Which pods a set gives up first.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::pods::{annotation, is_ready, node_name, phase, ready_since, uid};

/// The annotation that says how dear a pod is, compared with others of its set.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Sorts pods so that those to delete first come first: not bound, pending, not ready, cheap, sharing their node with
/// others of the set, ready for a shorter time, restarted more often, younger; then by uid.
///
/// `related` are the pods of all sets of the same controller: they count for sharing a node.
pub(crate) fn sort_for_deletion<'a>(pods: &mut [&'a Pod], related: impl Iterator<Item = &'a Pod>, now: Timestamp) {
    let mut ready_on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in related.filter(|pod| is_ready(pod)) {
        *ready_on_node.entry(node_name(pod).unwrap_or("")).or_insert(0) += 1;
    }
    let crowd = |pod: &Pod| ready_on_node.get(node_name(pod).unwrap_or("")).copied().unwrap_or(0);
    pods.sort_by(|one, other| {
        (node_name(one).is_some().cmp(&node_name(other).is_some()))
            .then_with(|| phase_rank(one).cmp(&phase_rank(other)))
            .then_with(|| is_ready(one).cmp(&is_ready(other)))
            .then_with(|| deletion_cost(one).cmp(&deletion_cost(other)))
            .then_with(|| crowd(other).cmp(&crowd(one)))
            .then_with(|| newer_first(ready_since(one), ready_since(other), now))
            .then_with(|| restarts(other).cmp(&restarts(one)))
            .then_with(|| newer_first(created(one), created(other), now))
            .then_with(|| uid(&one.metadata).cmp(uid(&other.metadata)))
    });
}

fn phase_rank(pod: &Pod) -> u8 {
    match phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    annotation(&pod.metadata, DELETION_COST).and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.iter().filter_map(|status| status.container_statuses.as_ref()).flatten();
    statuses.map(|status| status.restart_count).max().unwrap_or(0)
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// Ages are compared by their order of magnitude, as powers of two, so that which of several old pods goes is chance
/// rather than always the youngest.
fn newer_first(one: Option<Timestamp>, other: Option<Timestamp>, now: Timestamp) -> Ordering {
    let rank = |at: Timestamp| now.duration_since(at).as_nanos().max(0).checked_ilog2().map_or(-1, i64::from);
    match (one, other) {
        (Some(one), Some(other)) => rank(one).cmp(&rank(other)),
        _ => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(line: &str) -> Pod {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let mut pod = json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {}},
            "spec": {"containers": []},
            "status": {"phase": "Running"},
        });
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("node", node) => pod["spec"]["nodeName"] = json!(node),
                ("pending", _) => pod["status"]["phase"] = json!("Pending"),
                ("ready", at) => {
                    let at = format!("2026-01-01T{at}:00Z");
                    pod["status"]["conditions"] =
                        json!([{"type": "Ready", "status": "True", "lastTransitionTime": at}]);
                }
                ("cost", cost) => pod["metadata"]["annotations"][DELETION_COST] = json!(cost),
                ("created", at) => pod["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T{at}:00Z")),
                other => panic!("{other:?}"),
            }
        }
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn the_least_useful_pods_go_first() {
        let table: [(&[&str], &str); 7] = [
            (&["bound node=a pending", "free pending"], "free bound"),
            (&["run node=a", "wait node=a pending"], "wait run"),
            (&["up node=a ready=10:00", "down node=b"], "down up"),
            (&["dear node=a ready=10:00 cost=5", "cheap node=b ready=10:00 cost=-5"], "cheap dear"),
            (
                &["alone node=b ready=10:00", "with1 node=a ready=10:00", "with2 node=a ready=10:00"],
                "with1 with2 alone",
            ),
            (&["old node=a ready=02:00", "new node=b ready=11:59"], "new old"),
            (&["old node=a created=02:00", "new node=b created=11:59"], "new old"),
        ];
        for (lines, expected) in table {
            let pods: Vec<Pod> = lines.iter().map(|line| pod(line)).collect();
            let mut sorted: Vec<&Pod> = pods.iter().collect();
            sort_for_deletion(&mut sorted, pods.iter(), "2026-01-01T12:00:00Z".parse().unwrap());
            let names: Vec<&str> = sorted.iter().map(|pod| uid(&pod.metadata)).collect();
            assert_eq!(names.join(" "), expected);
        }
    }
}
