//! Resources as columns: the planner compares amounts millions of times, and names never.

use std::ops::Index;

use model::{ResourceName, Resources, Shortfall, Snapshot};

/// Amounts in the order of a [`ResourceTable`].
pub(crate) type Amounts = Box<[i64]>;

/// The resources that anybody in a snapshot asks for. Others cannot be short.
pub(crate) struct ResourceTable {
    names: Vec<ResourceName>,
}

impl ResourceTable {
    pub(crate) fn of<'a>(snapshot: &'a Snapshot, requests: impl Iterator<Item = &'a Resources>) -> Self {
        let daemons = snapshot.daemons.iter().map(|daemon| &daemon.class.requests);
        let mut names: Vec<&ResourceName> = Vec::new();
        for (name, amount) in requests.chain(daemons).flat_map(Resources::iter) {
            if amount > 0 && !names.contains(&name) {
                names.push(name);
            }
        }
        names.sort();
        Self { names: names.into_iter().cloned().collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The column of a resource that anybody asks for.
    pub(crate) fn position(&self, name: &ResourceName) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    pub(crate) fn amounts(&self, resources: &Resources) -> Amounts {
        self.names.iter().map(|name| resources.get(name)).collect()
    }

    /// What is left of some resources when others are taken away; may be negative.
    pub(crate) fn left(&self, all: &Resources, taken: &Resources) -> impl Iterator<Item = i64> {
        self.names.iter().map(|name| all.get(name) - taken.get(name))
    }

    pub(crate) fn resources(&self, amounts: &[i64]) -> Resources {
        self.names.iter().cloned().zip(amounts.iter().copied()).filter(|(_, amount)| *amount != 0).collect()
    }

    /// The first resource of which more is wanted than there is.
    pub(crate) fn shortfall(&self, wanted: &[i64], free: &[i64]) -> Option<Shortfall> {
        let position = wanted.iter().zip(free).position(|(wanted, free)| *wanted > 0 && wanted > free)?;
        let (resource, wanted, available) = (self.names[position].clone(), wanted[position], free[position].max(0));
        Some(Shortfall { resource, wanted, available })
    }
}

/// The room of many types, one after the other: what is read in a row lies in a row.
pub(crate) struct Rooms {
    width: usize,
    amounts: Vec<i64>,
    types: usize,
}

impl Rooms {
    pub(crate) fn new(table: &ResourceTable) -> Self {
        Self { width: table.len(), amounts: Vec::new(), types: 0 }
    }

    /// Adds the next type: what it has without what is taken from it.
    pub(crate) fn push(&mut self, table: &ResourceTable, all: &Resources, taken: &Resources) {
        self.amounts.extend(table.left(all, taken));
        self.types += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.types
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[i64]> {
        (0..self.types).map(|kind| &self[kind])
    }
}

impl Index<usize> for Rooms {
    type Output = [i64];

    fn index(&self, kind: usize) -> &[i64] {
        &self.amounts[kind * self.width..(kind + 1) * self.width]
    }
}

/// How many copies of a demand fit; `i64::MAX` if it asks for nothing.
pub(crate) fn copies(demand: &[i64], free: &[i64]) -> i64 {
    let mut most = i64::MAX;
    for (wanted, free) in demand.iter().zip(free) {
        if *wanted > 0 {
            if wanted > free {
                return 0;
            }
            most = most.min(free / wanted);
        }
    }
    most
}

/// How many copies of a demand still fit where `used` of `room` is taken.
pub(crate) fn copies_beside(demand: &[i64], used: &[i64], room: &[i64]) -> i64 {
    let mut most = i64::MAX;
    for ((wanted, used), room) in demand.iter().zip(used).zip(room) {
        if *wanted > 0 {
            let free = room - used;
            if *wanted > free {
                return 0;
            }
            most = most.min(free / wanted);
        }
    }
    most
}

/// Whether one more copy of a demand fits where `used` of `room` is taken.
pub(crate) fn fits_beside(demand: &[i64], used: &[i64], room: &[i64]) -> bool {
    let mut all = demand.iter().zip(used).zip(room);
    all.all(|((wanted, used), room)| *wanted <= 0 || *wanted <= room - used)
}

/// Whether everything that is used finds room.
pub(crate) fn holds(room: &[i64], used: &[i64]) -> bool {
    used.iter().zip(room).all(|(used, room)| *used <= 0 || used <= room)
}

/// Adds a demand so many times.
pub(crate) fn add_times(sum: &mut [i64], demand: &[i64], times: i64) {
    for (sum, amount) in sum.iter_mut().zip(demand) {
        *sum = sum.saturating_add(amount.saturating_mul(times));
    }
}

/// What part of some room a demand takes, of the resource that it takes most of.
pub(crate) fn share(demand: &[i64], room: &[i64]) -> f64 {
    let part = |(wanted, room): (&i64, &i64)| if *wanted > 0 { *wanted as f64 / (*room).max(1) as f64 } else { 0.0 };
    demand.iter().zip(room).map(part).fold(0.0, f64::max)
}
