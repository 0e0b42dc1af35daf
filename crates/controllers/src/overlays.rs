//! Overlays: what became of each is told in its status.

use std::sync::Arc;
use std::time::Duration;

use api::ConditionSet;
use api::condition::ConditionSubject;
use api::lower::OverlayFacts;
use api::node_overlay::{NodeOverlayStatus, conditions};
use jiff::Timestamp;
use state::OverlayVerdict;

use crate::context::Context;
use crate::merge::status_patch;
use crate::provisioning;
use crate::work::{Next, Outcome, Work};
use crate::write::{self, WriteError};

/// Overlays are judged this often, should nothing change before: what is for sale changes without a word.
const JUDGE_AGAIN: Duration = Duration::from_secs(6 * 3600);

/// Judges all overlays against all pools and writes what changed.
///
/// A pool whose types cannot be had is left out and asked for again; the others are judged without it.
pub(crate) async fn reconcile(context: &Context) -> Outcome {
    if context.cluster().overlay_verdicts().next().is_none() {
        return Ok(Next::OnChange);
    }
    let is_complete = provisioning::refresh_types(context).await;
    let judged: Vec<(Arc<OverlayFacts>, OverlayVerdict)> =
        context.cluster().overlay_verdicts().map(|(facts, verdict)| (Arc::clone(facts), verdict)).collect();
    let mut is_settled = is_complete;
    for (facts, verdict) in judged {
        let status = status(&facts, &verdict, context.now());
        if facts.status.as_ref() == Some(&status) {
            continue;
        }
        if let Some(reason) = verdict.reason() {
            tracing::info!(NodeOverlay.name = %facts.name, reason, message = verdict.message(), "overlay is not applied");
        }
        let patch = status_patch(Some(&facts.resource_version), facts.status.as_ref(), &status);
        match write::patch_overlay_status(context, &facts.name, &patch).await {
            Ok(()) | Err(WriteError::NotFound { .. }) => {}
            Err(WriteError::Conflict { .. }) => is_settled = false,
            Err(error) => return Err(error.into()),
        }
    }
    // Another price may make a node worth replacing.
    context.request(Work::Disrupt);
    Ok(if is_settled { Next::After(JUDGE_AGAIN) } else { Next::BackOff })
}

/// What an overlay says about itself.
fn status(facts: &OverlayFacts, verdict: &OverlayVerdict, now: Timestamp) -> NodeOverlayStatus {
    let mut status = facts.status.clone().unwrap_or_default();
    let subject =
        ConditionSubject { generation: facts.generation, created_at: facts.created, deleting: facts.is_going, now };
    let mut set = ConditionSet::open(status.conditions.get_or_insert_default(), conditions::TYPES, subject);
    match verdict.reason() {
        None => set.set_true(conditions::VALIDATION_SUCCEEDED),
        Some(reason) => set.set_false(conditions::VALIDATION_SUCCEEDED, reason, &verdict.message()),
    };
    status
}
