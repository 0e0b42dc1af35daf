//! The relaxed problem: pods and nodes may be split. Its price is a bound, and its nodes are a guide.

use std::cmp::Reverse;

use model::Price;

use super::shapes::Shape;
use crate::amounts::{Amounts, copies};
use crate::interner::Want;
use crate::menus::{Candidate, Menu, PoolView};
use crate::relax::{Columns, Covering, Relaxed, Row, relax};
use crate::solver::Solver;

/// A type at one of its prices: narrower demands may make the same type dearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Priced {
    pub(super) kind: usize,
    pub(super) price: Price,
    /// The domain that it is bought in, where some pods settle that.
    pub(super) pin: Want,
}

/// What the relaxed problem says.
pub(super) struct Guide {
    pub(super) columns: Vec<Priced>,
    pub(super) relaxed: Relaxed,
}

impl Solver<'_> {
    /// Solves the relaxed problem for some shapes of a pool.
    pub(super) fn guide(&mut self, pool: usize, shapes: &[Shape], crowds: usize) -> Guide {
        let view = &self.pools[pool];
        let columns = priced(view, shapes);
        let kin = |shape: &Shape| (shape.menu, shape.pin, shape.crowd, shape.has_ports);
        let mut kins: Vec<_> = shapes.iter().map(kin).collect();
        kins.sort_unstable();
        kins.dedup();
        let row = |shape: &Shape| {
            let own = (0..crowds).map(|crowd| if shape.crowd == Some(crowd) { 1.0 } else { 0.0 });
            let count = u64::try_from(shape.remaining).unwrap_or(0);
            let demand = shape.demand.iter().map(|amount| *amount as f64).chain(own).collect();
            let spare = u64::try_from(shape.spare).unwrap_or(0);
            Row { count, spare, demand, kin: kins.binary_search(&kin(shape)).unwrap_or(0) }
        };
        let mut sold = Columns::with_capacity(columns.len(), self.table.len() + crowds, shapes.len());
        let mut demands: Vec<&Amounts> = shapes.iter().map(|shape| &shape.demand).collect();
        demands.sort_unstable();
        demands.dedup();
        let offers: Vec<_> = kins.iter().map(|(menu, pin, ..)| (view.menu(*menu), *pin)).collect();
        let place = |shape: &Shape| {
            let (demand, kin) = (demands.binary_search(&&shape.demand), kins.binary_search(&kin(shape)));
            let most = if shape.has_ports || shape.crowd.is_some() { 1 } else { i64::MAX };
            (demand.unwrap_or(0), kin.unwrap_or(0), most)
        };
        let places: Vec<(usize, usize, i64)> = shapes.iter().map(place).collect();
        for priced in &columns {
            let room = &view.rooms[priced.kind];
            // Shapes are many, but of few sizes or few kins.
            let fitting: Vec<i64> = demands.iter().map(|demand| copies(demand, room)).collect();
            let is_sold = |(menu, pin): &(&Menu, Want)| {
                let here = *pin == Want::NOTHING || *pin == priced.pin;
                here && menu.price_of(priced.kind).is_some_and(|price| price <= priced.price)
            };
            let sold_to: Vec<bool> = offers.iter().map(is_sold).collect();
            let cap = |(demand, kin, most): &(usize, usize, i64)| {
                if sold_to[*kin] { u32::try_from(fitting[*demand].min(*most)).unwrap_or(u32::MAX) } else { 0 }
            };
            let room = room.iter().map(|amount| (*amount).max(0) as f64).chain((0..crowds).map(|_| 1.0));
            sold.push(self.cost_of(priced.kind, priced.price), room, places.iter().map(cap));
        }
        let covering = Covering { rows: shapes.iter().map(row).collect(), columns: sold };
        let relaxed = relax(&covering, self.budget());
        self.steps += relaxed.steps;
        Guide { columns, relaxed }
    }
}

/// The types that some shapes can use, at each price that their menus tell. In a domain that pods settle, types cost at
/// least what these pods pay.
fn priced(view: &PoolView<'_>, shapes: &[Shape]) -> Vec<Priced> {
    let mut menus: Vec<_> = shapes.iter().map(|shape| (shape.pin, shape.menu)).collect();
    menus.sort_unstable();
    menus.dedup();
    let anywhere = menus.iter().filter(|(pin, _)| *pin == Want::NOTHING);
    let mut columns: Vec<Priced> = Vec::new();
    for (pin, menu) in &menus {
        let own = view.menu(*menu);
        let priced = |candidate: &Candidate| Priced { kind: candidate.kind, price: candidate.price, pin: *pin };
        columns.extend(own.candidates.iter().map(priced));
        for (_, other) in anywhere.clone().filter(|_| *pin != Want::NOTHING) {
            let dearer =
                |candidate: &&Candidate| own.price_of(candidate.kind).is_some_and(|price| price < candidate.price);
            columns.extend(view.menu(*other).candidates.iter().filter(dearer).map(priced));
        }
    }
    columns.sort_unstable_by_key(|priced| Reverse((priced.kind, priced.price, priced.pin)));
    // Of two alike, one of which takes the pods of a domain as well, the other is of no use.
    columns.dedup_by(|later, earlier| {
        let alike = (later.kind, later.price) == (earlier.kind, earlier.price);
        alike && (later.pin == earlier.pin || later.pin == Want::NOTHING)
    });
    columns.reverse();
    columns
}
