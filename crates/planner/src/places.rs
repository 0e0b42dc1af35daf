//! Pods on places that are there or on their way.

use std::borrow::Cow;
use std::sync::Arc;

use model::{
    Nomination, Place, PodKey, Requirements, Resources, Snapshot, Stage, Undefined, Vocabulary, first_untolerated,
};

use crate::daemons::still_to_come;
use crate::place::{Demand, Waiting};

/// A place as this plan has filled it so far.
struct PlaceView<'a> {
    place: &'a Place,
    /// Of a promised place, what pods of this plan already rely on as well.
    requirements: Cow<'a, Requirements>,
    free: Resources,
    pods: Vec<PodKey>,
}

/// All places, in the order in which they are filled: usable nodes, joining ones, promised ones, each by name.
pub(crate) struct Places<'a> {
    views: Vec<PlaceView<'a>>,
}

impl<'a> Places<'a> {
    pub(crate) fn of(snapshot: &'a Snapshot) -> Self {
        let mut places: Vec<&Place> = snapshot.places.iter().map(Arc::as_ref).collect();
        places.sort_by(|left, right| (left.stage, &left.id).cmp(&(right.stage, &right.id)));
        let view = |place: &'a Place| {
            let taken = place.used.plus(&still_to_come(place, &snapshot.daemons, &snapshot.vocabulary));
            // Only what the place announces counts: pods may hold a device that is announced no more, and a daemon
            // that wants one the place never had will not start there, which is no reason to keep others away.
            let left = place.allocatable.iter().map(|(name, amount)| {
                let free = amount.saturating_sub(taken.get(name));
                (name.clone(), free)
            });
            let requirements = Cow::Borrowed(&place.requirements);
            PlaceView { place, requirements, free: left.collect(), pods: Vec::new() }
        };
        Self { views: places.into_iter().map(view).collect() }
    }

    /// Puts as many of the waiting pods as fit, first place first.
    pub(crate) fn fill(&mut self, demand: &Demand<'_>, waiting: &mut Waiting<'_>, vocabulary: &Vocabulary) {
        for view in &mut self.views {
            if waiting.is_empty() {
                return;
            }
            let copies = demand.requests.copies_in(&view.free).min(waiting.count());
            if copies > 0 && view.goes_with(demand, vocabulary) {
                view.take(demand, waiting.take(copies), copies);
            }
        }
    }

    /// The places that got pods.
    pub(crate) fn nominations(self) -> Vec<Nomination> {
        let used = self.views.into_iter().filter(|view| !view.pods.is_empty());
        used.map(|view| Nomination { place: view.place.id.clone(), pods: view.pods }).collect()
    }
}

impl PlaceView<'_> {
    fn goes_with(&self, demand: &Demand<'_>, vocabulary: &Vocabulary) -> bool {
        let wanted = &demand.attempt.requirements;
        let undefined = match self.place.stage {
            Stage::Ready | Stage::Joining => Undefined::IsAbsent,
            Stage::Promised => Undefined::MayBeGiven(vocabulary),
        };
        // Pods narrow a promised place, but they do not give it labels that it would not have had without them.
        first_untolerated(&self.place.taints, &demand.attempt.tolerations).is_none()
            && self.place.requirements.satisfy(wanted, undefined).is_ok()
            && self.requirements.satisfy(wanted, undefined).is_ok()
    }

    fn take(&mut self, demand: &Demand<'_>, pods: Vec<PodKey>, copies: i64) {
        self.free.add_times(demand.requests, copies.saturating_neg());
        if self.place.stage == Stage::Promised {
            self.requirements.to_mut().add_all(&demand.attempt.requirements);
        }
        self.pods.extend(pods);
    }
}
