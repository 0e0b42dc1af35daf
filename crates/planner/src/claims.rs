//! New nodes, and the room that is left on those planned already.

use std::cmp::{Ordering, Reverse};
use std::rc::Rc;

use model::{Attempt, PlannedClaim, PodKey, Price, Requirements, Resources, Undefined, Vocabulary};

use crate::config::PlaceConfig;
use crate::daemons::GIVEN_LATER;
use crate::place::{Demand, Waiting};
use crate::pools::{Candidate, PoolView};
use crate::sizing::{Size, choose, sizes};

/// A claim in the making.
struct Planned {
    /// Position of its pool in the order of pools.
    pool: usize,
    requirements: Requirements,
    /// Types that meet its requirements and hold its pods, cheapest first.
    candidates: Rc<[Candidate]>,
    /// The type it is priced as, and whose footprint it holds.
    priced_as: Candidate,
    held: Resources,
    /// What its pods ask for, without daemons.
    requests: Resources,
    pods: Vec<PodKey>,
    /// Claims with the same number are equal but for the names of their pods.
    shape: u64,
}

/// A type that a claim may be of when so many more pods join it.
#[derive(Clone, Copy)]
struct Way {
    candidate: Candidate,
    copies: i64,
}

/// How the waiting pods would do on new nodes of the first pool that takes them.
pub(crate) struct NewNodes {
    /// Position of that pool in the order of pools.
    pub(crate) pool: usize,
    sizes: Vec<Size>,
}

/// All claims of a plan.
pub(crate) struct Claims<'c> {
    config: &'c PlaceConfig,
    vocabulary: &'c Vocabulary,
    planned: Vec<Planned>,
    shapes: u64,
    /// How many types were looked at.
    pub(crate) steps: u64,
}

impl<'c> Claims<'c> {
    pub(crate) fn new(config: &'c PlaceConfig, vocabulary: &'c Vocabulary) -> Self {
        Self { config, vocabulary, planned: Vec::new(), shapes: 0, steps: 0 }
    }

    /// Puts pods on planned claims as long as that costs nothing, first claim first.
    pub(crate) fn fill(&mut self, pools: &mut [PoolView<'_>], demand: &Demand<'_>, waiting: &mut Waiting<'_>) {
        let free = |_: &Planned, ways: &[Way], _: i64| {
            ways.iter().copied().max_by_key(|way| (way.copies, Reverse(way.candidate)))
        };
        self.join(pools, demand, waiting, Reach::SamePrice, free);
    }

    /// Puts pods on planned claims that become dearer by it, where that costs no more than new nodes would.
    ///
    /// A claim of a heavier pool than the one that new nodes would come from grows at any price, one of a lighter
    /// pool never: weights come before prices. Without new nodes to compare with, every claim grows as far as it can.
    pub(crate) fn grow(
        &mut self,
        pools: &mut [PoolView<'_>],
        demand: &Demand<'_>,
        waiting: &mut Waiting<'_>,
        new: Option<&NewNodes>,
    ) {
        let overhead = self.config.node_overhead;
        let worth = |planned: &Planned, ways: &[Way], count: i64| {
            let furthest = || ways.iter().copied().max_by_key(|way| (way.copies, Reverse(way.candidate)));
            let Some(new) = new else { return furthest() };
            match planned.pool.cmp(&new.pool) {
                Ordering::Less => furthest(),
                Ordering::Greater => None,
                Ordering::Equal => {
                    let way = cheapest_per_pod(planned.priced_as.price, ways)?;
                    let cost = |pods| choose(&new.sizes, pods, overhead).map_or(Price::ZERO, |choice| choice.cost);
                    let grown = way.candidate.price.plus(cost(count - way.copies));
                    (grown <= planned.priced_as.price.plus(cost(count))).then_some(way)
                }
            }
        };
        self.join(pools, demand, waiting, Reach::AnyPrice, worth);
    }

    /// Offers every planned claim to the pods; `pick` chooses among the ways in which some of them could join it.
    fn join(
        &mut self,
        pools: &mut [PoolView<'_>],
        demand: &Demand<'_>,
        waiting: &mut Waiting<'_>,
        reach: Reach,
        pick: impl Fn(&Planned, &[Way], i64) -> Option<Way>,
    ) {
        let mut allowed = vec![None; pools.len()];
        let mut refused_shape = None;
        for position in 0..self.planned.len() {
            while !waiting.is_empty() && self.steps < self.config.steps_max {
                let planned = &self.planned[position];
                let pool = &mut pools[planned.pool];
                let asks = || !pool.candidates(demand.attempt, self.vocabulary).is_empty();
                if refused_shape == Some(planned.shape) || !*allowed[planned.pool].get_or_insert_with(asks) {
                    break;
                }
                self.steps += planned.hopeful(reach).len() as u64;
                let joined = planned.joined_requirements(demand.attempt, self.vocabulary);
                let ways = joined
                    .as_ref()
                    .map_or_else(Vec::new, |joined| planned.ways(pool, demand, joined, reach, waiting.count()));
                let Some((way, joined)) = pick(planned, &ways, waiting.count()).zip(joined) else {
                    refused_shape = Some(planned.shape);
                    break;
                };
                self.shapes += 1;
                let shape = self.shapes;
                self.planned[position].admit(pool, demand, Joining { way, joined, shape }, waiting);
            }
        }
    }

    /// The first pool that takes the pods, with the sizes of nodes in question.
    pub(crate) fn new_nodes(&mut self, pools: &mut [PoolView<'_>], demand: &Demand<'_>) -> Option<NewNodes> {
        (0..pools.len()).find_map(|pool| self.new_nodes_in(pools, pool, demand))
    }

    fn new_nodes_in(&mut self, pools: &mut [PoolView<'_>], pool: usize, demand: &Demand<'_>) -> Option<NewNodes> {
        let candidates = pools[pool].candidates(demand.attempt, self.vocabulary);
        self.steps += candidates.len() as u64;
        let sizes = sizes(&pools[pool], &candidates, demand.requests);
        (!sizes.is_empty()).then_some(NewNodes { pool, sizes })
    }

    /// Opens claims for the waiting pods, pool after pool, until none waits or no pool takes more.
    pub(crate) fn open(&mut self, pools: &mut [PoolView<'_>], demand: &Demand<'_>, waiting: &mut Waiting<'_>) {
        while !waiting.is_empty() {
            let Some(new) = self.new_nodes(pools, demand) else { return };
            let Some(choice) = choose(&new.sizes, waiting.count(), self.config.node_overhead) else { return };
            let pool = &mut pools[new.pool];
            let held = pool.types[choice.candidate.index].footprint.clone();
            pool.limits.take(&held, choice.nodes);
            let holding = new.sizes.iter().filter(|size| size.copies >= choice.copies);
            let candidates: Rc<[Candidate]> = holding.map(|size| size.candidate).collect();
            let mut requests = Resources::none();
            requests.add_times(demand.requests, choice.copies);
            let requirements = pool.requirements.and(&demand.attempt.requirements);
            self.shapes += 1;
            for _ in 0..choice.nodes {
                self.planned.push(Planned {
                    pool: new.pool,
                    requirements: requirements.clone(),
                    candidates: Rc::clone(&candidates),
                    priced_as: choice.candidate,
                    held: held.clone(),
                    requests: requests.clone(),
                    pods: waiting.take(choice.copies),
                    shape: self.shapes,
                });
            }
        }
    }

    /// The claims as the plan tells them. What limits left over goes to the first claims that can use it.
    pub(crate) fn finish(self, pools: &mut [PoolView<'_>]) -> Vec<PlannedClaim> {
        let types_max = self.config.types_per_claim_max.max(1);
        self.planned.into_iter().map(|planned| planned.finish(pools, types_max)).collect()
    }
}

/// Which types of a claim are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Those that leave its price as it is.
    SamePrice,
    /// All.
    AnyPrice,
}

/// Pods that join a claim.
struct Joining {
    way: Way,
    joined: Requirements,
    shape: u64,
}

/// The way with the smallest price increase for each pod; of those the one for the most pods.
fn cheapest_per_pod(price: Price, ways: &[Way]) -> Option<Way> {
    // (a - price) / copies of a <= (b - price) / copies of b, without subtraction and division.
    let compare = |left: &&Way, right: &&Way| {
        let count = |way: &Way| u64::try_from(way.copies).unwrap_or(u64::MAX);
        let (own, other) = (count(left), count(right));
        let left_side = left.candidate.price.times(other).plus(price.times(own));
        let right_side = right.candidate.price.times(own).plus(price.times(other));
        left_side.cmp(&right_side).then(other.cmp(&own)).then(left.candidate.cmp(&right.candidate))
    };
    ways.iter().min_by(compare).copied()
}

impl Planned {
    fn joined_requirements(&self, attempt: &Attempt, vocabulary: &Vocabulary) -> Option<Requirements> {
        let wanted = &attempt.requirements;
        self.requirements.satisfy(wanted, Undefined::MayBeGiven(vocabulary)).ok()?;
        Some(self.requirements.and(wanted))
    }

    /// The types to look at. Narrower demands never lower a price, so that the old prices tell which are in reach.
    fn hopeful(&self, reach: Reach) -> &[Candidate] {
        let end = match reach {
            Reach::SamePrice => self.candidates.partition_point(|candidate| candidate.price <= self.priced_as.price),
            Reach::AnyPrice => self.candidates.len(),
        };
        &self.candidates[..end]
    }

    /// In which types some of the pods could join.
    fn ways(
        &self,
        pool: &PoolView<'_>,
        demand: &Demand<'_>,
        joined: &Requirements,
        reach: Reach,
        count: i64,
    ) -> Vec<Way> {
        let narrower = *joined != self.requirements;
        let in_reach = |price: Price| reach == Reach::AnyPrice || price <= self.priced_as.price;
        let way = |candidate: &Candidate| {
            let view = &pool.types[candidate.index];
            let copies = demand.requests.copies_in(&view.room.minus(&self.requests)).min(count);
            if copies <= 0 || pool.limits.admit(&view.footprint, &self.held).is_err() {
                return None;
            }
            let repriced = || pool.meeting([candidate.index], joined).first().copied();
            let candidate = if narrower { repriced()? } else { *candidate };
            in_reach(candidate.price).then_some(Way { candidate, copies })
        };
        self.hopeful(reach).iter().filter_map(way).collect()
    }

    fn admit(&mut self, pool: &mut PoolView<'_>, demand: &Demand<'_>, joining: Joining, waiting: &mut Waiting<'_>) {
        let Joining { way, joined, shape } = joining;
        self.requests.add_times(demand.requests, way.copies);
        let holds = |candidate: &&Candidate| self.requests.fit_into(&pool.types[candidate.index].room).is_ok();
        let holding = self.candidates.iter().filter(holds);
        self.candidates = if joined == self.requirements {
            holding.copied().collect()
        } else {
            pool.meeting(holding.map(|candidate| candidate.index), &joined).into()
        };
        pool.limits.give_back(&self.held);
        self.held = pool.types[way.candidate.index].footprint.clone();
        pool.limits.take(&self.held, 1);
        self.priced_as = way.candidate;
        self.requirements = joined;
        self.shape = shape;
        self.pods.extend(waiting.take(way.copies));
    }

    fn finish(self, pools: &mut [PoolView<'_>], types_max: usize) -> PlannedClaim {
        let Self { pool, mut requirements, candidates, priced_as, held, mut requests, pods, shape: _ } = self;
        let pool = &mut pools[pool];
        let within = |candidate: &&Candidate| {
            pool.limits.is_unlimited() || pool.limits.admit(&pool.types[candidate.index].footprint, &held).is_ok()
        };
        let listed: Vec<Candidate> = candidates.iter().filter(within).take(types_max).copied().collect();
        let mut largest = Resources::none();
        let mut overhead: Option<Resources> = None;
        for candidate in &listed {
            let view = &pool.types[candidate.index];
            largest.raise_to(&view.footprint);
            overhead =
                Some(overhead.map_or_else(|| (*view.overhead).clone(), |sum| sum.common_minimum(&view.overhead)));
        }
        pool.limits.give_back(&held);
        pool.limits.take(&largest, 1);
        requests.add(&overhead.unwrap_or_default());
        GIVEN_LATER.into_iter().for_each(|key| requirements.remove(key));
        PlannedClaim {
            pool: pool.pool.name.clone(),
            requirements,
            types: listed.iter().map(|candidate| pool.types[candidate.index].kind.name.clone()).collect(),
            requests,
            price: listed.first().map_or(priced_as.price, |candidate| candidate.price),
            pods,
        }
    }
}
