//! What a registered node still lacks before pods may count on it.

use api::lower::{self, NodeFacts, is_ephemeral_taint};
use api::node_claim::conditions;
use api::{ConditionSet, NodeClaim};
use model::Taint;

use super::node_edit::NodeEdit;

/// The first thing that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    NotReady,
    StartupTaint(String),
    EphemeralTaint(String),
    Resource(String),
}

impl Pending {
    /// Says so in the claim's conditions.
    pub(super) fn write(&self, set: &mut ConditionSet<'_>) {
        let (reason, message) = match self {
            Self::NotReady => ("NodeNotReady", "Node status is NotReady".to_owned()),
            Self::StartupTaint(taint) => ("StartupTaintsExist", format!("StartupTaint \"{taint}\" still exists")),
            Self::EphemeralTaint(taint) => {
                ("KnownEphemeralTaintsExist", format!("KnownEphemeralTaint \"{taint}\" still exists"))
            }
            Self::Resource(name) => {
                ("ResourceNotRegistered", format!("Resource \"{name}\" was requested but not registered"))
            }
        };
        set.set_unknown(conditions::INITIALIZED, reason, &message);
    }
}

/// Looks at the node as it will be after the edit.
pub(super) fn pending(claim: &NodeClaim, node: &NodeFacts, edit: &NodeEdit<'_>) -> Option<Pending> {
    if !node.is_ready {
        return Some(Pending::NotReady);
    }
    let taints = lower::lower_taints(&edit.taints);
    let startup = lower::taints(claim.spec.startup_taints.iter().flatten());
    let is_startup = |taint: &&Taint| startup.iter().any(|own| own.same_place_as(taint));
    if let Some(taint) = taints.iter().find(is_startup) {
        return Some(Pending::StartupTaint(taint.to_string()));
    }
    if let Some(taint) = taints.iter().find(|taint| is_ephemeral_taint(taint)) {
        return Some(Pending::EphemeralTaint(taint.to_string()));
    }
    let requests = claim.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let requests = requests.map(lower::resources).unwrap_or_default();
    let missing = requests.iter().find(|(name, amount)| *amount != 0 && node.allocatable.get(name) == 0);
    missing.map(|(name, _)| Pending::Resource(name.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> NodeClaim {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"},
            "spec": {
                "startupTaints": [{"key": "cilium", "value": "x", "effect": "NoExecute"}],
                "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1", "memory": "0"}},
                "requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"},
            },
        }))
        .unwrap()
    }

    fn check(ready: &str, taints: serde_json::Value, gpus: &str) -> String {
        let node = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "n1"}, "spec": {"taints": taints},
            "status": {"allocatable": {"cpu": "4", "nvidia.com/gpu": gpus},
                "conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap();
        let facts = NodeFacts::lower(&node).unwrap();
        let Some(pending) = pending(&claim(), &facts, &NodeEdit::open(&facts)) else { return "initialized".to_owned() };
        let mut stored = Vec::new();
        let subject = api::condition::ConditionSubject {
            generation: 1,
            created_at: jiff::Timestamp::UNIX_EPOCH,
            deleting: false,
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        pending.write(&mut ConditionSet::open(&mut stored, conditions::TYPES, subject));
        let found = stored.iter().find(|condition| condition.type_ == conditions::INITIALIZED).unwrap();
        format!("{:?} {}: {}", found.status, found.reason, found.message)
    }

    /// LIFE-15, LIFE-16: what a node must have, and the exact words for the first thing that it lacks.
    #[test]
    fn a_node_is_initialized_when_nothing_is_missing() {
        let none = || serde_json::json!([]);
        let startup = serde_json::json!([{"key": "cilium", "effect": "NoExecute"}]);
        let ephemeral = serde_json::json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
        let both = serde_json::json!([ephemeral[0], startup[0]]);
        let another = serde_json::json!([{"key": "cilium", "effect": "NoSchedule"}]);
        let table = [
            ("False", both.clone(), "0", "Unknown NodeNotReady: Node status is NotReady"),
            ("Unknown", none(), "1", "Unknown NodeNotReady: Node status is NotReady"),
            ("True", both, "0", "Unknown StartupTaintsExist: StartupTaint \"cilium:NoExecute\" still exists"),
            ("True", startup, "1", "Unknown StartupTaintsExist: StartupTaint \"cilium:NoExecute\" still exists"),
            ("True", another, "1", "initialized"),
            (
                "True",
                ephemeral,
                "0",
                "Unknown KnownEphemeralTaintsExist: KnownEphemeralTaint \"node.kubernetes.io/not-ready:NoSchedule\" still exists",
            ),
            (
                "True",
                none(),
                "0",
                "Unknown ResourceNotRegistered: Resource \"nvidia.com/gpu\" was requested but not registered",
            ),
            ("True", none(), "1", "initialized"),
        ];
        for (ready, taints, gpus, expected) in table {
            assert_eq!(check(ready, taints, gpus), expected);
        }
    }
}
