//! Questions about objects that tests ask again and again.

use api::{Condition, ConditionStatus, NodeClaim, NodeOverlay, NodePool};
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

/// An object of ours that says how it is.
pub trait Conditioned {
    /// What it says.
    fn conditions(&self) -> Option<&Vec<Condition>>;
}

impl Conditioned for NodeClaim {
    fn conditions(&self) -> Option<&Vec<Condition>> {
        self.status.as_ref()?.conditions.as_ref()
    }
}

impl Conditioned for NodePool {
    fn conditions(&self) -> Option<&Vec<Condition>> {
        self.status.as_ref()?.conditions.as_ref()
    }
}

impl Conditioned for NodeOverlay {
    fn conditions(&self) -> Option<&Vec<Condition>> {
        self.status.as_ref()?.conditions.as_ref()
    }
}

/// An object's condition as `status reason: message`.
pub fn condition(object: &impl Conditioned, type_: &str) -> Option<String> {
    let found = object.conditions()?.iter().find(|found| found.type_ == type_)?;
    Some(format!("{} {}: {}", found.status.as_str(), found.reason, found.message))
}

/// Whether a claim is ready.
pub fn is_ready(claim: &NodeClaim) -> bool {
    let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|found| found.type_ == "Ready" && found.status == ConditionStatus::True)
}
