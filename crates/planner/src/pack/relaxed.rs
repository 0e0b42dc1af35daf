//! The relaxed problem: pods and nodes may be split. Its price is a bound, and its nodes are a guide.

use model::Price;

use super::shapes::Shape;
use crate::amounts::Amounts;
use crate::interner::Want;
use crate::menus::{Menu, MenuId, PoolView};
use crate::relax::{Columns, Covering, Detail, Relaxed, Row, Size, relax};
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

/// Types of a pool that nothing undercuts for the pods that were packed last, whichever of them are packed again.
pub(crate) struct Market {
    pool: usize,
    /// Menus, and the domains that pods settle.
    menus: Vec<(Want, MenuId)>,
    columns: Vec<Priced>,
}

impl Market {
    fn serves(&self, pool: usize, menus: &[(Want, MenuId)]) -> bool {
        self.pool == pool && menus.iter().all(|menu| self.menus.binary_search(menu).is_ok())
    }
}

impl Solver<'_> {
    /// Solves the relaxed problem for some shapes of a pool.
    pub(super) fn guide(&mut self, pool: usize, shapes: &[Shape], crowds: usize, detail: Detail) -> Guide {
        let view = &self.pools[pool];
        let menus = each_once(shapes.iter().map(|shape| (shape.pin, shape.menu)));
        // Nodes are packed anew from what was useful to the same pods before, unless limits are a part of what types cost. A
        // bound is for pods of whom nothing is known: what undercuts a type for others need not do so for them.
        let is_guide = detail == Detail::Coarse && self.thrift.is_none();
        let known = self.market.as_ref().filter(|market| is_guide && market.serves(pool, &menus));
        let is_new = detail == Detail::Fine && self.thrift.is_none();
        let columns = known.map_or_else(|| priced(view, &menus), |market| market.columns.clone());
        // Shapes are many, but of few sizes and few kins.
        let size = |shape: &Shape| (shape.demand.clone(), shape.crowd, shape.has_ports);
        let kin = |shape: &Shape| (shape.menu, shape.pin, shape.crowd, shape.has_ports);
        let (sizes, kins) = (each_once(shapes.iter().map(size)), each_once(shapes.iter().map(kin)));
        let row = |shape: &Shape| Row {
            count: u64::try_from(shape.remaining).unwrap_or(0),
            spare: u64::try_from(shape.spare).unwrap_or(0),
            size: sizes.binary_search(&size(shape)).unwrap_or(0),
            kin: kins.binary_search(&kin(shape)).unwrap_or(0),
        };
        let rows = shapes.iter().map(row).collect();
        let offers: Vec<(&Menu, Want)> = kins.iter().map(|(menu, pin, ..)| (view.menu(*menu), *pin)).collect();
        let mut sold = Columns::with_capacity(columns.len(), self.table.len() + crowds, kins.len());
        for priced in &columns {
            let is_sold = |(menu, pin): &(&Menu, Want)| {
                let here = *pin == Want::NOTHING || *pin == priced.pin;
                here && menu.price_of(priced.kind).is_some_and(|price| price <= priced.price)
            };
            let room = view.rooms[priced.kind].iter().map(|amount| (*amount).max(0) as f64);
            let room = room.chain((0..crowds).map(|_| 1.0));
            sold.push(self.cost_of(priced.kind, priced.price), room, offers.iter().map(is_sold));
        }
        let size = |(demand, crowd, has_ports): &(Amounts, Option<usize>, bool)| {
            let own = (0..crowds).map(|number| if *crowd == Some(number) { 1.0 } else { 0.0 });
            let demand = demand.iter().map(|amount| *amount as f64).chain(own).collect();
            Size { demand, most: if *has_ports || crowd.is_some() { 1 } else { u32::MAX } }
        };
        let covering = Covering { sizes: sizes.iter().map(size).collect(), rows, columns: sold };
        let relaxed = relax(&covering, detail, self.budget());
        self.steps += relaxed.steps;
        if is_new {
            let columns = relaxed.useful.iter().map(|column| columns[*column]).collect();
            self.market = Some(Market { pool, menus, columns });
        }
        Guide { columns, relaxed }
    }
}

fn each_once<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The types on some menus, at each price that these tell. In a domain that pods settle, types cost at least what these pods
/// pay.
fn priced(view: &PoolView<'_>, menus: &[(Want, MenuId)]) -> Vec<Priced> {
    let menus: Vec<(Want, &Menu)> = menus.iter().map(|(pin, menu)| (*pin, view.menu(*menu))).collect();
    let mut columns: Vec<Priced> = Vec::new();
    // Menus are many and agree on most prices, so that each is noted once, type by type.
    let mut own: Vec<(Price, Want)> = Vec::new();
    for kind in 0..view.kinds.len() {
        own.clear();
        for (pin, menu) in &menus {
            let Some(price) = menu.price_of(kind) else { continue };
            let anywhere = menus.iter().filter(|(other, _)| *pin != Want::NOTHING && *other == Want::NOTHING);
            let dearer = anywhere.filter_map(|(_, other)| other.price_of(kind)).filter(|other| price < *other);
            for price in dearer.chain([price]) {
                if !own.contains(&(price, *pin)) {
                    own.push((price, *pin));
                }
            }
        }
        own.sort_unstable();
        // Of two alike, one of which takes the pods of a domain as well, the other is of no use.
        let is_alike = |(price, pin): &(Price, Want)| {
            *pin == Want::NOTHING && own.iter().any(|other| other.0 == *price && other.1 != Want::NOTHING)
        };
        let useful = own.iter().filter(|priced| !is_alike(priced));
        columns.extend(useful.map(|(price, pin)| Priced { kind, price: *price, pin: *pin }));
    }
    columns
}
