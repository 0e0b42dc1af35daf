//! The plan as it is told: claims, nominations, refusals, and the order of pods.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use model::{Nomination, Plan, PlannedClaim, PodKey, PoolRefusal, Price, Requirements, TypeName, Unplaced};

use crate::bins::{Bin, holds_bin};
use crate::daemons::{Burden, GIVEN_LATER};
use crate::interner::{Hashed, Index};
use crate::limits::Footprint;
use crate::menus::{Candidate, MenuId, PoolView};
use crate::solver::Solver;

/// Lists that many claims share.
#[derive(Default)]
struct Shared {
    /// By pool and positions of the types. Lists are long, and hashed faster than compared.
    types: Hashed<(usize, Vec<usize>), Arc<[TypeName]>>,
    requirements: BTreeMap<(usize, MenuId), Arc<Requirements>>,
    /// By pool.
    namesakes: BTreeMap<usize, Vec<usize>>,
}

impl Solver<'_> {
    /// The plan.
    pub(crate) fn finish(mut self) -> Plan {
        let bound = Price::from_dollars(self.bound());
        let claims = self.claims();
        let sequence = self.told_sequence();
        let unplaced = self.unplaced();
        let barren_pools = self.barren_pools();
        let used = self.places.into_iter().filter(|view| !view.pods.is_empty());
        let nominations = used
            .map(|view| Nomination { place: view.place.id.clone(), pods: view.pods.into_iter().cloned().collect() });
        Plan {
            revision: self.snapshot.revision,
            bound,
            claims,
            nominations: nominations.collect(),
            unplaced,
            barren_pools,
            sequence,
            steps: self.steps,
            interrupted: self.steps >= self.config.steps_max || self.interrupt.is_raised(),
        }
    }

    /// Every new node. What limits left over goes to the first claims that can use it.
    fn claims(&mut self) -> Vec<PlannedClaim> {
        let bins = std::mem::take(&mut self.bins);
        let mut drawn = vec![0; self.orders.len()];
        let mut shared = Shared::default();
        let mut claims = Vec::new();
        for bin in &bins {
            // Where limits leave no trace, nodes that are repeated list the same types.
            let is_steady = self.pools[bin.pool].limits.is_unlimited();
            let mut last: Option<PlannedClaim> = None;
            for _ in 0..bin.times {
                let before = last.take().filter(|_| is_steady);
                let mut claim = before.unwrap_or_else(|| self.claim(bin, &mut shared));
                let mut pods = Vec::new();
                for load in &bin.loads {
                    let (order, count) = (&self.orders[load.order], load.pods as usize);
                    let from = drawn[load.order];
                    let class = &self.classes[order.class];
                    pods.extend(order.pods[from..from + count].iter().map(|pod| class.pods[*pod].key.clone()));
                    drawn[load.order] += count;
                }
                last = Some(claim.clone());
                claim.pods = pods;
                claims.push(claim);
            }
        }
        claims
    }

    /// A new node, without its pods.
    fn claim(&mut self, bin: &Bin, shared: &mut Shared) -> PlannedClaim {
        let types_max = self.config.types_per_claim_max.max(1);
        let requests = self.table.resources(&bin.used);
        let pool = &mut self.pools[bin.pool];
        let held = bin.kind.map(|kind| pool.kinds[kind].footprint.clone()).unwrap_or_default();
        let listed = listed(pool, bin, &held, types_max);
        let mut burdens: Vec<&Rc<Burden>> = Vec::new();
        let mut largest = Footprint::none();
        for candidate in &listed {
            let view = &pool.kinds[candidate.kind];
            if !pool.limits.is_unlimited() {
                largest.raise_to(&view.footprint);
            }
            // Types with the same daemons share one value.
            if !burdens.iter().any(|known| Rc::ptr_eq(known, &view.burden)) {
                burdens.push(&view.burden);
            }
        }
        let overheads = burdens.iter().map(|burden| burden.requests.clone());
        let overhead = overheads.reduce(|least, other| least.common_minimum(&other)).unwrap_or_default();
        pool.limits.give_back(&held);
        pool.limits.take(&largest, 1);
        let kinds: Vec<usize> = listed.iter().map(|candidate| candidate.kind).collect();
        let types = shared.types.entry((bin.pool, kinds)).or_insert_with_key(|(number, kinds)| {
            names(pool, kinds, shared.namesakes.entry(*number).or_insert_with(|| namesakes(pool)))
        });
        let requirements = shared.requirements.entry((bin.pool, bin.menu)).or_insert_with(|| {
            let mut requirements = pool.menu(bin.menu).requirements.as_ref().clone();
            GIVEN_LATER.into_iter().for_each(|key| requirements.remove(key));
            Arc::new(requirements)
        });
        let lowered = bin.variety.as_ref().filter(|variety| **variety != pool.variety);
        let requirements = match lowered {
            Some(variety) => Arc::new(variety.stated_in(requirements)),
            None => Arc::clone(requirements),
        };
        PlannedClaim {
            pool: pool.pool.name.clone(),
            requirements,
            types: Arc::clone(types),
            requests: requests.plus(&overhead),
            price: listed.first().map_or(bin.price, |candidate| candidate.price),
            min_values_relaxed: lowered.is_some(),
            pods: Vec::new(),
        }
    }

    fn unplaced(&mut self) -> Vec<Unplaced> {
        let mut leftovers = std::mem::take(&mut self.leftovers);
        leftovers.sort_by_key(|leftover| leftover.class);
        let mut unplaced: Vec<Unplaced> = Vec::new();
        for leftover in leftovers {
            let (refusals, places) = match self.deferred.get(&leftover.class) {
                Some((pool, refusal)) => {
                    (vec![PoolRefusal { pool: pool.clone(), refusal: refusal.clone() }], Vec::new())
                }
                None => self.reasons(leftover.class),
            };
            let class = &self.classes[leftover.class];
            let pods = leftover.pods.iter().map(|pod| class.pods[*pod].key.clone()).collect();
            unplaced.push(Unplaced { class: Arc::clone(class.spec), pods, refusals, places });
        }
        unplaced
    }

    /// Pods with rules about shared domains in the order in which they were placed, then those with rules about their
    /// host, then all others.
    fn told_sequence(&self) -> Vec<PodKey> {
        let free = self.orders.iter().filter(|order| order.stance.rules.is_free());
        let free = free.flat_map(|order| order.pods[..order.settled].iter().map(|pod| (order.class, *pod)));
        let mut left = BTreeSet::new();
        let is_ruled = !(self.sequence.is_empty() && self.host_sequence.is_empty());
        for leftover in self.leftovers.iter().filter(|_| is_ruled) {
            left.extend(leftover.pods.iter().map(|pod| (leftover.class, *pod)));
        }
        if self.overflowed && is_ruled {
            // Pods whom limits sent elsewhere may have given up their rules on the way: they come with those without.
            left.extend(free.clone());
        }
        let ruled = self.sequence.iter().chain(&self.host_sequence).copied();
        let ruled = ruled.filter(|pod| left.is_empty() || !left.contains(pod));
        let all = ruled.chain(self.free_sequence.iter().copied()).chain(free);
        all.map(|(class, pod)| self.classes[class].pods[pod].key.clone()).collect()
    }
}

/// The types that a claim may list: those that hold its pods and, whichever is taken, leave the pool within its limits.
fn listed(pool: &PoolView<'_>, bin: &Bin, held: &Footprint, types_max: usize) -> Vec<Candidate> {
    let (is_unlimited, is_plain) = (pool.limits.is_unlimited(), bin.is_plain());
    let within =
        |candidate: &&Candidate| is_unlimited || pool.limits.admit(&pool.kinds[candidate.kind].footprint, held).is_ok();
    let candidates = &pool.menu(bin.menu).candidates;
    // Without limits a node is priced as the cheapest type that holds it: cheaper ones do not.
    let from = if is_unlimited { candidates.partition_point(|candidate| candidate.price < bin.price) } else { 0 };
    let mut listed = Vec::with_capacity(types_max.min(candidates.len() - from));
    // Hundreds of types are asked about each node.
    let needs: Vec<(usize, i64)> = bin.used.iter().copied().enumerate().filter(|(_, used)| *used > 0).collect();
    for candidate in &candidates[from..] {
        let room = &pool.rooms[candidate.kind];
        let has_room = needs.iter().all(|(resource, used)| *used <= room[*resource]);
        if has_room && (is_plain || holds_bin(pool, bin, candidate.kind)) && within(&candidate) {
            listed.push(*candidate);
            if listed.len() == types_max {
                break;
            }
        }
    }
    listed
}

/// The names of types, each told once: some are sold with more room here than there, and stand in the list for each.
fn names(pool: &PoolView<'_>, kinds: &[usize], namesakes: &[usize]) -> Arc<[TypeName]> {
    let mut told = vec![false; pool.kinds.len()];
    let kinds = kinds.iter().filter(|kind| !std::mem::replace(&mut told[namesakes[**kind]], true));
    kinds.map(|kind| pool.kinds[*kind].kind.name.clone()).collect()
}

/// By type of a pool, the first type of that name.
fn namesakes(pool: &PoolView<'_>) -> Vec<usize> {
    let mut first: Index<&TypeName> = Index::default();
    let kinds = pool.kinds.iter();
    kinds.map(|view| *first.entry(&view.kind.name).or_insert(view.position)).collect()
}
