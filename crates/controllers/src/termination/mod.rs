//! The end of a node: tainted, drained, its instance gone, then let go.

mod drain;

use std::sync::Arc;
use std::time::Duration;

use api::lower::NodeFacts;
use api::node_claim::conditions;
use api::{NodeClaim, labels};
use cloud::Termination;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint as StoredTaint;
use model::{NodeName, PodKey};
use serde_json::json;

use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};
use crate::lifecycle::node_edit::NodeEdit;
use crate::lifecycle::{ClaimDraft, labels_of, left_of};
use crate::metrics::ClaimLabels;
use crate::planted::PlantedBug;
use crate::work::{Next, Outcome, Work};
use crate::write::{self, Evicted, WriteError};

/// How often a drain or an instance is looked at when nothing is heard of it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// A drain takes at least this long, so that pods bound before the taint was seen are found.
const SHORTEST_DRAIN: Duration = Duration::from_secs(5);

/// Brings one node of ours nearer to its end, if it is going. Foreign nodes are none of our business.
pub(crate) async fn reconcile(context: &Context, name: &NodeName) -> Outcome {
    let (node, claim, is_ours) = {
        let cluster = context.cluster();
        let Some(node) = cluster.node(name).cloned() else { return Ok(Next::OnChange) };
        let claim = cluster.claim_of(&node).cloned();
        let is_ours = cluster.is_managed_node(&node);
        (node, claim, is_ours)
    };
    if !is_ours {
        // A mistake on purpose: the node of somebody else is kept free of new pods.
        if context.planted.is(PlantedBug::ForeignTaint) {
            taint(context, &node).await?;
        }
        return Ok(Next::OnChange);
    }
    if node.deletion.is_none() || !node.has_finalizer(labels::TERMINATION_FINALIZER) {
        return Ok(Next::OnChange);
    }
    if let Some(claim) = claim.as_ref().filter(|claim| claim.metadata.deletion_timestamp.is_none()) {
        write::delete_claim(context, claim).await?;
    }
    if is_lost(context, &node).await? {
        return let_go(context, &node, claim.as_deref()).await;
    }
    taint(context, &node).await?;
    let deadline = deadline(claim.as_deref());
    let Some(claim) = claim else {
        return match drain(context, &node, deadline) {
            Some(next) => Ok(next),
            None => let_go(context, &node, None).await,
        };
    };
    finish_claimed(context, &node, claim, deadline).await
}

async fn finish_claimed(
    context: &Context,
    node: &Arc<NodeFacts>,
    claim: Arc<NodeClaim>,
    deadline: Option<Timestamp>,
) -> Outcome {
    let mut draft = ClaimDraft::open(Arc::clone(&claim), context.now());
    let still_drains = drain(context, node, deadline);
    if !draft.is_true(conditions::DRAINED) {
        let began = draft.since(conditions::DRAINED).unwrap_or_else(|| context.now());
        let too_soon = left_of(SHORTEST_DRAIN, began, context.now()).map(Next::After);
        if let Some(next) = still_drains.or(too_soon) {
            draft.conditions(|conditions| conditions.set_unknown(conditions::DRAINED, "Draining", "Draining"));
            draft.save(context).await?;
            return Ok(next);
        }
        draft.conditions(|conditions| conditions.set_true(conditions::DRAINED));
        context.metrics.node_drained(labels_of(&claim));
    }
    let termination = context.provider.terminate(&claim).await?;
    if termination == Termination::Requested {
        draft.conditions(|conditions| conditions.set_true(conditions::INSTANCE_TERMINATING));
        draft.save(context).await?;
        return Ok(Next::After(ASK_AGAIN));
    }
    draft.save(context).await?;
    let_go(context, node, Some(&claim)).await
}

/// A node whose kubelet is silent and whose instance is gone has nothing left to drain.
async fn is_lost(context: &Context, node: &NodeFacts) -> Result<bool, cloud::CloudError> {
    let Some(id) = node.provider_id.as_ref().filter(|_| !node.is_ready) else { return Ok(false) };
    Ok(context.provider.get(id).await?.is_none())
}

fn deadline(claim: Option<&NodeClaim>) -> Option<Timestamp> {
    let annotations = claim?.metadata.annotations.as_ref()?;
    annotations.get(labels::TERMINATION_TIMESTAMP)?.parse().ok()
}

/// Keeps new pods and load balancers away.
async fn taint(context: &Context, node: &NodeFacts) -> Result<(), WriteError> {
    let mut edit = NodeEdit::open(node);
    let disrupted = StoredTaint {
        key: labels::DISRUPTED_TAINT.to_owned(),
        value: None,
        effect: "NoSchedule".to_owned(),
        time_added: None,
    };
    let same = |taint: &StoredTaint| taint.key == disrupted.key && taint.effect == disrupted.effect;
    if !edit.taints.iter().any(same) {
        edit.remove_taint(labels::DISRUPTED_TAINT);
        edit.taints.push(disrupted);
    }
    let (key, value) = (labels::EXCLUDE_FROM_LOAD_BALANCERS, labels::EXCLUDE_FROM_LOAD_BALANCERS_VALUE);
    edit.labels.insert(key.to_owned(), value.to_owned());
    if let Some(patch) = edit.patch() {
        write::patch_node(context, &node.name, &patch).await?;
        tracing::info!(Node.name = %node.name, "tainted node");
        // The pods that have to leave need a place: it is planned before they are evicted.
        context.request(Work::Provision);
    }
    Ok(())
}

/// Starts the evictions that are due; answers when to look again, or nothing when the node is drained.
fn drain(context: &Context, node: &NodeFacts, deadline: Option<Timestamp>) -> Option<Next> {
    let now = context.now();
    let pods: Vec<_> = context.cluster().pods_on(&node.name).cloned().collect();
    let plan = drain::plan(&pods, deadline, now);
    if plan.is_done() {
        return None;
    }
    let notice = Notice {
        about: about::node(node),
        tone: Tone::Warning,
        reason: "FailedDraining",
        message: format!("Failed to drain node, {} pods are waiting to be evicted", plan.waiting),
        quiet: QUIET,
    };
    context.recorder.publish(now, notice);
    for (pod, uid) in plan.evict {
        context.offer(Work::Evict(pod, uid));
    }
    Some(Next::After(LOOK_AGAIN))
}

async fn let_go(context: &Context, node: &NodeFacts, claim: Option<&NodeClaim>) -> Outcome {
    let current = context.cluster().node(&node.name).cloned();
    let Some(current) = current else { return Ok(Next::OnChange) };
    let mut finalizers = current.finalizers.clone();
    finalizers.retain(|finalizer| finalizer != labels::TERMINATION_FINALIZER);
    let patch = json!({"metadata": {"resourceVersion": current.resource_version, "finalizers": finalizers}});
    match write::patch_node(context, &node.name, &patch).await {
        Ok(()) | Err(WriteError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    context.notes().pod_events.remove(&node.name);
    context.metrics.node_terminated(claim.map_or_else(ClaimLabels::default, labels_of));
    tracing::info!(Node.name = %node.name, "deleted node");
    Ok(Next::OnChange)
}

/// Evicts one pod of a node that is going. A budget that holds it back is respected; only the node's deadline is not.
pub(crate) async fn evict(context: &Context, key: &PodKey, uid: &str) -> Outcome {
    let Some((pod, node, claim)) = evictable(context, key, uid) else { return Ok(Next::OnChange) };
    let now = context.now();
    let deadline = deadline(claim.as_deref());
    if let Some(grace) = drain::forced_grace(&pod, deadline, now) {
        write::delete_pod(context, key, uid, grace).await?;
        context.metrics.pods.drained.inc(["Forceful Termination"]);
        let message =
            format!("Deleted the pod to accommodate the node's deadline with a grace of {}s", grace.as_secs());
        let notice = Notice { about: about::pod(&pod), tone: Tone::Normal, reason: "Disrupted", message, quiet: QUIET };
        context.recorder.publish(now, notice);
        return Ok(Next::OnChange);
    }
    if pod.deletion.is_some() || pod.protection.is_active(now) {
        return Ok(Next::OnChange);
    }
    match write::evict(context, &pod).await? {
        Evicted::Gone => Ok(Next::OnChange),
        Evicted::Accepted => {
            let reason = claim.map_or("Forceful Termination".to_owned(), |claim| eviction_reason(&claim));
            context.metrics.pods.drained.inc([&reason]);
            let message = format!("Evicted pod: {reason}");
            let notice =
                Notice { about: about::pod(&pod), tone: Tone::Normal, reason: "Evicted", message, quiet: QUIET };
            context.recorder.publish(now, notice);
            Ok(Next::OnChange)
        }
        Evicted::HeldBack { message } => {
            let notice = Notice {
                about: about::node(&node),
                tone: Tone::Warning,
                reason: "FailedDraining",
                message,
                quiet: QUIET,
            };
            context.recorder.publish(now, notice);
            Ok(Next::BackOff)
        }
    }
}

type Evictable = (Arc<api::lower::PodFacts>, Arc<NodeFacts>, Option<Arc<NodeClaim>>);

/// The pod, if it is still the same one, still on a node of ours that is going, and still has to leave.
fn evictable(context: &Context, key: &PodKey, uid: &str) -> Option<Evictable> {
    let cluster = context.cluster();
    let pod = cluster.pod(key).filter(|pod| &*pod.uid == uid)?;
    let node = cluster.node(pod.node.as_ref()?)?;
    let is_ours = cluster.is_managed_node(node) && node.has_finalizer(labels::TERMINATION_FINALIZER);
    let is_going = is_ours && node.deletion.is_some();
    let claim = cluster.claim_of(node).cloned();
    is_going.then(|| (Arc::clone(pod), Arc::clone(node), claim))
}

fn eviction_reason(claim: &NodeClaim) -> String {
    let conditions = claim.status.as_ref().and_then(|status| status.conditions.as_ref());
    let disruption = conditions.into_iter().flatten().find(|found| found.type_ == conditions::DISRUPTION_REASON);
    disruption.map_or("Forceful Termination".to_owned(), |found| found.reason.clone())
}
