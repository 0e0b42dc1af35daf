//! What a plan means for buffers: whose room it found where, and what is said about it. Pure.

use std::collections::BTreeMap;

use api::ConditionStatus;
use api::lower::Headroom;
use model::{BufferKey, PlaceId, Plan, PodKey};

use crate::provisioning::{CreatedClaim, RealPods};

/// What became of a buffer's pods. Those that are in neither count found no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    existing: usize,
    new: usize,
}

/// What a pass came to.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    /// The plan.
    pub(crate) plan: &'a Plan,
    /// The claims of it that were made.
    pub(crate) created: &'a [CreatedClaim],
    /// Tells pods from room.
    pub(crate) real: &'a RealPods<'a>,
}

/// What a plan found, by buffer. Nodes that are on their way are there.
pub(super) fn tally(found: &Found<'_>) -> BTreeMap<BufferKey, Tally> {
    let mut tallies: BTreeMap<BufferKey, Tally> = BTreeMap::new();
    let mut count = |pods: &[PodKey], counted: fn(&mut Tally) -> &mut usize| {
        for buffer in found.real.headroom_among(pods).filter_map(Headroom::buffer_of) {
            *counted(tallies.entry(buffer).or_default()) += 1;
        }
    };
    found.plan.nominations.iter().for_each(|nomination| count(&nomination.pods, |tally| &mut tally.existing));
    found.plan.claims.iter().for_each(|claim| count(&claim.pods, |tally| &mut tally.new));
    tallies
}

/// For how many pods room is kept where, claims that were made a moment ago included: an empty node that waits for its
/// first pods must not go before the next plan.
pub(super) fn held(found: &Found<'_>) -> BTreeMap<PlaceId, usize> {
    let known = found.plan.nominations.iter().map(|nomination| (nomination.place.clone(), &nomination.pods));
    let new = found.created.iter().map(|claim| (PlaceId::Claim(claim.name.clone()), &claim.planned.pods));
    let counted = known.chain(new).map(|(place, pods)| (place, found.real.headroom_among(pods).count()));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// What is said of a buffer's provisioning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) status: ConditionStatus,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Judges a buffer by the room that is to be kept, if that is known, and by the room that was found.
pub(super) fn verdict(headroom: Option<&Headroom>, tally: Tally) -> Verdict {
    let is_not = |reason, message| Verdict { status: ConditionStatus::False, reason, message };
    let Some(headroom) = headroom else {
        return is_not("NotReadyForProvisioning", "Buffer is not ReadyForProvisioning".to_owned());
    };
    let desired = usize::try_from(headroom.count).unwrap_or(usize::MAX);
    if desired == 0 {
        return is_not("BufferEmpty", "Buffer has zero desired replicas".to_owned());
    }
    let Tally { existing, new } = tally;
    let failed = desired.saturating_sub(existing + new);
    if new > 0 || failed > 0 {
        let message = format!("{new}/{desired} virtual pods required new capacity, {failed} failed");
        return is_not("RequiresNewCapacity", message);
    }
    let message = format!("All {desired} virtual pods fit on existing capacity");
    Verdict { status: ConditionStatus::True, reason: "FitsExistingCapacity", message }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::lower::TemplateFacts;
    use model::Vocabulary;

    use super::*;

    /// BUF-06, BUF-07, BUF-08: what is said, by the room to keep and what was found.
    #[test]
    fn buffers_say_how_far_their_room_is() {
        let room = |count: u32| {
            let buffer = BufferKey::new("shop", "spare");
            let template = Arc::new(TemplateFacts::lower(&buffer.namespace, None, &Vocabulary::core()));
            Headroom { buffer, template, count }
        };
        let table = [
            (None, (0, 0), "False NotReadyForProvisioning: Buffer is not ReadyForProvisioning"),
            (Some(0), (0, 0), "False BufferEmpty: Buffer has zero desired replicas"),
            (Some(3), (0, 3), "False RequiresNewCapacity: 3/3 virtual pods required new capacity, 0 failed"),
            (Some(3), (1, 1), "False RequiresNewCapacity: 1/3 virtual pods required new capacity, 1 failed"),
            (Some(3), (0, 0), "False RequiresNewCapacity: 0/3 virtual pods required new capacity, 3 failed"),
            (Some(3), (3, 0), "True FitsExistingCapacity: All 3 virtual pods fit on existing capacity"),
        ];
        for (desired, (existing, new), expected) in table {
            let Verdict { status, reason, message } = verdict(desired.map(room).as_ref(), Tally { existing, new });
            assert_eq!(format!("{} {reason}: {message}", status.as_str()), expected);
        }
    }
}
