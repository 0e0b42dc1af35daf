//! What is to be packed, and what it is worth.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::shapes::Shape;
use crate::amounts::{Amounts, Rooms, copies, holds};
use crate::bins::{Bin, Load};
use crate::interner::Want;
use crate::menus::{Candidate, MenuId};
use crate::relax::{Relaxed, Share};

/// Shapes with what they are worth.
pub(super) struct Work {
    pub(super) pool: usize,
    pub(super) shapes: Vec<Shape>,
    /// What a pod of each shape asks for, one after the other: most nodes have no room for most shapes.
    demands: Vec<i64>,
    /// What is free on the node that is being filled.
    free: Vec<i64>,
    /// What a pod of each shape costs in the ideal fleet.
    pub(super) worth: Vec<f64>,
    /// Shapes that the ideal fleet does not tell apart.
    pub(super) families: Vec<Rc<[usize]>>,
    /// The shape of each order.
    pub(super) shape_of: BTreeMap<usize, usize>,
    /// No node of each type holds pods that are worth more.
    worth_max: Vec<f64>,
    /// The types of each menu, those that may give most for their cost first.
    hopes: BTreeMap<MenuId, Rc<[Hope]>>,
}

/// A type, and the most that one of its nodes may hold for its cost.
#[derive(Clone, Copy)]
pub(super) struct Hope {
    pub(super) candidate: Candidate,
    pub(super) cost: f64,
    pub(super) rate: f64,
}

impl Work {
    pub(super) fn new(pool: usize, shapes: Vec<Shape>, relaxed: Relaxed, rooms: &Rooms) -> (Self, Vec<Share>) {
        let numbered = shapes.iter().enumerate();
        let shape_of = numbered.flat_map(|(number, shape)| shape.orders.iter().map(move |order| (*order, number)));
        let shape_of = shape_of.collect();
        let Relaxed { duals: worth, families, shares, prices, .. } = relaxed;
        let mut worth_max = vec![f64::INFINITY; rooms.len()];
        for prices in prices {
            lower_to_priced(&mut worth_max, &prices, &shapes, &worth, rooms);
        }
        let families = families.into_iter().map(Rc::from).collect();
        let demands = shapes.iter().flat_map(|shape| shape.demand.iter().copied()).collect();
        (
            Self {
                shape_of,
                pool,
                shapes,
                demands,
                free: Vec::new(),
                worth,
                families,
                worth_max,
                hopes: BTreeMap::new(),
            },
            shares,
        )
    }

    /// Looks at what is free on the node that is being filled.
    pub(super) fn look_at(&mut self, bin: &Bin, room: &[i64]) {
        self.free.clear();
        self.free.extend(room.iter().zip(&bin.used).map(|(room, used)| room - used));
    }

    /// Whether one more pod of a shape finds room on the node that was looked at.
    pub(super) fn fits(&self, shape: usize) -> bool {
        let width = self.free.len();
        holds(&self.free, &self.demands[shape * width..(shape + 1) * width])
    }

    /// The types of a menu, those that may give most for their cost first.
    pub(super) fn hopes(
        &mut self,
        menu: MenuId,
        candidates: &[Candidate],
        cost: impl Fn(&Candidate) -> f64,
    ) -> Rc<[Hope]> {
        let hopes = self.hopes.entry(menu).or_insert_with(|| {
            let hope = |candidate: &Candidate| {
                let cost = cost(candidate).max(f64::MIN_POSITIVE);
                Hope { candidate: *candidate, cost, rate: self.worth_max[candidate.kind] / cost }
            };
            let mut hopes: Vec<Hope> = candidates.iter().map(hope).collect();
            hopes.sort_unstable_by(|left, right| {
                right.rate.total_cmp(&left.rate).then(left.candidate.cmp(&right.candidate))
            });
            hopes.into()
        });
        Rc::clone(hopes)
    }

    /// Shapes with pods that wait and could join a node that is begun with one, which is the first of them.
    pub(super) fn others(&self, first: usize) -> Vec<usize> {
        let pin = self.shapes[first].pin;
        let joins = |shape: &Shape| pin == Want::NOTHING || shape.pin == Want::NOTHING || shape.pin == pin;
        let after = (first..self.shapes.len()).map(|index| (index, &self.shapes[index]));
        after.filter(|(_, shape)| shape.remaining > 0 && joins(shape)).map(|(index, _)| index).collect()
    }

    /// What all pods that wait are worth.
    pub(super) fn waiting(&self) -> f64 {
        let worth = |(shape, worth): (&Shape, &f64)| shape.remaining.max(0) as f64 * worth;
        self.shapes.iter().zip(&self.worth).map(worth).sum()
    }

    /// What the pods on a node are worth.
    pub(super) fn worth_on(&self, bin: &Bin) -> f64 {
        let worth =
            |load: &Load| f64::from(load.pods) * self.shape_of.get(&load.order).map_or(0.0, |shape| self.worth[*shape]);
        bin.loads.iter().map(worth).sum()
    }

    /// Lets the pods of a node wait again.
    pub(super) fn take_back(&mut self, bin: &Bin) {
        for load in &bin.loads {
            let Some(shape) = self.shape_of.get(&load.order) else { continue };
            let shape = &mut self.shapes[*shape];
            shape.remaining += i64::from(load.pods) * i64::from(bin.times);
            if !shape.orders.contains(&load.order) {
                shape.orders.push(load.order);
            }
        }
    }

    /// Gives the pods of a node to it, who waited for one.
    pub(super) fn give_out(&mut self, bin: &Bin) {
        for load in &bin.loads {
            if let Some(shape) = self.shape_of.get(&load.order) {
                self.shapes[*shape].remaining -= i64::from(load.pods) * i64::from(bin.times);
            }
        }
    }

    /// How many pods of a family are on a node.
    pub(super) fn on(&self, bin: &Bin, family: usize) -> f64 {
        let of_family =
            |load: &&Load| self.shape_of.get(&load.order).is_some_and(|shape| self.families[family].contains(shape));
        bin.loads.iter().filter(of_family).map(|load| f64::from(load.pods)).sum()
    }
}

/// Room is worth its price, and a pod at most what its worth exceeds the price of its demand by: whatever the prices
/// are, nothing on a node is worth more than that together.
fn lower_to_priced(worth_max: &mut [f64], prices: &[f64], shapes: &[Shape], worth: &[f64], rooms: &Rooms) {
    let cost = |amounts: &[i64]| amounts.iter().zip(prices).map(|(amount, price)| *amount as f64 * price).sum::<f64>();
    let excess = |(shape, worth): (&Shape, &f64)| (worth - cost(&shape.demand)).max(0.0);
    // Shapes of one size fit alike, and lie side by side.
    let mut by_size: Vec<(&Amounts, f64)> = Vec::new();
    for (shape, over) in shapes.iter().zip(shapes.iter().zip(worth).map(excess)).filter(|(_, over)| *over > 0.0) {
        match by_size.last_mut().filter(|(demand, _)| **demand == shape.demand) {
            Some((_, sum)) => *sum += over,
            None => by_size.push((&shape.demand, over)),
        }
    }
    for (known, room) in worth_max.iter_mut().zip(rooms.iter()) {
        let fitting = |(demand, over): &(&Amounts, f64)| copies(demand, room) as f64 * over;
        let most = cost(room) + by_size.iter().map(fitting).sum::<f64>();
        *known = known.min(most);
    }
}
