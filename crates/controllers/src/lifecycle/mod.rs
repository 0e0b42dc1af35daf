//! The life of a claim: Created > Launched > Registered > Initialized > Draining > Gone.

mod arrival;
mod consistency;
pub(crate) mod draft;
mod expiration;
mod finalize;
mod hooks;
mod initialize;
pub(crate) mod instance;
mod kept_seats;
mod launch;
pub(crate) mod node_edit;
pub(crate) mod quiet;
mod register;

use std::sync::Arc;
use std::time::Duration;

use api::node_claim::conditions;
use api::{NodeClaim, labels};
use cloud::{LAUNCH_ID, LaunchId};
use jiff::{SignedDuration, Timestamp};
use model::{ClaimName, NodeName};
use serde_json::json;

pub(crate) use arrival::Company;
pub(crate) use draft::ClaimDraft;
use expiration::Expiry;
pub(crate) use kept_seats::Rehearsed;

use crate::context::Context;
use crate::metrics::ClaimLabels;
use crate::pools;
use crate::work::{Next, Outcome, Work};
use crate::write;

/// A claim that is not launched by then is given up.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// How long a reason must last before it is written down.
const WORDS_HELD: Duration = Duration::from_secs(2);
/// A claim whose node has not registered by then is given up.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Brings one claim as far as it can go now.
pub(crate) async fn reconcile(context: &Context, name: &ClaimName) -> Outcome {
    let Some(claim) = context.cluster().claim(name).cloned() else {
        context.notes().forget(name);
        return Ok(Next::OnChange);
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return finalize::reconcile(context, name, claim).await;
    }
    let expiry = expiration::left(&claim, context.now());
    if expiry == Expiry::Over {
        give_up(context, &claim, "expired").await?;
        return Ok(Next::OnChange);
    }
    if !is_prepared(&claim) {
        prepare(context, name, &claim).await?;
        return Ok(Next::OnChange);
    }
    bring_forward(context, claim).await.map(|next| next.sooner(expiry.next()))
}

/// All steps run in every pass, and what they found is saved, whichever of them fails.
async fn bring_forward(context: &Context, claim: Arc<NodeClaim>) -> Outcome {
    let mut draft = ClaimDraft::open(claim, context.now());
    let launch = launch::step(context, &mut draft).await;
    if let Ok(launch::Launch::GivenUp) = launch {
        return Ok(Next::OnChange);
    }
    let registration = register::step(context, &mut draft).await;
    let consistency = consistency::step(context, &mut draft);
    let quiet = quiet::step(context, &mut draft);
    let Some(timeout) = check_timeouts(context, &draft).await? else { return Ok(Next::OnChange) };
    let held = hold_words(context, &draft);
    // Only an empty node is worth a look at all of them.
    let is_unwanted = quiet.is_news && is_vacant(context, &mut draft);
    if held.is_none() {
        draft.save(context).await?;
    }
    if is_unwanted {
        context.request(Work::Disrupt);
    }
    let launch = match launch? {
        launch::Launch::Retry(next) => next,
        launch::Launch::Done | launch::Launch::GivenUp => Next::OnChange,
    };
    let held = held.map_or(Next::OnChange, Next::After);
    Ok([registration?, consistency, quiet.next, timeout, held].into_iter().fold(launch, Next::sooner))
}

/// Whether the claim's node, be it one that joined in this pass, runs nothing that would need another node.
fn is_vacant(context: &Context, draft: &mut ClaimDraft) -> bool {
    let node = draft.status().node_name.as_deref().map(NodeName::new);
    node.is_some_and(|node| context.cluster().is_vacant(&node))
}

/// How much longer news that are only words are kept back. A young node gives one reason after the other for not being
/// usable yet; only one that lasts is worth a write.
fn hold_words(context: &Context, draft: &ClaimDraft) -> Option<Duration> {
    let (name, now) = (name_of(draft.claim()), context.now());
    let mut notes = context.notes();
    if !draft.changes_only_words() {
        notes.words_since.remove(&name);
        return None;
    }
    let since = *notes.words_since.entry(name.clone()).or_insert(now);
    let left = believed(since, now).and_then(|since| left_of(WORDS_HELD, since, now));
    if left.is_none() {
        notes.words_since.remove(&name);
    }
    left
}

fn is_prepared(claim: &NodeClaim) -> bool {
    let finalizers = claim.metadata.finalizers.iter().flatten();
    let finalized = finalizers.into_iter().any(|finalizer| finalizer == labels::TERMINATION_FINALIZER);
    finalized && LaunchId::of(claim).is_some() && has_class_label(claim)
}

/// The label that says which NodeClass a claim or its node was made with.
fn class_label(claim: &NodeClaim) -> (String, String) {
    let class = &claim.spec.node_class_ref;
    (labels::node_class_label(&class.group, &class.kind), class.name.clone())
}

fn has_class_label(claim: &NodeClaim) -> bool {
    let (key, name) = class_label(claim);
    claim.metadata.labels.as_ref().and_then(|own| own.get(&key)) == Some(&name)
}

/// Claims that people or older versions wrote come without finalizer, launch id or NodeClass label; all are there
/// before the launch.
async fn prepare(context: &Context, name: &ClaimName, claim: &NodeClaim) -> Result<(), write::WriteError> {
    let mut finalizers = claim.metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == labels::TERMINATION_FINALIZER) {
        finalizers.push(labels::TERMINATION_FINALIZER.to_owned());
    }
    let launch_id = LaunchId::of(claim).map_or_else(|| context.draw_launch_id(), |id| id.to_string());
    let (class_label, class) = class_label(claim);
    let patch = json!({"metadata": {
        "resourceVersion": claim.metadata.resource_version,
        "finalizers": finalizers,
        "annotations": {LAUNCH_ID: launch_id},
        "labels": {class_label: class},
    }});
    write::patch_claim(context, name, &patch).await.map(|_| ())
}

/// Gives up claims that make no progress, so that their pods are planned anew; answers nothing then.
async fn check_timeouts(context: &Context, draft: &ClaimDraft) -> Result<Option<Next>, write::WriteError> {
    let (condition, timeout, reason) = if !draft.is_true(conditions::LAUNCHED) {
        (conditions::LAUNCHED, LAUNCH_TIMEOUT, "launch_timeout")
    } else if !draft.is_true(conditions::REGISTERED) {
        (conditions::REGISTERED, REGISTRATION_TIMEOUT, "registration_timeout")
    } else {
        return Ok(Some(Next::OnChange));
    };
    let since = draft.since(condition).unwrap_or_else(|| context.now());
    // No launch takes so long. The claim was stamped by a clock that is far behind ours, and its launch by ours.
    let launched = draft.since(conditions::LAUNCHED).filter(|_| condition == conditions::REGISTERED);
    let since = launched.filter(|launched| left_of(LAUNCH_TIMEOUT, since, *launched).is_none()).unwrap_or(since);
    match left_of(timeout, since, context.now()) {
        Some(left) => Ok(Some(Next::After(left))),
        None => {
            pools::record_registration(context, draft.claim(), draft.failed_registration());
            give_up(context, draft.claim(), reason).await.map(|()| None)
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

/// Leaders' clocks differ by seconds, and one may be set back by minutes. What is stamped further ahead than this was
/// written by a clock that was wrong by hours and is right again.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(10);

/// A time that we wrote down ourselves, unless it lies so far ahead that it says nothing: waiting for it could take as
/// long as the clock was wrong by.
pub(crate) fn believed(written: Timestamp, now: Timestamp) -> Option<Timestamp> {
    (written.duration_since(now) <= AHEAD_MAX).then_some(written)
}

/// From when on a time that is written down now is believed, should the clock be set back.
pub(crate) fn believed_from(now: Timestamp) -> Timestamp {
    now.saturating_sub(AHEAD_MAX).unwrap_or(Timestamp::MIN)
}

/// Whether the provider has made an instance.
pub(crate) fn is_launched(claim: &NodeClaim) -> bool {
    is_condition_true(claim, conditions::LAUNCHED)
}

/// Whether a condition of the claim holds.
pub(crate) fn is_condition_true(claim: &NodeClaim, type_: &str) -> bool {
    let mut stated = claim.status.iter().flat_map(|status| &status.conditions).flatten();
    stated.any(|found| found.type_ == type_ && found.status == api::ConditionStatus::True)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that is a little wrong is lived with; what one wrote that was wrong by hours is not waited for.
    #[test]
    fn times_far_ahead_are_not_believed() {
        let at = |minutes: i64| Timestamp::from_second(minutes * 60).unwrap();
        for (written, is_believed) in [(-600, true), (0, true), (10, true), (11, false), (180, false)] {
            assert_eq!(believed(at(written), at(0)).is_some(), is_believed, "{written}");
            assert_eq!(at(0) >= believed_from(at(written)), is_believed, "{written}");
        }
    }

    /// MET-01: a drain without a deadline is graceful, one without any time forceful, and all others end eventually.
    #[test]
    fn a_grace_period_decides_how_a_drain_ends() {
        let table = [(None, "graceful"), (Some("0s"), "forceful"), (Some("1s"), "eventual"), (Some("24h"), "eventual")];
        for (grace, expected) in table {
            let claim = json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"},
                "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"},
                    "terminationGracePeriod": grace},
            });
            assert_eq!(termination_mode(&serde_json::from_value(claim).unwrap()), expected, "{grace:?}");
        }
    }

    #[test]
    fn a_condition_of_the_future_counts_from_the_claims_creation() {
        let claim = |changed: &str| {
            serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {"name": "c", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
                "status": {"conditions": [{
                    "type": "Launched", "status": "Unknown", "reason": "a", "message": "", "lastTransitionTime": changed,
                }]},
            }))
            .unwrap()
        };
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let since = |changed: &str| {
            let draft = ClaimDraft::open(Arc::new(claim(changed)), now);
            draft.since(conditions::LAUNCHED).map(|since| since.to_string())
        };
        assert_eq!(since("2026-01-01T00:30:00Z").as_deref(), Some("2026-01-01T00:30:00Z"));
        assert_eq!(since("2026-01-01T01:05:00Z").as_deref(), Some("2026-01-01T01:05:00Z"));
        assert_eq!(since("2026-01-01T04:00:00Z").as_deref(), Some("2026-01-01T00:00:00Z"));
    }
}
