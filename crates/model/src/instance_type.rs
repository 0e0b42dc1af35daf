//! Instance types and the offers to buy them.

use std::sync::Arc;

use crate::{AttachLimits, Price, Requirements, Resources, Text, TypeName, labels};

/// How capacity is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapacityType {
    /// Already paid for.
    Reserved,
    /// Cheap, and may be taken back.
    Spot,
    /// By the second, at list price.
    OnDemand,
}

impl CapacityType {
    /// Reads the label value.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "reserved" => Some(Self::Reserved),
            "spot" => Some(Self::Spot),
            "on-demand" => Some(Self::OnDemand),
            _ => None,
        }
    }

    /// The label value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Spot => "spot",
            Self::OnDemand => "on-demand",
        }
    }
}

/// One way to buy an instance type: a zone, a capacity type, a price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offering {
    /// Zone, capacity type and whatever else tells this offering from others.
    pub requirements: Requirements,
    /// Price per hour.
    pub price: Price,
    /// Whether the provider sells it at the moment.
    pub available: bool,
    /// Instances left in the reservation, for reserved capacity.
    pub reservation_capacity: Option<u32>,
}

impl Offering {
    fn label(&self, key: &str) -> Option<&Text> {
        self.requirements.get(key).and_then(|requirement| requirement.single_value())
    }

    /// The zone.
    pub fn zone(&self) -> Option<&Text> {
        self.label(labels::ZONE)
    }

    /// The capacity type; an offering without one is taken for on-demand.
    pub fn capacity_type(&self) -> CapacityType {
        let named = self.label(labels::CAPACITY_TYPE).and_then(|value| CapacityType::parse(value));
        named.unwrap_or(CapacityType::OnDemand)
    }

    /// Whether a launch with this offering can succeed: for sale, and not a reservation without room.
    pub fn is_launchable(&self) -> bool {
        let is_full = || self.reservation_capacity == Some(0) && self.capacity_type() == CapacityType::Reserved;
        self.available && !is_full()
    }
}

/// A kind of machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// Name.
    pub name: TypeName,
    /// The labels a node of this type can carry.
    pub requirements: Requirements,
    /// What the machine has.
    pub capacity: Resources,
    /// What the machine keeps for itself.
    pub overhead: Resources,
    /// What pods may use; see [`InstanceType::new`].
    pub allocatable: Resources,
    /// How it can be bought.
    pub offerings: Vec<Offering>,
    /// How many volumes it can attach.
    pub attach_limits: AttachLimits,
}

impl InstanceType {
    /// An instance type whose allocatable is capacity less overhead, with huge pages taken out of memory.
    pub fn new(
        name: TypeName,
        requirements: Requirements,
        capacity: Resources,
        overhead: Resources,
        mut offerings: Vec<Offering>,
    ) -> Arc<Self> {
        let requirements = requirements.with_shared_parts();
        for offering in &mut offerings {
            offering.requirements = std::mem::take(&mut offering.requirements).into_shared();
        }
        let allocatable = allocatable(&capacity, &overhead);
        let attach_limits = AttachLimits::new();
        Arc::new(Self { name, requirements, capacity, overhead, allocatable, offerings, attach_limits })
    }

    /// The same type with limits on volumes.
    #[must_use]
    pub fn with_attach_limits(self: Arc<Self>, attach_limits: AttachLimits) -> Arc<Self> {
        Arc::new(Self { attach_limits, ..Arc::unwrap_or_clone(self) })
    }

    /// The same type with another capacity, which leaves another allocatable, and other offerings.
    #[must_use]
    pub(crate) fn with_capacity(&self, capacity: Resources, offerings: Vec<Offering>) -> Self {
        Self { allocatable: allocatable(&capacity, &self.overhead), capacity, offerings, ..self.clone() }
    }

    /// Offerings for sale that a node with these requirements could be bought with.
    pub fn offerings_for<'a>(&'a self, requirements: &'a Requirements) -> impl Iterator<Item = &'a Offering> {
        let fits =
            |offering: &&Offering| offering.is_launchable() && offering.requirements.intersect(requirements).is_ok();
        self.offerings.iter().filter(fits)
    }

    /// The lowest price at which a node with these requirements could be bought.
    pub fn cheapest_price(&self, requirements: &Requirements) -> Option<Price> {
        self.offerings_for(requirements).map(|offering| offering.price).min()
    }
}

/// Capacity less overhead, with huge pages taken out of memory.
fn allocatable(capacity: &Resources, overhead: &Resources) -> Resources {
    let mut allocatable = capacity.clone();
    for (resource, kept) in overhead.iter() {
        allocatable.set(resource.clone(), capacity.get(resource) - kept);
    }
    let memory = crate::ResourceName::memory();
    let huge: i64 = capacity.iter().filter(|(name, _)| name.is_hugepages()).map(|(_, amount)| amount).sum();
    if capacity.names(&memory) {
        allocatable.set(memory.clone(), (allocatable.get(&memory) - huge).max(0));
    }
    allocatable.floored()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResourceName;

    /// CP-02: a type costs what is for sale of it, however cheap what is sold out.
    #[test]
    fn what_is_sold_out_has_no_price() {
        let offering = |available, dollars| Offering {
            requirements: Requirements::none(),
            price: Price::from_dollars(dollars),
            available,
            reservation_capacity: None,
        };
        let price = |offerings| {
            let (capacity, overhead) = (Resources::none(), Resources::none());
            let kind = InstanceType::new(TypeName::new("m"), Requirements::none(), capacity, overhead, offerings);
            kind.cheapest_price(&Requirements::none())
        };
        assert_eq!(price(vec![offering(false, 1.0), offering(true, 2.0)]), Some(Price::from_dollars(2.0)));
        assert_eq!(price(vec![offering(false, 1.0)]), None);
    }

    /// PROV-33, CP-04
    #[test]
    fn allocatable_is_capacity_less_overhead_and_huge_pages() {
        let capacity = Resources::none()
            .with(ResourceName::cpu(), 4000)
            .with(ResourceName::memory(), 1000)
            .with(ResourceName::new("hugepages-2Mi"), 300);
        let overhead = Resources::none().with(ResourceName::cpu(), 100).with(ResourceName::memory(), 50);
        let kind = InstanceType::new(TypeName::new("m"), Requirements::none(), capacity, overhead, Vec::new());
        assert_eq!(kind.allocatable.get(&ResourceName::cpu()), 3900);
        assert_eq!(kind.allocatable.get(&ResourceName::memory()), 650);
    }

    /// CP-04: a machine that keeps more than it has leaves nothing, and never less.
    #[test]
    fn nothing_is_the_least_that_is_left() {
        let (cpu, memory, huge) = (ResourceName::cpu(), ResourceName::memory(), ResourceName::new("hugepages-1Gi"));
        let left = |capacity: Resources, overhead: Resources| {
            let kind = InstanceType::new(TypeName::new("m"), Requirements::none(), capacity, overhead, Vec::new());
            [&cpu, &memory, &huge].map(|resource| kind.allocatable.get(resource))
        };
        let machine = || Resources::none().with(cpu.clone(), 1000).with(memory.clone(), 1000);
        let kept = Resources::none().with(cpu.clone(), 1001).with(memory.clone(), 400);
        assert_eq!(left(machine(), kept.clone()), [0, 600, 0]);
        assert_eq!(left(machine().with(huge.clone(), 700), kept), [0, 0, 700]);
    }
}
