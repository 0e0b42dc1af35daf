//! Nodes that only pretend can fall ill too, and be started anew.

use std::time::Duration;

use api::{ConditionStatus, NodeClaim};
use cloud::{RebootError, RepairAction, RepairPolicy};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::arrivals::words;

/// Any reason there is.
const ANY_REASON: &str = ".*";

/// The illnesses that nodes without a machine may be given.
pub(crate) fn policies() -> Vec<RepairPolicy> {
    let seconds = Duration::from_secs;
    let policy = |condition: &str, status, reason: &str, toleration, bound, action| RepairPolicy {
        condition: condition.to_owned(),
        status,
        reason: reason.to_owned(),
        toleration,
        drain_bound: Some(bound),
        priority: 0,
        action,
    };
    use ConditionStatus::{False, True, Unknown};
    use RepairAction::{RebootNode, ReplaceNode};
    vec![
        policy("Ready", False, "", seconds(600), Duration::ZERO, ReplaceNode),
        policy("Ready", Unknown, ANY_REASON, seconds(600), Duration::ZERO, ReplaceNode),
        policy("KWOKUnhealthy", True, ANY_REASON, seconds(30), seconds(45), ReplaceNode),
        policy("KWOKRebootRequired", True, ANY_REASON, seconds(30), seconds(60), RebootNode),
    ]
}

/// Gives the node of a claim another boot id, always the same for the same operation. It stays ready meanwhile.
pub(crate) async fn reboot(nodes: Api<Node>, claim: &NodeClaim, operation: &str) -> Result<(), RebootError> {
    let name = claim.status.as_ref().and_then(|status| status.node_name.as_deref());
    let name = name.ok_or_else(|| RebootError::Unanswered { message: "the nodeclaim has no node yet".to_owned() })?;
    let patch = json!({"status": {"nodeInfo": {"bootID": format!("kwok-{operation}")}}});
    let patched = nodes.patch_status(name, &PatchParams::default(), &Patch::Strategic(patch)).await;
    patched.map(|_| ()).map_err(|error| match error {
        kube::Error::Api(status) if status.code == 404 => {
            RebootError::NotFound { message: format!("node `{name}` is gone") }
        }
        error => RebootError::Unanswered { message: format!("rebooting node `{name}`: {}", words(&error)) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KWOK-10, KWOK-12: four illnesses, of which a sound set is made.
    #[test]
    fn four_illnesses_are_known() {
        let told: Vec<String> = policies()
            .iter()
            .map(|policy| {
                let bound = policy.drain_bound.map_or("-".to_owned(), |bound| format!("{bound:?}"));
                let RepairPolicy { condition, status, reason, toleration, priority, action, .. } = policy;
                let status = status.as_str();
                format!("{condition}={status} /{reason}/ {toleration:?} bound {bound} priority {priority} {action:?}")
            })
            .collect();
        assert_eq!(
            told,
            [
                "Ready=False // 600s bound 0ns priority 0 ReplaceNode",
                "Ready=Unknown /.*/ 600s bound 0ns priority 0 ReplaceNode",
                "KWOKUnhealthy=True /.*/ 30s bound 45s priority 0 ReplaceNode",
                "KWOKRebootRequired=True /.*/ 30s bound 60s priority 0 RebootNode",
            ]
        );
        assert_eq!(cloud::check_repair_policies(&policies()), Ok(()));
    }
}
