//! Quiet time: when a node may be considered for consolidation.

use std::time::Duration;

use api::NillableDuration;
use api::node_claim::conditions;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::{NodeName, PoolName};

use super::draft::ClaimDraft;
use super::{believed, labels_of, left_of};
use crate::context::Context;
use crate::work::Next;

/// Pod events are written to the claim at most this often.
const POD_EVENT_QUIET: Duration = Duration::from_secs(10);
/// And this long after the first that is not written yet. While pods come to many new nodes at once, there is more urgent
/// work for the API server.
const POD_EVENT_HELD: Duration = Duration::from_secs(5);

/// What follows from a node's quiet time.
pub(super) struct Quiet {
    /// When to look again.
    pub(super) next: Next,
    /// The node may be considered from now on; whoever considers nodes wants to know, once that is written.
    pub(super) is_news: bool,
}

impl Quiet {
    fn later(next: Next) -> Self {
        Self { next, is_news: false }
    }
}

/// Notes the last pod event and keeps the condition `Consolidatable`: present and true, or absent.
pub(super) fn step(context: &Context, draft: &mut ClaimDraft) -> Quiet {
    if !draft.is_true(conditions::INITIALIZED) {
        draft.conditions(|conditions| conditions.clear(conditions::CONSOLIDATABLE));
        return Quiet::later(Next::OnChange);
    }
    let (noted, held) = note_pod_event(context, draft);
    let pool = PoolName::new(labels_of(draft.claim()).pool.as_str());
    let after = context
        .cluster()
        .pool(&pool)
        .filter(|pool| pool.spec.replicas.is_none())
        .map(|pool| pool.spec.disruption.consolidate_after.clone());
    let written = draft.status().last_pod_event_time.as_ref().map(|time| time.0);
    let last_event = noted.max(written.and_then(|written| believed(written, context.now())));
    let quiet_since = last_event.or_else(|| draft.since(conditions::INITIALIZED));
    let quiet = match remaining(after.as_ref(), quiet_since, context.now()) {
        Remaining::Over => {
            let is_news = draft.conditions(|conditions| conditions.set_true(conditions::CONSOLIDATABLE));
            Quiet { next: Next::OnChange, is_news }
        }
        Remaining::Wait(left) => {
            draft.conditions(|conditions| conditions.clear(conditions::CONSOLIDATABLE));
            Quiet::later(Next::After(left))
        }
        Remaining::Never => {
            draft.conditions(|conditions| conditions.clear(conditions::CONSOLIDATABLE));
            Quiet::later(Next::OnChange)
        }
    };
    Quiet { next: quiet.next.sooner(held), ..quiet }
}

/// What is left of a quiet time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remaining {
    /// Nothing.
    Over,
    /// This much.
    Wait(Duration),
    /// It never ends.
    Never,
}

/// What is left of a pool's quiet time since the last pod event.
pub(crate) fn remaining(after: Option<&NillableDuration>, since: Option<Timestamp>, now: Timestamp) -> Remaining {
    let Some((after, since)) = after.and_then(NillableDuration::as_duration).zip(since) else {
        return Remaining::Never;
    };
    left_of(after, since, now).map_or(Remaining::Over, Remaining::Wait)
}

/// Writes the last pod event down, unless a recent one is written or it can wait; the event itself, and for how long it
/// waits.
fn note_pod_event(context: &Context, draft: &mut ClaimDraft) -> (Option<Timestamp>, Next) {
    let now = context.now();
    let mut notes = context.notes();
    let Some(node) = draft.status().node_name.as_deref().map(NodeName::new) else { return (None, Next::OnChange) };
    let event = notes.pod_events.get(&node).copied().and_then(|event| believed(event, now));
    let Some(event) = event else { return (None, Next::OnChange) };
    let written = draft.status().last_pod_event_time.as_ref().and_then(|time| believed(time.0, event));
    if written.is_some_and(|before| left_of(POD_EVENT_QUIET, before, event).is_some()) {
        return (Some(event), Next::OnChange);
    }
    let since = *notes.pod_events_since.entry(node.clone()).or_insert(now);
    if let Some(left) = believed(since, now).and_then(|since| left_of(POD_EVENT_HELD, since, now)) {
        return (Some(event), Next::After(left));
    }
    notes.pod_events_since.remove(&node);
    draft.status().last_pod_event_time = Some(Time(Timestamp::from_second(event.as_second()).unwrap_or(event)));
    (Some(event), Next::OnChange)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CONS-03: the time counts from the last pod event or initialization; `Never` and no pool mean never.
    #[test]
    fn quiet_time() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let after = |text: &str| NillableDuration::parse(text).unwrap();
        let table = [
            (Some(after("30s")), Some(at(100)), at(110), Remaining::Wait(Duration::from_secs(20))),
            (Some(after("30s")), Some(at(100)), at(130), Remaining::Over),
            (Some(after("0s")), Some(at(100)), at(100), Remaining::Over),
            (Some(after("Never")), Some(at(100)), at(999), Remaining::Never),
            (None, Some(at(100)), at(999), Remaining::Never),
            (Some(after("0s")), None, at(999), Remaining::Never),
        ];
        for (after, since, now, expected) in table {
            assert_eq!(remaining(after.as_ref(), since, now), expected);
        }
    }
}
