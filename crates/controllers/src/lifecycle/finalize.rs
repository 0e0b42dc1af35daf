//! The end of a claim: node first, then instance, then the claim itself.

use std::sync::Arc;

use api::node_claim::conditions;
use api::{NodeClaim, labels};
use cloud::{LaunchId, LaunchRequest};
use jiff::{SignedDuration, Timestamp};
use model::{ClaimName, ProviderId};
use serde_json::json;

use super::draft::ClaimDraft;
use super::{instance, labels_of};
use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};
use crate::work::{Next, Outcome};
use crate::write::{self, WriteError};

pub(super) async fn reconcile(context: &Context, name: &ClaimName, claim: Arc<NodeClaim>) -> Outcome {
    if !claim.metadata.finalizers.iter().flatten().any(|found| found == labels::TERMINATION_FINALIZER) {
        return Ok(Next::OnChange);
    }
    if set_deadline(context, name, &claim).await? {
        return Ok(Next::OnChange);
    }
    let mut draft = ClaimDraft::open(Arc::clone(&claim), context.now());
    let provider_id = match draft.provider_id() {
        Some(id) => Some(id),
        None => lost_instance(context, &claim).await?,
    };
    if let Some(id) = &provider_id {
        if (draft.is_true(conditions::REGISTERED) || has_registered(context, id)) && delete_nodes(context, id).await? {
            // The nodes' own end wakes this claim again.
            return Ok(Next::OnChange);
        }
        let with_id = known_by(&claim, id);
        if let Some(next) = instance::end(context, name, &with_id).await? {
            draft.conditions(|conditions| conditions.set_true(conditions::INSTANCE_TERMINATING));
            draft.save(context).await?;
            return Ok(next);
        }
    }
    remove_finalizer(context, name, &claim).await?;
    context.metrics.claim_terminated(labels_of(&claim));
    tracing::info!(NodeClaim.name = %name, "deleted nodeclaim");
    Ok(Next::OnChange)
}

/// A claim that was killed between launch and status may have an instance that it does not know of.
async fn lost_instance(context: &Context, claim: &Arc<NodeClaim>) -> Result<Option<ProviderId>, cloud::CloudError> {
    let Some(id) = LaunchId::of(claim) else { return Ok(None) };
    let request = LaunchRequest { id, claim: Arc::clone(claim) };
    Ok(context.provider.find_launched(&request).await?.map(|launched| launched.provider_id))
}

fn known_by(claim: &NodeClaim, id: &ProviderId) -> NodeClaim {
    let mut claim = claim.clone();
    claim.status.get_or_insert_default().provider_id = Some(id.to_string());
    claim
}

/// Writes the moment by which the drain must be over, once; answers whether it did.
async fn set_deadline(context: &Context, name: &ClaimName, claim: &NodeClaim) -> Result<bool, WriteError> {
    let is_set = claim.metadata.annotations.iter().flatten().any(|(key, _)| key == labels::TERMINATION_TIMESTAMP);
    let Some(deadline) = deadline(claim).filter(|_| !is_set) else { return Ok(false) };
    let patch = json!({"metadata": {"annotations": {labels::TERMINATION_TIMESTAMP: deadline.to_string()}}});
    write::patch_claim(context, name, &patch).await?;
    let notice = Notice {
        about: about::claim(claim),
        tone: Tone::Warning,
        reason: "TerminationGracePeriodExpiring",
        message: format!("All pods will be deleted by {deadline}"),
        quiet: QUIET,
    };
    context.recorder.publish(context.now(), notice);
    tracing::info!(NodeClaim.name = %name, %deadline, "annotated nodeclaim");
    Ok(true)
}

fn deadline(claim: &NodeClaim) -> Option<Timestamp> {
    let period = claim.spec.termination_grace_period.as_ref()?.as_duration();
    let deleted = claim.metadata.deletion_timestamp.as_ref()?.0;
    deleted.checked_add(SignedDuration::try_from(period).ok()?).ok()
}

/// Whether a node of the instance is open to pods. A process that died between node and claim left that unsaid at the claim.
fn has_registered(context: &Context, id: &ProviderId) -> bool {
    context.cluster().nodes_of(id).any(|node| node.is_labelled(labels::REGISTERED))
}

/// Asks for the end of every node of the instance; answers whether any is still there.
async fn delete_nodes(context: &Context, id: &ProviderId) -> Result<bool, WriteError> {
    let nodes: Vec<_> = context.cluster().nodes_of(id).cloned().collect();
    for node in nodes.iter().filter(|node| node.deletion.is_none()) {
        write::delete_node(context, node).await?;
    }
    Ok(!nodes.is_empty())
}

async fn remove_finalizer(context: &Context, name: &ClaimName, claim: &NodeClaim) -> Result<(), WriteError> {
    let current = context.cluster().claim(name).cloned();
    let stored = current.as_deref().unwrap_or(claim);
    let mut finalizers = stored.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != labels::TERMINATION_FINALIZER);
    let version = &stored.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
    match write::patch_claim(context, name, &patch).await {
        Ok(_) | Err(WriteError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
