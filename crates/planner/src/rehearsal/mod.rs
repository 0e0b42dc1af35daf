//! Who would lose the seat that a plan gave them, were the kube-scheduler left to itself.
//!
//! A plan fills nodes as tightly as it can. The kube-scheduler takes pods in the order in which they came, and puts each
//! where most is left: small pods take a little of every node, and a large one that comes late finds room nowhere. It
//! keeps room for pods that are nominated to a node, though. So its work is rehearsed, and if somebody is left over, the
//! last pods of that size get their seats kept: those before them then come while there is room enough, and what comes
//! after them is small and fills the gaps.

mod hall;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hall::{Hall, Lot, Room};
use model::{Labels, PlaceId, PodKey, Purpose, Snapshot, Stage, Text};

use crate::classes::{Class, classes};
use crate::places::PlaceView;

/// More seats than this are not kept: each costs a write, and nodes wait for it.
const KEPT_MAX: usize = 32;
/// So many at first, and twice as many until nobody is left over.
const KEPT_FIRST: usize = 8;
/// Larger rehearsals take too long: so many pods times nodes.
const SIZE_MAX: usize = 500_000;
/// The kube-scheduler draws among equally good nodes, and nobody knows the order of pods that came within seconds. Each of
/// so many draws has to come out well.
const DRAWS: u64 = 8;
const ORDER_SECONDS: u64 = 3;

/// The pods whose seats have to be kept for them, and the seats.
///
/// Pods with rules about other pods, with volumes or ports of the host are taken for seated as planned.
pub fn seats_to_keep(snapshot: &Snapshot) -> Vec<(PodKey, PlaceId)> {
    let Some(rehearsal) = Rehearsal::of(snapshot) else { return Vec::new() };
    let mut smallest = None;
    let mut count = 0;
    let kept = loop {
        let kept = rehearsal.last_of_size(smallest, count);
        let left = (0..DRAWS).map(|draw| rehearsal.left_over(draw, &kept)).find(|left| !left.is_empty());
        let Some(left) = left.filter(|_| count < KEPT_MAX) else { break kept };
        // Half as large is not small either.
        let sizes = left.iter().map(|guest| rehearsal.guests[*guest].size / 2);
        smallest = smallest.into_iter().chain(sizes).min();
        count = (count * 2).clamp(KEPT_FIRST, KEPT_MAX);
    };
    let seat = |guest: usize| {
        let Guest { key, seat, .. } = rehearsal.guests[guest];
        (key.clone(), rehearsal.rooms[seat].id.clone())
    };
    kept.into_iter().map(seat).collect()
}

/// A pod that waits.
struct Guest<'a> {
    key: &'a PodKey,
    class: usize,
    /// Pods with the same labels, which the kube-scheduler likes to spread.
    kin: usize,
    seat: usize,
    priority: i32,
    created: i64,
    /// The largest part of its node that it asks for, in millionths.
    size: i64,
    /// What it asks for cannot be rehearsed.
    is_settled: bool,
}

struct Rehearsal<'a> {
    classes: Vec<Class<'a>>,
    rooms: Vec<Room<'a>>,
    guests: Vec<Guest<'a>>,
    kins: usize,
    /// Whether pods of a class may be on a node at all, class by class.
    is_welcome: Vec<Vec<bool>>,
}

impl<'a> Rehearsal<'a> {
    /// Nothing if everybody finds a seat anyway, or if there are too many of them.
    fn of(snapshot: &'a Snapshot) -> Option<Self> {
        let (classes, table) = classes(snapshot);
        let taken: BTreeSet<&PlaceId> = snapshot.seats.values().collect();
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
        let mut kins: BTreeMap<(&Text, &Labels), usize> = BTreeMap::new();
        let mut guests = Vec::new();
        for (number, class) in classes.iter().enumerate() {
            let is_settled = is_settled(class);
            for pod in class.pods.iter().filter(|pod| pod.purpose == Purpose::Work) {
                let Some(seat) = snapshot.seats.get(&pod.key).and_then(|seat| numbers.get(seat)) else { continue };
                let next = kins.len();
                let kin = *kins.entry((&pod.key.namespace, Arc::as_ref(&pod.labels))).or_insert(next);
                let (priority, created) = (class.spec.priority, pod.created);
                let size = rooms[*seat].part(&class.demand);
                guests.push(Guest {
                    key: &pod.key,
                    class: number,
                    kin,
                    seat: *seat,
                    priority,
                    created,
                    size,
                    is_settled,
                });
            }
        }
        if guests.len() * rooms.len() > SIZE_MAX {
            return None;
        }
        Some(Self { kins: kins.len(), classes, rooms, guests, is_welcome })
    }

    /// The pods that come last of those that are at least so large.
    fn last_of_size(&self, smallest: Option<i64>, count: usize) -> BTreeSet<usize> {
        let Some(smallest) = smallest else { return BTreeSet::new() };
        let is_large = |guest: &usize| !self.guests[*guest].is_settled && self.guests[*guest].size >= smallest;
        let mut large: Vec<usize> = (0..self.guests.len()).filter(is_large).collect();
        large.sort_by_key(|guest| (self.guests[*guest].priority, Reverse((self.guests[*guest].created, *guest))));
        large.into_iter().take(count).collect()
    }

    /// The pods that find no room, if those of `kept` find theirs.
    fn left_over(&self, draw: u64, kept: &BTreeSet<usize>) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.guests.len()).collect();
        order.sort_by_cached_key(|guest| {
            let Guest { priority, created, .. } = self.guests[*guest];
            let lot = hall::drawn(draw, *guest, 0);
            (Reverse(priority), created + (lot % ORDER_SECONDS).cast_signed(), lot)
        });
        let has_seat = |guest: usize| self.guests[guest].is_settled || kept.contains(&guest);
        let mut hall = Hall::new(&self.rooms, self.kins);
        for guest in order.iter().copied().filter(|guest| has_seat(*guest)) {
            let Guest { class, seat, .. } = self.guests[guest];
            hall.reserve(&self.classes[class].demand, seat);
        }
        let mut left = Vec::new();
        for guest in order {
            let Guest { class, kin, seat, .. } = self.guests[guest];
            let (demand, requests) = (&self.classes[class].demand, &self.classes[class].spec.requests);
            if has_seat(guest) {
                hall.seat(requests, kin, seat);
                continue;
            }
            match hall.best(demand, requests, kin, &self.is_welcome[class], Lot { draw, guest }) {
                Some(room) => {
                    hall.reserve(demand, room);
                    hall.seat(requests, kin, room);
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
