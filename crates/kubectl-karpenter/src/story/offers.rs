//! Ways to buy a node, and which one is the best, the second best, and the best of another kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{CapacityType, InstanceType, PlannedClaim, Pool, PoolName, Price};
use serde::{Serialize, Serializer};

use super::news::to_dollars;

/// One way to buy a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// How it is paid for.
    #[serde(serialize_with = "capacity_type")]
    pub capacity_type: CapacityType,
    /// Price per hour, if it is known.
    #[serde(rename = "pricePerHourUsd", serialize_with = "dollars")]
    pub price: Option<Price>,
}

fn capacity_type<S: Serializer>(capacity_type: &CapacityType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(capacity_type.as_str())
}

fn dollars<S: Serializer>(price: &Option<Price>, serializer: S) -> Result<S::Ok, S::Error> {
    price.map(|price| to_dollars(price.dollars())).serialize(serializer)
}

/// What a planned claim can be bought as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alternatives {
    /// The cheapest way.
    pub(crate) chosen: Offer,
    /// The cheapest way with another instance type.
    pub(crate) runner_up: Option<Offer>,
    /// The cheapest way with each other capacity type, cheapest first.
    pub(crate) other_capacity_types: Vec<Offer>,
}

/// The ways to buy a planned claim; `None` if its pool sells none of its types any more.
pub(crate) fn alternatives(pool: &Pool, claim: &PlannedClaim) -> Option<Alternatives> {
    let listed = |kind: &&Arc<InstanceType>| claim.types.contains(&kind.name);
    let mut offers: Vec<Offer> = pool
        .types
        .iter()
        .filter(listed)
        .flat_map(|kind| {
            kind.offerings_for(&claim.requirements).map(|offering| Offer {
                instance_type: kind.name.to_string(),
                zone: offering.zone().map_or_else(String::new, ToString::to_string),
                capacity_type: offering.capacity_type(),
                price: Some(offering.price),
            })
        })
        .collect();
    let position = |offer: &Offer| claim.types.iter().position(|name| name.as_str() == offer.instance_type);
    offers.sort_by_cached_key(|offer| (offer.price, position(offer), offer.capacity_type, offer.zone.clone()));
    let chosen = offers.first()?.clone();
    let runner_up = offers.iter().find(|offer| offer.instance_type != chosen.instance_type).cloned();
    let mut other_capacity_types: Vec<Offer> = Vec::new();
    for offer in &offers {
        let known = |other: &Offer| other.capacity_type == offer.capacity_type;
        if !known(&chosen) && !other_capacity_types.iter().any(known) {
            other_capacity_types.push(offer.clone());
        }
    }
    Some(Alternatives { chosen, runner_up, other_capacity_types })
}

/// What the pools of the plans so far sell.
#[derive(Debug, Default)]
pub(crate) struct PriceBook {
    pools: BTreeMap<PoolName, Arc<Pool>>,
}

impl PriceBook {
    /// Remembers the pools of the newest plan.
    pub(crate) fn learn(&mut self, pools: &[Arc<Pool>]) {
        for pool in pools {
            self.pools.insert(pool.name.clone(), Arc::clone(pool));
        }
    }

    /// A pool as the newest plan saw it.
    pub(crate) fn pool(&self, name: &PoolName) -> Option<&Arc<Pool>> {
        self.pools.get(name)
    }

    /// What a machine of a pool costs per hour. Sold out or not: who has one pays for it.
    pub(crate) fn price(&self, pool: &str, instance_type: &str, zone: &str, capacity: CapacityType) -> Option<Price> {
        let pool = self.pools.get(&PoolName::new(pool))?;
        let kind = pool.types.iter().find(|kind| kind.name.as_str() == instance_type)?;
        let is_it = |offering: &&model::Offering| {
            offering.capacity_type() == capacity && offering.zone().is_some_and(|found| &**found == zone)
        };
        kind.offerings.iter().find(is_it).map(|offering| offering.price)
    }
}
