//! The best plan for a few pods, found by trying everything that differs.
//!
//! Filling nodes after the relaxed problem is good where there are many pods and never quite right where there are few.
//! Few pods are most of what a cluster asks for, so they get an exact answer: branch and bound over which pod goes
//! where, cut off by what is known already, within counted steps.

mod kinds;
mod order;
mod realize;
mod settle;

pub(crate) use kinds::ranks;
use kinds::{in_order, place_node, settles, takes_any, useful};

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use model::{HostPort, Price, Requirements, Undefined};

use crate::amounts::{Amounts, add_times, holds};
use crate::attached::Attached;
use crate::bound::{Demanded, worth_of};
use crate::menus::{Candidate, MenuId};
use crate::solver::Solver;
use crate::stance::Stance;
use crate::tallies::{Domain, KeyId, TallyId};

/// More pods than this have too many arrangements to try.
pub(crate) const PODS_MAX: usize = 14;

/// A few tens of milliseconds at most.
const STEPS_MAX: u64 = 200_000;

/// So many types, or nodes, are looked at in the time of a step.
const LOOKS_PER_STEP: u64 = 32;
const NODES_PER_STEP: u64 = 4;

/// What the search for an order counts.
const ORDER_STEPS: u64 = 10;

/// What a plan is ranked by: pods without a place by priority, highest first; then price and overhead of new nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// By rank of the priority.
    pub(crate) unplaced: Vec<usize>,
    pub(crate) price: Price,
}

impl Cost {
    fn compare(&self, other: &Self) -> Ordering {
        self.unplaced.cmp(&other.unplaced).then(self.price.cmp(&other.price))
    }
}

/// In which reading the search takes every class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wishes {
    /// In the strictest one in which a pod of it can go somewhere.
    Kept,
    /// In the most relaxed one, for the sake of pods that would stay out otherwise.
    GivenUp,
}

/// Pods of one class in the reading that the search takes for granted.
struct Kind {
    class: usize,
    stance: Rc<Stance>,
    pods: usize,
    /// Rank of the priority.
    rank: usize,
    worth: f64,
}

/// A node, there or new, as filled so far.
#[derive(Clone, PartialEq, Eq)]
struct Node {
    /// A place, or a pool with what can still be bought.
    site: Site,
    used: Amounts,
    pods: Vec<usize>,
    host_ports: Vec<HostPort>,
    attached: Attached,
    domains: BTreeMap<KeyId, Domain>,
    /// Of a promised place, what its pods rely on together.
    relied_on: Option<Requirements>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    Place(usize),
    New { pool: usize, menu: MenuId },
}

/// A way to seat a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seat {
    /// Onto a node that is there or was opened, with one of its cells.
    Known(usize, usize),
    /// Onto a new node of a pool, in one of its cells.
    New(usize, usize),
}

/// An arrangement that was found.
struct Found {
    nodes: Vec<Node>,
    /// The type of each new node, by position among the nodes.
    types: BTreeMap<usize, Candidate>,
    /// Kind and node of each pod with rules, in order.
    order: Vec<(usize, usize)>,
}

struct Search<'s, 'a> {
    solver: &'s mut Solver<'a>,
    kinds: Vec<Kind>,
    nodes: Vec<Node>,
    unplaced: Vec<usize>,
    known: Cost,
    found: Option<Found>,
    demanded: Vec<Demanded>,
    duals: Vec<f64>,
    /// Pools that are the first for some kind; from others no node is bought.
    useful: Vec<bool>,
    /// After which kinds it can be asked whether all so far can come to their nodes, because nobody who comes later
    /// could help them.
    settles: Vec<bool>,
    steps: Cell<u64>,
}

/// Looks for an arrangement that is better than what is known, and carries it out on a solver that has placed nothing
/// yet. Says whether there was one.
pub(crate) fn improve(solver: &mut Solver<'_>, known: &Cost, wishes: Wishes) -> bool {
    let (demanded, duals) = solver.worth_of_classes();
    let kinds = kinds::kinds(solver, &demanded, &duals, wishes);
    // Nobody's wishes are given up to save money.
    let price = if wishes == Wishes::Kept { known.price } else { Price::ZERO };
    let known = &Cost { price, ..known.clone() };
    let kinds = in_order(solver, kinds);
    // In a large cluster nearly all nodes are full, and every step would look at all of them.
    let open = (0..solver.places.len()).filter(|place| takes_any(solver, *place, &kinds));
    let places = open.map(|place| place_node(solver, place, kinds.len())).collect();
    let useful = useful(solver, &kinds);
    let settles = (0..kinds.len()).map(|kind| settles(solver, &kinds, kind)).collect();
    // Classes that can go nowhere stay out whatever is tried.
    let mut unplaced = vec![0; known.unplaced.len()];
    let ranks = ranks(solver);
    for (class, known) in solver.classes.iter().enumerate() {
        let rank = ranks.iter().position(|priority| *priority == known.spec.priority);
        if let Some(rank) = rank.filter(|_| !kinds.iter().any(|kind| kind.class == class)) {
            unplaced[rank] += known.pods.len();
        }
    }
    let mut search = Search {
        unplaced,
        useful,
        settles,
        nodes: places,
        known: known.clone(),
        found: None,
        steps: Cell::new(0),
        solver,
        kinds,
        demanded,
        duals,
    };
    search.place(0, 0, Seat::Known(0, 0));
    let Search { solver, kinds, found, steps, .. } = search;
    solver.steps += steps.get();
    let improved = found.is_some();
    if let Some(found) = found {
        realize::realize(solver, &kinds, found);
    }
    improved
}

impl Search<'_, '_> {
    fn count(&self, steps: u64) {
        self.steps.set(self.steps.get() + steps);
    }

    fn is_over(&self) -> bool {
        self.steps.get() > STEPS_MAX || self.solver.interrupt.is_raised()
    }

    /// Places the pods of a kind from the given one on; equal pods take seats in order.
    fn place(&mut self, kind: usize, pod: usize, from: Seat) {
        self.count(1 + self.nodes.len() as u64 / NODES_PER_STEP);
        if self.is_over() || self.is_hopeless(kind, pod) {
            return;
        }
        if kind == self.kinds.len() {
            return self.finish();
        }
        if pod == self.kinds[kind].pods {
            return self.next(kind);
        }
        for seat in self.seats(kind, from) {
            let before = if let Seat::Known(node, _) = seat { Some(self.nodes[node].clone()) } else { None };
            if self.sit(kind, seat) {
                // The next one may join it there: what the first settled leaves one cell.
                let taken = if let Seat::Known(node, _) = seat { node } else { self.nodes.len() - 1 };
                let next = Seat::Known(taken, 0);
                self.place(kind, pod + 1, next);
                match (seat, before) {
                    (Seat::Known(node, _), Some(before)) => self.nodes[node] = before,
                    _ => drop(self.nodes.pop()),
                }
            }
        }
        // The others of the kind stay out as well: which of equal pods do makes no difference.
        let (rank, left) = (self.kinds[kind].rank, self.kinds[kind].pods - pod);
        self.unplaced[rank] += left;
        self.next(kind);
        self.unplaced[rank] -= left;
    }

    /// Goes on with the next kind, unless what is settled already cannot come about in any order.
    fn next(&mut self, kind: usize) {
        if self.settles[kind] {
            self.count(ORDER_STEPS);
            if order::find(self).is_none() {
                return;
            }
        }
        self.place(kind + 1, 0, Seat::Known(0, 0));
    }

    /// Seats that are worth a try: of nodes alike only the first.
    fn seats(&mut self, kind: usize, from: Seat) -> Vec<Seat> {
        let mut seats = Vec::new();
        for node in 0..self.nodes.len() {
            let twin = |other: usize| {
                matches!(self.nodes[node].site, Site::New { .. })
                    && Seat::Known(other, usize::MAX) >= from
                    && self.nodes[other] == self.nodes[node]
            };
            if Seat::Known(node, usize::MAX) < from || (0..node).any(twin) {
                continue;
            }
            seats.extend((0..self.cells_of(kind, node)).map(|cell| Seat::Known(node, cell)));
        }
        for pool in (0..self.solver.pools.len()).filter(|pool| self.useful[*pool]) {
            let stance = Rc::clone(&self.kinds[kind].stance);
            let class = self.kinds[kind].class;
            let Some(menu) = self.solver.menu_without_limits(pool, class, &stance) else { continue };
            let cells = self.solver.cells(pool, menu, &stance.rules.keys).len();
            seats.extend((0..cells).map(|cell| Seat::New(pool, cell)));
        }
        seats.retain(|seat| *seat >= from);
        seats
    }

    /// In how many ways a pod of a kind could settle the domains of a node.
    fn cells_of(&mut self, kind: usize, node: usize) -> usize {
        match self.nodes[node].site {
            Site::Place(_) => 1,
            Site::New { pool, menu } => {
                let stance = Rc::clone(&self.kinds[kind].stance);
                let Some(menu) = self.solver.joined(pool, menu, &stance) else { return 0 };
                self.solver.cells(pool, menu, &stance.rules.keys).len()
            }
        }
    }

    /// Seats a pod if nothing speaks against it that holds in any order.
    fn sit(&mut self, kind: usize, seat: Seat) -> bool {
        let stance = Rc::clone(&self.kinds[kind].stance);
        let class = self.kinds[kind].class;
        let (position, mut node) = match seat {
            Seat::Known(position, cell) => {
                let mut node = self.nodes[position].clone();
                if let Site::New { pool, menu } = node.site {
                    let Some(menu) = self.solver.joined(pool, menu, &stance) else { return false };
                    let cell = self.solver.cells(pool, menu, &stance.rules.keys)[cell].clone();
                    node.site = Site::New { pool, menu: cell.menu };
                    node.domains.extend(cell.domains);
                }
                (Some(position), node)
            }
            Seat::New(pool, cell) => {
                let Some(menu) = self.solver.menu_without_limits(pool, class, &stance) else { return false };
                let cell = self.solver.cells(pool, menu, &stance.rules.keys)[cell].clone();
                (
                    None,
                    Node {
                        site: Site::New { pool, menu: cell.menu },
                        used: vec![0; self.solver.table.len()].into(),
                        pods: vec![0; self.kinds.len()],
                        host_ports: Vec::new(),
                        attached: Attached::default(),
                        domains: cell.domains.into_iter().collect(),
                        relied_on: None,
                    },
                )
            }
        };
        if !self.admits(&mut node, kind) || !self.gets_along(&node, position, kind) {
            return false;
        }
        match position {
            Some(position) => self.nodes[position] = node,
            None => {
                self.nodes.push(node);
                if !self.within_limits() {
                    self.nodes.pop();
                    return false;
                }
            }
        }
        true
    }

    /// Adds a pod to a node if size, labels, taints, ports and volumes allow it.
    fn admits(&self, node: &mut Node, kind: usize) -> bool {
        let kind_of = &self.kinds[kind];
        let class = &self.solver.classes[kind_of.class];
        let ports = &class.spec.host_ports;
        if ports.iter().any(|port| node.host_ports.iter().any(|taken| taken.collides_with(port))) {
            return false;
        }
        add_times(&mut node.used, &class.demand, 1);
        node.pods[kind] += 1;
        if let Site::Place(place) = node.site {
            let view = &self.solver.places[place];
            let limits = &view.place.attach_limits;
            let alone = view.takes(class, &kind_of.stance, &self.solver.snapshot.vocabulary) > 0;
            if !alone || !holds(&view.before, &node.used) || node.attached.copies(&class.attaching, limits).is_err() {
                return false;
            }
        }
        if let Some(relied_on) = &mut node.relied_on {
            // Where a promised node will be is not settled, unless its claim says so.
            if kind_of.stance.rules.keys.iter().any(|key| !node.domains.contains_key(key)) {
                return false;
            }
            let undefined = Undefined::MayBeGiven(&self.solver.snapshot.vocabulary);
            if relied_on.satisfy(&kind_of.stance.requirements, undefined).is_err() {
                return false;
            }
            relied_on.add_all(&kind_of.stance.requirements);
        }
        node.attached.add(&class.attaching, 1);
        node.host_ports.extend(ports.iter().cloned());
        match node.site {
            Site::Place(_) => true,
            Site::New { pool, menu } => self.cheapest(pool, menu, node).is_some(),
        }
    }

    /// The cheapest type that holds what is on a new node.
    fn cheapest(&self, pool: usize, menu: MenuId, node: &Node) -> Option<Candidate> {
        self.holding(pool, menu, node).next()
    }

    fn holding<'n>(&'n self, pool: usize, menu: MenuId, node: &'n Node) -> impl Iterator<Item = Candidate> + 'n {
        let view = &self.solver.pools[pool];
        // A look at a type is a small part of a step.
        self.count(1 + view.menu(menu).candidates.len() as u64 / LOOKS_PER_STEP);
        view.menu(menu).candidates.iter().copied().filter(move |candidate| {
            let kind = &view.kinds[candidate.kind];
            let attaches = |(driver, count): (&model::Text, &u32)| {
                kind.kind.attach_limits.get(driver).is_none_or(|limit| count <= limit)
            };
            holds(&view.rooms[candidate.kind], &node.used)
                && !kind.ports_collide(&node.host_ports)
                && node.attached.by_driver.iter().all(attaches)
        })
    }

    /// Whether nobody within the same domain keeps the other away. This holds in any order.
    fn gets_along(&self, node: &Node, position: Option<usize>, kind: usize) -> bool {
        let rules = &self.kinds[kind].stance.rules;
        let apart = |tally: TallyId, other: usize| {
            let looks = &self.solver.looks[self.kinds[other].class];
            looks.counted.contains(&tally) || looks.counted_by_host.contains(&tally)
        };
        // The pod itself is on the node already.
        let alone_on_host = rules.host.iter().filter(|limit| limit.is_exclusive()).all(|limit| {
            let base = match node.site {
                Site::Place(place) => self.solver.tallies.get(limit.tally).count(Domain(place)),
                Site::New { .. } => 0,
            };
            let others: usize =
                (0..self.kinds.len()).filter(|other| apart(limit.tally, *other)).map(|other| node.pods[other]).sum();
            usize::try_from(base).unwrap_or(usize::MAX).saturating_add(others) <= limit.most as usize
        });
        let alone_in_domain = rules.away.iter().all(|rule| {
            let Some(domain) = node.domains.get(&rule.key) else { return true };
            let base = self.solver.tallies.get(rule.tally).count(*domain);
            let elsewhere = self.nodes.iter().enumerate().filter(|(other, _)| Some(*other) != position);
            let there = elsewhere.filter(|(_, other)| other.domains.get(&rule.key) == Some(domain));
            let counted =
                |other: &Node| (0..self.kinds.len()).any(|kind| other.pods[kind] > 0 && apart(rule.tally, kind));
            let itself = usize::from(apart(rule.tally, kind));
            let here: usize =
                (0..self.kinds.len()).filter(|other| apart(rule.tally, *other)).map(|other| node.pods[other]).sum();
            base == 0 && !there.map(|(_, other)| other).any(counted) && here <= itself
        });
        alone_on_host && alone_in_domain
    }

    /// Whether nothing that is still to be decided can make this better than what is known.
    fn is_hopeless(&self, kind: usize, pod: usize) -> bool {
        match self.unplaced.cmp(&self.known.unplaced) {
            Ordering::Less => false,
            Ordering::Equal => self.least_price(kind, pod) >= self.known.price,
            // Ranks still to come may only get worse.
            Ordering::Greater => true,
        }
    }

    /// No arrangement that goes on from here and leaves nobody else out costs less.
    fn least_price(&self, kind: usize, pod: usize) -> Price {
        let overhead = self.solver.config.node_overhead;
        let mut opened = Price::ZERO;
        let (mut to_hold, mut room) = (0.0, 0.0);
        for node in &self.nodes {
            match node.site {
                Site::New { pool, menu } => {
                    let price = self.cheapest(pool, menu, node).map_or(Price::ZERO, |candidate| candidate.price);
                    opened = opened.plus(price).plus(overhead);
                    let worth = node.pods.iter().zip(&self.kinds).map(|(pods, kind)| *pods as f64 * kind.worth);
                    to_hold += worth.sum::<f64>();
                }
                Site::Place(place) => {
                    let before = &self.solver.places[place].before;
                    let free: Vec<i64> = before.iter().zip(&node.used).map(|(before, used)| before - used).collect();
                    room += worth_of(&free, &self.demanded, &self.duals);
                }
            }
        }
        for (index, other) in self.kinds.iter().enumerate().skip(kind) {
            let left = if index == kind { other.pods - pod } else { other.pods };
            to_hold += left as f64 * other.worth;
        }
        opened.max(Price::from_dollars((to_hold - room).max(0.0) * (1.0 - 1e-9)))
    }
}
