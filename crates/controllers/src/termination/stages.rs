//! The stages of a node's end: drained, volumes detached, instance gone; each only after the one before.

use std::sync::Arc;
use std::time::Duration;

use api::NodeClaim;
use api::lower::NodeFacts;
use api::node_claim::conditions;
use jiff::Timestamp;

use super::drain;
use super::volumes::{self, Detachment};
use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};
use crate::lifecycle::{ClaimDraft, instance, labels_of, left_of, name_of};
use crate::protection;
use crate::work::{Next, Work, WorkError};

/// How often a drain or an attachment is looked at when nothing is heard of it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A drain takes at least this long, so that pods bound before the taint was seen are found.
const SHORTEST_DRAIN: Duration = Duration::from_secs(5);

/// Goes through the stages as far as they go now; answers when to look again, or nothing when all is over.
///
/// The claim's conditions tell how far it is. They are written once per pass, be it that the last stage failed.
pub(super) async fn advance(
    context: &Context,
    node: &Arc<NodeFacts>,
    claim: Option<&Arc<NodeClaim>>,
    deadline: Option<Timestamp>,
) -> Result<Option<Next>, WorkError> {
    let Some(claim) = claim else {
        // Without a claim nobody knows of an instance.
        return Ok(drain(context, node, deadline).or_else(|| detach(context, node, deadline, None)));
    };
    let mut draft = ClaimDraft::open(Arc::clone(claim), context.now());
    let was_drained = draft.is_true(conditions::DRAINED);
    let local = drain_claimed(context, node, deadline, &mut draft)
        .or_else(|| detach(context, node, deadline, Some(&mut draft)));
    let next = match local {
        Some(next) => Ok(Some(next)),
        None => end_instance(context, claim, &mut draft).await,
    };
    let is_drained = draft.is_true(conditions::DRAINED);
    draft.save(context).await?;
    if is_drained && !was_drained {
        context.metrics.node_drained(labels_of(claim));
    }
    next
}

/// A drain that its claim can tell about.
fn drain_claimed(
    context: &Context,
    node: &NodeFacts,
    deadline: Option<Timestamp>,
    draft: &mut ClaimDraft,
) -> Option<Next> {
    let still_drains = drain(context, node, deadline);
    if draft.is_true(conditions::DRAINED) {
        return still_drains;
    }
    let began = draft.since(conditions::DRAINED).unwrap_or_else(|| context.now());
    let too_soon = left_of(SHORTEST_DRAIN, began, context.now()).map(Next::After);
    let next = still_drains.or(too_soon);
    draft.conditions(|set| match next {
        Some(_) => set.set_unknown(conditions::DRAINED, "Draining", "Draining"),
        None => set.set_true(conditions::DRAINED),
    });
    next
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
    protection::tell(context, pods.iter().filter(|pod| pod.is_active()));
    for (pod, uid) in plan.evict {
        context.offer(Work::Evict(pod, uid));
    }
    for (pod, uid) in plan.force {
        context.offer(Work::ForceOut(pod, uid));
    }
    Some(Next::After(LOOK_AGAIN))
}

/// Waits for volumes, until the deadline; answers when to look again, or nothing when nobody waits any more.
fn detach(
    context: &Context,
    node: &NodeFacts,
    deadline: Option<Timestamp>,
    draft: Option<&mut ClaimDraft>,
) -> Option<Next> {
    let now = context.now();
    let detachment = volumes::detachment(&context.cluster(), &node.name, deadline, now);
    if let Some(draft) = draft {
        let kind = conditions::VOLUMES_DETACHED;
        draft.conditions(|set| match &detachment {
            Detachment::Done => set.set_true(kind),
            Detachment::Awaited(_) => set.set_unknown(kind, "AwaitingVolumeDetachment", "AwaitingVolumeDetachment"),
            Detachment::Overdue => {
                set.set_false(kind, "TerminationGracePeriodElapsed", "TerminationGracePeriodElapsed")
            }
        });
    }
    let Detachment::Awaited(awaited) = detachment else { return None };
    let notice = Notice {
        about: about::node(node),
        tone: Tone::Normal,
        reason: "AwaitingVolumeDetachment",
        message: volumes::message(&awaited),
        quiet: QUIET,
    };
    context.recorder.publish(now, notice);
    Some(Next::After(LOOK_AGAIN))
}

/// Asks the provider to end the instance until it says that there is none.
async fn end_instance(
    context: &Context,
    claim: &Arc<NodeClaim>,
    draft: &mut ClaimDraft,
) -> Result<Option<Next>, WorkError> {
    let next = instance::end(context, &name_of(claim), claim).await?;
    draft.conditions(|set| set.set_true(conditions::INSTANCE_TERMINATING));
    Ok(next)
}
