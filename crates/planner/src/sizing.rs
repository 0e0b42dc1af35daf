//! The choice of a node size by price, for many equal pods at once.

use model::{Price, Resources};

use crate::pools::{Candidate, PoolView};

/// A type that holds at least one of the pods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) candidate: Candidate,
    /// How many of the pods one node holds.
    pub(crate) copies: i64,
    /// How many such nodes the pool's limits allow.
    pub(crate) nodes_max: i64,
}

/// The sizes that come into question for pods with these requests.
pub(crate) fn sizes(pool: &PoolView<'_>, candidates: &[Candidate], requests: &Resources) -> Vec<Size> {
    let size = |candidate: &Candidate| {
        let view = pool.types.get(candidate.index)?;
        let copies = requests.copies_in(&view.room);
        let nodes_max = if copies > 0 { pool.limits.nodes_max(&view.footprint) } else { 0 };
        (nodes_max > 0).then_some(Size { candidate: *candidate, copies, nodes_max })
    };
    candidates.iter().filter_map(size).collect()
}

/// Nodes of one type for a number of pods, and what holding all of the pods will cost on this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) candidate: Candidate,
    /// How many of the pods one node holds.
    pub(crate) copies: i64,
    /// How many such nodes to open now, at least one.
    pub(crate) nodes: i64,
    /// The price of these nodes and of the cheapest node for the rest, with the overhead of each.
    pub(crate) cost: Price,
}

/// For a number of pods the cheapest price of one node that holds them, over all sizes.
struct Holders {
    /// Copies ascending, each with the lowest price among sizes with at least as many.
    by_copies: Vec<(i64, Price)>,
}

impl Holders {
    fn of(sizes: &[Size]) -> Self {
        let mut by_copies: Vec<(i64, Price)> = sizes.iter().map(|size| (size.copies, size.candidate.price)).collect();
        by_copies.sort_unstable();
        let mut lowest: Option<Price> = None;
        for (_, price) in by_copies.iter_mut().rev() {
            *price = lowest.map_or(*price, |lowest| lowest.min(*price));
            lowest = Some(*price);
        }
        Self { by_copies }
    }

    fn cheapest(&self, copies: i64) -> Option<Price> {
        let first = self.by_copies.partition_point(|(held, _)| *held < copies);
        self.by_copies.get(first).map(|(_, price)| *price)
    }
}

/// The type that holds the most of `pods`, then at the lowest cost, then with the fewest nodes, then by name.
///
/// Limits come before price: a cheap small type that leaves pods out because the pool may only have so many nodes
/// loses against a dearer one that holds them all.
pub(crate) fn choose(sizes: &[Size], pods: i64, node_overhead: Price) -> Option<Choice> {
    if pods <= 0 {
        return None;
    }
    let holders = Holders::of(sizes);
    let weigh = |size: &Size| {
        let copies = size.copies.min(pods);
        let full = pods / copies;
        let nodes = full.min(size.nodes_max);
        let rest = pods - full * copies;
        let rest_price = if rest == 0 { None } else { holders.cheapest(rest) };
        let total_nodes = full + i64::from(rest_price.is_some());
        let left_out = if size.nodes_max >= total_nodes { 0 } else { pods - nodes * copies };
        let count = |nodes: i64| u64::try_from(nodes).unwrap_or(0);
        let price = size.candidate.price.times(count(full)).plus(rest_price.unwrap_or(Price::ZERO));
        let cost = price.plus(node_overhead.times(count(total_nodes)));
        let choice = Choice { candidate: size.candidate, copies, nodes, cost };
        ((left_out, cost, total_nodes, size.candidate.index), choice)
    };
    sizes.iter().map(weigh).min_by(|left, right| left.0.cmp(&right.0)).map(|(_, choice)| choice)
}
