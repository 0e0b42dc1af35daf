//! Questions about objects that tests ask again and again.

use api::{ConditionStatus, NodeClaim};
use k8s_openapi::api::core::v1::{Node, Pod};

/// Whether a pod runs and is to stay.
pub fn is_running(pod: &Pod) -> bool {
    let running = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    running && pod.metadata.deletion_timestamp.is_none()
}

/// Whether the scheduler found no node for a pod.
pub fn is_unschedulable(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|found| found.type_ == "PodScheduled" && found.reason.as_deref() == Some("Unschedulable"))
}

/// Whether a node reports ready.
pub fn is_ready_node(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|found| found.type_ == "Ready" && found.status == "True")
}

/// A claim's condition as `status reason: message`.
pub fn condition(claim: &NodeClaim, type_: &str) -> Option<String> {
    let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let found = conditions.find(|found| found.type_ == type_)?;
    Some(format!("{} {}: {}", found.status.as_str(), found.reason, found.message))
}

/// Whether a claim is ready.
pub fn is_ready(claim: &NodeClaim) -> bool {
    let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|found| found.type_ == "Ready" && found.status == ConditionStatus::True)
}
