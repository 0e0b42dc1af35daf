//! Who would lose the seat that a plan gave them, were the kube-scheduler left to itself.
//!
//! A plan fills nodes as tightly as it can. The kube-scheduler takes pods in the order in which they came, and puts each
//! where most is left: small pods take a little of every node, and a large one that comes late finds room nowhere. It
//! keeps room for pods that are nominated to a node, though. So its work is rehearsed, and if somebody is left over, the
//! last pods of that size get their seats kept: those before them then come while there is room enough, and what comes
//! after them is small and fills the gaps.
//!
//! Where a plan leaves no gaps at all, that is not enough. The same rehearsal before anything is bought says for whom there
//! ought to be room to spare.

mod hall;
mod staged;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hall::{Asked, Hall, Lot, Room};
use model::{Labels, PendingPod, PlaceId, Plan, PodClass, PodKey, PodVolumes, Purpose, Snapshot, Stage, Text};

use crate::classes::{Class, classes};
use crate::places::PlaceView;

/// More seats than this are not kept: each costs a write, and nodes wait for it.
const KEPT_MAX: usize = 32;
/// So many at first, and twice as many until nobody is left over.
const KEPT_FIRST: usize = 8;
/// Larger rehearsals take too long, a tenth of a second and more: so many pods times nodes.
const SIZE_MAX: usize = 100_000;
/// In large plans one more pod of every so many should find room: not all that the kube-scheduler does is known here.
const LATECOMERS_PER: usize = 400;
/// Room is wanted for one pod in so many at most, so that small plans pay nothing, and no plan much. If more would be left
/// over, it is for the kube-scheduler to show how many there are.
const SPARE_PER: usize = 100;
/// The kube-scheduler draws among equally good nodes, and nobody knows the order of pods that came within seconds. Each of
/// so many draws has to come out well.
const DRAWS: u64 = 8;
const ORDER_SECONDS: u64 = 3;

/// The pods whose seats have to be kept for them, and the seats.
///
/// Pods with rules about other pods, with volumes or ports of the host are taken for seated as planned.
pub fn seats_to_keep(snapshot: &Snapshot) -> Vec<(PodKey, PlaceId)> {
    let Some(rehearsal) = Rehearsal::of(snapshot) else { return Vec::new() };
    let seat = |guest: usize| {
        let Guest { pod, seat, .. } = rehearsal.guests[guest];
        (pod.key.clone(), rehearsal.rooms[seat].id.clone())
    };
    rehearsal.outcome().kept.into_iter().map(seat).collect()
}

/// Room that a plan should have beside that for its pods, as a question of its own: as much as those need who would be
/// left over although seats are kept, and in large plans some more who might come. All of it is on new nodes; gaps that a
/// plan leaves have not helped them.
///
/// Nothing for plans that buy nodes for fewer than a hundred pods.
pub fn room_to_spare(snapshot: &Snapshot, plan: &Plan) -> Option<Snapshot> {
    let pods: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
    if pods < SPARE_PER {
        return None;
    }
    let staged = staged::as_planned(snapshot, plan);
    let mut rehearsal = Rehearsal::of(&staged)?;
    rehearsal.invite_latecomers();
    let left = rehearsal.outcome().left;
    if left.is_empty() || left.len() > rehearsal.guests.len() / SPARE_PER {
        return None;
    }
    let left = left.into_iter().map(|guest| rehearsal.guests[guest].pod).zip(snapshot.pending.len()..);
    Some(staged::beside(snapshot, plan, left.map(|(pod, number)| room_for(pod, number)).collect()))
}

/// No pod, but as large as this one. Nobody looks at it, so that it has no labels; the name is none that a pod can have.
fn room_for(pod: &PendingPod, number: usize) -> PendingPod {
    PendingPod {
        key: PodKey::new(pod.key.namespace.clone(), format!("{}~{number}", pod.key.name)),
        class: Arc::new(PodClass { priority: i32::MIN, ..PodClass::clone(&pod.class) }),
        labels: Arc::new(Labels::new()),
        volumes: Arc::new(PodVolumes::none()),
        purpose: Purpose::Headroom,
        created: pod.created,
    }
}

/// How a rehearsal ended.
struct Outcome {
    /// Whose seats are kept.
    kept: BTreeSet<usize>,
    /// Who is left over all the same.
    left: Vec<usize>,
}

/// A pod that waits.
struct Guest<'a> {
    pod: &'a PendingPod,
    class: usize,
    /// Pods with the same labels, which the kube-scheduler likes to spread.
    kin: usize,
    seat: usize,
    priority: i32,
    /// The largest part of an average node that it asks for, in millionths.
    size: i64,
    /// What it asks for cannot be rehearsed.
    is_settled: bool,
}

struct Rehearsal<'a> {
    classes: Vec<Class<'a>>,
    /// What pods of a class count for, class by class.
    asked: Vec<Asked>,
    rooms: Vec<Room<'a>>,
    guests: Vec<Guest<'a>>,
    /// Pods like these come after all others, and have no seat.
    latecomers: Vec<usize>,
    kins: usize,
    /// Whether pods of a class may be on a node at all, class by class.
    is_welcome: Vec<Vec<bool>>,
}

impl<'a> Rehearsal<'a> {
    /// Nothing if everybody finds a seat anyway, or if there are too many of them.
    fn of(snapshot: &'a Snapshot) -> Option<Self> {
        let taken: BTreeSet<&PlaceId> = snapshot.seats.values().collect();
        if snapshot.seats.len() * taken.len() > SIZE_MAX {
            return None;
        }
        let (classes, table) = classes(snapshot);
        let views = PlaceView::all(snapshot, &table).into_iter();
        let views = views.filter(|view| view.place.stage != Stage::Going && taken.contains(&view.place.id));
        let views: Vec<PlaceView<'a>> = views.collect();
        if views.len() < 2 {
            return None;
        }
        let admits =
            |class: &Class<'_>| views.iter().map(|view| view.admits(class.spec, &snapshot.vocabulary)).collect();
        let is_welcome = classes.iter().map(admits).collect();
        let rooms: Vec<Room<'a>> = views.into_iter().map(|view| Room::of(view.place, view.before)).collect();
        let numbers: BTreeMap<&PlaceId, usize> =
            rooms.iter().enumerate().map(|(number, room)| (room.id, number)).collect();
        let average = hall::average(&rooms);
        let mut kins: BTreeMap<(&Text, &Labels), usize> = BTreeMap::new();
        let mut guests = Vec::new();
        for (number, class) in classes.iter().enumerate() {
            let (is_settled, size) = (is_settled(class), hall::part(&class.demand, &average));
            for pod in class.pods.iter().filter(|pod| pod.purpose == Purpose::Work) {
                let Some(seat) = snapshot.seats.get(&pod.key).and_then(|seat| numbers.get(seat)) else { continue };
                let next = kins.len();
                let kin = *kins.entry((&pod.key.namespace, Arc::as_ref(&pod.labels))).or_insert(next);
                let priority = class.spec.priority;
                guests.push(Guest { pod, class: number, kin, seat: *seat, priority, size, is_settled });
            }
        }
        let asked = classes.iter().map(|class| Asked::of(&class.spec.requests)).collect();
        Some(Self { kins: kins.len(), latecomers: Vec::new(), classes, asked, rooms, guests, is_welcome })
    }

    /// Of every size, the largest first.
    fn invite_latecomers(&mut self) {
        let mut by_size: Vec<usize> = (0..self.guests.len()).filter(|guest| !self.guests[*guest].is_settled).collect();
        let count = by_size.len() / LATECOMERS_PER;
        by_size.sort_by_key(|guest| Reverse(self.guests[*guest].size));
        self.latecomers = (0..count).map(|number| by_size[number * by_size.len() / count]).collect();
    }

    /// Keeps seats until nobody is left over, or as many as may be kept.
    fn outcome(&self) -> Outcome {
        let mut smallest = None;
        let mut count = 0;
        loop {
            let kept = self.last_of_size(smallest, count);
            let left = (0..DRAWS).map(|draw| self.left_over(draw, &kept)).find(|left| !left.is_empty());
            let left = left.unwrap_or_default();
            if left.is_empty() || count == KEPT_MAX {
                return Outcome { kept, left };
            }
            // Half as large is not small either.
            let sizes = left.iter().map(|guest| self.guests[*guest].size / 2);
            smallest = smallest.into_iter().chain(sizes).min();
            count = (count * 2).clamp(KEPT_FIRST, KEPT_MAX);
        }
    }

    /// The pods that come last of those that are at least so large.
    fn last_of_size(&self, smallest: Option<i64>, count: usize) -> BTreeSet<usize> {
        let Some(smallest) = smallest else { return BTreeSet::new() };
        let is_large = |guest: &usize| !self.guests[*guest].is_settled && self.guests[*guest].size >= smallest;
        let mut large: Vec<usize> = (0..self.guests.len()).filter(is_large).collect();
        large.sort_by_key(|guest| (self.guests[*guest].priority, Reverse((self.guests[*guest].pod.created, *guest))));
        large.into_iter().take(count).collect()
    }

    /// The pods that find no room, if those of `kept` find theirs.
    fn left_over(&self, draw: u64, kept: &BTreeSet<usize>) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.guests.len()).collect();
        order.sort_by_cached_key(|guest| {
            let Guest { priority, pod, .. } = self.guests[*guest];
            let lot = hall::drawn(draw, *guest, 0);
            (Reverse(priority), pod.created + (lot % ORDER_SECONDS).cast_signed(), lot)
        });
        let has_seat = |guest: usize| self.guests[guest].is_settled || kept.contains(&guest);
        let mut hall = Hall::new(&self.rooms, self.kins);
        for guest in order.iter().copied().filter(|guest| has_seat(*guest)) {
            let Guest { class, seat, .. } = self.guests[guest];
            hall.reserve(&self.classes[class].demand, seat);
        }
        let mut left = Vec::new();
        let guests = order.into_iter().map(|guest| (guest, has_seat(guest)));
        for (guest, has_seat) in guests.chain(self.latecomers.iter().map(|guest| (*guest, false))) {
            let Guest { class, kin, seat, .. } = self.guests[guest];
            let (demand, asked) = (&self.classes[class].demand, self.asked[class]);
            if has_seat {
                hall.seat(asked, kin, seat);
                continue;
            }
            match hall.best(demand, asked, kin, &self.is_welcome[class], Lot { draw, guest }) {
                Some(room) => {
                    hall.reserve(demand, room);
                    hall.seat(asked, kin, room);
                }
                None => left.push(guest),
            }
        }
        left
    }
}

/// Whether pods of the class are where they are for more reasons than room.
fn is_settled(class: &Class<'_>) -> bool {
    let spec = class.spec;
    let looks_around = !(spec.spread.is_empty() && spec.affinity.is_empty() && spec.anti_affinity.is_empty());
    let has_volumes = class.volumes.iter().any(|wanted| !wanted.is_empty()) || !class.attaching.is_nothing();
    looks_around || has_volumes || !spec.host_ports.is_empty()
}
