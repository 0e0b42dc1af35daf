//! Registration and initialization: a node joins, gets what its claim promises, and becomes usable.

use std::sync::Arc;
use std::time::Duration;

use api::lower::{NodeFacts, is_ephemeral_taint};
use api::node_claim::conditions;
use api::{NodeClaim, Taint, labels};
use k8s_openapi::api::core::v1::Taint as StoredTaint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::draft::ClaimDraft;
use super::node_edit::NodeEdit;
use super::{believed, class_label, hooks, initialize, labels_of, left_of, name_of};
use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};
use crate::pools::{self, Registration};
use crate::work::{Next, Outcome};
use crate::write;

/// A node that is ready this soon after it joined is registered and initialized in one go.
const READY_AT_ONCE: Duration = Duration::from_secs(1);

/// Matches the claim with its node. A node that is ready when it registers is initialized in the same write.
pub(super) async fn step(context: &Context, draft: &mut ClaimDraft) -> Outcome {
    // A registration that failed for good stays so; such a claim is given up in time.
    let is_refused = !draft.is_true(conditions::REGISTERED) && !draft.is_unknown(conditions::REGISTERED);
    if !draft.is_true(conditions::LAUNCHED) || is_refused {
        return Ok(Next::OnChange);
    }
    let Some(node) = only_node(context, draft) else { return Ok(Next::OnChange) };
    let was_registered = draft.is_true(conditions::REGISTERED);
    if let Some(left) = time_to_become_ready(context, draft, &node).filter(|_| !was_registered) {
        return Ok(Next::After(left));
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
    let was_initialized = draft.is_true(conditions::INITIALIZED);
    let pending = if was_initialized { None } else { initialize::pending(draft.claim(), &node, &edit) };
    if !was_initialized && pending.is_none() {
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
        None if !was_initialized => {
            draft.conditions(|conditions| conditions.set_true(conditions::INITIALIZED));
            tracing::info!(NodeClaim.name = %name, Node.name = %node.name, allocatable = %node.allocatable, "initialized nodeclaim");
        }
        None => {}
    }
    Ok(Next::OnChange)
}

/// How much longer a node that just joined is waited for. No pod can run on it before it is ready, and if it becomes ready
/// at once, one write each to node and claim does for registration and initialization.
fn time_to_become_ready(context: &Context, draft: &ClaimDraft, node: &NodeFacts) -> Option<Duration> {
    let is_fence = |taint: &model::Taint| *taint.key != *labels::UNREGISTERED_TAINT && is_ephemeral_taint(taint);
    let is_fenced = || node.taints.iter().any(is_fence);
    if node.is_ready && !is_fenced() {
        return None;
    }
    let now = context.now();
    let since = *context.notes().joined.entry(name_of(draft.claim())).or_insert(now);
    believed(since, now).and_then(|since| left_of(READY_AT_ONCE, since, now))
}

/// The node of the claim. Without one, or with several, the conditions say what that means.
fn only_node(context: &Context, draft: &mut ClaimDraft) -> Option<Arc<NodeFacts>> {
    let nodes = nodes_of(context, draft);
    let lacking = if draft.is_true(conditions::REGISTERED) { conditions::INITIALIZED } else { conditions::REGISTERED };
    let is_over = draft.is_true(lacking);
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
            "metadata": {"name": "n1", "resourceVersion": "7", "labels": labels},
            "spec": {"providerID": "kwok://n1", "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]},
        }))
        .unwrap();
        NodeFacts::lower(&node).unwrap()
    }

    fn registration(labels: serde_json::Value) -> serde_json::Value {
        let stored = node(labels);
        let mut edit = NodeEdit::open(&stored);
        sync(&claim(), &mut edit);
        complete(&mut edit);
        edit.patch().unwrap()
    }

    /// LIFE-09, API-60: registration syncs labels, annotations, taints, finalizer and owner reference in one write.
    #[test]
    fn a_node_gets_what_its_claim_promises() {
        let patch = registration(serde_json::json!({"team": "b", "zone": "z"}));
        assert_eq!(patch["metadata"]["labels"], serde_json::json!({"team": "a", "karpenter.sh/registered": "true"}));
        assert_eq!(patch["metadata"]["annotations"], serde_json::json!({"note": "x"}));
        assert_eq!(patch["metadata"]["finalizers"], serde_json::json!(["karpenter.sh/termination"]));
        assert_eq!(patch["metadata"]["ownerReferences"][0]["uid"], "u1");
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let keys: Vec<&str> =
            patch["spec"]["taints"].as_array().unwrap().iter().map(|taint| taint["key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["dedicated", "cilium"]);
    }

    /// LIFE-11: a node that was registered before, by a process that could not say so any more, keeps the taints it has.
    #[test]
    fn startup_taints_do_not_come_back() {
        let patch = registration(serde_json::json!({"karpenter.sh/registered": "true"}));
        assert_eq!(patch["spec"]["taints"], serde_json::json!([]));
    }

    /// LIFE-10: only the value `true` keeps the taints away; the unregistered taint goes either way.
    #[test]
    fn do_not_sync_taints_is_honoured() {
        for (value, taints) in [("true", 0), ("false", 2)] {
            let patch = registration(serde_json::json!({"karpenter.sh/do-not-sync-taints": value}));
            assert_eq!(patch["spec"]["taints"].as_array().unwrap().len(), taints, "{value}");
        }
    }
}
