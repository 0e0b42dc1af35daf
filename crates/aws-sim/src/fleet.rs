//! Fleets: which pools give the instances, and what those instances are.

use std::collections::BTreeSet;

use catalogue::MicroDollars;

use crate::allocate::{Candidate, ranking};
use crate::calls::Work;
use crate::life::Step;
use crate::log::Outcome;
use crate::network::private_dns_name;
use crate::time::later;
use crate::{
    Aws, AwsError, CapacityType, EventKind, FleetAnswer, FleetError, FleetErrorCode, FleetRequest, Instance,
    InstanceId, InstanceState, LaunchFaultKind, LaunchedInstance, Override, PoolKey,
};

/// A launch that is under way.
struct Fleet<'a> {
    id: String,
    request: &'a FleetRequest,
}

impl Aws {
    pub(crate) fn fleet(&mut self, request: &FleetRequest) -> Work<FleetAnswer> {
        validate(request)?;
        if request.dry_run {
            return Err(AwsError::DryRunOperation);
        }
        let earlier = request.client_token.as_ref().and_then(|token| self.tokens.get_key_value(token));
        if let Some((token, (same, answer))) = earlier {
            if same != request {
                return Err(AwsError::IdempotentParameterMismatch { client_token: token.clone() });
            }
            let answer = answer.clone();
            return Ok((answer.clone(), Outcome::Fleet { answer, repeated: true }));
        }
        let answer = self.fill(request);
        if let Some(token) = &request.client_token {
            self.tokens.insert(token.clone(), (request.clone(), answer.clone()));
        }
        Ok((answer.clone(), Outcome::Fleet { answer, repeated: false }))
    }

    /// Tries pools in the order of the strategy, one instance at a time; a pool that failed is not tried again.
    fn fill(&mut self, request: &FleetRequest) -> FleetAnswer {
        let fleet = Fleet { id: format!("fleet-{:08x}-{:04x}", self.rng.u32(..), self.rng.u16(..)), request };
        let mut instances = Vec::new();
        let mut errors = Vec::new();
        let mut failed = BTreeSet::new();
        'instances: for _ in 0..request.count {
            for index in ranking(request.allocation_strategy, &self.candidates(request, &failed)) {
                match self.try_launch(&fleet, index) {
                    Ok(launched) => {
                        instances.push(launched);
                        continue 'instances;
                    }
                    Err(code) => {
                        failed.insert(index);
                        let pool = pool_of(request, &request.overrides[index]);
                        errors.push(FleetError { code, override_index: index, pool });
                    }
                }
            }
            break;
        }
        FleetAnswer { fleet_id: fleet.id, instances, errors }
    }

    fn candidates(&self, request: &FleetRequest, failed: &BTreeSet<usize>) -> Vec<Candidate> {
        let candidate = |(override_index, wanted): (usize, &Override)| {
            let pool = pool_of(request, wanted);
            // What is not sold sorts last and fails when it is tried.
            let price = self.price(&pool).unwrap_or(MicroDollars(u64::MAX));
            let sold = price < MicroDollars(u64::MAX) && self.faults.of_pool(self.now, &pool).is_none();
            let free = if sold { self.pools.free(&pool) } else { 0 };
            Candidate { override_index, price, priority: wanted.priority, free }
        };
        let left = request.overrides.iter().enumerate().filter(|(index, _)| !failed.contains(index));
        left.map(candidate).collect()
    }

    fn try_launch(&mut self, fleet: &Fleet<'_>, index: usize) -> Result<LaunchedInstance, FleetErrorCode> {
        let wanted = &fleet.request.overrides[index];
        let pool = pool_of(fleet.request, wanted);
        let subnet = self.subnets.iter().position(|subnet| {
            subnet.zone == wanted.zone && wanted.subnet_id.as_ref().is_none_or(|id| *id == subnet.id)
        });
        let (Some(subnet), Some(facts)) = (subnet, self.catalogue.instance_type(&wanted.instance_type)) else {
            return Err(FleetErrorCode::InvalidParameterValue);
        };
        let vcpus = facts.vcpus;
        let price = self.sold_at(&pool, wanted)?;
        self.within_quota(pool.capacity_type, vcpus)?;
        if let Some(code) = self.faults.of_pool(self.now, &pool) {
            return Err(code);
        }
        if self.pools.free(&pool) == 0 {
            return Err(FleetErrorCode::InsufficientInstanceCapacity);
        }
        let address = self.subnets[subnet].take().ok_or(FleetErrorCode::InsufficientFreeAddressesInSubnet)?;
        self.pools.take(&pool);
        let subnet_id = self.subnets[subnet].id.clone();
        let instance = self.launch(fleet, wanted, Birth { price, subnet_id, address });
        Ok(LaunchedInstance {
            id: instance.id,
            override_index: index,
            instance_type: instance.instance_type,
            zone: instance.zone,
            subnet_id: instance.subnet_id,
            image_id: instance.image_id,
            capacity_type: instance.capacity_type,
        })
    }

    fn sold_at(&self, pool: &PoolKey, wanted: &Override) -> Result<MicroDollars, FleetErrorCode> {
        let Some(price) = self.price(pool) else {
            // The zone may have the type, but not as spot capacity: then no adjustment of time helps.
            let offered = self.catalogue.is_offered(&pool.instance_type, &pool.zone);
            let code = if offered { FleetErrorCode::UnfulfillableCapacity } else { FleetErrorCode::Unsupported };
            return Err(code);
        };
        let too_dear = pool.capacity_type == CapacityType::Spot && wanted.max_price.is_some_and(|most| price > most);
        if too_dear { Err(FleetErrorCode::SpotMaxPriceTooLow) } else { Ok(price) }
    }

    fn within_quota(&self, capacity_type: CapacityType, vcpus: u32) -> Result<(), FleetErrorCode> {
        let mine = |instance: &&Instance| instance.capacity_type == capacity_type && instance.is_alive();
        let alive = || self.instances.values().filter(mine);
        let quotas = self.settings.quotas;
        match capacity_type {
            CapacityType::OnDemand => {
                let Some(most) = quotas.on_demand_vcpus else { return Ok(()) };
                let facts = |instance: &Instance| self.catalogue.instance_type(&instance.instance_type);
                let used: u32 = alive().filter_map(facts).map(|facts| facts.vcpus).sum();
                if used + vcpus > most { Err(FleetErrorCode::VcpuLimitExceeded) } else { Ok(()) }
            }
            CapacityType::Spot => {
                let Some(most) = quotas.spot_instances else { return Ok(()) };
                let full = alive().count() >= usize::try_from(most).unwrap_or(usize::MAX);
                if full { Err(FleetErrorCode::MaxSpotInstanceCountExceeded) } else { Ok(()) }
            }
        }
    }

    fn launch(&mut self, fleet: &Fleet<'_>, wanted: &Override, birth: Birth) -> Instance {
        let Birth { price, subnet_id, address } = birth;
        let request = fleet.request;
        let id = self.new_id();
        let capacity_type = request.capacity_type;
        let faults = self.faults.of_launch(self.now, &pool_of(request, wanted));
        let delays = self.settings.delays;
        let mut running = delays.running.draw(&mut self.rng);
        let mut invisible = delays.visible.draw(&mut self.rng);
        let mut step = Step::Run;
        let mut silent = false;
        for fault in faults {
            match fault {
                LaunchFaultKind::Slow(more) => running += more,
                LaunchFaultKind::Invisible(more) => invisible += more,
                LaunchFaultKind::Fails => step = Step::FailToRun,
                LaunchFaultKind::Silent => silent = true,
            }
        }
        let spot_request_id = (capacity_type == CapacityType::Spot).then(|| format!("sir-{:08x}", self.rng.u32(..)));
        let instance = Instance {
            id: id.clone(),
            instance_type: wanted.instance_type.clone(),
            zone: wanted.zone.clone(),
            capacity_type,
            spot_request_id,
            fleet_id: fleet.id.clone(),
            client_token: request.client_token.clone(),
            subnet_id,
            image_id: wanted.image_id.clone(),
            private_dns_name: private_dns_name(&self.settings.region, &address),
            private_address: address,
            tags: request.tags.clone(),
            state: InstanceState::Pending,
            state_reason: None,
            launched_at: self.now,
            visible_at: later(self.now, invisible),
            running_at: None,
            ending_at: None,
            interruption_at: None,
            price,
            silent,
        };
        self.agenda.plan(later(self.now, running), id.clone(), step);
        self.tell(self.now, &id, EventKind::StateChanged(InstanceState::Pending));
        self.launched.push(id.clone());
        self.instances.insert(id, instance.clone());
        instance
    }

    /// An id that was never used before.
    fn new_id(&mut self) -> InstanceId {
        loop {
            let id = InstanceId::new(format!("i-0{:016x}", self.rng.u64(..)));
            if !self.instances.contains_key(&id) && !self.settled.contains_key(&id) {
                return id;
            }
        }
    }
}

/// What a new instance is given.
struct Birth {
    price: MicroDollars,
    subnet_id: String,
    address: String,
}

fn pool_of(request: &FleetRequest, wanted: &Override) -> PoolKey {
    PoolKey::new(wanted.instance_type.clone(), wanted.zone.clone(), request.capacity_type)
}

fn validate(request: &FleetRequest) -> Result<(), AwsError> {
    if request.overrides.is_empty() {
        return Err(AwsError::MissingParameter { name: "LaunchTemplateConfigs" });
    }
    if request.count == 0 {
        return Err(AwsError::InvalidParameterValue { name: "TotalTargetCapacity", value: "0".to_owned() });
    }
    if !request.allocation_strategy.serves(request.capacity_type) {
        let value = request.allocation_strategy.as_str().to_owned();
        return Err(AwsError::InvalidParameterValue { name: "AllocationStrategy", value });
    }
    Ok(())
}
