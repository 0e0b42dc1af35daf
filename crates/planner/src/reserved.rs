//! Capacity that is paid for already: it comes first, and there is only so much of it.

use std::collections::BTreeMap;

use model::{CapacityType, PoolName, Refusal, Requirement, Requirements, Text, labels};

use crate::amounts::copies;
use crate::bins::Bin;
use crate::config::ReservationPolicy;
use crate::menus::{MenuId, PoolView};
use crate::solver::{Leftover, Solver};
use crate::stance::Stance;

/// A reserved offering of a pool.
#[derive(Clone, Debug)]
pub(crate) struct Reserved {
    pub(crate) kind: usize,
    pub(crate) id: Text,
    pub(crate) capacity: u32,
    /// The type alone, bought from this reservation.
    pub(crate) menu: MenuId,
}

/// The demands of a node that is bought from a reservation.
pub(crate) fn from_reservation(label: &str, id: &Text) -> Requirements {
    Requirements::none()
        .with(labels::CAPACITY_TYPE, Requirement::is(CapacityType::Reserved.as_str()))
        .with(label, Requirement::is(Text::clone(id)))
}

/// What reserved capacity has for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// Nothing that fits.
    None,
    /// Something that fits, all of it in use.
    Full,
    /// Something that fits, with instances left when the round began.
    Left(MenuId),
}

/// What is left of each reservation. Of several reports about one, the lowest counts.
pub(crate) fn remaining(pools: &[PoolView<'_>]) -> BTreeMap<Text, u32> {
    let mut left: BTreeMap<Text, u32> = BTreeMap::new();
    for reserved in pools.iter().flat_map(|pool| &pool.reserved) {
        let known = left.entry(Text::clone(&reserved.id)).or_insert(u32::MAX);
        *known = reserved.capacity.min(*known);
    }
    left
}

impl Solver<'_> {
    /// What a pool's reservations have for a pod of a class.
    pub(crate) fn supply(&mut self, pool: usize, class: usize, stance: &Stance) -> Supply {
        let mut supply = Supply::None;
        if self.closed.contains(&pool) {
            return supply;
        }
        for index in 0..self.pools[pool].reserved.len() {
            let Reserved { kind, capacity, menu, .. } = self.pools[pool].reserved[index];
            let Some(menu) = self.joined(pool, menu, stance) else { continue };
            if copies(&self.classes[class].demand, &self.pools[pool].rooms[kind]) == 0 {
                continue;
            }
            match capacity {
                0 if supply == Supply::None => supply = Supply::Full,
                0 => {}
                _ => return Supply::Left(menu),
            }
        }
        supply
    }

    /// Fills reserved capacity with the pods of some orders, largest first.
    pub(crate) fn pack_reserved(&mut self, pool: usize, orders: &[usize]) -> Vec<Bin> {
        let mut reserved = self.pools[pool].reserved.clone();
        reserved
            .sort_by_key(|one| (self.pools[pool].menu(one.menu).price_of(one.kind), one.kind, Text::clone(&one.id)));
        let mut bins = Vec::new();
        for Reserved { kind, id, menu, .. } in reserved {
            while self.reservations.get(&id).is_some_and(|left| *left > 0) {
                let view = &self.pools[pool];
                if !view.limits.is_unlimited() && view.limits.nodes_max(&view.kinds[kind].footprint) == 0 {
                    break;
                }
                let mut bin = Bin::opened(pool, menu, Vec::new(), self.table.len());
                bin.kind = Some(kind);
                for order in orders {
                    let waiting = self.orders[*order].remaining();
                    if let Some(joining) = self.joining(&bin, kind, *order, waiting) {
                        self.add_to(&mut bin, *order, joining.copies, joining);
                    }
                }
                if bin.loads.is_empty() {
                    break;
                }
                let footprint = self.pools[pool].kinds[kind].footprint.clone();
                self.pools[pool].limits.take(&footprint, 1);
                self.reservations.entry(Text::clone(&id)).and_modify(|left| *left -= 1);
                bins.push(bin);
            }
        }
        bins
    }

    /// Pods that reserved capacity would have fit wait for the next round rather than pay for more.
    pub(crate) fn defer_reserved(&mut self, pool: usize, orders: &[usize]) {
        for order in orders {
            let (class, stance) = (self.orders[*order].class, std::rc::Rc::clone(&self.orders[*order].stance));
            let waits = self.orders[*order].remaining() > 0;
            if !waits || !matches!(self.supply(pool, class, &stance), Supply::Left(_)) {
                continue;
            }
            let settled = self.orders[*order].settled;
            let pods = self.orders[*order].pods.split_off(settled);
            match self.config.reservations {
                ReservationPolicy::Strict => {
                    self.defer(class, pool, Refusal::ReservationsTaken);
                    self.leftovers.push(Leftover { class, pods, crowded_out_of: None });
                }
                // Only what can be bought otherwise goes on here.
                ReservationPolicy::Fallback | ReservationPolicy::Ignored => {
                    self.orders[*order].pods.extend(pods);
                }
            }
        }
    }

    /// Remembers why a class waits; nobody is told, and no wish is given up for it.
    pub(crate) fn defer(&mut self, class: usize, pool: usize, refusal: Refusal) {
        let pool: PoolName = self.pools[pool].pool.name.clone();
        self.deferred.entry(class).or_insert((pool, refusal));
    }
}
