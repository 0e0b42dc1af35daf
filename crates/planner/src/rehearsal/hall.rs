//! Nodes while pods come to them, and which of them the kube-scheduler likes best for the next one.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::Hasher;

use model::{Place, PlaceId, Requirement, ResourceName, Resources, Text, labels};

use crate::amounts::{Amounts, add_times};
use crate::interner::Mixer;

/// What pods without requests count for when nodes are compared: a tenth of a core and 200 MiB.
const UNASKED_CPU: i64 = 100;
const UNASKED_MEMORY: i64 = 200 << 20;
/// The best score of one rule, and what the rule about kin counts for beside the others.
const FULL: i64 = 100;
const SPREAD_WEIGHT: i64 = 2;
/// Scores that differ by less than this are called equal in some rehearsals: not all that the scheduler weighs is known
/// here.
const GRAIN: i64 = 10;
const GRAINS: u64 = 4;
/// Pods of one workload are spread over nodes and zones by default, so much crookedness not minded.
const NODE_SKEW: i64 = 3;
const ZONE_SKEW: i64 = 5;

/// A node before anybody comes.
pub(super) struct Room<'a> {
    pub(super) id: &'a PlaceId,
    zone: Option<&'a Text>,
    free: Amounts,
    cpu: Share,
    memory: Share,
}

/// How much there is of something, and how much is taken.
#[derive(Clone, Copy)]
struct Share {
    all: i64,
    taken: i64,
}

impl Share {
    fn of(place: &Place, name: &ResourceName) -> Self {
        Self { all: place.allocatable.get(name), taken: place.used.get(name) }
    }

    /// In percent, with so much more taken.
    fn used(self, more: i64) -> i64 {
        if self.all <= 0 { FULL } else { ((self.taken + more) * FULL / self.all).clamp(0, FULL) }
    }
}

impl<'a> Room<'a> {
    pub(super) fn of(place: &'a Place, free: Amounts) -> Self {
        let (cpu, memory) = (Share::of(place, &ResourceName::cpu()), Share::of(place, &ResourceName::memory()));
        let zone = place.requirements.get(labels::ZONE).and_then(Requirement::single_value);
        Self { id: &place.id, zone, free, cpu, memory }
    }
}

/// What a node has on average; nothing without nodes.
pub(super) fn average(rooms: &[Room<'_>]) -> Amounts {
    let Some(first) = rooms.first() else { return Amounts::default() };
    let mut sum: Amounts = vec![0; first.free.len()].into();
    rooms.iter().for_each(|room| add_times(&mut sum, &room.free, 1));
    let count = i64::try_from(rooms.len()).unwrap_or(i64::MAX);
    sum.iter_mut().for_each(|amount| *amount /= count);
    sum
}

/// The largest part of anything that a demand asks for, in millionths.
pub(super) fn part(demand: &[i64], free: &[i64]) -> i64 {
    let part = |(wanted, free): (&i64, &i64)| wanted.saturating_mul(1_000_000) / (*free).max(1);
    demand.iter().zip(free).map(part).max().unwrap_or(0)
}

/// All nodes.
pub(super) struct Hall {
    rooms: Vec<Seats>,
    /// How many of each kin are in each node, and in each zone.
    kin_in_room: Vec<Vec<i64>>,
    kin_in_zone: Vec<Vec<i64>>,
    /// What one of the kin in a node or a zone counts for, in thousandths.
    room_weight: i64,
    zone_weight: i64,
    /// The nodes that have room for the pod of the moment, and how crowded they are; kept to be filled again.
    open: Vec<(usize, i64)>,
}

/// A node while pods come to it.
struct Seats {
    /// What is neither taken nor kept for somebody.
    free: Amounts,
    cpu: Share,
    memory: Share,
    zone: usize,
}

impl Hall {
    pub(super) fn new(rooms: &[Room<'_>], kins: usize) -> Self {
        let mut zones: BTreeMap<Option<&Text>, usize> = BTreeMap::new();
        let mut seats = Vec::with_capacity(rooms.len());
        for room in rooms {
            let next = zones.len();
            let zone = *zones.entry(room.zone).or_insert(next);
            seats.push(Seats { free: room.free.clone(), cpu: room.cpu, memory: room.memory, zone });
        }
        Self {
            kin_in_room: vec![vec![0; rooms.len()]; kins],
            kin_in_zone: vec![vec![0; zones.len()]; kins],
            room_weight: logarithm(rooms.len() + 2),
            zone_weight: logarithm(zones.len() + 2),
            open: Vec::with_capacity(rooms.len()),
            rooms: seats,
        }
    }

    /// Nobody else gets this room.
    pub(super) fn reserve(&mut self, demand: &[i64], room: usize) {
        add_times(&mut self.rooms[room].free, demand, -1);
    }

    /// A pod is there, and is counted when the next ones choose.
    pub(super) fn seat(&mut self, asked: Asked, kin: usize, room: usize) {
        let seats = &mut self.rooms[room];
        seats.cpu.taken += asked.cpu;
        seats.memory.taken += asked.memory;
        self.kin_in_room[kin][room] += 1;
        self.kin_in_zone[kin][seats.zone] += 1;
    }

    /// The node with the highest score that has room; the lot decides between equals.
    pub(super) fn best(
        &mut self,
        demand: &[i64],
        asked: Asked,
        kin: usize,
        is_welcome: &[bool],
        Lot { draw, guest }: Lot,
    ) -> Option<usize> {
        let mut open = std::mem::take(&mut self.open);
        open.clear();
        let takes = |room: &usize| is_welcome[*room] && fits(demand, &self.rooms[*room].free);
        open.extend((0..self.rooms.len()).filter(takes).map(|room| (room, self.crowd(kin, room))));
        let most = open.iter().map(|(_, crowd)| *crowd).max().unwrap_or(0);
        let least = open.iter().map(|(_, crowd)| *crowd).min().unwrap_or(0);
        let grain = 1 + GRAIN * (draw % GRAINS).cast_signed();
        let mut best: Option<(usize, i64)> = None;
        for (room, crowd) in &open {
            let spread = if most == 0 { FULL } else { FULL * (most + least - crowd) / most };
            let score = (self.rooms[*room].comfort(asked) + SPREAD_WEIGHT * spread) / grain;
            let is_better = best.is_none_or(|(other, known)| match score.cmp(&known) {
                Ordering::Greater => true,
                Ordering::Less => false,
                Ordering::Equal => drawn(draw, guest, *room) >= drawn(draw, guest, other),
            });
            if is_better {
                best = Some((*room, score));
            }
        }
        self.open = open;
        best.map(|(room, _)| room)
    }

    /// How many of its kin a pod would meet; less is better.
    fn crowd(&self, kin: usize, room: usize) -> i64 {
        let in_room = self.kin_in_room[kin][room] * self.room_weight;
        let in_zone = self.kin_in_zone[kin][self.rooms[room].zone] * self.zone_weight;
        (in_room + in_zone) / 1000 + NODE_SKEW - 1 + ZONE_SKEW - 1
    }
}

impl Seats {
    /// The share that is left when the pod is there too, and how evenly cpu and memory are used.
    fn comfort(&self, asked: Asked) -> i64 {
        let (cpu, memory) = (self.cpu.used(asked.cpu), self.memory.used(asked.memory));
        (FULL - cpu + FULL - memory) / 2 + FULL - (cpu - memory).abs() / 2
    }
}

fn fits(demand: &[i64], free: &[i64]) -> bool {
    demand.iter().zip(free).all(|(wanted, free)| *wanted <= 0 || wanted <= free)
}

/// What a pod counts for when nodes are compared.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    cpu: i64,
    memory: i64,
}

impl Asked {
    pub(super) fn of(requests: &Resources) -> Self {
        let or = |amount: i64, unasked: i64| if amount == 0 { unasked } else { amount };
        Self {
            cpu: or(requests.get(&ResourceName::cpu()), UNASKED_CPU),
            memory: or(requests.get(&ResourceName::memory()), UNASKED_MEMORY),
        }
    }
}

/// Who draws, and which time.
#[derive(Clone, Copy)]
pub(super) struct Lot {
    pub(super) draw: u64,
    pub(super) guest: usize,
}

/// A lot that nobody can foresee, and that everybody draws alike.
pub(super) fn drawn(draw: u64, guest: usize, room: usize) -> u64 {
    let mut mixer = Mixer::default();
    mixer.write_u64(draw + 1);
    mixer.write_usize(guest);
    mixer.write_usize(room);
    mixer.finish()
}

/// A thousand times the natural logarithm, straight between powers of two: the same on every machine.
fn logarithm(number: usize) -> i64 {
    const OF_TWO: i64 = 693;
    let whole = number.max(1).ilog2();
    let power = 1_i64 << whole;
    let rest = i64::try_from(number).unwrap_or(i64::MAX) - power;
    OF_TWO * i64::from(whole) + OF_TWO * rest / power
}
