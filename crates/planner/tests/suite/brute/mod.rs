//! The best plan for a small snapshot, found by trying everything.
//!
//! Which node takes which pod is tried in every way that differs; whether the pods can come there one after the other is
//! asked of the referee. Legal plans are ranked by the objective: per priority, highest first, the fewest pods without a
//! place; then the price of the new nodes with an overhead for each. A pod that needs a new node gets it from the first
//! pool that can make one for it, limits permitting; free room on nodes of other pools may be used all the same.
//!
//! Knows pools, nodes, pods that run, and every rule of waiting pods; not promised nodes, reservations or `minValues`.

mod order;
mod problem;
mod search;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::{Plan, PodKey, Price, Snapshot};

use problem::Problem;

/// What a plan is ranked by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// How many pods have no place, by priority.
    pub(crate) unplaced: BTreeMap<std::cmp::Reverse<i32>, usize>,
    /// Price and overhead of the new nodes.
    pub(crate) price: Price,
}

impl Cost {
    /// What a plan costs.
    pub(crate) fn of(snapshot: &Snapshot, plan: &Plan, overhead: Price) -> Self {
        let priorities: BTreeMap<&PodKey, i32> =
            snapshot.pending.iter().map(|pod| (&pod.key, pod.class.priority)).collect();
        let mut unplaced = BTreeMap::new();
        for pod in plan.unplaced.iter().flat_map(|unplaced| &unplaced.pods) {
            *unplaced.entry(std::cmp::Reverse(priorities[pod])).or_insert(0) += 1;
        }
        let claims = u64::try_from(plan.claims.len()).unwrap_or(u64::MAX);
        Self { unplaced, price: plan.price().plus(overhead.times(claims)) }
    }

    /// Compares the pods without a place alone: highest priority first.
    pub(crate) fn compare_unplaced(&self, other: &Self) -> Ordering {
        let keys: std::collections::BTreeSet<_> = self.unplaced.keys().chain(other.unplaced.keys()).collect();
        let count = |cost: &Self, key| cost.unplaced.get(key).copied().unwrap_or(0);
        keys.into_iter()
            .map(|key| count(self, key).cmp(&count(other, key)))
            .find(|it| it.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cost {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare_unplaced(other).then(self.price.cmp(&other.price))
    }
}

/// A plan that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// What it costs.
    pub(crate) cost: Cost,
    /// What it looks like, for people.
    pub(crate) text: String,
}

/// What came of a search.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// No legal plan is better than the one that was asked about.
    NothingBetter,
    /// A better one.
    Better(Found),
    /// There was too much to try.
    TooLarge,
}

/// Looks for the best legal plan that is better than a given cost; any plan is better than `None`.
pub(crate) fn best(snapshot: &Snapshot, overhead: Price, than: Option<&Cost>) -> Outcome {
    let problem = Problem::new(snapshot, overhead);
    search::Search::new(&problem, than.cloned()).run()
}

/// Looks for a legal plan that places more pods than a given cost says, from whatever pools: a pool's weight is no reason
/// to leave a pod out.
#[allow(dead_code, reason = "other tests use other parts of it")]
pub(crate) fn more_placed(snapshot: &Snapshot, than: &Cost) -> Outcome {
    let problem = Problem::new(snapshot, Price::ZERO);
    search::Search::new(&problem, Some(than.clone())).with_any_pool().run()
}
