//! Nodes that hold too little for their price are packed anew, together.
//!
//! The first packing takes what the ideal fleet has of whole nodes, and fills up with what is left over. What is left over
//! is a problem of its own, with an ideal fleet of its own: smaller machines, and fewer of them.

use crate::bins::Bin;
use crate::solver::Solver;

/// A node is poor if its pods are worth less than this part of its price. Well-filled nodes are worth a few percent less than
/// they cost. With 97 % plans were about as cheap, with 90 % dearer.
const POOR: f64 = 0.95;

/// What poor nodes waste has to be this part of what all nodes of the pool cost, or packing them anew is not worth its time.
const WASTE: f64 = 0.012;

impl Solver<'_> {
    /// Packs the poor nodes of a pool anew, and keeps what is cheaper. Pods without a node stay out of it: whoever has one keeps
    /// one.
    pub(super) fn pack_poor_anew(&mut self, pool: usize, orders: &[usize], bins: &mut Vec<Bin>) {
        let is_poor = |bin: &&Bin| self.worth_of_pods(bin) < bin.price.dollars() * POOR;
        let old: Vec<Bin> = bins.iter().filter(is_poor).cloned().collect();
        let is_pointless = old.iter().map(|bin| bin.times).sum::<u32>() < 2;
        if is_pointless || self.waste_of(&old) < dollars_of(bins) * WASTE || self.interrupt.is_raised() {
            return;
        }
        let others: Vec<Bin> = bins.iter().filter(|bin| !is_poor(bin)).cloned().collect();
        let (limits, settled) = (self.pools[pool].limits.clone(), self.settled_of(orders));
        let waiting: Vec<Vec<usize>> =
            orders.iter().zip(&settled).map(|(order, settled)| self.orders[*order].pods.split_off(*settled)).collect();
        self.undo(&old);
        old.iter().for_each(|bin| self.release(pool, bin));
        let mut new = self.pack_settled(pool, orders);
        self.improve(pool, &mut new);
        let is_better = !self.overflows(orders) && self.cost_of_bins(&new) < self.cost_of_bins(&old);
        if is_better {
            *bins = others;
            bins.extend(new);
            self.improve(pool, bins);
        } else {
            self.pools[pool].limits = limits;
            orders.iter().zip(settled).for_each(|(order, settled)| self.orders[*order].settled = settled);
        }
        orders.iter().zip(waiting).for_each(|(order, waiting)| self.orders[*order].pods.extend(waiting));
    }

    /// Dollars an hour that these nodes cost beyond what their pods are worth.
    pub(super) fn waste_of(&self, bins: &[Bin]) -> f64 {
        bins.iter().map(|bin| (bin.price.dollars() - self.worth_of_pods(bin)) * f64::from(bin.times)).sum()
    }

    pub(super) fn cost_of_bins(&self, bins: &[Bin]) -> model::Price {
        bins.iter().map(|bin| bin.price.plus(self.config.node_overhead).times(u64::from(bin.times))).sum()
    }
}

pub(super) fn dollars_of(bins: &[Bin]) -> f64 {
    bins.iter().map(|bin| bin.price.dollars() * f64::from(bin.times)).sum()
}
