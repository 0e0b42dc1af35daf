//! The order in which a fleet tries its pools.

use std::cmp::Ordering;

use catalogue::MicroDollars;

use crate::AllocationStrategy;

/// A pool that a fleet may use.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// The place of its override in the request, which decides between equals.
    pub(crate) override_index: usize,
    pub(crate) price: MicroDollars,
    pub(crate) priority: Option<f64>,
    /// Instances that the pool still has.
    pub(crate) free: u32,
}

/// A pool with this many free instances is as good as any larger one.
const AMPLE: u32 = 20;

/// How capacity counts for the strategies that look at it: ample, scarce, none.
///
/// AWS does not publish its measure. Ample here means at least half of what the deepest pool has, where more than
/// [`AMPLE`] does not matter: capacity decides when pools run low, price or priority when none does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    Ample,
    Scarce,
    Empty,
}

/// The candidates, best first.
pub(crate) fn ranking(strategy: AllocationStrategy, candidates: &[Candidate]) -> Vec<usize> {
    let deepest = candidates.iter().map(|candidate| candidate.free.min(AMPLE)).max().unwrap_or(0);
    let depth = |candidate: &Candidate| match candidate.free.min(AMPLE) {
        0 => Depth::Empty,
        free if 2 * free >= deepest => Depth::Ample,
        _ => Depth::Scarce,
    };
    let by_price = |one: &Candidate, other: &Candidate| one.price.cmp(&other.price);
    let by_depth = |one: &Candidate, other: &Candidate| depth(one).cmp(&depth(other));
    let compare = |one: &Candidate, other: &Candidate| match strategy {
        AllocationStrategy::LowestPrice => by_price(one, other),
        AllocationStrategy::PriceCapacityOptimized => by_depth(one, other).then_with(|| by_price(one, other)),
        AllocationStrategy::CapacityOptimizedPrioritized => by_depth(one, other).then_with(|| by_priority(one, other)),
        AllocationStrategy::Prioritized => by_priority(one, other),
    };
    let mut order: Vec<&Candidate> = candidates.iter().collect();
    order.sort_by(|one, other| compare(one, other).then(one.override_index.cmp(&other.override_index)));
    order.into_iter().map(|candidate| candidate.override_index).collect()
}

fn by_priority(one: &Candidate, other: &Candidate) -> Ordering {
    match (one.priority, other.priority) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}
