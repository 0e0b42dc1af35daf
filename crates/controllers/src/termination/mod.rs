//! The end of a node: tainted, drained, its volumes detached, its instance gone, then let go.

mod drain;
mod evict;
mod stages;
mod volumes;

use api::lower::NodeFacts;
use api::{NodeClaim, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint as StoredTaint;
use model::NodeName;

pub(crate) use evict::{evict, force_out};

use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};
use crate::lifecycle::labels_of;
use crate::lifecycle::node_edit::NodeEdit;
use crate::metrics::ClaimLabels;
use crate::planted::PlantedBug;
use crate::work::{Next, Outcome, Work, WorkError};
use crate::write::{self, WriteError};

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
    let deadline = deadline(claim.as_deref())?;
    if let Some(deadline) = deadline {
        announce(context, &node, deadline);
    }
    taint(context, &node).await?;
    match stages::advance(context, &node, claim.as_ref(), deadline).await? {
        Some(next) => Ok(next),
        None => let_go(context, &node, claim.as_deref()).await,
    }
}

/// A node whose kubelet is silent and whose instance is gone has nothing left to drain.
async fn is_lost(context: &Context, node: &NodeFacts) -> Result<bool, cloud::CloudError> {
    let Some(id) = node.provider_id.as_ref().filter(|_| !node.is_ready) else { return Ok(false) };
    Ok(context.provider.get(id).await?.is_none())
}

/// The moment by which the drain must be over, if there is one.
fn deadline(claim: Option<&NodeClaim>) -> Result<Option<Timestamp>, WorkError> {
    let key = labels::TERMINATION_TIMESTAMP;
    let text = claim.and_then(|claim| claim.metadata.annotations.as_ref()?.get(key));
    let unreadable = |text: &String| WorkError::UnreadableTime { key, text: text.clone() };
    text.map(|text| text.parse().map_err(|_| unreadable(text))).transpose()
}

fn announce(context: &Context, node: &NodeFacts, deadline: Timestamp) {
    let notice = Notice {
        about: about::node(node),
        tone: Tone::Warning,
        reason: "TerminationGracePeriodExpiring",
        message: format!("All pods will be deleted by {deadline}"),
        quiet: QUIET,
    };
    context.recorder.publish(context.now(), notice);
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

async fn let_go(context: &Context, node: &NodeFacts, claim: Option<&NodeClaim>) -> Outcome {
    let current = context.cluster().node(&node.name).cloned();
    let Some(current) = current else { return Ok(Next::OnChange) };
    let mut edit = NodeEdit::open(&current);
    edit.finalizers.retain(|finalizer| finalizer != labels::TERMINATION_FINALIZER);
    let Some(patch) = edit.patch() else { return Ok(Next::OnChange) };
    match write::patch_node(context, &node.name, &patch).await {
        Ok(()) | Err(WriteError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    context.notes().forget_node(&node.name);
    context.metrics.node_terminated(claim.map_or_else(ClaimLabels::default, labels_of));
    tracing::info!(Node.name = %node.name, "deleted node");
    Ok(Next::OnChange)
}
