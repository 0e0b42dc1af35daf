//! The life of a claim: Created > Launched > Registered > Initialized > Draining > Gone.

pub(crate) mod draft;
mod finalize;
mod initialize;
mod launch;
pub(crate) mod node_edit;
pub(crate) mod quiet;
mod register;

use std::sync::Arc;
use std::time::Duration;

use api::node_claim::conditions;
use api::{NodeClaim, labels};
use cloud::{LAUNCH_ID, LaunchId};
use jiff::Timestamp;
use model::ClaimName;
use serde_json::json;

pub(crate) use draft::ClaimDraft;

use crate::context::Context;
use crate::metrics::ClaimLabels;
use crate::work::{Next, Outcome, Work};
use crate::write;

/// A claim that is not launched by then is given up.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// A claim whose node has not registered by then is given up.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Brings one claim as far as it can go now.
pub(crate) async fn reconcile(context: &Context, name: &ClaimName) -> Outcome {
    let Some(claim) = context.cluster().claim(name).cloned() else { return Ok(Next::OnChange) };
    if claim.metadata.deletion_timestamp.is_some() {
        return finalize::reconcile(context, name, claim).await;
    }
    if !is_prepared(&claim) {
        prepare(context, name, &claim).await?;
        return Ok(Next::OnChange);
    }
    let mut draft = ClaimDraft::open(claim, context.now());
    let mut next = match launch::step(context, &mut draft).await? {
        launch::Launch::GivenUp => return Ok(Next::OnChange),
        launch::Launch::Done => Next::OnChange,
        launch::Launch::Retry(next) => next,
    };
    // A node that changed under our hands must not cost us the news of the launch: they are saved either way.
    let registration = register::step(context, &mut draft).await;
    let quiet = quiet::step(context, &mut draft);
    next = next.sooner(quiet.next).sooner(check_timeouts(context, &draft).await?);
    draft.save(context).await?;
    registration?;
    if quiet.is_news {
        context.request(Work::Disrupt);
    }
    Ok(next)
}

fn is_prepared(claim: &NodeClaim) -> bool {
    let finalizers = claim.metadata.finalizers.iter().flatten();
    let finalized = finalizers.into_iter().any(|finalizer| finalizer == labels::TERMINATION_FINALIZER);
    finalized && LaunchId::of(claim).is_some()
}

/// Claims that people write themselves come without finalizer and launch id; both are there before the launch.
async fn prepare(context: &Context, name: &ClaimName, claim: &NodeClaim) -> Result<(), write::WriteError> {
    let mut finalizers = claim.metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == labels::TERMINATION_FINALIZER) {
        finalizers.push(labels::TERMINATION_FINALIZER.to_owned());
    }
    let launch_id = LaunchId::of(claim).map_or_else(|| context.draw_launch_id(), |id| id.to_string());
    let class = &claim.spec.node_class_ref;
    let class_label = labels::node_class_label(&class.group, &class.kind);
    let patch = json!({"metadata": {
        "resourceVersion": claim.metadata.resource_version,
        "finalizers": finalizers,
        "annotations": {LAUNCH_ID: launch_id},
        "labels": {class_label: class.name},
    }});
    write::patch_claim(context, name, &patch).await.map(|_| ())
}

/// Gives up claims that make no progress, so that their pods are planned anew.
async fn check_timeouts(context: &Context, draft: &ClaimDraft) -> Outcome {
    let (condition, timeout, reason) = if !draft.is_true(conditions::LAUNCHED) {
        (conditions::LAUNCHED, LAUNCH_TIMEOUT, "launch_timeout")
    } else if !draft.is_true(conditions::REGISTERED) {
        (conditions::REGISTERED, REGISTRATION_TIMEOUT, "registration_timeout")
    } else {
        return Ok(Next::OnChange);
    };
    let since = draft.since(condition).unwrap_or_else(|| context.now());
    match left_of(timeout, since, context.now()) {
        Some(left) => Ok(Next::After(left)),
        None => {
            give_up(context, draft.claim(), reason).await?;
            Ok(Next::OnChange)
        }
    }
}

/// Deletes a claim that came to nothing and says why.
pub(crate) async fn give_up(context: &Context, claim: &NodeClaim, reason: &str) -> Result<(), write::WriteError> {
    write::delete_claim(context, claim).await?;
    context.metrics.claim_disrupted(reason, labels_of(claim), termination_mode(claim));
    context.metrics.pods_disrupted(reason, labels_of(claim), termination_mode(claim), pods_to_move(context, claim));
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    tracing::info!(NodeClaim.name = name, reason, "deleting nodeclaim");
    Ok(())
}

/// Pods that need another node when this claim's node goes.
fn pods_to_move(context: &Context, claim: &NodeClaim) -> usize {
    let cluster = context.cluster();
    let node = cluster.node_of(claim);
    node.map_or(0, |node| cluster.pods_on(&node.name).filter(|pod| pod.is_reschedulable()).count())
}

/// What is left of a span that began at `since`; nothing when it is over.
pub(crate) fn left_of(span: Duration, since: Timestamp, now: Timestamp) -> Option<Duration> {
    let passed = Duration::try_from(now.duration_since(since)).unwrap_or(Duration::ZERO);
    span.checked_sub(passed).filter(|left| !left.is_zero())
}

/// The metric labels of a claim.
pub(crate) fn labels_of(claim: &NodeClaim) -> ClaimLabels {
    let own = claim.metadata.labels.as_ref();
    let label = |key: &str| own.and_then(|own| own.get(key)).cloned().unwrap_or_default();
    ClaimLabels {
        pool: label(labels::NODE_POOL),
        zone: label(labels::ZONE),
        capacity_type: label(labels::CAPACITY_TYPE),
    }
}

/// How a claim's drain may end.
pub(crate) fn termination_mode(claim: &NodeClaim) -> &'static str {
    match &claim.spec.termination_grace_period {
        None => "graceful",
        Some(period) if period.as_duration().is_zero() => "forceful",
        Some(_) => "eventual",
    }
}

/// A claim's name as a typed key.
pub(crate) fn name_of(claim: &Arc<NodeClaim>) -> ClaimName {
    ClaimName::new(claim.metadata.name.as_deref().unwrap_or_default())
}
