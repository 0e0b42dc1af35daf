//! What can be asked, and the answers.

use std::collections::BTreeMap;

use catalogue::MicroDollars;

use crate::{CapacityType, Filter, FleetError, InstanceId, InstanceState};

/// How a fleet chooses among pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AllocationStrategy {
    /// The cheapest first, empty or not.
    LowestPrice,
    /// Of the pools with ample capacity the cheapest.
    PriceCapacityOptimized,
    /// Of the pools with ample capacity the one with the lowest priority number.
    CapacityOptimizedPrioritized,
    /// The lowest priority number first, empty or not.
    Prioritized,
}

impl AllocationStrategy {
    /// The spelling of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LowestPrice => "lowest-price",
            Self::PriceCapacityOptimized => "price-capacity-optimized",
            Self::CapacityOptimizedPrioritized => "capacity-optimized-prioritized",
            Self::Prioritized => "prioritized",
        }
    }

    /// Whether capacity of this kind can be chosen that way.
    pub fn serves(self, capacity_type: CapacityType) -> bool {
        match self {
            Self::LowestPrice => true,
            Self::PriceCapacityOptimized | Self::CapacityOptimizedPrioritized => capacity_type == CapacityType::Spot,
            Self::Prioritized => capacity_type == CapacityType::OnDemand,
        }
    }
}

/// A fleet of type `instant`: instances now, or errors.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetRequest {
    /// Repeating a call with the same token gives the same instances. `None` makes every call a new one.
    pub client_token: Option<String>,
    /// How capacity is bought.
    pub capacity_type: CapacityType,
    /// How to choose among the overrides.
    pub allocation_strategy: AllocationStrategy,
    /// What may be launched.
    pub overrides: Vec<Override>,
    /// How many instances.
    pub count: u32,
    /// Tags of the instances.
    pub tags: BTreeMap<String, String>,
    /// Only check whether the call would be allowed.
    pub dry_run: bool,
}

/// One thing that a fleet may launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Subnet; without one, that of the zone.
    pub subnet_id: Option<String>,
    /// Image to boot.
    pub image_id: String,
    /// Lower numbers come first; without one it comes last.
    pub priority: Option<f64>,
    /// The most to pay per hour for spot capacity; without one, the on-demand price is the limit anyway.
    pub max_price: Option<MicroDollars>,
}

impl Override {
    /// A type in a zone.
    pub fn new(instance_type: impl Into<String>, zone: impl Into<String>) -> Self {
        Self {
            instance_type: instance_type.into(),
            zone: zone.into(),
            subnet_id: None,
            image_id: String::new(),
            priority: None,
            max_price: None,
        }
    }
}

/// What a fleet brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetAnswer {
    /// The fleet's id.
    pub fleet_id: String,
    /// Instances, possibly fewer than asked for.
    pub instances: Vec<LaunchedInstance>,
    /// Pools that were tried in vain, also when others gave what was asked for.
    pub errors: Vec<FleetError>,
}

/// An instance as the launch reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchedInstance {
    /// Id.
    pub id: InstanceId,
    /// The place in the request of the override that it was made from.
    pub override_index: usize,
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Subnet.
    pub subnet_id: String,
    /// Image.
    pub image_id: String,
    /// How it is bought.
    pub capacity_type: CapacityType,
}

/// Which instances to describe: those with one of the ids, if any are given, that pass all filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeRequest {
    /// Ids; an unknown one fails the call.
    pub ids: Vec<InstanceId>,
    /// Filters, all of which must hold.
    pub filters: Vec<Filter>,
}

/// What terminating did to an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// The instance.
    pub id: InstanceId,
    /// Before.
    pub previous: InstanceState,
    /// Now.
    pub current: InstanceState,
}
