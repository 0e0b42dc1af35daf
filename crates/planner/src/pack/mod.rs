//! New nodes for orders, as cheap as can be.
//!
//! The relaxed problem says how many nodes of which type an ideal fleet would have and what is on them. Nodes are built
//! after it, whole ones first; what is left over is packed by value for money; then nodes that waste most are merged and
//! dissolved, those that still hold too little are packed anew, all together, and then again, a few at a time.

mod again;
mod anew;
mod even;
mod fill;
mod improve;
mod limited;
mod parts;
mod relaxed;
mod rest;
mod shapes;
mod work;

use std::rc::Rc;

use model::Price;

use crate::amounts::fits_beside;
use crate::bins::{Bin, Load, cheapest_holding, holds_bin};
use crate::interner::Want;
use crate::menus::{Candidate, MenuId};
use crate::relax::{Detail, Share};
use crate::solver::{Leftover, Order, Solver};
use crate::stance::Stance;
use even::Evenly;
use parts::parts;
pub(crate) use relaxed::Market;
use relaxed::{Guide, Priced};
use shapes::Shape;
use work::Work;

/// Rounding of the relaxed problem's numbers.
const TINY: f64 = 1e-6;

/// A part of an ideal node becomes a whole one if its pods are worth this part of its price. Full nodes are worth all of it,
/// and what is packed without a guide a few percent less.
const WORTH_MIN: f64 = 0.98;

/// Where pods may be that were given a domain because of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Domains {
    /// Wherever another plan could have them, so that what they are worth is a bound.
    Open,
    /// Where they are.
    Settled,
}

impl Solver<'_> {
    /// Packs the orders of every pool; what a pool's limits leave over goes to the pools after it, and then gives up
    /// the next of its wishes.
    pub(crate) fn pack_all(&mut self) {
        let mut first = 0;
        while first < self.orders.len() {
            let end = self.orders.len();
            for pool in 0..self.pools.len() {
                let orders: Vec<usize> =
                    (first..self.orders.len()).filter(|order| self.orders[*order].pool == pool).collect();
                if !orders.is_empty() {
                    self.pack_pool(pool, &orders);
                    self.pass_on(pool, &orders);
                }
            }
            first = end;
            // Orders that pools passed on to later ones were packed in the same round.
            first = (first..self.orders.len())
                .find(|order| self.orders[*order].remaining() > 0)
                .unwrap_or(self.orders.len());
        }
    }

    fn pack_pool(&mut self, pool: usize, orders: &[usize]) {
        self.settle_shared(pool);
        let reserved = self.pack_reserved(pool, orders);
        self.bins.extend(reserved);
        self.defer_reserved(pool, orders);
        // Orders that only reserved capacity fits have nothing to buy here.
        let buying: Vec<usize> = orders.iter().copied().filter(|order| self.can_buy(pool, *order)).collect();
        let orders = buying.as_slice();
        let before = self.pools[pool].limits.clone();
        let (mut bins, mut work) = self.pack_open(pool, orders);
        if self.overflows(orders) && !before.is_unlimited() {
            (self.overflowed, work) = (true, None);
            if self.go_elsewhere(pool, orders) {
                self.fill_room(&mut bins, orders);
            } else {
                self.undo(&bins);
                self.pools[pool].limits = before;
                bins = self.pack_within_limits(pool, orders);
            }
        }
        self.improve(pool, &mut bins);
        self.pack_poor_anew(pool, orders, &mut bins);
        if let Some(work) = &mut work {
            self.pack_again(work, &mut bins);
        }
        self.bins.extend(bins);
    }

    /// Nodes for as many pods of the orders as the pool's limits allow, and what they are made of, unless nobody waits.
    fn pack_open(&mut self, pool: usize, orders: &[usize]) -> (Vec<Bin>, Option<Work>) {
        let Some((mut work, mut bins)) = self.pack_ideal(pool, orders, Domains::Open) else {
            return (Vec::new(), None);
        };
        self.build_rest(&mut work, &mut bins);
        (bins, Some(work))
    }

    /// Whether pods of some orders still wait.
    fn overflows(&self, orders: &[usize]) -> bool {
        orders.iter().any(|order| self.orders[*order].remaining() > 0)
    }

    /// Whether all pods that wait find a later pool without limits.
    fn go_elsewhere(&mut self, pool: usize, orders: &[usize]) -> bool {
        let later = pool + 1..self.pools.len();
        let unlimited: Vec<usize> = later.filter(|later| self.pools[*later].limits.is_unlimited()).collect();
        orders.iter().all(|order| {
            let Order { class, pin, ref stance, .. } = self.orders[*order];
            let stance = Rc::clone(stance);
            self.orders[*order].remaining() == 0
                || unlimited.iter().any(|later| self.next_menu(*later, class, pin, &stance).is_some())
        })
    }

    /// What a pool sells to pods whose domains are settled.
    fn next_menu(&mut self, pool: usize, class: usize, pin: Want, stance: &Stance) -> Option<MenuId> {
        let menu = self.menu_for(pool, class, stance)?;
        let menu = self.pools[pool].join(menu, pin, &self.wants)?;
        self.price_for(pool, menu, class).map(|_| menu)
    }

    fn can_buy(&mut self, pool: usize, order: usize) -> bool {
        let stance = Rc::clone(&self.orders[order].stance);
        self.pools[pool].reserved.is_empty() || self.joined(pool, MenuId::OWN, &stance).is_some()
    }

    /// Takes the pods of bins back into their orders.
    fn undo(&mut self, bins: &[Bin]) {
        for bin in bins {
            for load in &bin.loads {
                let pods = usize::try_from(u64::from(load.pods) * u64::from(bin.times)).unwrap_or(0);
                self.orders[load.order].settled -= pods;
            }
        }
    }

    /// Types for nodes whose pods wished to share a host; those that limits do not allow are given up.
    fn settle_shared(&mut self, pool: usize) {
        for mut bin in std::mem::take(&mut self.bins) {
            if bin.pool != pool || !bin.is_open {
                self.bins.push(bin);
                continue;
            }
            bin.is_open = false;
            let view = &mut self.pools[pool];
            if let Some(footprint) = bin.kind.map(|kind| view.kinds[kind].footprint.clone()) {
                view.limits.give_back(&footprint);
            }
            let fits = |candidate: &&Candidate| {
                let footprint = &view.kinds[candidate.kind].footprint;
                holds_bin(view, &bin, candidate.kind)
                    && (view.limits.is_unlimited() || view.limits.nodes_max(footprint) > 0)
            };
            match view.menu(bin.menu).candidates.iter().find(fits).copied() {
                Some(candidate) => {
                    let footprint = view.kinds[candidate.kind].footprint.clone();
                    view.limits.take(&footprint, 1);
                    (bin.kind, bin.price) = (Some(candidate.kind), candidate.price);
                    self.bins.push(bin);
                }
                None => self.give_up(&bin),
            }
        }
    }

    fn give_up(&mut self, bin: &Bin) {
        self.overflowed = true;
        for load in &bin.loads {
            let order = &mut self.orders[load.order];
            order.settled = 0;
            let pods = std::mem::take(&mut order.pods);
            self.leftovers.push(Leftover { class: order.class, pods, crowded_out_of: Some(bin.pool) });
        }
    }

    /// Nodes for as many pods of the orders as the pool's limits allow.
    fn pack(&mut self, pool: usize, orders: &[usize], domains: Domains) -> Vec<Bin> {
        let Some((mut work, mut bins)) = self.pack_ideal(pool, orders, domains) else { return Vec::new() };
        self.build_rest(&mut work, &mut bins);
        bins
    }

    /// The nodes of the ideal fleet, and what is left to be packed; nothing when nobody waits. Of parts of nodes those that
    /// other pods fill up become whole ones.
    fn pack_ideal(&mut self, pool: usize, orders: &[usize], domains: Domains) -> Option<(Work, Vec<Bin>)> {
        let waiting: Vec<usize> = orders.iter().copied().filter(|order| self.orders[*order].remaining() > 0).collect();
        if waiting.is_empty() {
            return None;
        }
        let crowds = self.crowds(&waiting);
        let (even, detail) = match domains {
            Domains::Open => (self.evenly_spread(&waiting), Detail::Fine),
            Domains::Settled => (Evenly::new(), Detail::Coarse),
        };
        let shapes = self.shapes(pool, &waiting, &crowds, &even, domains);
        let Guide { columns, relaxed } = self.guide(pool, &shapes, crowds.len(), detail);
        if domains == Domains::Open {
            self.bounds.push(self.worth_anywhere(&shapes, &relaxed.duals, &even));
            self.learn_worths(&shapes, &relaxed.duals);
        }
        let (mut work, shares) = Work::new(pool, shapes, relaxed, &self.pools[pool].rooms);
        let mut bins = Vec::new();
        let mut shares: Vec<&Share> = shares.iter().collect();
        shares.sort_by(|left, right| {
            let price = |share: &Share| columns[share.column];
            price(right).price.cmp(&price(left).price).then(left.column.cmp(&right.column))
        });
        for share in &shares {
            let whole = (share.machines + TINY).floor() as u32;
            self.build_share(&mut work, columns[share.column], whole, &share.pods, &mut bins);
        }
        if self.thrift.is_none() {
            for part in parts(&shares) {
                let whole = (part.machines + TINY).floor() as u32;
                self.build_share(&mut work, columns[part.column], whole, &part.pods, &mut bins);
                if part.machines - f64::from(whole) > TINY {
                    self.try_share(&mut work, columns[part.column], &part.pods, &mut bins);
                }
            }
        }
        Some((work, bins))
    }

    /// One more node of a type, unless it would hold too little for its price.
    fn try_share(&mut self, work: &mut Work, priced: Priced, pods: &[(usize, f64)], bins: &mut Vec<Bin>) {
        let before = bins.len();
        self.build_share(work, priced, 1, pods, bins);
        let Some(bin) = bins.get(before) else { return };
        if work.worth_on(bin) >= bin.price.dollars() * WORTH_MIN {
            return;
        }
        self.undo(&bins[before..]);
        self.release(work.pool, &bins[before]);
        work.take_back(&bins[before]);
        bins.truncate(before);
    }

    /// Keeps what pods are worth, unless that is reckoned in parts of limits instead of money.
    fn learn_worths(&mut self, shapes: &[Shape], duals: &[f64]) {
        if self.thrift.is_none() {
            let worth =
                shapes.iter().zip(duals).flat_map(|(shape, dual)| shape.orders.iter().map(|order| (*order, *dual)));
            self.worths.extend(worth);
        }
    }

    /// Whole nodes of one type with what the ideal fleet has on them.
    fn build_share(
        &mut self,
        work: &mut Work,
        priced: Priced,
        machines: u32,
        pods: &[(usize, f64)],
        bins: &mut Vec<Bin>,
    ) {
        let mut left = machines;
        let mut due: Vec<f64> = vec![0.0; work.families.len()];
        let mut quota: Vec<(usize, f64)> = pods.to_vec();
        quota.sort_by_key(|(family, _)| *family);
        while left > 0 {
            let Some(allowed) = self.nodes_allowed(work.pool, priced.kind) else { return };
            let mut bin = Bin::opened(work.pool, MenuId::OWN, Vec::new(), self.table.len());
            bin.kind = Some(priced.kind);
            work.look_at(&bin, &self.pools[work.pool].rooms[priced.kind]);
            for (family, each) in &quota {
                due[*family] += each;
                let whole = (due[*family] + TINY).floor() as i64;
                due[*family] -= self.add_family(work, &mut bin, *family, whole, priced.price) as f64;
            }
            for (family, due) in due.iter_mut().enumerate() {
                *due -= self.add_family(work, &mut bin, family, i64::MAX, priced.price) as f64;
            }
            if bin.loads.is_empty() {
                return;
            }
            let drift = quota.iter().map(|(family, each)| (each - work.on(&bin, *family)).abs());
            let steady = drift.fold(0.0, f64::max);
            let repeats = if steady < TINY { left } else { 1 };
            let times = self.repeat(work, &mut bin, repeats.min(left).min(allowed));
            self.close(work.pool, &mut bin, times);
            bins.push(bin);
            left -= times;
        }
    }

    /// How many more nodes of a type the pool's limits allow; none when not even one.
    fn nodes_allowed(&self, pool: usize, kind: usize) -> Option<u32> {
        let view = &self.pools[pool];
        if view.limits.is_unlimited() {
            return Some(u32::MAX);
        }
        let most = view.limits.nodes_max(&view.kinds[kind].footprint);
        (most > 0).then(|| u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// Takes the node's share of the pool's limits, and its price as the cheapest type that holds it.
    fn close(&mut self, pool: usize, bin: &mut Bin, times: u32) {
        let thrifty = self.thrift.is_some();
        let view = &mut self.pools[pool];
        let cheapest = cheapest_holding(view, bin).filter(|_| !thrifty);
        let within = |candidate: &Candidate| {
            let footprint = &view.kinds[candidate.kind].footprint;
            view.limits.is_unlimited() || view.limits.nodes_max(footprint) >= i64::from(times)
        };
        if let Some(candidate) = cheapest.filter(within).filter(|candidate| candidate.price < bin.price) {
            bin.kind = Some(candidate.kind);
            bin.price = candidate.price;
        }
        if let Some(kind) = bin.kind {
            let footprint = view.kinds[kind].footprint.clone();
            view.limits.take(&footprint, i64::from(times));
        }
    }

    /// Adds up to so many pods of a family, larger ones first, to the node that was looked at.
    fn add_family(&mut self, work: &mut Work, bin: &mut Bin, family: usize, most: i64, ceiling: Price) -> i64 {
        let mut added = 0;
        for shape in Rc::clone(&work.families[family]).iter().copied() {
            if added >= most || work.shapes[shape].remaining <= 0 {
                continue;
            }
            let waits = |order: &usize| self.orders[*order].remaining() > 0;
            if !work.fits(shape) && work.shapes[shape].orders.first().is_some_and(waits) {
                self.steps += 1;
                continue;
            }
            let own = self.add_shape(work, bin, shape, most - added, ceiling);
            if let Some(kind) = bin.kind.filter(|_| own > 0) {
                work.look_at(bin, &self.pools[bin.pool].rooms[kind]);
            }
            added += own;
        }
        added
    }

    /// Adds up to so many pods of a shape that fit and do not make the node dearer than they are worth.
    fn add_shape(&mut self, work: &mut Work, bin: &mut Bin, shape: usize, most: i64, ceiling: Price) -> i64 {
        let mut added = 0;
        let Some(kind) = bin.kind else { return 0 };
        if self.pools[bin.pool].menu(work.shapes[shape].menu).price_of(kind).is_none() {
            self.steps += 1;
            return 0;
        }
        let mut position = 0;
        while added < most && work.shapes[shape].remaining > 0 {
            let Some(order) = work.shapes[shape].orders.get(position).copied() else { break };
            if self.orders[order].remaining() == 0 {
                work.shapes[shape].orders.remove(position);
                continue;
            }
            self.steps += 1;
            position += 1;
            let room = &self.pools[bin.pool].rooms[kind];
            if !fits_beside(&work.shapes[shape].demand, &bin.used, room) {
                break;
            }
            let waiting = self.orders[order].remaining().min(most - added);
            let Some(joining) = self.joining(bin, kind, order, waiting) else { continue };
            let dearer = joining.price.dollars() - bin.price.max(ceiling).dollars();
            let copies = joining.copies;
            let worth = work.worth.get(shape).copied().unwrap_or(0.0) * copies as f64;
            if !bin.loads.is_empty() && self.thrift.is_none() && dearer > worth {
                continue;
            }
            self.add_to(bin, order, copies, joining);
            work.shapes[shape].remaining -= copies;
            added += copies;
        }
        added
    }

    /// Repeats a node as often as the orders on it allow.
    fn repeat(&mut self, work: &mut Work, bin: &mut Bin, most: u32) -> u32 {
        let simple = |order: usize| {
            let entry = &self.orders[order];
            entry.stance.rules.is_free() && self.classes[entry.class].attaching.shared.is_empty()
        };
        if most <= 1 || !bin.loads.iter().all(|load| simple(load.order)) {
            return 1;
        }
        let further = |load: &Load| self.orders[load.order].remaining() / i64::from(load.pods.max(1));
        let further = bin.loads.iter().map(further).min().unwrap_or(0).min(i64::from(most) - 1);
        for load in &bin.loads {
            let pods = i64::from(load.pods) * further;
            self.orders[load.order].settled += usize::try_from(pods).unwrap_or(0);
            if let Some(shape) = work.shape_of.get(&load.order) {
                work.shapes[*shape].remaining -= pods;
            }
        }
        bin.times = u32::try_from(further + 1).unwrap_or(1);
        bin.times
    }

    /// Orders that a pool has no room for go to the next pool that can take them, or to a more relaxed reading.
    fn pass_on(&mut self, pool: usize, orders: &[usize]) {
        for order in orders.iter().copied().filter(|order| self.orders[*order].remaining() > 0).collect::<Vec<_>>() {
            let settled = self.orders[order].settled;
            let pods = self.orders[order].pods.split_off(settled);
            let (class, pin) = (self.orders[order].class, self.orders[order].pin);
            let stance = Rc::clone(&self.orders[order].stance);
            let next = (pool + 1..self.pools.len()).find_map(|next| {
                self.next_menu(next, class, pin, &stance).map(|menu| (next, menu, Rc::clone(&stance)))
            });
            match next.or_else(|| self.relaxed_order(class, &stance)) {
                Some((pool, menu, stance)) => {
                    self.orders.push(Order { class, stance, pool, pin, menu, pods, settled: 0 });
                }
                None => self.leftovers.push(Leftover { class, pods, crowded_out_of: Some(pool) }),
            }
        }
    }

    /// Where pods whose rules ask nothing of where others are can go in the readings after this one.
    fn relaxed_order(&mut self, class: usize, stance: &Rc<Stance>) -> Option<(usize, MenuId, Rc<Stance>)> {
        if !stance.rules.are_settled_by_filling() {
            return None;
        }
        let stances = self.stances(class);
        let later = stances.iter().skip_while(|known| !Rc::ptr_eq(known, stance)).skip(1);
        for stance in later.filter(|stance| stance.rules.are_settled_by_filling()) {
            let routed = (0..self.pools.len()).find_map(|pool| Some((pool, self.menu_for(pool, class, stance)?)));
            if let Some((pool, menu)) = routed {
                return Some((pool, menu, Rc::clone(stance)));
            }
        }
        None
    }
}
