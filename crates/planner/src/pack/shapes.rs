//! Orders of one size together: to the search for cheap nodes, only size and menu matter.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Domains;
use super::even::Evenly;
use crate::amounts::{Amounts, share};
use crate::interner::Want;
use crate::menus::MenuId;
use crate::solver::Solver;
use crate::tallies::TallyId;

/// Orders whose pods are of one size and can use the same types.
pub(super) struct Shape {
    pub(super) demand: Amounts,
    pub(super) menu: MenuId,
    /// The domain that such pods have in every plan.
    pub(super) pin: Want,
    /// Of the crowds, the one that such a pod belongs to.
    pub(super) crowd: Option<usize>,
    /// Whether two such pods cannot share a host because of a port.
    pub(super) has_ports: bool,
    pub(super) orders: Vec<usize>,
    pub(super) remaining: i64,
    /// How many more of them another plan could have in their domain.
    pub(super) spare: i64,
    /// How much of the roomiest type one pod takes, of the resource it takes most of.
    share: f64,
}

impl Shape {
    /// The order of shapes that take as much.
    fn rank(&self) -> impl Ord {
        (self.crowd.is_none(), Reverse(&self.demand), self.menu, self.has_ports)
    }
}

/// Pods of which only one goes on a node: so many nodes there must be.
pub(super) struct Crowd {
    tally: TallyId,
    pods: i64,
}

/// More of them tell the search little.
const CROWDS_MAX: usize = 3;

/// A crowd of less than this part of all pods does not decide about the number of nodes.
const CROWD_PART: i64 = 20;

impl Solver<'_> {
    /// Pods that keep each other off their host, when they are many.
    pub(super) fn crowds(&self, orders: &[usize]) -> Vec<Crowd> {
        let mut pods: BTreeMap<TallyId, i64> = BTreeMap::new();
        let mut all = 0;
        for order in orders.iter().map(|order| &self.orders[*order]) {
            all += order.remaining();
            for limit in order.stance.rules.host.iter().filter(|limit| limit.is_solitary()) {
                *pods.entry(limit.tally).or_insert(0) += order.remaining();
            }
        }
        let many = pods.into_iter().filter(|(_, pods)| *pods > 1 && *pods * CROWD_PART >= all);
        let mut crowds: Vec<Crowd> = many.map(|(tally, pods)| Crowd { tally, pods }).collect();
        crowds.sort_by_key(|crowd| (Reverse(crowd.pods), crowd.tally));
        crowds.truncate(CROWDS_MAX);
        crowds
    }

    /// The shapes of some orders, largest first.
    pub(super) fn shapes(
        &mut self,
        pool: usize,
        orders: &[usize],
        crowds: &[Crowd],
        even: &Evenly,
        domains: Domains,
    ) -> Vec<Shape> {
        let roomiest = self.roomiest(pool);
        let mut known: BTreeMap<(Amounts, MenuId, Want, Option<usize>, bool), usize> = BTreeMap::new();
        let mut shapes: Vec<Shape> = Vec::new();
        for number in orders {
            let order = &self.orders[*number];
            let class = &self.classes[order.class];
            let limits = &order.stance.rules.host;
            let crowd = crowds
                .iter()
                .position(|crowd| limits.iter().any(|limit| limit.is_solitary() && limit.tally == crowd.tally));
            let has_ports = !class.spec.host_ports.is_empty();
            // Another plan could choose other domains than these pods were given: no bound may rest on them.
            let (menu, pin) = if domains == Domains::Settled || even.contains_key(&order.class) {
                (order.menu, order.pin)
            } else {
                let menu = self.pools[pool].join(MenuId::OWN, order.stance.want, &self.wants);
                (menu.unwrap_or(order.menu), Want::NOTHING)
            };
            let key = (class.demand.clone(), menu, pin, crowd, has_ports);
            let position = *known.entry(key).or_insert_with(|| {
                let demand = class.demand.clone();
                let share = share(&demand, &roomiest);
                shapes.push(Shape {
                    demand,
                    menu,
                    pin,
                    crowd,
                    has_ports,
                    orders: Vec::new(),
                    remaining: 0,
                    spare: 0,
                    share,
                });
                shapes.len() - 1
            });
            shapes[position].orders.push(*number);
            shapes[position].remaining += order.remaining();
            shapes[position].spare += even.get(&order.class).map_or(0, |even| even.most - order.remaining());
        }
        shapes.sort_by(|left, right| right.share.total_cmp(&left.share).then_with(|| left.rank().cmp(&right.rank())));
        shapes
    }

    /// Per resource the most that any type of the pool has.
    fn roomiest(&self, pool: usize) -> Amounts {
        let mut most: Amounts = vec![0; self.table.len()].into();
        for room in self.pools[pool].rooms.iter() {
            most.iter_mut().zip(room).for_each(|(most, room)| *most = (*most).max(*room));
        }
        most
    }
}
