//! Resource vectors: how much of what a pod wants, a node has, a pool may use.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::names::shared;
use crate::{Shortfall, Text, format_quantity};

/// The name of a resource, for example `cpu`, `memory` or `nvidia.com/gpu`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResourceName(Text);

impl Ord for ResourceName {
    fn cmp(&self, other: &Self) -> Ordering {
        if Text::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for ResourceName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ResourceName {
    /// Wraps a resource name.
    pub fn new(name: impl AsRef<str>) -> Self {
        Self(shared(name.as_ref()))
    }

    /// `cpu`
    pub fn cpu() -> Self {
        Self::new("cpu")
    }

    /// `memory`
    pub fn memory() -> Self {
        Self::new("memory")
    }

    /// `pods`: how many pods a node takes.
    pub fn pods() -> Self {
        Self::new("pods")
    }

    /// `nodes`: not a resource of a node, but one that a pool's limits may name.
    pub fn nodes() -> Self {
        Self::new("nodes")
    }

    /// The bare text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// CPU is counted in thousandths.
    pub fn is_cpu(&self) -> bool {
        &*self.0 == "cpu"
    }

    /// Resources that people write with binary suffixes.
    pub fn is_bytes(&self) -> bool {
        matches!(&*self.0, "memory" | "ephemeral-storage") || self.is_hugepages()
    }

    /// Huge pages are carved out of memory.
    pub fn is_hugepages(&self) -> bool {
        self.0.starts_with("hugepages-")
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Amounts by resource, in the units of [`crate::parse_quantity`]. A resource that is not named counts as zero.
///
/// Kept as a sorted list: vectors are short, and are compared, copied and hashed for every pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resources(Vec<(ResourceName, i64)>);

impl Hash for Resources {
    /// The amounts alone: where they are the same, the names mostly are, and names are long.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|(_, amount)| amount.hash(state));
        self.0.len().hash(state);
    }
}

impl Resources {
    /// No resources at all.
    pub fn none() -> Self {
        Self::default()
    }

    fn position(&self, name: &ResourceName) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(name))
    }

    /// The place for one amount, put at nothing if it was not named.
    fn amount_of(&mut self, name: &ResourceName) -> &mut i64 {
        let position = self.position(name).unwrap_or_else(|position| {
            self.0.insert(position, (name.clone(), 0));
            position
        });
        &mut self.0[position].1
    }

    /// The amount of one resource.
    pub fn get(&self, name: &ResourceName) -> i64 {
        // Names are mostly one copy, and seen to be the same without being read.
        match self.0.iter().find(|(known, _)| Text::ptr_eq(&known.0, &name.0)) {
            Some((_, amount)) => *amount,
            None => self.position(name).map_or(0, |position| self.0[position].1),
        }
    }

    /// Whether the resource is named, be it with zero.
    pub fn names(&self, name: &ResourceName) -> bool {
        self.position(name).is_ok()
    }

    /// Sets one amount.
    pub fn set(&mut self, name: ResourceName, amount: i64) {
        match self.position(&name) {
            Ok(position) => self.0[position].1 = amount,
            Err(position) => self.0.insert(position, (name, amount)),
        }
    }

    /// This vector with one amount set.
    #[must_use]
    pub fn with(mut self, name: ResourceName, amount: i64) -> Self {
        self.set(name, amount);
        self
    }

    /// All named amounts, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, i64)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds another vector.
    pub fn add(&mut self, other: &Self) {
        self.add_times(other, 1);
    }

    /// Adds another vector `times` over.
    pub fn add_times(&mut self, other: &Self, times: i64) {
        for (name, amount) in other.iter() {
            let sum = self.amount_of(name);
            *sum = sum.saturating_add(amount.saturating_mul(times));
        }
    }

    /// Takes another vector away; results may be negative.
    pub fn subtract(&mut self, other: &Self) {
        self.add_times(other, -1);
    }

    /// The sum of two vectors.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// The difference of two vectors; results may be negative.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        difference.subtract(other);
        difference
    }

    /// This vector with every negative amount raised to zero.
    #[must_use]
    pub fn floored(mut self) -> Self {
        self.0.iter_mut().for_each(|(_, amount)| *amount = (*amount).max(0));
        self
    }

    /// Per resource the larger amount.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            match self.position(name) {
                Ok(position) => self.0[position].1 = self.0[position].1.max(amount),
                Err(position) => self.0.insert(position, (name.clone(), amount)),
            }
        }
    }

    /// Per resource that both name, the smaller amount.
    #[must_use]
    pub fn common_minimum(&self, other: &Self) -> Self {
        let both = |(name, amount): &(ResourceName, i64)| {
            let theirs = other.position(name).ok()?;
            Some((name.clone(), (*amount).min(other.0[theirs].1)))
        };
        Self(self.0.iter().filter_map(both).collect())
    }

    /// Whether a request fits into what is available: the first resource that does not, if any.
    ///
    /// Nothing fits a place that is already overdrawn, as in the kube-scheduler.
    pub fn fit_into(&self, available: &Self) -> Result<(), Shortfall> {
        let overdrawn = available.iter().find(|(_, amount)| *amount < 0).map(|(name, _)| name);
        let short = || self.iter().find(|(name, wanted)| *wanted > available.get(name).max(0));
        match overdrawn.or_else(|| short().map(|(name, _)| name)) {
            None => Ok(()),
            Some(name) => {
                Err(Shortfall { resource: name.clone(), wanted: self.get(name), available: available.get(name) })
            }
        }
    }
}

impl FromIterator<(ResourceName, i64)> for Resources {
    fn from_iter<I: IntoIterator<Item = (ResourceName, i64)>>(amounts: I) -> Self {
        let mut resources = Self::none();
        for (name, amount) in amounts {
            resources.set(name, amount);
        }
        resources
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, amount)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { " " };
            write!(formatter, "{separator}{name}={}", format_quantity(name, *amount))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(pairs: &[(&str, i64)]) -> Resources {
        pairs.iter().map(|(name, amount)| (ResourceName::new(*name), *amount)).collect()
    }

    #[test]
    fn a_request_fits_when_every_resource_does() {
        let node = resources(&[("cpu", 4000), ("memory", 100)]);
        let table = [
            (resources(&[("cpu", 4000)]), None),
            (resources(&[("cpu", 4001)]), Some("cpu")),
            (resources(&[("cpu", 1), ("memory", 101)]), Some("memory")),
            (resources(&[("nvidia.com/gpu", 1)]), Some("nvidia.com/gpu")),
            (resources(&[("nvidia.com/gpu", 0)]), None),
        ];
        for (request, short) in table {
            let found = request.fit_into(&node).err().map(|shortfall| shortfall.resource.to_string());
            assert_eq!(found.as_deref(), short, "{request}");
        }
    }

    #[test]
    fn nothing_fits_an_overdrawn_place() {
        let overdrawn = resources(&[("cpu", -1), ("memory", 100)]);
        assert!(resources(&[("memory", 1)]).fit_into(&overdrawn).is_err());
    }
}
