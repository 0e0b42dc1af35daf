//! The state, and what can be seen of it without a call.

use std::collections::{BTreeMap, VecDeque};

use catalogue::{Catalogue, MicroDollars};
use jiff::Timestamp;

use crate::fault::{FaultPlan, Faults};
use crate::life::Agenda;
use crate::log::{Action, CallRecord};
use crate::network::SubnetState;
use crate::pool::Pools;
use crate::{
    AwsEvent, AwsSettings, Bill, BillLine, CapacityType, FleetAnswer, FleetRequest, Instance, InstanceId, PoolKey,
    Subnet,
};

/// AWS, as far as an autoscaler sees it.
///
/// Times given to it should not go backwards; an earlier one counts as the latest seen.
#[derive(Debug)]
pub struct Aws {
    pub(crate) settings: AwsSettings,
    pub(crate) catalogue: &'static Catalogue,
    pub(crate) rng: fastrand::Rng,
    pub(crate) now: Timestamp,
    pub(crate) pools: Pools,
    pub(crate) faults: Faults,
    pub(crate) subnets: Vec<SubnetState>,
    pub(crate) instances: BTreeMap<InstanceId, Instance>,
    /// Ids in the order of launch.
    pub(crate) launched: Vec<InstanceId>,
    /// Instances that nobody remembers, with what they have cost if they ever ran.
    pub(crate) settled: BTreeMap<InstanceId, Option<BillLine>>,
    pub(crate) tokens: BTreeMap<String, (FleetRequest, FleetAnswer)>,
    pub(crate) agenda: Agenda,
    pub(crate) outbox: VecDeque<AwsEvent>,
    pub(crate) buckets: BTreeMap<Action, Bucket>,
    pub(crate) log: Vec<CallRecord>,
}

/// Tokens for calls, in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    pub(crate) thousandths: u64,
    pub(crate) filled_at: Timestamp,
}

impl Aws {
    /// A region in which nothing runs yet.
    pub fn new(settings: AwsSettings, catalogue: &'static Catalogue) -> Self {
        let mut rng = fastrand::Rng::with_seed(settings.seed);
        let zones = settings.zones.iter().zip(0..);
        let subnet = |(zone, index): (&String, u32)| {
            let id = format!("subnet-0{:016x}", rng.u64(..));
            SubnetState::new(id, zone.clone(), index, settings.subnet_addresses)
        };
        let subnets = zones.map(subnet).collect();
        Self {
            pools: Pools::new(settings.seed, settings.capacity.clone()),
            faults: Faults::new(settings.faults.clone()),
            catalogue,
            rng,
            now: Timestamp::MIN,
            subnets,
            instances: BTreeMap::new(),
            launched: Vec::new(),
            settled: BTreeMap::new(),
            tokens: BTreeMap::new(),
            agenda: Agenda::default(),
            outbox: VecDeque::new(),
            buckets: BTreeMap::new(),
            log: Vec::new(),
            settings,
        }
    }

    /// What it was made with.
    pub fn settings(&self) -> &AwsSettings {
        &self.settings
    }

    /// Instances that are remembered, in the order of launch. For checkers: this is the truth, not a call.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.launched.iter().filter_map(|id| self.instances.get(id))
    }

    /// One instance that is remembered. For checkers: this is the truth, not a call.
    pub fn instance(&self, id: &InstanceId) -> Option<&Instance> {
        self.instances.get(id)
    }

    /// Subnets as they are. For checkers.
    pub fn subnets(&self) -> impl Iterator<Item = Subnet> {
        self.subnets.iter().map(SubnetState::view)
    }

    /// Calls so far, oldest first, if they are kept.
    pub fn calls(&self) -> &[CallRecord] {
        &self.log
    }

    /// Instances that a pool still has.
    pub fn free_capacity(&self, pool: &PoolKey) -> u32 {
        self.pools.free(pool)
    }

    /// Sets how many instances a pool still has; those that run are not touched.
    pub fn set_capacity(&mut self, pool: PoolKey, count: u32) {
        self.pools.set(pool, count);
    }

    /// Lets more things go wrong.
    pub fn add_faults(&mut self, faults: FaultPlan) {
        self.faults.add(faults);
    }

    /// What was used up to now.
    pub fn bill(&self, now: Timestamp) -> Bill {
        let line = |id: &InstanceId| {
            let remembered = self.instances.get(id).and_then(|instance| BillLine::of(instance, now));
            remembered.or_else(|| self.settled.get(id).cloned().flatten())
        };
        Bill { lines: self.launched.iter().filter_map(line).collect() }
    }

    /// The price per hour of a pool; `None` if the zone does not sell the type that way.
    pub fn price(&self, pool: &PoolKey) -> Option<MicroDollars> {
        let PoolKey { instance_type, zone, capacity_type } = pool;
        if !self.catalogue.is_offered(instance_type, zone) {
            return None;
        }
        match capacity_type {
            CapacityType::OnDemand => self.catalogue.on_demand_price(&self.settings.region, instance_type),
            CapacityType::Spot => self.catalogue.spot_price(zone, instance_type).map(|spot| spot.price),
        }
    }
}
