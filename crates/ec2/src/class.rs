//! What of an EC2NodeClass decides about instance types.

use std::collections::BTreeMap;

use api::ec2_node_class::{
    AmiFamily, BlockDeviceMapping, CapacityReservation, EC2NodeClass, InstanceStorePolicy, NetworkInterface, Switch,
};
use catalogue::Region;

use crate::family::family_of;
use crate::kubelet::Kubelet;

/// A class, reduced to what decides about instance types.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassView {
    /// The image family.
    pub family: AmiFamily,
    /// The zones that instances can be launched into, by name.
    pub zones: Vec<ClassZone>,
    /// Settings of the kubelet.
    pub kubelet: Kubelet,
    /// The volumes of an instance; none means what the family usually has.
    pub volumes: Vec<BlockDeviceMapping>,
    /// What happens to the disks that come with an instance.
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// The network interfaces; absent means one.
    pub network_interfaces: Option<Vec<NetworkInterface>>,
    /// Whether timeouts of tracked connections are set.
    pub connection_tracking: bool,
    /// Whether instances must be able to run virtual machines.
    pub nested_virtualization: bool,
    /// The capacity reservations that may be used.
    pub reservations: Vec<Reservation>,
    /// The placement group that instances are launched into.
    pub placement_group: Option<PlacementGroup>,
    /// Memory in bytes by instance type, as nodes with the images of this class reported it.
    pub discovered_memory: BTreeMap<String, i64>,
}

/// A zone that instances can be launched into.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassZone {
    /// Name.
    pub name: String,
    /// ID, if it is known.
    pub id: Option<String>,
}

/// A capacity reservation and what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The reservation.
    pub facts: CapacityReservation,
    /// Instances that can still be launched into it.
    pub available: u32,
}

/// A placement group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementGroup {
    /// ID.
    pub id: String,
    /// How instances are placed.
    pub strategy: PlacementStrategy,
}

/// How a placement group places instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementStrategy {
    /// Close together.
    Cluster,
    /// In partitions that share no hardware.
    Partition {
        /// How many partitions.
        count: u32,
    },
    /// Each on hardware of its own.
    Spread,
}

impl PlacementStrategy {
    /// EC2's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Partition { .. } => "partition",
            Self::Spread => "spread",
        }
    }
}

impl ClassView {
    /// The view of a class in a region.
    ///
    /// Zones are those of the subnets that the class found; a class that has not looked yet may use the whole region.
    /// Reservations start empty until [`ClassView::with_reserved`] says how much is left of them.
    pub fn new(class: &EC2NodeClass, region: &Region) -> Self {
        let spec = &class.spec;
        let status = class.status.as_ref();
        let reservations = status.and_then(|status| status.capacity_reservations.as_ref());
        let nested = spec.cpu_options.as_ref().and_then(|options| options.nested_virtualization);
        Self {
            family: family_of(spec),
            zones: zones(class, region),
            kubelet: spec.kubelet.as_ref().map(Kubelet::read).unwrap_or_default(),
            volumes: spec.block_device_mappings.clone().unwrap_or_default(),
            instance_store_policy: spec.instance_store_policy,
            network_interfaces: spec.network_interfaces.clone(),
            connection_tracking: spec.connection_tracking.is_some(),
            nested_virtualization: nested == Some(Switch::Enabled),
            reservations: reservations.into_iter().flatten().map(unused).collect(),
            placement_group: None,
            discovered_memory: BTreeMap::new(),
        }
    }

    /// The view with what is left of each reservation, by ID; those not named are used up.
    #[must_use]
    pub fn with_reserved(mut self, available: &BTreeMap<String, u32>) -> Self {
        for reservation in &mut self.reservations {
            reservation.available = available.get(&reservation.facts.id).copied().unwrap_or(0);
        }
        self
    }

    /// The view with the placement group that the class selects.
    #[must_use]
    pub fn with_placement_group(mut self, group: PlacementGroup) -> Self {
        self.placement_group = Some(group);
        self
    }

    /// The view with the memory that nodes reported, in bytes by instance type.
    #[must_use]
    pub fn with_discovered_memory(mut self, discovered: BTreeMap<String, i64>) -> Self {
        self.discovered_memory = discovered;
        self
    }
}

fn unused(facts: &CapacityReservation) -> Reservation {
    Reservation { facts: facts.clone(), available: 0 }
}

fn zones(class: &EC2NodeClass, region: &Region) -> Vec<ClassZone> {
    let subnets = class.status.as_ref().and_then(|status| status.subnets.as_ref());
    let mut zones: Vec<ClassZone> = match subnets {
        Some(subnets) => {
            let zone = |subnet: &api::ec2_node_class::Subnet| ClassZone {
                name: subnet.zone.clone(),
                id: subnet.zone_id.clone().filter(|id| !id.is_empty()),
            };
            subnets.iter().map(zone).collect()
        }
        None => {
            region.zones.iter().map(|zone| ClassZone { name: zone.name.clone(), id: Some(zone.id.clone()) }).collect()
        }
    };
    // Of the subnets of one zone, one that knows the zone's ID speaks for all.
    zones.sort_by(|left, right| (&left.name, left.id.is_none()).cmp(&(&right.name, right.id.is_none())));
    zones.dedup_by(|next, first| next.name == first.name);
    zones
}
