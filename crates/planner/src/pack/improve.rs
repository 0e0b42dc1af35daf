//! Second thoughts: nodes that waste most are merged, or dissolved into the room that others have.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use model::Price;

use super::TINY;
use crate::bins::{Bin, holds_bin};
use crate::menus::Candidate;
use crate::solver::Solver;

/// Pods that second thoughts may look at, for each pod that was packed: so that they cost no more than the first ones.
const LOOKS_PER_POD: u64 = 2;

/// Small plans get at least this many looks: they are the ones where it pays.
const LOOKS_MIN: u64 = 4_000;

/// This many of the emptiest nodes are looked at again; pairs of them are some thousand.
const EMPTIEST: usize = 32;

/// Which nodes were compared already, so that no pair is looked at twice unless one of the two changed.
struct Compared {
    /// By position of the node; a new number for each change.
    marks: Vec<u32>,
    next: u32,
    pairs: BTreeSet<(u32, u32)>,
}

impl Compared {
    fn new(nodes: usize) -> Self {
        let next = u32::try_from(nodes).unwrap_or(u32::MAX);
        Self { marks: (0..next).collect(), next, pairs: BTreeSet::new() }
    }

    fn is_news(&mut self, first: usize, second: usize) -> bool {
        self.pairs.insert((self.marks[first], self.marks[second]))
    }

    fn changed(&mut self, node: usize) {
        self.marks[node] = self.next;
        self.next += 1;
    }

    fn removed(&mut self, node: usize) {
        self.marks.remove(node);
    }
}

/// What becomes of a node whose pods moved.
struct Dissolved {
    /// What is left of it.
    rest: Option<Bin>,
    /// The nodes that took its pods, by position.
    changed: Vec<(usize, Bin)>,
}

impl Solver<'_> {
    /// Makes a pool's new nodes cheaper where a merger or a move does it.
    pub(super) fn improve(&mut self, pool: usize, bins: &mut Vec<Bin>) {
        let pods: u64 = bins.iter().flat_map(|bin| &bin.loads).map(|load| u64::from(load.pods)).sum();
        let end = self.steps + LOOKS_MIN.max(pods * LOOKS_PER_POD);
        let end = end.min(self.config.steps_max);
        let mut compared = Compared::new(bins.len());
        loop {
            let emptiest = self.emptiest(bins);
            if self.steps >= end
                || self.interrupt.is_raised()
                || !(self.merge_some(pool, bins, &emptiest, &mut compared)
                    || self.dissolve_some(pool, bins, &emptiest, &mut compared))
            {
                return;
            }
        }
    }

    /// The nodes whose money is idle most.
    fn emptiest(&self, bins: &[Bin]) -> Vec<usize> {
        let single = bins.iter().enumerate().filter(|(_, bin)| bin.times == 1);
        let mut ranked: Vec<(Reverse<u64>, usize)> =
            single.map(|(position, bin)| (Reverse(self.idle(bin)), position)).collect();
        if ranked.len() > EMPTIEST {
            ranked.select_nth_unstable(EMPTIEST);
            ranked.truncate(EMPTIEST);
        }
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, position)| position).collect()
    }

    /// What part of a node's money is idle, in millionths of a dollar: its price by its emptiest resource.
    fn idle(&self, bin: &Bin) -> u64 {
        let Some(kind) = bin.kind else { return 0 };
        let room = &self.pools[bin.pool].rooms[kind];
        let part = |(used, room): (&i64, &i64)| *used as f64 / (*room).max(1) as f64;
        let fullest = bin.used.iter().zip(room).filter(|(used, _)| **used > 0).map(part).fold(0.0, f64::max);
        ((1.0 - fullest).max(0.0) * bin.price.dollars() * 1e6) as u64
    }

    fn merge_some(&mut self, pool: usize, bins: &mut Vec<Bin>, emptiest: &[usize], compared: &mut Compared) -> bool {
        let worths: Vec<f64> = emptiest.iter().map(|bin| self.worth_of_pods(&bins[*bin])).collect();
        for (position, first) in emptiest.iter().enumerate() {
            for (offset, second) in emptiest[position + 1..].iter().enumerate() {
                if !compared.is_news(*first, *second) {
                    continue;
                }
                let worth = worths[position] + worths[position + 1 + offset];
                if let Some(merged) = self.merged(&bins[*first], &bins[*second], worth) {
                    self.release(pool, &bins[*first]);
                    self.release(pool, &bins[*second]);
                    self.hold(pool, &merged);
                    bins[*first] = merged;
                    compared.changed(*first);
                    bins.remove(*second);
                    compared.removed(*second);
                    return true;
                }
            }
        }
        false
    }

    pub(super) fn release(&mut self, pool: usize, bin: &Bin) {
        if let Some(kind) = bin.kind {
            let footprint = self.pools[pool].kinds[kind].footprint.clone();
            self.pools[pool].limits.take(&footprint, -i64::from(bin.times));
        }
    }

    pub(super) fn hold(&mut self, pool: usize, bin: &Bin) {
        if let Some(kind) = bin.kind {
            let footprint = self.pools[pool].kinds[kind].footprint.clone();
            self.pools[pool].limits.take(&footprint, 1);
        }
    }

    /// No node that holds the pods of this one costs less.
    pub(super) fn worth_of_pods(&self, bin: &Bin) -> f64 {
        let worth = |order: usize| self.worths.get(&order).copied().unwrap_or(0.0);
        bin.loads.iter().map(|load| worth(load.order) * f64::from(load.pods)).sum()
    }

    /// One node for the pods of two, which are worth so much, if that is cheaper.
    fn merged(&mut self, first: &Bin, second: &Bin, worth: f64) -> Option<Bin> {
        let budget = first.price.plus(second.price).plus(self.config.node_overhead);
        let both = |room: &[i64]| {
            let used = first.used.iter().zip(&second.used).map(|(first, second)| first + second);
            used.zip(room).all(|(used, room)| used <= 0 || used <= *room)
        };
        let view = &self.pools[first.pool];
        // What does not hold the first node's pods, being cheaper than it, does not hold both nodes' either.
        let least = first.price.max(Price::from_dollars(worth * (1.0 - TINY)));
        let candidates = &view.menu(first.menu).candidates;
        let from = candidates.partition_point(|candidate| candidate.price < least);
        let affordable = candidates[from..].iter().take_while(|candidate| candidate.price < budget);
        let fitting = affordable.filter(|candidate| both(&view.rooms[candidate.kind]));
        let candidate = *fitting.into_iter().next()?;
        self.steps += 1;
        let held = [first.kind?, second.kind?].map(|kind| view.kinds[kind].footprint.clone());
        let given_back = held[0].plus(&held[1]);
        let footprint = &view.kinds[candidate.kind].footprint;
        if !view.limits.is_unlimited() && view.limits.admit(footprint, &given_back).is_err() {
            return None;
        }
        let mut bin = Bin { kind: Some(candidate.kind), price: candidate.price, ..first.clone() };
        for load in &second.loads {
            let pods = i64::from(load.pods);
            self.steps += 1;
            let joining = self.joining(&bin, candidate.kind, load.order, pods)?;
            if joining.copies < pods {
                return None;
            }
            self.move_to(&mut bin, load.order, pods, joining);
        }
        (bin.price < budget).then_some(bin)
    }

    /// Moves pods of one node into room that others have anyway, if the node gets cheaper or superfluous by it.
    fn dissolve_some(&mut self, pool: usize, bins: &mut Vec<Bin>, emptiest: &[usize], compared: &mut Compared) -> bool {
        for source in emptiest {
            let others: Vec<usize> = emptiest.iter().copied().filter(|other| other != source).collect();
            let Some(Dissolved { rest, changed }) = self.dissolved(&bins[*source], bins, &others) else { continue };
            self.release(pool, &bins[*source]);
            for (position, bin) in changed {
                bins[position] = bin;
                compared.changed(position);
            }
            match rest {
                Some(rest) => {
                    self.hold(pool, &rest);
                    bins[*source] = rest;
                    compared.changed(*source);
                }
                None => {
                    bins.remove(*source);
                    compared.removed(*source);
                }
            }
            return true;
        }
        false
    }

    /// What is left of a node, and the nodes that took its pods; nothing when it would not pay.
    fn dissolved(&mut self, source: &Bin, bins: &[Bin], others: &[usize]) -> Option<Dissolved> {
        let mut rest = Bin::opened(source.pool, crate::menus::MenuId::OWN, Vec::new(), self.table.len());
        let mut changed: Vec<(usize, Bin)> = Vec::new();
        for load in &source.loads {
            let mut left = i64::from(load.pods);
            for other in others {
                let known = changed.iter().position(|(position, _)| position == other);
                let bin = match known {
                    Some(known) => &changed[known].1,
                    None => &bins[*other],
                };
                let Some(kind) = bin.kind.filter(|_| left > 0) else { continue };
                self.steps += 1;
                let joining = self.joining(bin, kind, load.order, left);
                if let Some(joining) = joining.filter(|joining| joining.price == bin.price) {
                    let known = known.unwrap_or(changed.len());
                    if known == changed.len() {
                        changed.push((*other, bins[*other].clone()));
                    }
                    self.move_to(&mut changed[known].1, load.order, joining.copies, joining);
                    left -= joining.copies;
                }
            }
            if left > 0 {
                rest.kind = source.kind;
                let joining = self.joining(&rest, source.kind?, load.order, left).filter(|fit| fit.copies == left)?;
                self.move_to(&mut rest, load.order, left, joining);
            }
        }
        if changed.is_empty() {
            return None;
        }
        if rest.loads.is_empty() {
            return Some(Dissolved { rest: None, changed });
        }
        let view = &self.pools[source.pool];
        let given_back = &view.kinds[source.kind?].footprint;
        let fits = |candidate: &&Candidate| {
            let footprint = &view.kinds[candidate.kind].footprint;
            holds_bin(view, &rest, candidate.kind)
                && (view.limits.is_unlimited() || view.limits.admit(footprint, given_back).is_ok())
        };
        let cheapest = *view.menu(rest.menu).candidates.iter().find(fits)?;
        if cheapest.price >= source.price {
            return None;
        }
        rest.kind = Some(cheapest.kind);
        rest.price = cheapest.price;
        Some(Dissolved { rest: Some(rest), changed })
    }
}
