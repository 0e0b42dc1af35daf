//! What a pool's limits leave for new nodes.

use model::{Pool, ResourceName, Resources, Shortfall};

/// What is left of each limited resource. A resource that no limit names does not appear.
///
/// Every planned claim holds the footprint of the type it is priced as; what it may list beyond that is settled at
/// the end, out of what all claims together left over. So no choice among listed types can cross a limit.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    remaining: Resources,
}

impl Limits {
    pub(crate) fn of(pool: &Pool) -> Self {
        let left = |(name, limit): (&ResourceName, i64)| (name.clone(), limit.saturating_sub(pool.in_use.get(name)));
        Self { remaining: pool.limits.iter().map(left).collect() }
    }

    /// The limited part of what a node with this capacity takes. Each node also counts as one of `nodes`.
    pub(crate) fn footprint(&self, capacity: &Resources) -> Resources {
        let nodes = ResourceName::nodes();
        let share = |(name, _): (&ResourceName, i64)| {
            let amount = if *name == nodes { 1 } else { capacity.get(name) };
            (name.clone(), amount)
        };
        self.remaining.iter().map(share).collect()
    }

    /// Whether one node with this footprint may be added, by someone who gives `held` back for it.
    pub(crate) fn admit(&self, footprint: &Resources, held: &Resources) -> Result<(), Shortfall> {
        footprint.fit_into(&self.remaining.plus(held))
    }

    /// The limited resource of which a node with this footprint would take the largest part.
    pub(crate) fn tightest(&self, footprint: &Resources) -> Option<Shortfall> {
        let part = |(name, left): (&ResourceName, i64)| {
            let wanted = footprint.get(name);
            let shortfall = Shortfall { resource: name.clone(), wanted, available: left.max(0) };
            (wanted > 0).then(|| (left / wanted.max(1), shortfall))
        };
        self.remaining.iter().filter_map(part).min().map(|(_, shortfall)| shortfall)
    }

    /// How many nodes with this footprint may be added.
    pub(crate) fn nodes_max(&self, footprint: &Resources) -> i64 {
        footprint.copies_in(&self.remaining)
    }

    /// Holds the footprint of so many nodes.
    pub(crate) fn take(&mut self, footprint: &Resources, nodes: i64) {
        self.remaining.add_times(footprint, nodes.saturating_neg());
    }

    /// Gives a held footprint back.
    pub(crate) fn give_back(&mut self, footprint: &Resources) {
        self.remaining.add(footprint);
    }

    /// Whether there are limits at all.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.remaining.is_empty()
    }
}
