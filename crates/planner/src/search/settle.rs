//! The end of an arrangement: types within limits, pools in their order.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use model::Price;

use super::{Cost, Found, Node, ORDER_STEPS, Search, Site, order};
use crate::amounts::{Amounts, add_times, copies, holds};
use crate::limits::Footprint;
use crate::menus::{Candidate, MenuId};
use crate::tallies::KeyId;

impl Search<'_, '_> {
    /// Whether the pools' limits could hold if every new node became the smallest that it still can.
    pub(super) fn within_limits(&self) -> bool {
        (0..self.solver.pools.len()).all(|pool| {
            let view = &self.solver.pools[pool];
            if view.limits.is_unlimited() {
                return true;
            }
            let mut least = Footprint::none();
            for node in &self.nodes {
                let Site::New { pool: own, menu } = node.site else { continue };
                if own != pool {
                    continue;
                }
                let footprints = self.holding(pool, menu, node).map(|candidate| &view.kinds[candidate.kind].footprint);
                let smallest = footprints.cloned().reduce(|sum, other| sum.common_minimum(&other));
                least.add(&smallest.unwrap_or_default());
            }
            view.limits.admit(&least, &Footprint::none()).is_ok()
        })
    }

    /// Everything is decided but the types: finds the cheapest that limits allow, and an order of the pods.
    pub(super) fn finish(&mut self) {
        let new: Vec<usize> =
            (0..self.nodes.len()).filter(|node| matches!(self.nodes[*node].site, Site::New { .. })).collect();
        let overhead = self.solver.config.node_overhead.times(new.len() as u64);
        let mut best = None;
        self.choose_types(&new, &mut Vec::new(), overhead, &mut best);
        let Some((price, types)) = best else { return };
        let cost = Cost { unplaced: self.unplaced.clone(), price };
        if cost.compare(&self.known) != Ordering::Less {
            return;
        }
        let types: BTreeMap<usize, Candidate> = new.iter().copied().zip(types).collect();
        if !self.respects_pools(&types) {
            return;
        }
        self.count(ORDER_STEPS);
        let Some(order) = order::find(self) else { return };
        self.known = cost;
        self.found = Some(Found { nodes: self.nodes.clone(), types, order });
    }

    fn choose_types(
        &self,
        new: &[usize],
        chosen: &mut Vec<Candidate>,
        price: Price,
        best: &mut Option<(Price, Vec<Candidate>)>,
    ) {
        self.count(1);
        let dearer = best.as_ref().is_some_and(|(known, _)| price >= *known);
        if dearer || self.is_over() || !self.limits_hold(new, chosen) {
            return;
        }
        let Some(node) = new.get(chosen.len()).map(|node| &self.nodes[*node]) else {
            *best = Some((price, chosen.clone()));
            return;
        };
        let Site::New { pool, menu } = node.site else { return };
        for candidate in self.worth_trying(pool, menu, node) {
            chosen.push(candidate);
            self.choose_types(new, chosen, price.plus(candidate.price), best);
            chosen.pop();
        }
    }

    /// Of the types that hold a node those that no cheaper one makes pointless by taking no more of any limit.
    fn worth_trying(&self, pool: usize, menu: MenuId, node: &Node) -> Vec<Candidate> {
        let kinds = &self.solver.pools[pool].kinds;
        let mut kept: Vec<Candidate> = Vec::new();
        for candidate in self.holding(pool, menu, node) {
            let footprint = &kinds[candidate.kind].footprint;
            let pointless = |cheaper: &Candidate| kinds[cheaper.kind].footprint.is_within(footprint);
            if !kept.iter().any(pointless) {
                kept.push(candidate);
            }
        }
        kept
    }

    fn limits_hold(&self, new: &[usize], chosen: &[Candidate]) -> bool {
        (0..self.solver.pools.len()).all(|pool| self.has_room(pool, new, chosen, None))
    }

    fn has_room(&self, pool: usize, new: &[usize], chosen: &[Candidate], more: Option<usize>) -> bool {
        let view = &self.solver.pools[pool];
        if view.limits.is_unlimited() {
            return true;
        }
        let mut sum = Footprint::none();
        for (node, candidate) in new.iter().zip(chosen) {
            if matches!(self.nodes[*node].site, Site::New { pool: own, .. } if own == pool) {
                sum.add(&view.kinds[candidate.kind].footprint);
            }
        }
        more.into_iter().for_each(|kind| sum.add(&view.kinds[kind].footprint));
        view.limits.admit(&sum, &Footprint::none()).is_ok()
    }

    /// Whether every pod with a new node has it from the first pool that could make one for it, or uses room that is
    /// there anyway.
    fn respects_pools(&mut self, types: &BTreeMap<usize, Candidate>) -> bool {
        let new: Vec<usize> = types.keys().copied().collect();
        let chosen: Vec<Candidate> = types.values().copied().collect();
        for (position, candidate) in types {
            let node = self.nodes[*position].clone();
            let Site::New { pool, .. } = node.site else { continue };
            let present: Vec<usize> = (0..self.kinds.len()).filter(|kind| node.pods[*kind] > 0).collect();
            let natives: Vec<usize> =
                present.iter().copied().filter(|kind| self.is_native(*kind, pool, &new, &chosen)).collect();
            if natives.len() == present.len() {
                continue;
            }
            let Some(price) = self.price_of(pool, &node, &natives) else { return false };
            if price != candidate.price {
                return false;
            }
        }
        true
    }

    fn is_native(&mut self, kind: usize, pool: usize, new: &[usize], chosen: &[Candidate]) -> bool {
        let (class, stance) = (self.kinds[kind].class, Rc::clone(&self.kinds[kind].stance));
        !(0..pool).any(|earlier| {
            let Some(menu) = self.solver.menu_without_limits(earlier, class, &stance) else { return false };
            let demand = &self.solver.classes[class].demand;
            let view = &self.solver.pools[earlier];
            let candidates = view.menu(menu).candidates.iter();
            let fitting = candidates.filter(|candidate| copies(demand, &view.rooms[candidate.kind]) > 0);
            fitting.into_iter().any(|candidate| self.has_room(earlier, new, chosen, Some(candidate.kind)))
        })
    }

    /// What a node would cost with some of its kinds alone; none without any.
    fn price_of(&mut self, pool: usize, node: &Node, kinds: &[usize]) -> Option<Price> {
        let mut menu = MenuId::OWN;
        let mut used: Amounts = vec![0; self.solver.table.len()].into();
        for kind in kinds {
            let stance = Rc::clone(&self.kinds[*kind].stance);
            menu = self.solver.joined(pool, menu, &stance)?;
            let demand = &self.solver.classes[self.kinds[*kind].class].demand;
            add_times(&mut used, demand, i64::try_from(node.pods[*kind]).unwrap_or(0));
        }
        let keys: Vec<KeyId> = node.domains.keys().copied().collect();
        let cells = self.solver.cells(pool, menu, &keys);
        let own =
            cells.iter().find(|cell| cell.domains.iter().all(|(key, domain)| node.domains.get(key) == Some(domain)))?;
        let view = &self.solver.pools[pool];
        let fits = |candidate: &&Candidate| holds(&view.rooms[candidate.kind], &used);
        (!kinds.is_empty()).then_some(())?;
        view.menu(own.menu).candidates.iter().find(fits).map(|candidate| candidate.price)
    }
}
