//! Which pods go to places that are there, and what the others ask of new nodes.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::{Price, Stage};

use crate::amounts::share;
use crate::bins::Bin;
use crate::cells::{Cell, allowed, choose};
use crate::menus::{Candidate, MenuId};
use crate::reserved::Supply;
use crate::rules::{HostLimit, NearRule};
use crate::search::PODS_MAX;
use crate::solver::{Barred, Leftover, Order, Solver};
use crate::stance::Stance;
use crate::tallies::{Domain, KeyId, TallyId};

/// Where a pod with rules between pods can go.
pub(crate) enum Seat {
    Place(usize),
    /// A node that pods who want to share a host have opened.
    Bin(usize),
    Cell {
        pool: usize,
        cell: Cell,
    },
}

/// Places for the pods of one class that come one after the other, in the order in which they are filled.
#[derive(Default)]
struct Candidates {
    /// Those that were looked at and still take such a pod, rules between pods aside.
    fitting: Vec<usize>,
    /// The first that was not looked at yet.
    next: usize,
}

impl Solver<'_> {
    /// Finds every pod a place or an order; who waits for somebody that came later gets another turn.
    pub(crate) fn seat_all(&mut self) {
        let mut waiting: Vec<Leftover> = Vec::new();
        for class in 0..self.classes.len() {
            let (all, barred) =
                (self.classes[class].pods.len(), self.barred.get(&class).map_or(0, |barred| barred.pods));
            let open = all.saturating_sub(barred);
            waiting.push(Leftover { class, pods: (0..open).collect(), crowded_out_of: None });
            waiting.push(Leftover { class, pods: (open..all).collect(), crowded_out_of: None });
        }
        waiting.retain(|leftover| !leftover.pods.is_empty());
        let mut before = count(&waiting);
        self.seat_by_priority(&mut waiting);
        loop {
            waiting.retain(|leftover| !leftover.pods.is_empty());
            let left = count(&waiting);
            if left == 0 || left == before || !waiting.iter().any(|left| self.waits_for_others(left.class)) {
                break;
            }
            before = left;
            for leftover in &mut waiting {
                self.seat_class(leftover);
            }
        }
        self.leftovers = waiting;
    }

    /// Among pods that matter equally, those that were promised a place come before those that were not.
    fn seat_by_priority(&mut self, waiting: &mut [Leftover]) {
        let priority = |leftover: &Leftover| self.classes[leftover.class].spec.priority;
        let priorities: Vec<i32> = waiting.iter().map(priority).collect();
        let mut rest = waiting;
        for equal in priorities.chunk_by(|one, other| one == other) {
            let (level, lower) = rest.split_at_mut(equal.len());
            self.seat_kept(level);
            level.iter_mut().for_each(|leftover| self.seat_class(leftover));
            rest = lower;
        }
    }

    fn waits_for_others(&self, class: usize) -> bool {
        let spec = &self.classes[class].spec;
        !(spec.affinity.is_empty() && spec.spread.is_empty())
    }

    /// Seats what can be seated of a class, reading by reading.
    fn seat_class(&mut self, leftover: &mut Leftover) {
        if !self.classes[leftover.class].spec.unplanned_rules.is_empty() {
            return;
        }
        for stance in self.stances(leftover.class).iter() {
            if leftover.pods.is_empty() || self.deferred.contains_key(&leftover.class) {
                break;
            }
            // A pool that had no room for pods on whom others rely may have some for pods that ask for less.
            self.closed = if stance.rules.come_first() { self.closed_to(leftover) } else { BTreeSet::new() };
            if stance.rules.is_free() {
                self.seat_free(leftover, stance);
            } else {
                self.seat_ruled(leftover, stance);
            }
        }
        self.closed.clear();
    }

    /// Pools that turned out to have no room for these pods.
    fn closed_to(&self, leftover: &Leftover) -> BTreeSet<usize> {
        let all = self.classes[leftover.class].pods.len();
        let concerns = |barred: &&Barred| leftover.pods.iter().all(|pod| pod + barred.pods >= all);
        self.barred.get(&leftover.class).filter(concerns).map(|barred| barred.pools.clone()).unwrap_or_default()
    }

    /// Pods that nobody cares for: as many as fit on each place, the rest to new nodes.
    fn seat_free(&mut self, leftover: &mut Leftover, stance: &Rc<Stance>) {
        let class = &self.classes[leftover.class];
        for view in &mut self.places {
            if leftover.pods.is_empty() {
                return;
            }
            self.steps += 1;
            if view.has_room(class) {
                let copies = view.takes(class, stance, &self.snapshot.vocabulary);
                let copies = usize::try_from(copies).unwrap_or(0).min(leftover.pods.len());
                if copies == 0 {
                    continue;
                }
                self.free_sequence.extend(leftover.pods[..copies].iter().map(|pod| (leftover.class, *pod)));
                view.take(class, stance, leftover.pods.drain(..copies));
            }
        }
        if leftover.pods.is_empty() {
            return;
        }
        if let Some((pool, menu)) = self.route(leftover.class, stance) {
            self.order(leftover.class, stance, pool, crate::interner::Want::NOTHING, menu, &mut leftover.pods);
        }
    }

    fn order(
        &mut self,
        class: usize,
        stance: &Rc<Stance>,
        pool: usize,
        pin: crate::interner::Want,
        menu: MenuId,
        pods: &mut Vec<usize>,
    ) {
        let same = |order: &&mut Order| {
            order.class == class && order.pool == pool && order.pin == pin && Rc::ptr_eq(&order.stance, stance)
        };
        let taken = std::mem::take(pods);
        // Pods of a class come together, so that an order to join is among the latest.
        match self.orders.iter_mut().rev().take(ORDERS_TO_JOIN).find(same) {
            Some(order) => order.pods.extend(taken),
            None => {
                let stance = Rc::clone(stance);
                self.orders.push(Order { class, stance, pool, pin, menu, pods: taken, settled: 0 });
            }
        }
    }

    /// Pods with rules between pods, one by one: each changes the counts for the next.
    fn seat_ruled(&mut self, leftover: &mut Leftover, stance: &Rc<Stance>) {
        let class = leftover.class;
        let mut candidates = Candidates::default();
        let mut left = Vec::new();
        let mut pods = std::mem::take(&mut leftover.pods).into_iter();
        while let Some(pod) = pods.next() {
            let Some(seat) = self.find_seat(class, stance, &mut candidates, pods.len() + 1) else {
                left.push(pod);
                break;
            };
            let place = if let Seat::Place(place) = seat { Some(place) } else { None };
            self.take_seat(class, stance, pod, seat);
            if let Some(place) = place.filter(|place| !self.fits(*place, class, stance)) {
                candidates.fitting.retain(|candidate| *candidate != place);
            }
        }
        left.extend(pods);
        leftover.pods = left;
    }

    pub(crate) fn fits(&self, place: usize, class: usize, stance: &Stance) -> bool {
        self.places[place].takes_one(&self.classes[class], stance, &self.snapshot.vocabulary)
    }

    fn find_seat(
        &mut self,
        class: usize,
        stance: &Rc<Stance>,
        candidates: &mut Candidates,
        waiting: usize,
    ) -> Option<Seat> {
        self.steps += 1;
        let begins = self.begins_a_host(stance);
        let place = if begins { self.place_to_begin(class, stance, waiting) } else { None };
        let place = place.or_else(|| self.first_place(class, stance, candidates));
        if let Some(place) = place {
            return Some(Seat::Place(place));
        }
        if !stance.rules.host_near.is_empty() || stance.rules.is_sought_on_host {
            let bin = (0..self.bins.len()).find(|bin| self.bin_allows(*bin, class, stance));
            if bin.is_some() || !(begins || stance.rules.host_near.is_empty()) {
                return bin.map(Seat::Bin);
            }
        }
        (0..self.pools.len()).find_map(|pool| {
            let sold = self.menu_for(pool, class, stance);
            let menu = sold.or_else(|| match self.supply(pool, class, stance) {
                Supply::Left(menu) => Some(menu),
                Supply::Full | Supply::None => None,
            })?;
            let cells = self.cells(pool, menu, &stance.rules.keys);
            let prices: Vec<Option<Price>> = cells.iter().map(|cell| self.price_in(pool, cell, class)).collect();
            let load_of = |cell: &Cell| self.loads.get(&cell.pin).copied().unwrap_or(0);
            let cell = choose(&cells, &stance.rules, &self.tallies, &prices, load_of)?.clone();
            Some(Seat::Cell { pool, cell })
        })
    }

    /// What a pod of a class costs in a cell, if it can be had there: the cheapest node that holds it. Many pods share nodes,
    /// and then it is the pod's part of the node whose part is cheapest.
    fn price_in(&mut self, pool: usize, cell: &Cell, class: usize) -> Option<Price> {
        let alone = self.price_for(pool, cell.menu, class)?;
        if self.snapshot.pending.len() <= PODS_MAX {
            return Some(alone);
        }
        let demand = &self.classes[class].demand;
        let known = self.parts.entry((pool, cell.menu)).or_default();
        if let Some(known) = known.get(demand) {
            return Some(*known);
        }
        let view = &self.pools[pool];
        let part = |candidate: &Candidate| {
            let part = share(demand, &view.rooms[candidate.kind]);
            if part <= 1.0 { candidate.price.dollars() * part } else { f64::INFINITY }
        };
        let parts = view.menu(cell.menu).candidates.iter().map(part);
        let cheapest = Price::from_dollars(parts.fold(alone.dollars(), f64::min));
        known.insert(demand.clone(), cheapest);
        Some(cheapest)
    }

    /// Whether the pod wants company on its host, and there is none anywhere, and it may be the first.
    fn begins_a_host(&self, stance: &Stance) -> bool {
        let first = |rule: &NearRule| self.tallies.get(rule.tally).total == 0 && rule.counts_itself;
        !stance.rules.host_near.is_empty() && stance.rules.host_near.iter().all(first)
    }

    /// The first place that takes a pod and that its rules allow. No place is looked at before all earlier ones turned
    /// out not to do: most pods need not look far.
    fn first_place(&mut self, class: usize, stance: &Stance, candidates: &mut Candidates) -> Option<usize> {
        self.steps += candidates.fitting.len() as u64;
        let known = candidates.fitting.iter().copied().find(|place| self.place_allows(*place, class, stance));
        if known.is_some() {
            return known;
        }
        while candidates.next < self.places.len() {
            let place = candidates.next;
            candidates.next += 1;
            self.steps += 1;
            if self.fits(place, class, stance) {
                candidates.fitting.push(place);
                if self.place_allows(place, class, stance) {
                    return Some(place);
                }
            }
        }
        None
    }

    /// A place for a whole group that wants to share a host: the first that holds all who wait.
    fn place_to_begin(&mut self, class: usize, stance: &Stance, waiting: usize) -> Option<usize> {
        self.steps += self.places.len() as u64;
        let holds_all = |place: &usize| {
            let copies = self.places[*place].takes(&self.classes[class], stance, &self.snapshot.vocabulary);
            usize::try_from(copies).unwrap_or(0) >= waiting
        };
        (0..self.places.len()).filter(holds_all).find(|place| self.place_allows(*place, class, stance))
    }

    pub(crate) fn place_allows(&self, place: usize, class: usize, stance: &Stance) -> bool {
        let rules = &stance.rules;
        // Pods with rules about their host may come in any order among themselves, so that all limits hold for all.
        let crowded = |tally: &TallyId| {
            let most = self.ceilings.get(&(place, *tally)).copied().unwrap_or(u32::MAX);
            self.tallies.get(*tally).count(Domain(place)) >= most
        };
        if !self.ceilings.is_empty() && self.looks[class].counted_by_host.iter().any(crowded) {
            return false;
        }
        let host = |limit: &HostLimit| {
            let count = self.tallies.get(limit.tally).count(Domain(place));
            count + u32::from(limit.counts_itself) <= limit.most
        };
        // Where a promised node will be is not settled, unless its claim says so.
        let open = |key: &KeyId| self.tallies.domain_of_place(*key, place).is_none();
        if self.places[place].place.stage == Stage::Promised && rules.keys.iter().any(open) {
            return false;
        }
        let near = |rule: &NearRule| crate::cells::near_allows(rule, Domain(place), &self.tallies);
        let domain_of = |key: KeyId| self.tallies.domain_of_place(key, place);
        rules.host.iter().all(host) && rules.host_near.iter().all(near) && allowed(rules, &self.tallies, domain_of)
    }

    /// Whether a node opened by pods that share a host takes one more that wants to be with them.
    fn bin_allows(&mut self, bin: usize, class: usize, stance: &Stance) -> bool {
        let rules = &stance.rules;
        let company = |rule: &NearRule| self.bins[bin].hosts.count(rule.tally) > 0;
        if !rules.host_near.iter().all(company) {
            return false;
        }
        let domains = &self.bins[bin].domains;
        let domain_of = |key: KeyId| domains.iter().find(|(known, _)| *known == key).map(|(_, domain)| *domain);
        allowed(rules, &self.tallies, domain_of) && self.bin_takes(bin, class, stance)
    }

    pub(crate) fn take_seat(&mut self, class: usize, stance: &Rc<Stance>, pod: usize, seat: Seat) {
        let looks = Rc::clone(&self.looks[class]);
        // Only pods whose domain is settled by a rule are counted by domain: they come first in the plan's sequence, so
        // that nobody else is there yet when the kube-scheduler asks.
        let by_domain = if stance.rules.come_first() { &looks.counted[..] } else { &[][..] };
        if stance.rules.come_first() { &mut self.sequence } else { &mut self.host_sequence }.push((class, pod));
        match seat {
            Seat::Place(place) => {
                self.places[place].take(&self.classes[class], stance, std::iter::once(pod));
                let counted = by_domain.iter().chain(&looks.counted_by_host);
                counted.for_each(|tally| self.tallies.add_on_place(*tally, place, 1));
                for limit in &stance.rules.host {
                    let most = self.ceilings.entry((place, limit.tally)).or_insert(u32::MAX);
                    *most = limit.most.min(*most);
                }
            }
            Seat::Bin(bin) => {
                let domains = self.bins[bin].domains.clone();
                self.count_in(by_domain, &domains);
                looks.counted_by_host.iter().for_each(|tally| self.tallies.add_somewhere(*tally, 1));
                self.bin_take(bin, class, stance, pod);
            }
            Seat::Cell { pool, cell } => {
                self.count_in(by_domain, &cell.domains);
                looks.counted_by_host.iter().for_each(|tally| self.tallies.add_somewhere(*tally, 1));
                *self.loads.entry(cell.pin).or_insert(0) += 1;
                if stance.rules.host_near.is_empty() && !stance.rules.is_sought_on_host {
                    self.order(class, stance, pool, cell.pin, cell.menu, &mut vec![pod]);
                } else {
                    self.open_shared(pool, &cell, class);
                    self.bin_take(self.bins.len() - 1, class, stance, pod);
                }
            }
        }
    }

    /// Opens a node for pods that share a host. It holds its part of the pool's limits at once, as the smallest it can
    /// become; see [`Solver::pack_all`] for the rest.
    fn open_shared(&mut self, pool: usize, cell: &Cell, class: usize) {
        let mut bin = Bin::opened(pool, cell.menu, cell.domains.clone(), self.table.len());
        bin.is_open = true;
        let view = &self.pools[pool];
        let holds = |candidate: &&Candidate| view.takes_alone(candidate.kind, &self.classes[class]);
        bin.kind = view.menu(cell.menu).candidates.iter().find(holds).map(|candidate| candidate.kind);
        if let Some(footprint) = bin.kind.map(|kind| view.kinds[kind].footprint.clone()) {
            self.pools[pool].limits.take(&footprint, 1);
        }
        self.bins.push(bin);
    }

    fn count_in(&mut self, tallies: &[TallyId], domains: &[(KeyId, Domain)]) {
        for tally in tallies {
            let key = self.tallies.get(*tally).key;
            match domains.iter().find(|(known, _)| *known == key) {
                Some((_, domain)) => self.tallies.add(*tally, *domain, 1),
                None => self.tallies.add_somewhere(*tally, 1),
            }
        }
    }
}

/// An order to join is sought among this many: one for each cell of a class, with room to spare.
const ORDERS_TO_JOIN: usize = 64;

fn count(leftovers: &[Leftover]) -> usize {
    leftovers.iter().map(|leftover| leftover.pods.len()).sum()
}
