//! New nodes where limits do not leave room for all: who gets one, and at which price.

use std::collections::BTreeMap;

use model::Price;

use super::Domains;
use super::anew::dollars_of;
use crate::bins::Bin;
use crate::menus::KindView;
use crate::relax::Detail;
use crate::solver::Solver;

/// How often fewer pods are chosen when those chosen before did not all find room.
const CHOICES_MAX: usize = 3;

/// Rounding to whole nodes takes at least this part of what limits leave.
const ROUNDING: f64 = 0.01;

/// What limits cost beside nodes, as multiples of the price of nodes that use them up: while whole nodes of the ideal
/// fleet are built, and while the rest is packed, which wastes more.
const WEIGHTS: [Weights; 3] =
    [Weights { ideal: 1.0, rest: 4.0 }, Weights { ideal: 2.0, rest: 6.0 }, Weights { ideal: 4.0, rest: 10.0 }];

/// Limits that cost so many dollars an hour leave the price to decide among equals only.
const LIMITS_ALONE: f64 = 1e6;

/// What all that limits leave is said to cost.
#[derive(Clone, Copy)]
struct Weights {
    ideal: f64,
    rest: f64,
}

impl Weights {
    fn times(self, dollars: f64) -> Self {
        Self { ideal: self.ideal * dollars, rest: self.rest * dollars }
    }
}

impl Solver<'_> {
    /// Chooses pods that should all find room, higher priorities first and of those the ones that take least of the
    /// limits, and packs them together; then whoever still fits comes in the same order.
    pub(super) fn pack_within_limits(&mut self, pool: usize, orders: &[usize]) -> Vec<Bin> {
        let mut bins = self.pack_chosen(pool, orders);
        let priority = |solver: &Self, order: usize| solver.classes[solver.orders[order].class].spec.priority;
        let mut priorities: Vec<i32> = orders.iter().map(|order| priority(self, *order)).collect();
        priorities.sort_unstable_by(|left, right| right.cmp(left));
        priorities.dedup();
        for level in priorities {
            let own: Vec<usize> = orders.iter().copied().filter(|order| priority(self, *order) == level).collect();
            self.pack_level(pool, &own, &mut bins);
        }
        bins
    }

    /// Nodes for the pods that are expected to find room together; none when they do not.
    fn pack_chosen(&mut self, pool: usize, orders: &[usize]) -> Vec<Bin> {
        let price = self.bounds.last().copied().unwrap_or(0.0);
        let shares = self.shares_of(pool, orders);
        let wanted = self.taken_by_waiting(orders, &shares);
        let price = price / wanted.max(1.0);
        let alone = Weights { ideal: LIMITS_ALONE, rest: LIMITS_ALONE };
        let ladder: Vec<Weights> = WEIGHTS.into_iter().map(|weights| weights.times(price)).chain([alone]).collect();
        let mut part = 1.0 - ROUNDING;
        for _ in 0..CHOICES_MAX {
            if self.interrupt.is_raised() {
                break;
            }
            let held = self.hold_back(orders, &shares, part);
            let packed = ladder.iter().map(|weights| self.pack_weighted(pool, orders, *weights, &shares));
            let mut left = 0.0;
            let found = packed.into_iter().find_map(|packed| packed.map_err(|over| left = over).ok());
            for (order, pods) in orders.iter().zip(held) {
                self.orders[*order].pods.extend(pods);
            }
            if let Some(bins) = found {
                return bins;
            }
            part -= left + ROUNDING;
        }
        Vec::new()
    }

    /// Nodes for all pods that wait, or what part of the limits those would take that find no room.
    fn pack_weighted(
        &mut self,
        pool: usize,
        orders: &[usize],
        weights: Weights,
        shares: &[f64],
    ) -> Result<Vec<Bin>, f64> {
        let (limits, settled) = (self.pools[pool].limits.clone(), self.settled_of(orders));
        let bins = self.pack_at(pool, orders, weights, Domains::Open);
        if !self.overflows(orders) {
            return Ok(bins);
        }
        let left = self.taken_by_waiting(orders, shares);
        self.pools[pool].limits = limits;
        orders.iter().zip(settled).for_each(|(order, settled)| self.orders[*order].settled = settled);
        Err(left)
    }

    /// Nodes for pods that wait where limits have a price.
    fn pack_at(&mut self, pool: usize, orders: &[usize], weights: Weights, domains: Domains) -> Vec<Bin> {
        self.weigh_limits(pool, weights.ideal);
        let mut bins = self.pack_ideal(pool, orders, domains).map(|(_, bins)| bins).unwrap_or_default();
        self.fill_room(&mut bins, orders);
        self.weigh_limits(pool, weights.rest);
        bins.extend(self.pack(pool, orders, domains));
        self.fill_room(&mut bins, orders);
        self.thrift = None;
        bins
    }

    /// Nodes for pods whose domains are settled, at the lowest price of limits at which all find room.
    pub(super) fn pack_settled(&mut self, pool: usize, orders: &[usize]) -> Vec<Bin> {
        let (limits, settled) = (self.pools[pool].limits.clone(), self.settled_of(orders));
        let mut bins = self.pack(pool, orders, Domains::Settled);
        let price = dollars_of(&bins);
        for weights in WEIGHTS {
            if !self.overflows(orders) || self.interrupt.is_raised() {
                break;
            }
            self.pools[pool].limits = limits.clone();
            orders.iter().zip(&settled).for_each(|(order, settled)| self.orders[*order].settled = *settled);
            bins = self.pack_at(pool, orders, weights.times(price), Domains::Settled);
        }
        bins
    }

    pub(super) fn settled_of(&self, orders: &[usize]) -> Vec<usize> {
        orders.iter().map(|order| self.orders[*order].settled).collect()
    }

    /// What part of the limits the pods that wait would take.
    fn taken_by_waiting(&self, orders: &[usize], shares: &[f64]) -> f64 {
        orders.iter().zip(shares).map(|(order, share)| self.orders[*order].remaining() as f64 * share).sum()
    }

    /// What part of the limits a pod of each order takes at least.
    fn shares_of(&mut self, pool: usize, orders: &[usize]) -> Vec<f64> {
        let crowds = self.crowds(orders);
        let even = self.evenly_spread(orders);
        let shapes = self.shapes(pool, orders, &crowds, &even, Domains::Open);
        self.weigh_limits(pool, LIMITS_ALONE);
        let duals = self.guide(pool, &shapes, crowds.len(), Detail::Fine).relaxed.duals;
        self.thrift = None;
        let numbered = shapes.iter().zip(&duals);
        let shares: BTreeMap<usize, f64> = numbered
            .flat_map(|(shape, dual)| shape.orders.iter().map(move |order| (*order, *dual / LIMITS_ALONE)))
            .collect();
        orders.iter().map(|order| shares.get(order).copied().unwrap_or(0.0)).collect()
    }

    /// Takes the pods out of their orders that exceed a part of the limits.
    fn hold_back(&mut self, orders: &[usize], shares: &[f64], part: f64) -> Vec<Vec<usize>> {
        let mut turns: Vec<usize> = (0..orders.len()).collect();
        let priority = |position: usize| self.classes[self.orders[orders[position]].class].spec.priority;
        turns.sort_by(|left, right| {
            priority(*right).cmp(&priority(*left)).then(shares[*left].total_cmp(&shares[*right])).then(left.cmp(right))
        });
        let mut held = vec![Vec::new(); orders.len()];
        let mut left = part;
        for position in turns {
            let order = &mut self.orders[orders[position]];
            let (waiting, share) = (order.remaining(), shares[position]);
            let fitting = if share > 0.0 { (left / share).max(0.0) as i64 } else { waiting };
            let chosen = fitting.min(waiting);
            left = if chosen < waiting { 0.0 } else { left - share * chosen as f64 };
            held[position] = order.pods.split_off(order.settled + usize::try_from(chosen).unwrap_or(0));
        }
        held
    }

    /// Lets nodes cost what they take of the limits besides, all of which are worth so much.
    fn weigh_limits(&mut self, pool: usize, dollars: f64) {
        let limits = &self.pools[pool].limits;
        let share = |kind: &KindView<'_>| limits.share(&kind.footprint) * dollars;
        self.thrift = Some(self.pools[pool].kinds.iter().map(share).collect());
    }

    /// Packs one priority for little of what the limits leave.
    fn pack_level(&mut self, pool: usize, orders: &[usize], bins: &mut Vec<Bin>) {
        self.fill_room(bins, orders);
        let view = &self.pools[pool];
        if view.kinds.iter().all(|kind| view.limits.nodes_max(&kind.footprint) == 0) {
            return;
        }
        self.weigh_limits(pool, LIMITS_ALONE);
        bins.extend(self.pack(pool, orders, Domains::Open));
        self.thrift = None;
        self.fill_room(bins, orders);
    }

    /// What a node of a type counts in the search: its price, and while limits bind, what it takes of them.
    pub(super) fn cost_of(&self, kind: usize, price: Price) -> f64 {
        let taken = self.thrift.as_ref().and_then(|costs| costs.get(kind)).copied().unwrap_or(0.0);
        price.dollars() + taken
    }

    /// Puts waiting pods into room that nodes have anyway, as the types they are filled for.
    pub(super) fn fill_room(&mut self, bins: &mut Vec<Bin>, orders: &[usize]) {
        for order in orders {
            let mut position = 0;
            while position < bins.len() && self.orders[*order].remaining() > 0 {
                self.steps += 1;
                let kind = bins[position].kind;
                let waiting = self.orders[*order].remaining();
                let joining = kind.and_then(|kind| self.joining(&bins[position], kind, *order, waiting));
                if let Some(joining) = joining.filter(|joining| joining.price == bins[position].price) {
                    let mut bin = self.split(bins, position);
                    self.add_to(&mut bin, *order, joining.copies, joining);
                    bins[position] = bin;
                }
                position += 1;
            }
        }
    }

    /// One of several nodes alike, for itself; the others go to the end of the list.
    fn split(&self, bins: &mut Vec<Bin>, position: usize) -> Bin {
        let mut bin = bins[position].clone();
        if bin.times > 1 {
            let mut others = bin.clone();
            others.times -= 1;
            bins.push(others);
            bin.times = 1;
        }
        bin
    }
}
