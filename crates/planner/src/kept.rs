//! Pods that an earlier plan found a place for keep it.
//!
//! A node that is on its way was made to measure for certain pods. Were they dealt out anew while it comes, they would
//! fill it worse, and the rest would get nodes that nobody needs.

use std::collections::{BTreeMap, BTreeSet};

use model::PlaceId;

use crate::seat::Seat;
use crate::solver::{Leftover, Solver};
use crate::stance::Stance;

/// Places and pods that keep them, by place.
type Held = Vec<(usize, usize)>;

fn pods_of(held: &Held) -> BTreeSet<usize> {
    held.iter().map(|(_, pod)| *pod).collect()
}

impl Solver<'_> {
    /// Seats pods where they were to go, as far as they still can, and takes them off the lists of those who wait. All of
    /// these have the same priority.
    pub(crate) fn seat_kept(&mut self, waiting: &mut [Leftover]) {
        if self.snapshot.seats.is_empty() {
            return;
        }
        let places: BTreeMap<&PlaceId, usize> =
            self.places.iter().enumerate().map(|(index, view)| (&view.place.id, index)).collect();
        let mut held: Vec<(usize, Held)> =
            waiting.iter().map(|leftover| (leftover.class, self.held_by(leftover, &places))).collect();
        let promised: Vec<BTreeSet<usize>> = held.iter().map(|(_, held)| pods_of(held)).collect();
        // Who may not be the first somewhere may be the second.
        loop {
            let before: usize = held.iter().map(|(_, held)| held.len()).sum();
            for (class, held) in &mut held {
                self.keep(*class, held);
            }
            let left: usize = held.iter().map(|(_, held)| held.len()).sum();
            if left == before || left == 0 {
                break;
            }
        }
        for ((leftover, (_, held)), promised) in waiting.iter_mut().zip(held).zip(promised) {
            let displaced = pods_of(&held);
            leftover.pods.retain(|pod| !promised.contains(pod) || displaced.contains(pod));
        }
    }

    fn held_by(&self, leftover: &Leftover, places: &BTreeMap<&PlaceId, usize>) -> Held {
        let class = &self.classes[leftover.class];
        if !class.spec.unplanned_rules.is_empty() {
            return Vec::new();
        }
        let place = |pod: usize| places.get(self.snapshot.seats.get(&class.pods[pod].key)?).copied();
        let mut held: Held = leftover.pods.iter().filter_map(|pod| Some((place(*pod)?, *pod))).collect();
        held.sort_unstable();
        held
    }

    /// Seats those who can be seated in some reading of their class, the strictest first.
    fn keep(&mut self, class: usize, held: &mut Held) {
        for stance in self.stances(class).iter() {
            if held.is_empty() {
                return;
            }
            if stance.rules.is_free() {
                self.keep_free(class, stance, held);
            } else {
                held.retain(|(place, pod)| {
                    self.steps += 1;
                    let is_kept = self.fits(*place, class, stance) && self.place_allows(*place, class, stance);
                    if is_kept {
                        self.take_seat(class, stance, *pod, Seat::Place(*place));
                    }
                    !is_kept
                });
            }
        }
    }

    fn keep_free(&mut self, class: usize, stance: &Stance, held: &mut Held) {
        let own = &self.classes[class];
        let mut left = Held::new();
        for group in held.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((place, _)) = group.first() else { continue };
            self.steps += 1;
            let view = &mut self.places[*place];
            let copies = view.takes(own, stance, &self.snapshot.vocabulary);
            let copies = usize::try_from(copies).unwrap_or(0).min(group.len());
            if copies > 0 {
                let (kept, rest) = group.split_at(copies);
                self.free_sequence.extend(kept.iter().map(|(_, pod)| (class, *pod)));
                view.take(own, stance, kept.iter().map(|(_, pod)| *pod));
                left.extend(rest);
            } else {
                left.extend(group);
            }
        }
        *held = left;
    }
}
