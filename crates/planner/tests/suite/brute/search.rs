//! Tries every way to put pods on nodes, and cuts off what cannot become better than what is known.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use model::{Labels, NodeName, Price, ResourceName, Text, labels};

use super::order::{self, Part, Party};
use super::problem::{Problem, bits};
use super::{Cost, Found, Outcome};

/// Few cases of ten pods need more.
const STEPS_MAX: u64 = 1_000_000;

/// What a question to the referee counts.
const QUESTION_STEPS: u64 = 100;

/// A new node whose type is still open.
#[derive(Clone, PartialEq, Eq)]
struct Bin {
    group: usize,
    open: u128,
    counts: Vec<usize>,
    used: Vec<i64>,
}

/// What the referee was asked: new nodes by candidate and existing ones, each with those who count there.
type Asked = (Part, Vec<(usize, Vec<usize>)>, Vec<Vec<usize>>);

/// Where a pod can go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seat {
    Existing(usize),
    Bin(usize),
    New(usize),
}

pub(super) struct Search<'a> {
    problem: &'a Problem,
    known: Option<Cost>,
    better: Option<Found>,
    steps: u64,
    /// Counts of kinds by existing node.
    there: Vec<Vec<usize>>,
    free: Vec<Vec<i64>>,
    bins: Vec<Bin>,
    unplaced: BTreeMap<Reverse<i32>, usize>,
    /// What the referee said before.
    answers: BTreeMap<Asked, bool>,
    /// Pools that are the first for some kind; from others no node is bought.
    useful: Vec<bool>,
    /// Whether every pod may be given a node of any pool.
    any_pool: bool,
    /// Per kind and resource, the least that a pod costs: its share of the node on which it is cheapest.
    shares: Vec<Vec<f64>>,
    /// Per resource, the most that a unit of it can be worth.
    worth: Vec<f64>,
}

impl<'a> Search<'a> {
    pub(super) fn new(problem: &'a Problem, known: Option<Cost>) -> Self {
        let shares =
            problem.kinds.iter().map(|kind| shares(problem, kind.candidates, &kind.requests)).collect::<Vec<_>>();
        let resources = problem.kinds.first().map_or(0, |kind| kind.requests.len());
        let worth = (0..resources).map(|resource| {
            let each = problem.kinds.iter().zip(&shares).filter(|(kind, _)| kind.requests[resource] > 0);
            each.map(|(kind, shares)| shares[resource] / kind.requests[resource] as f64).fold(0.0, f64::max)
        });
        Self {
            problem,
            known,
            better: None,
            steps: 0,
            there: problem.existing.iter().map(|_| vec![0; problem.kinds.len()]).collect(),
            free: problem.existing.iter().map(|node| node.free.clone()).collect(),
            bins: Vec::new(),
            unplaced: BTreeMap::new(),
            answers: BTreeMap::new(),
            useful: (0..problem.pools.len()).map(|pool| is_useful(problem, pool)).collect(),
            any_pool: false,
            worth: worth.collect(),
            shares,
        }
    }

    /// The same search without regard to the weights of pools.
    #[allow(dead_code, reason = "other tests use other parts of it")]
    pub(super) fn with_any_pool(mut self) -> Self {
        self.useful.fill(true);
        self.any_pool = true;
        self
    }

    pub(super) fn run(mut self) -> Outcome {
        self.place(0, 0, Seat::Existing(0));
        match (self.steps > STEPS_MAX, self.better) {
            (true, _) => Outcome::TooLarge,
            (false, None) => Outcome::NothingBetter,
            (false, Some(found)) => Outcome::Better(found),
        }
    }

    /// Places the pods of a kind from the given one on; equal pods fill seats in order.
    fn place(&mut self, kind: usize, pod: usize, from: Seat) {
        self.steps += 1;
        if self.steps > STEPS_MAX || self.is_hopeless(kind, pod) {
            return;
        }
        let Some(known) = self.problem.kinds.get(kind) else { return self.finish() };
        if pod == known.pods.len() {
            return self.next(kind);
        }
        for seat in self.seats(from) {
            let before = if let Seat::Bin(index) = seat { Some(self.bins[index].clone()) } else { None };
            if self.sit(kind, seat) {
                let taken = if let Seat::New(_) = seat { Seat::Bin(self.bins.len() - 1) } else { seat };
                self.place(kind, pod + 1, taken);
                self.rise(kind, seat, before);
            }
        }
        // All the others of the kind stay out as well: which of equal pods do makes no difference.
        let left = known.pods.len() - pod;
        *self.unplaced.entry(Reverse(known.priority)).or_insert(0) += left;
        self.next(kind);
        let count = self.unplaced.entry(Reverse(known.priority)).or_insert(0);
        *count -= left;
        if *count == 0 {
            self.unplaced.remove(&Reverse(known.priority));
        }
    }

    /// Goes on with the next kind, unless what is settled already cannot come about.
    fn next(&mut self, kind: usize) {
        let problem = self.problem;
        let possible = problem.settled[kind].as_ref().is_none_or(|settled| {
            let cheapest: Vec<usize> = self.bins.iter().filter_map(|bin| problem.cheapest(bin.open)).collect();
            self.can_come_about(&cheapest, Part::Beginning, |kind| settled.contains(&kind))
        });
        if possible {
            self.place(kind + 1, 0, Seat::Existing(0));
        }
    }

    fn seats(&self, from: Seat) -> Vec<Seat> {
        let existing = (0..self.problem.existing.len()).map(Seat::Existing);
        let fresh = |index: &usize| {
            let twin = |other: &usize| Seat::Bin(*other) >= from && self.bins[*other] == self.bins[*index];
            !(0..*index).any(|other| twin(&other))
        };
        let bins = (0..self.bins.len()).filter(fresh).map(Seat::Bin);
        let new = (0..self.problem.groups.len()).map(Seat::New);
        existing.chain(bins).chain(new).filter(|seat| *seat >= from).collect()
    }

    /// Seats a pod of a kind if nothing speaks against it; a new seat becomes the last bin.
    fn sit(&mut self, kind: usize, seat: Seat) -> bool {
        let known = &self.problem.kinds[kind];
        match seat {
            Seat::Existing(index) => {
                let fits =
                    known.requests.iter().zip(&self.free[index]).all(|(wanted, free)| *wanted <= 0 || wanted <= free);
                if !known.nodes[index] || !fits || !self.gets_along(kind, seat) {
                    return false;
                }
                self.free[index].iter_mut().zip(&known.requests).for_each(|(free, wanted)| *free -= wanted);
                self.there[index][kind] += 1;
            }
            Seat::Bin(index) => {
                let used: Vec<i64> =
                    self.bins[index].used.iter().zip(&known.requests).map(|(used, wanted)| used + wanted).collect();
                let open = self.roomy(self.bins[index].open & known.candidates, &used);
                if open == 0 || !self.gets_along(kind, seat) {
                    return false;
                }
                let bin = &mut self.bins[index];
                (bin.open, bin.used) = (open, used);
                bin.counts[kind] += 1;
            }
            Seat::New(group) => {
                let open = self.problem.groups[group].members & known.candidates;
                let useful = self.useful[self.problem.groups[group].pool];
                if open == 0 || !useful || !self.gets_along(kind, seat) {
                    return false;
                }
                let mut counts = vec![0; self.problem.kinds.len()];
                counts[kind] = 1;
                self.bins.push(Bin { group, open, counts, used: known.requests.clone() });
                if !self.within_limits() {
                    self.bins.pop();
                    return false;
                }
            }
        }
        true
    }

    fn rise(&mut self, kind: usize, seat: Seat, before: Option<Bin>) {
        match (seat, before) {
            (Seat::Existing(index), _) => {
                let wanted = &self.problem.kinds[kind].requests;
                self.free[index].iter_mut().zip(wanted).for_each(|(free, wanted)| *free += wanted);
                self.there[index][kind] -= 1;
            }
            (Seat::Bin(index), Some(before)) => self.bins[index] = before,
            (Seat::Bin(_) | Seat::New(_), _) => drop(self.bins.pop()),
        }
    }

    /// Those candidates that have room for what is used.
    fn roomy(&self, among: u128, used: &[i64]) -> u128 {
        let fits =
            |index: &usize| used.iter().zip(&self.problem.candidates[*index].free).all(|(used, free)| used <= free);
        bits(among).filter(fits).fold(0, |mask, index| mask | 1 << index)
    }

    /// Whether nobody within the same domain keeps the other away. This holds in any order.
    fn gets_along(&self, kind: usize, seat: Seat) -> bool {
        let problem = self.problem;
        let labels_of = |seat: Seat| -> &Labels {
            match seat {
                Seat::Existing(index) => &problem.existing[index].labels,
                Seat::Bin(index) => &problem.groups[self.bins[index].group].labels,
                Seat::New(group) => &problem.groups[group].labels,
            }
        };
        let here = labels_of(seat);
        let existing = (0..problem.existing.len()).map(|index| (Seat::Existing(index), &self.there[index]));
        let bins = (0..self.bins.len()).map(|index| (Seat::Bin(index), &self.bins[index].counts));
        existing.chain(bins).all(|(other, counts)| {
            let there = labels_of(other);
            let same = |key: &Text| match &**key {
                labels::HOSTNAME => other == seat,
                _ => here.get(key).is_some() && here.get(key) == there.get(key),
            };
            let present = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            present.into_iter().all(|(other, _)| !problem.conflicts[kind][other].iter().any(same))
        })
    }

    /// Whether the pools' limits could hold if every new node became the smallest that is still open.
    fn within_limits(&self) -> bool {
        self.problem.pools.iter().enumerate().all(|(pool, known)| {
            known.limits.iter().all(|(name, limit)| {
                let mine = self.bins.iter().filter(|bin| self.problem.groups[bin.group].pool == pool);
                let least = mine.map(|bin| bits(bin.open).map(|index| self.uses(index, name)).min().unwrap_or(0));
                known.in_use.get(name) + least.sum::<i64>() <= limit
            })
        })
    }

    fn uses(&self, candidate: usize, name: &ResourceName) -> i64 {
        if *name == ResourceName::nodes() { 1 } else { self.problem.candidates[candidate].new.capacity.get(name) }
    }

    /// Whether nothing that is still to be decided can make this better than what is known.
    fn is_hopeless(&self, kind: usize, pod: usize) -> bool {
        let Some(known) = self.known.as_ref() else { return false };
        let decided = Cost { unplaced: self.unplaced.clone(), price: Price::ZERO };
        match decided.compare_unplaced(known) {
            // Some may still stay out, which costs nothing.
            Ordering::Less => false,
            Ordering::Equal => self.least_price(kind, pod) >= known.price,
            Ordering::Greater => true,
        }
    }

    /// No plan that goes on from here and leaves nobody else out costs less.
    fn least_price(&self, kind: usize, pod: usize) -> Price {
        let problem = self.problem;
        let prices = self.bins.iter().filter_map(|bin| problem.cheapest(bin.open));
        let opened: Price = prices.map(|index| problem.candidates[index].price).sum();
        let open = |other: usize| match other.cmp(&kind) {
            Ordering::Less => 0,
            Ordering::Equal => problem.kinds[other].pods.len() - pod,
            Ordering::Greater => problem.kinds[other].pods.len(),
        };
        let on_bins = |other: usize| self.bins.iter().map(|bin| bin.counts[other]).sum::<usize>();
        let by_shares = (0..self.worth.len()).map(|resource| {
            let each = (0..problem.kinds.len())
                .map(|other| (open(other) + on_bins(other)) as f64 * self.shares[other][resource]);
            let free: i64 = self.free.iter().map(|free| free[resource].max(0)).sum();
            each.sum::<f64>() - free as f64 * self.worth[resource]
        });
        // Shares are rounded sums: leave room for the rounding.
        let by_shares = Price::from_dollars(by_shares.fold(0.0, f64::max) * (1.0 - 1e-9));
        opened.max(by_shares)
    }

    /// Everything is decided but the types: finds the cheapest that limits allow, and asks whether the plan is legal.
    fn finish(&mut self) {
        let mut chosen = Vec::new();
        let Some((price, chosen)) = self.choose_types(&mut chosen, Price::ZERO, None) else { return };
        let cost = Cost { unplaced: self.unplaced.clone(), price };
        if self.known.as_ref().is_some_and(|known| cost >= *known) {
            return;
        }
        let legal = !self.problem.has_order || self.can_come_about(&chosen, Part::Whole, |_| true);
        if !self.respects_pools(&chosen) || !legal {
            return;
        }
        self.known = Some(cost.clone());
        self.better = Some(Found { cost, text: self.describe(&chosen) });
    }

    fn choose_types(
        &self,
        chosen: &mut Vec<usize>,
        price: Price,
        mut best: Option<(Price, Vec<usize>)>,
    ) -> Option<(Price, Vec<usize>)> {
        let rest = self.bins.iter().skip(chosen.len()).filter_map(|bin| self.problem.cheapest(bin.open));
        let least = price.plus(rest.map(|index| self.problem.candidates[index].price).sum());
        if best.as_ref().is_some_and(|(known, _)| least >= *known) || !self.limits_hold(chosen) {
            return best;
        }
        let Some(bin) = self.bins.get(chosen.len()) else { return Some((price, chosen.clone())) };
        let mut open: Vec<usize> = bits(bin.open).collect();
        open.sort_by_key(|index| self.problem.candidates[*index].price);
        for index in open {
            chosen.push(index);
            best = self.choose_types(chosen, price.plus(self.problem.candidates[index].price), best);
            chosen.pop();
        }
        best
    }

    fn limits_hold(&self, chosen: &[usize]) -> bool {
        (0..self.problem.pools.len()).all(|pool| self.has_room(pool, chosen, None))
    }

    /// Whether a pool's limits leave room for its chosen nodes and perhaps one more.
    fn has_room(&self, pool: usize, chosen: &[usize], more: Option<usize>) -> bool {
        let known = &self.problem.pools[pool];
        let mine = || chosen.iter().copied().chain(more).filter(|index| self.problem.candidates[*index].pool == pool);
        mine().next().is_none()
            || known.limits.iter().all(|(name, limit)| {
                known.in_use.get(name) + mine().map(|index| self.uses(index, name)).sum::<i64>() <= limit
            })
    }

    /// Whether every pod with a new node has it from the first pool that could make one for it, or uses room that was
    /// there anyway.
    fn respects_pools(&self, chosen: &[usize]) -> bool {
        self.any_pool
            || self.bins.iter().zip(chosen).all(|(bin, index)| {
                let pool = self.problem.groups[bin.group].pool;
                let kinds = || (0..bin.counts.len()).filter(|kind| bin.counts[*kind] > 0);
                let (natives, guests): (Vec<usize>, Vec<usize>) =
                    kinds().partition(|kind| self.is_native(*kind, pool, chosen));
                guests.is_empty()
                    || (!natives.is_empty()
                        && self.price_without_guests(bin, &natives) == self.problem.candidates[*index].price)
            })
    }

    fn is_native(&self, kind: usize, pool: usize, chosen: &[usize]) -> bool {
        let known = &self.problem.kinds[kind];
        let could = |index: &usize| {
            let earlier = self.problem.candidates[*index].pool;
            earlier < pool && self.has_room(earlier, chosen, Some(*index))
        };
        !bits(known.candidates).any(|index| could(&index))
    }

    fn price_without_guests(&self, bin: &Bin, natives: &[usize]) -> Price {
        let mut used = vec![0; bin.used.len()];
        let mut open = self.problem.groups[bin.group].members;
        for kind in natives {
            let known = &self.problem.kinds[*kind];
            let count = i64::try_from(bin.counts[*kind]).unwrap_or(i64::MAX);
            used.iter_mut().zip(&known.requests).for_each(|(used, wanted)| *used += wanted * count);
            open &= known.candidates;
        }
        self.problem.cheapest(self.roomy(open, &used)).map_or(Price::ZERO, |index| self.problem.candidates[index].price)
    }

    /// Whether those who count can come to their nodes one after the other.
    fn can_come_about(&mut self, chosen: &[usize], part: Part, counts: impl Fn(usize) -> bool) -> bool {
        let counted = |present: &[usize]| {
            let each = present.iter().enumerate();
            each.map(|(kind, count)| if counts(kind) { *count } else { 0 }).collect::<Vec<usize>>()
        };
        let mut nodes: Vec<(usize, Vec<usize>)> = Vec::new();
        for (bin, candidate) in self.bins.iter().zip(chosen) {
            nodes.push((*candidate, counted(&bin.counts)));
        }
        nodes.sort();
        let key = (part, nodes, self.there.iter().map(|present| counted(present)).collect::<Vec<_>>());
        if let Some(known) = self.answers.get(&key) {
            return *known;
        }
        self.steps += QUESTION_STEPS;
        let answer = self.ask_referee(chosen, part, counts);
        self.answers.insert(key, answer);
        answer
    }

    fn ask_referee(&self, chosen: &[usize], part: Part, counts: impl Fn(usize) -> bool) -> bool {
        let mut situation = self.problem.base.clone();
        let name = |index: usize| NodeName::new(format!("new {index}"));
        for (index, candidate) in chosen.iter().enumerate() {
            self.problem.candidates[*candidate].new.join(&mut situation, &name(index));
        }
        let existing = self.problem.existing.iter().zip(&self.there).map(|(node, counts)| (node.name.clone(), counts));
        let bins = self.bins.iter().enumerate().map(|(index, bin)| (name(index), &bin.counts));
        let party = |(node, present): (NodeName, &Vec<usize>)| {
            let present = present.iter().enumerate().filter(|(kind, count)| **count > 0 && counts(*kind));
            present.map(|(kind, count)| Party { kind, node: node.clone(), count: *count }).collect::<Vec<_>>()
        };
        let parties: Vec<Party> = existing.chain(bins).flat_map(party).collect();
        order::exists(self.problem, &situation, &parties, part)
    }

    fn describe(&self, chosen: &[usize]) -> String {
        let pods = |counts: &[usize]| {
            let present = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            let each = present.map(|(kind, count)| format!("{}×{count}", self.problem.kinds[kind].pods[0].key.name));
            each.collect::<Vec<_>>().join(" ")
        };
        let bins = self.bins.iter().zip(chosen).map(|(bin, index)| {
            let candidate = &self.problem.candidates[*index];
            let zone = candidate.new.node.labels.get(labels::ZONE).map_or("", |zone| zone);
            let pool = &self.problem.pools[candidate.pool].name;
            format!("{pool} {} {zone} ${}: {}", candidate.new.kind, candidate.new.price.dollars(), pods(&bin.counts))
        });
        let there = self.problem.existing.iter().zip(&self.there).filter(|(_, counts)| counts.iter().any(|it| *it > 0));
        let there = there.map(|(node, counts)| format!("{}: {}", node.name, pods(counts)));
        let unplaced =
            self.unplaced.iter().map(|(Reverse(priority), count)| format!("nowhere: {count} of priority {priority}"));
        bins.chain(there).chain(unplaced).collect::<Vec<_>>().join("\n")
    }
}

/// Whether pods of some kind could come to have this pool as their first.
fn is_useful(problem: &Problem, pool: usize) -> bool {
    let could_be_first = |candidates: u128| {
        let mut pools = bits(candidates).map(|index| problem.candidates[index].pool);
        pools.all(|other| other >= pool || !problem.pools[other].limits.is_empty())
    };
    problem.kinds.iter().any(|kind| could_be_first(kind.candidates))
}

/// Per resource, the part of a node's price that its part of the node comes to, where that is least.
fn shares(problem: &Problem, candidates: u128, requests: &[i64]) -> Vec<f64> {
    let share = |(resource, wanted): (usize, &i64)| {
        let of = |index: usize| {
            let candidate = &problem.candidates[index];
            candidate.price.dollars() * *wanted as f64 / (candidate.free[resource].max(1) as f64)
        };
        if *wanted <= 0 { 0.0 } else { bits(candidates).map(of).reduce(f64::min).unwrap_or(0.0) }
    };
    requests.iter().enumerate().map(share).collect()
}
