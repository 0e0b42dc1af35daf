//! Pods that the scheduler has yet to try on nodes that are open to them.

use std::time::Duration;

use jiff::Timestamp;
use model::{Plan, PodKey};

use super::RealPods;
use crate::context::Context;
use crate::lifecycle::left_of;

/// A scheduler that has pods to try binds one more often than this.
pub(super) const AT_WORK: Duration = Duration::from_secs(3);
/// Whatever the scheduler does, pods are not kept waiting longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes claims out of the plan that are only for pods which the scheduler has not tried yet, and answers these pods.
///
/// The scheduler needs a second for some hundred pods, and fills nodes otherwise than planned. While it works, pods that it
/// has not come to may seem to find no room any more; most of them do, and the others are known once it has tried them.
pub(super) fn put_off(context: &Context, plan: &mut Plan, real: &RealPods<'_>) -> Vec<PodKey> {
    let now = context.now();
    let mut waiting = Vec::new();
    if is_at_work(context, now) {
        let cluster = context.cluster();
        plan.claims.retain(|claim| {
            let mut pods = real.among(&claim.pods);
            let is_for_others =
                real.headroom_among(&claim.pods).next().is_some() || pods.any(|pod| !cluster.is_untried(pod));
            if !is_for_others {
                waiting.extend(claim.pods.iter().cloned());
            }
            is_for_others
        });
    }
    let mut notes = context.notes();
    notes.put_off_since = if waiting.is_empty() { None } else { notes.put_off_since.or(Some(now)) };
    waiting
}

/// Whether the scheduler binds pods, and has not kept others waiting for too long.
fn is_at_work(context: &Context, now: Timestamp) -> bool {
    let notes = context.notes();
    let is_within = |span: Duration, since: Timestamp| since <= now && left_of(span, since, now).is_some();
    notes.put_off_since.is_none_or(|since| is_within(PATIENCE, since))
        && notes.pod_events.values().any(|event| is_within(AT_WORK, *event))
}
