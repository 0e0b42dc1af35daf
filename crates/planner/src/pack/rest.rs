//! What whole nodes of the ideal fleet left over, packed by value for money.

use super::TINY;
use super::fill::Fillers;
use super::work::{Hope, Work};
use crate::bins::Bin;
use crate::menus::{Candidate, MenuId};
use crate::solver::Solver;

impl Solver<'_> {
    /// What whole nodes of the ideal fleet left over: node by node the type that gives most for its price.
    pub(super) fn build_rest(&mut self, work: &mut Work, bins: &mut Vec<Bin>) {
        let mut shape = 0;
        while shape < work.shapes.len() {
            if work.shapes[shape].remaining == 0 {
                shape += 1;
                continue;
            }
            let Some(mut bin) = self.best_bin(work, shape) else {
                // Nothing that limits leave holds these pods; the next shape may be smaller.
                shape += 1;
                continue;
            };
            let allowed = bin.kind.and_then(|kind| self.nodes_allowed(work.pool, kind)).unwrap_or(1);
            let times = self.repeat(work, &mut bin, allowed);
            self.close(work.pool, &mut bin, times);
            bins.push(bin);
        }
    }

    /// The node that begins with a pod of a shape and gives most for its price.
    fn best_bin(&mut self, work: &mut Work, shape: usize) -> Option<Bin> {
        let waiting = |order: &&usize| self.orders[**order].remaining() > 0;
        let orders: Vec<usize> = work.shapes[shape].orders.iter().filter(waiting).copied().collect();
        for order in orders {
            let (menu, class) = (self.orders[order].menu, self.orders[order].class);
            let Some(candidate) = self.best_type(work, shape, menu, class) else { continue };
            let mut bin = Bin::opened(work.pool, menu, Vec::new(), self.table.len());
            bin.kind = Some(candidate.kind);
            bin.price = candidate.price;
            let joining = self.joining(&bin, candidate.kind, order, 1)?;
            self.add_to(&mut bin, order, 1, joining);
            work.shapes[shape].remaining -= 1;
            for next in work.others(shape) {
                self.add_shape(work, &mut bin, next, i64::MAX, candidate.price);
            }
            return Some(bin);
        }
        None
    }

    /// The type on a menu that gives most for its price when it is begun with a shape.
    fn best_type(&mut self, work: &mut Work, shape: usize, menu: MenuId, class: usize) -> Option<Candidate> {
        let overhead = if self.thrift.is_some() { 0.0 } else { self.config.node_overhead.dollars() };
        let cost = |candidate: &Candidate| self.cost_of(candidate.kind, candidate.price) + overhead;
        let view = &self.pools[work.pool];
        let hopes = work.hopes(menu, &view.menu(menu).candidates, cost);
        let waiting = work.waiting();
        let others = work.others(shape);
        let mut fillers = Fillers::new(view, work, shape, &others);
        let mut tried = 0;
        let mut best: Option<(f64, Candidate)> = None;
        for Hope { candidate, cost, rate: hope } in hopes.iter() {
            let known = best.map_or(0.0, |(known, _)| known);
            if hope * (1.0 + TINY) < known {
                break;
            }
            let idle = waiting / cost < known;
            if idle || !view.takes_alone(candidate.kind, &self.classes[class]) {
                continue;
            }
            tried += others.len() as u64;
            let rate = fillers.value_on(*candidate, &view.rooms[candidate.kind], known * cost) / cost;
            if best.is_none() || rate > known * (1.0 + TINY) {
                best = Some((rate, *candidate));
            }
        }
        self.steps += tried;
        best.map(|(_, candidate)| candidate)
    }
}
