//! Registration and initialization: a node joins, gets what its claim promises, and becomes usable.

use std::sync::Arc;

use api::lower::NodeFacts;
use api::node_claim::conditions;
use api::{NodeClaim, Taint, labels};
use k8s_openapi::api::core::v1::Taint as StoredTaint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::draft::ClaimDraft;
use super::node_edit::NodeEdit;
use super::{arrival, class_label, hooks, initialize, kept_seats, labels_of, name_of};
use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};
use crate::pools::{self, Registration};
use crate::work::{Next, Outcome};
use crate::write;

/// Matches the claim with its node. A node that is ready when it registers is initialized in the same write.
pub(super) async fn step(context: &Context, draft: &mut ClaimDraft) -> Outcome {
    // A registration that failed for good stays so; such a claim is given up in time.
    let is_refused = !draft.is_true(conditions::REGISTERED) && !draft.is_unknown(conditions::REGISTERED);
    if !draft.is_true(conditions::LAUNCHED) || is_refused {
        return Ok(Next::OnChange);
    }
    let Some(node) = only_node(context, draft) else { return Ok(Next::OnChange) };
    let was_registered = draft.is_true(conditions::REGISTERED);
    if !was_registered && let Some(left) = arrival::time_to_wait(context, draft.claim(), &node) {
        return Ok(Next::After(left));
    }
    if !was_registered {
        kept_seats::nominate(context).await;
    }
    let mut edit = NodeEdit::open(&node);
    if was_registered {
        edit.labels.extend([class_label(draft.claim())]);
    } else {
        warn_without_taint(context, draft.claim(), &node);
        sync(draft.claim(), &mut edit);
        let hooks = hooks::ask(context, draft.claim()).await;
        if let Some(pending) = hooks.pending() {
            draft.conditions(|set| set.set_unknown(conditions::REGISTERED, "RegistrationHookPending", &pending));
            if let Some(patch) = edit.patch() {
                write::patch_node(context, &node.name, &patch).await?;
            }
            return hooks.outcome();
        }
        complete(&mut edit);
    }
    // While a machine is started anew, its node tells nothing about what it will be.
    let is_settled = draft.is_true(conditions::INITIALIZED) || draft.is_true(conditions::REBOOTING);
    if !is_settled && node.is_ready {
        drop_stale_taints(&mut edit);
    }
    let pending = if is_settled { None } else { initialize::pending(draft.claim(), &node, &edit) };
    if !is_settled && pending.is_none() {
        edit.labels.insert(labels::INITIALIZED.to_owned(), "true".to_owned());
    }
    if let Some(patch) = edit.patch() {
        write::patch_node(context, &node.name, &patch).await?;
    }
    let name = name_of(draft.claim());
    if !was_registered {
        draft.status().node_name = Some(node.name.to_string());
        draft.conditions(|conditions| conditions.set_true(conditions::REGISTERED));
        context.metrics.node_created(labels_of(draft.claim()));
        pools::record_registration(context, draft.claim(), Registration::Joined);
        tracing::info!(NodeClaim.name = %name, Node.name = %node.name, "registered nodeclaim");
    }
    match pending {
        Some(pending) => draft.conditions(|conditions| pending.write(conditions)),
        None if !is_settled => {
            draft.conditions(|conditions| conditions.set_true(conditions::INITIALIZED));
            tracing::info!(NodeClaim.name = %name, Node.name = %node.name, allocatable = %node.allocatable, "initialized nodeclaim");
        }
        None => {}
    }
    Ok(Next::OnChange)
}

/// The node of the claim. Without one, or with several, the conditions say what that means.
fn only_node(context: &Context, draft: &mut ClaimDraft) -> Option<Arc<NodeFacts>> {
    let nodes = nodes_of(context, draft);
    let lacking = if draft.is_true(conditions::REGISTERED) { conditions::INITIALIZED } else { conditions::REGISTERED };
    let is_rebooting = lacking == conditions::INITIALIZED && draft.is_true(conditions::REBOOTING);
    let is_over = is_rebooting || draft.is_true(lacking);
    match nodes.as_slice() {
        [node] => return Some(Arc::clone(node)),
        _ if is_over => {}
        [_, _, ..] if lacking == conditions::REGISTERED => {
            let message = "Invariant violated, matched multiple nodes";
            draft.conditions(|set| set.set_false(lacking, "MultipleNodesFound", message));
        }
        _ => {
            let message = "Node not registered with cluster";
            draft.conditions(|set| set.set_unknown(lacking, "NodeNotFound", message));
        }
    }
    None
}

fn nodes_of(context: &Context, draft: &ClaimDraft) -> Vec<Arc<NodeFacts>> {
    let cluster = context.cluster();
    draft.provider_id().map(|id| cluster.nodes_of(&id).cloned().collect()).unwrap_or_default()
}

/// Without that taint pods could land on the node before its own taints are there. We go on, but say so.
fn warn_without_taint(context: &Context, claim: &NodeClaim, node: &NodeFacts) {
    let has_taint = node.stored_taints.iter().any(|taint| taint.key == labels::UNREGISTERED_TAINT);
    if has_taint || node.is_labelled(labels::REGISTERED) {
        return;
    }
    let message = "Missing karpenter.sh/unregistered taint which prevents registration related race conditions on \
                   Karpenter-managed nodes";
    tracing::error!(Node.name = %node.name, "{message}");
    let notice = Notice {
        about: about::claim(claim),
        tone: Tone::Warning,
        reason: "UnregisteredTaintMissing",
        message: message.to_owned(),
        quiet: QUIET,
    };
    context.recorder.publish(context.now(), notice);
}

/// Gives the node what the claim promises. Happens once: startup taints that were removed do not come back.
fn sync(claim: &NodeClaim, edit: &mut NodeEdit<'_>) {
    if !edit.finalizers.iter().any(|finalizer| finalizer == labels::TERMINATION_FINALIZER) {
        edit.finalizers.push(labels::TERMINATION_FINALIZER.to_owned());
    }
    let uid = claim.metadata.uid.clone().unwrap_or_default();
    edit.owners.retain(|owner| owner.uid != uid);
    edit.owners.push(OwnerReference {
        api_version: "karpenter.sh/v1".to_owned(),
        kind: "NodeClaim".to_owned(),
        name: claim.metadata.name.clone().unwrap_or_default(),
        uid,
        block_owner_deletion: Some(true),
        controller: None,
    });
    // A node that we registered already, and were killed before we could say so, may have lost its startup taints since.
    let is_labelled = |key: &str| edit.labels.get(key).is_some_and(|value| value == "true");
    let keeps_taints = is_labelled(labels::DO_NOT_SYNC_TAINTS) || is_labelled(labels::REGISTERED);
    edit.labels.extend(claim.metadata.labels.clone().unwrap_or_default());
    edit.annotations.extend(claim.metadata.annotations.clone().unwrap_or_default());
    if !keeps_taints {
        let own = claim.spec.taints.iter().flatten().chain(claim.spec.startup_taints.iter().flatten());
        own.for_each(|taint| edit.add_taint(stored(taint)));
    }
}

/// Lets pods come.
fn complete(edit: &mut NodeEdit<'_>) {
    edit.remove_taint(labels::UNREGISTERED_TAINT);
    edit.labels.insert(labels::REGISTERED.to_owned(), "true".to_owned());
}

/// The taint of a node that is not ready outlives what it stands for: who removes it has a few writes a second for the whole
/// cluster, and would put it back should it be due.
fn drop_stale_taints(edit: &mut NodeEdit<'_>) {
    edit.taints.retain(|taint| taint.key != labels::NOT_READY_TAINT || taint.effect == "PreferNoSchedule");
}

fn stored(taint: &Taint) -> StoredTaint {
    StoredTaint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: taint.effect.as_str().to_owned(),
        time_added: taint.time_added.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn claim() -> NodeClaim {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "web-1", "uid": "u1", "labels": {"team": "a"}, "annotations": {"note": "x"}},
            "spec": {
                "taints": [{"key": "dedicated", "value": "web", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "cilium", "effect": "NoExecute"}],
                "requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"},
            },
        }))
        .unwrap()
    }

    fn node(labels: serde_json::Value) -> NodeFacts {
        let node = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "n1", "uid": "n1-uid", "labels": labels, "annotations": {"note": "old"}},
            "spec": {"providerID": "kwok://n1", "taints": [
                {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
                {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "effect": "PreferNoSchedule"},
            ]},
        }))
        .unwrap();
        NodeFacts::lower(&node).unwrap()
    }

    /// What a registration sets, by path.
    fn registration(labels: serde_json::Value, is_ready: bool) -> BTreeMap<String, serde_json::Value> {
        let stored = node(labels);
        let mut edit = NodeEdit::open(&stored);
        sync(&claim(), &mut edit);
        complete(&mut edit);
        if is_ready {
            drop_stale_taints(&mut edit);
        }
        let patch = edit.patch().unwrap();
        assert_eq!(patch[0], serde_json::json!({"op": "test", "path": "/metadata/uid", "value": "n1-uid"}));
        let set = patch.as_array().unwrap().iter().filter(|operation| operation["op"] == "add");
        set.map(|set| (set["path"].as_str().unwrap().to_owned(), set["value"].clone())).collect()
    }

    fn taints_of(set: &BTreeMap<String, serde_json::Value>) -> Vec<&str> {
        set["/spec/taints"].as_array().unwrap().iter().map(|taint| taint["key"].as_str().unwrap()).collect()
    }

    /// LIFE-09, API-60: registration syncs labels, annotations, taints, finalizer and owner reference in one write.
    #[test]
    fn a_node_gets_what_its_claim_promises() {
        let set = registration(serde_json::json!({"team": "b", "zone": "z"}), true);
        assert_eq!(set["/metadata/labels/team"], "a");
        assert_eq!(set["/metadata/labels/karpenter.sh~1registered"], "true");
        assert_eq!(set["/metadata/annotations/note"], "x");
        assert_eq!(set["/metadata/finalizers"], serde_json::json!(["karpenter.sh/termination"]));
        assert_eq!(
            set["/metadata/ownerReferences"],
            serde_json::json!([{
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "web-1", "uid": "u1",
                "blockOwnerDeletion": true,
            }])
        );
        assert_eq!(
            set["/spec/taints"],
            serde_json::json!([
                {"key": "node.kubernetes.io/not-ready", "effect": "PreferNoSchedule"},
                {"key": "dedicated", "value": "web", "effect": "NoSchedule"},
                {"key": "cilium", "effect": "NoExecute"},
            ])
        );
        assert_eq!(set.len(), 6, "and nothing else: {set:?}");
    }

    /// LIFE-09: a taint that the node came with is left as it is; one with another effect is another.
    #[test]
    fn taints_are_told_apart_by_key_and_effect() {
        let taint = |key: &str, value: &str, effect: &str| StoredTaint {
            key: key.to_owned(),
            value: Some(value.to_owned()),
            effect: effect.to_owned(),
            time_added: None,
        };
        let stored = node(serde_json::json!({}));
        let mut edit = NodeEdit::open(&stored);
        edit.taints = vec![taint("dedicated", "own", "NoSchedule"), taint("cilium", "own", "NoSchedule")];
        sync(&claim(), &mut edit);
        let told = |taint: &StoredTaint| format!("{}={:?}:{}", taint.key, taint.value, taint.effect);
        assert_eq!(
            edit.taints.iter().map(told).collect::<Vec<_>>(),
            ["dedicated=Some(\"own\"):NoSchedule", "cilium=Some(\"own\"):NoSchedule", "cilium=None:NoExecute"]
        );
    }

    /// LIFE-11: a node that was registered before, by a process that could not say so any more, keeps the taints it has.
    #[test]
    fn startup_taints_do_not_come_back() {
        let set = registration(serde_json::json!({"karpenter.sh/registered": "true"}), true);
        assert_eq!(taints_of(&set), ["node.kubernetes.io/not-ready"], "the one that only advises");
        let set = registration(serde_json::json!({"karpenter.sh/registered": "true"}), false);
        assert_eq!(taints_of(&set), ["node.kubernetes.io/not-ready"; 2]);
    }

    /// LIFE-10: only the value `true` keeps the taints away; the unregistered taint goes either way.
    #[test]
    fn do_not_sync_taints_is_honoured() {
        for (value, taints) in [("true", 1), ("false", 3), ("yes", 3)] {
            let set = registration(serde_json::json!({"karpenter.sh/do-not-sync-taints": value}), true);
            assert_eq!(taints_of(&set).len(), taints, "{value}");
        }
    }
}
