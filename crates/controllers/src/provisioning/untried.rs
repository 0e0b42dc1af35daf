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
    let waiting = if is_scheduler_at_work(context) {
        let cluster = context.cluster();
        taken_out(plan, real, |pod| cluster.is_untried(pod))
    } else {
        Vec::new()
    };
    let mut notes = context.notes();
    notes.put_off_since = if waiting.is_empty() { None } else { notes.put_off_since.or(Some(now)) };
    waiting
}

/// Whether pods find their nodes just now.
pub(super) fn is_scheduler_at_work(context: &Context) -> bool {
    let now = context.now();
    let notes = context.notes();
    is_at_work(notes.pod_events.values().copied(), notes.put_off_since, now)
}

fn taken_out(plan: &mut Plan, real: &RealPods<'_>, is_untried: impl Fn(&PodKey) -> bool) -> Vec<PodKey> {
    let mut waiting = Vec::new();
    plan.claims.retain(|claim| {
        let keeps_room = real.headroom_among(&claim.pods).next().is_some();
        let is_wanted = keeps_room || real.among(&claim.pods).any(|pod| !is_untried(pod));
        if !is_wanted {
            waiting.extend(claim.pods.iter().cloned());
        }
        is_wanted
    });
    waiting
}

/// Whether the scheduler binds pods, and has not kept others waiting for too long.
fn is_at_work(pod_events: impl Iterator<Item = Timestamp>, put_off: Option<Timestamp>, now: Timestamp) -> bool {
    let is_within = |span: Duration, since: Timestamp| since <= now && left_of(span, since, now).is_some();
    let mut pod_events = pod_events;
    put_off.is_none_or(|since| is_within(PATIENCE, since)) && pod_events.any(|event| is_within(AT_WORK, event))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use model::{PlannedClaim, PoolName, Price, Requirements, Resources};

    use super::*;

    fn key(name: &str) -> PodKey {
        PodKey::new("shop", name)
    }

    /// A claim goes on if anybody on it was tried, or if it keeps room.
    #[test]
    fn claims_of_untried_pods_are_taken_out() {
        let room = key("room");
        let real = RealPods { headroom: BTreeSet::from([&room]), count: 3 };
        let claim = |pods: &[&str]| PlannedClaim {
            pool: PoolName::new("default"),
            requirements: Arc::new(Requirements::none()),
            types: Arc::from([]),
            requests: Resources::none(),
            price: Price::from_dollars(1.0),
            min_values_relaxed: false,
            pods: pods.iter().map(|name| key(name)).collect(),
        };
        let claims = vec![claim(&["new-1", "new-2"]), claim(&["new-3", "tried"]), claim(&["new-4", "room"])];
        let mut plan = Plan { claims, ..Plan::default() };
        let waiting = taken_out(&mut plan, &real, |pod| pod.name.starts_with("new"));
        assert_eq!(waiting, [key("new-1"), key("new-2")]);
        assert_eq!(plan.claims.len(), 2);
    }

    /// While pods are bound, and for a minute at most. What a wrong clock noted says nothing.
    #[test]
    fn the_scheduler_is_at_work_while_pods_are_bound() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let table = [
            ("nothing was bound", None, None, false),
            ("just bound", Some(99), None, true),
            ("bound long ago", Some(90), None, false),
            ("bound tomorrow", Some(200), None, false),
            ("put off for a while", Some(99), Some(60), true),
            ("put off for too long", Some(99), Some(30), false),
        ];
        for (title, event, put_off, expected) in table {
            assert_eq!(is_at_work(event.map(at).into_iter(), put_off.map(at), at(100)), expected, "{title}");
        }
    }
}
