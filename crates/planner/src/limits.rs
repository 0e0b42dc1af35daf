//! What a pool's limits leave for new nodes.

use model::{Pool, ResourceName, Resources, Shortfall};

/// What a node takes of each resource that its pool limits. Without limits it takes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint(Box<[i64]>);

impl Footprint {
    /// Nothing at all.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    fn merged(&self, other: &Self, merge: impl Fn(i64, i64) -> i64) -> Self {
        let amount = |amounts: &[i64], position: usize| amounts.get(position).copied().unwrap_or(0);
        let length = self.0.len().max(other.0.len());
        Self((0..length).map(|position| merge(amount(&self.0, position), amount(&other.0, position))).collect())
    }

    /// Both together.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.merged(other, i64::saturating_add)
    }

    /// Adds another.
    pub(crate) fn add(&mut self, other: &Self) {
        *self = self.plus(other);
    }

    /// Of each resource the larger amount.
    pub(crate) fn raise_to(&mut self, other: &Self) {
        let grows = self.0.len() < other.0.len() || self.0.iter().zip(&other.0).any(|(own, other)| own < other);
        if grows {
            *self = self.merged(other, i64::max);
        }
    }

    /// Whether this takes no more of any resource than the other.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(own, other)| own <= other)
    }

    /// What is taken of the one resource that is limited; nothing if there is none, or are several.
    pub(crate) fn single(&self) -> Option<i64> {
        if let [only] = *self.0 { Some(only) } else { None }
    }

    /// Of each resource the smaller amount.
    pub(crate) fn common_minimum(&self, other: &Self) -> Self {
        self.merged(other, i64::min)
    }
}

/// What is left of each limited resource. A resource that no limit names does not appear.
///
/// Every planned claim holds the footprint of the type it is priced as; what it may list beyond that is settled at
/// the end, out of what all claims together left over. So no choice among listed types can cross a limit.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    names: Vec<ResourceName>,
    remaining: Vec<i64>,
    /// Which of them is the number of nodes.
    nodes: Option<usize>,
}

/// The only limited resource of a pool.
pub(crate) struct Single<'a> {
    pub(crate) name: &'a ResourceName,
    pub(crate) amount: i64,
}

impl Limits {
    pub(crate) fn of(pool: &Pool) -> Self {
        let left = |(name, limit): (&ResourceName, i64)| (name.clone(), limit.saturating_sub(pool.in_use.get(name)));
        let (names, remaining): (Vec<ResourceName>, Vec<i64>) = pool.limits.iter().map(left).unzip();
        let counted = ResourceName::nodes();
        let nodes = names.iter().position(|name| *name == counted);
        Self { names, remaining, nodes }
    }

    /// The limited part of what a node with this capacity takes. Each node also counts as one of `nodes`.
    pub(crate) fn footprint(&self, capacity: &Resources) -> Footprint {
        let amounts = self.names.iter().enumerate();
        let amount = |(position, name)| if self.nodes == Some(position) { 1 } else { capacity.get(name) };
        Footprint(amounts.map(amount).collect())
    }

    /// Whether one node with this footprint may be added, by someone who gives `held` back for it.
    pub(crate) fn admit(&self, footprint: &Footprint, held: &Footprint) -> Result<(), Shortfall> {
        for (position, left) in self.remaining.iter().enumerate() {
            let available = left.saturating_add(held.0.get(position).copied().unwrap_or(0));
            let wanted = footprint.0.get(position).copied().unwrap_or(0);
            if available < 0 || wanted > available {
                return Err(self.shortfall(position, wanted, available.max(0)));
            }
        }
        Ok(())
    }

    fn shortfall(&self, position: usize, wanted: i64, available: i64) -> Shortfall {
        Shortfall { resource: self.names[position].clone(), wanted, available }
    }

    /// The limited resource of which a node with this footprint would take the largest part.
    pub(crate) fn tightest(&self, footprint: &Footprint) -> Option<Shortfall> {
        let part = |(position, left): (usize, &i64)| {
            let wanted = footprint.0.get(position).copied().filter(|wanted| *wanted > 0)?;
            Some((left / wanted, self.shortfall(position, wanted, (*left).max(0))))
        };
        self.remaining.iter().enumerate().filter_map(part).min().map(|(_, shortfall)| shortfall)
    }

    /// The largest part of what is left of a limited resource that one node with this footprint takes.
    pub(crate) fn share(&self, footprint: &Footprint) -> f64 {
        let part = |(left, wanted): (&i64, &i64)| *wanted as f64 / (*left).max(1) as f64;
        self.remaining.iter().zip(&footprint.0).map(part).fold(0.0, f64::max)
    }

    /// How many nodes with this footprint may be added.
    pub(crate) fn nodes_max(&self, footprint: &Footprint) -> i64 {
        if self.remaining.iter().any(|left| *left < 0) {
            return 0;
        }
        let each = self.remaining.iter().zip(&footprint.0).filter(|(_, wanted)| **wanted > 0);
        each.map(|(left, wanted)| left / wanted).min().unwrap_or(i64::MAX)
    }

    /// Holds the footprint of so many nodes.
    pub(crate) fn take(&mut self, footprint: &Footprint, nodes: i64) {
        for (left, wanted) in self.remaining.iter_mut().zip(&footprint.0) {
            *left = left.saturating_sub(wanted.saturating_mul(nodes));
        }
    }

    /// Gives a held footprint back.
    pub(crate) fn give_back(&mut self, footprint: &Footprint) {
        self.take(footprint, -1);
    }

    /// What is left of the one resource that is limited; nothing if there is none, or are several.
    pub(crate) fn single(&self) -> Option<Single<'_>> {
        if let ([name], [amount]) = (&*self.names, &*self.remaining) {
            Some(Single { name, amount: *amount })
        } else {
            None
        }
    }

    /// Whether there are limits at all.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.names.is_empty()
    }
}
