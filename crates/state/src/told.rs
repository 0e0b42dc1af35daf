//! What the cluster has to tell about itself, for metrics.

use std::collections::BTreeMap;

use api::{NodeClaim, labels};
use model::{NodeName, PoolName, Price, Resources};

use crate::cluster::{Cluster, pool_name};

/// What the pods of one node ask for and may use, terminal ones left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeUsage {
    /// What all of them request.
    pub requests: Resources,
    /// What all of them are limited to.
    pub limits: Resources,
    /// What those of DaemonSets request.
    pub daemon_requests: Resources,
    /// What those of DaemonSets are limited to.
    pub daemon_limits: Resources,
}

/// What a claim's machine costs per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimPrice {
    /// Nothing yet: its labels do not say which machine it is, or nobody asked what its pool can buy.
    NotYet,
    /// Nobody sells such a machine.
    Unknown,
    /// This much, overlays included.
    Known(Price),
}

/// Which machine, where, and how it is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sold<'a> {
    kind: &'a str,
    zone: &'a str,
    capacity_type: &'a str,
}

impl<'a> Sold<'a> {
    fn of(claim: &'a NodeClaim) -> Option<Self> {
        let label = |key: &str| claim.metadata.labels.as_ref()?.get(key).map(String::as_str);
        Some(Self {
            kind: label(labels::INSTANCE_TYPE)?,
            zone: label(labels::ZONE)?,
            capacity_type: label(labels::CAPACITY_TYPE)?,
        })
    }
}

impl Cluster {
    /// What runs on a node.
    pub fn usage_of(&self, node: &NodeName) -> NodeUsage {
        let Some(usage) = self.usage.get(node) else { return NodeUsage::default() };
        NodeUsage {
            requests: usage.used.clone(),
            limits: usage.limits.clone(),
            daemon_requests: usage.used_by_daemons.clone(),
            daemon_limits: usage.daemon_limits.clone(),
        }
    }

    /// What a claim's machine costs.
    pub fn price_of(&self, claim: &NodeClaim) -> ClaimPrice {
        match (pool_name(claim), Sold::of(claim)) {
            (Some(pool), Some(sold)) => self.price_in(&pool, sold),
            _ => ClaimPrice::NotYet,
        }
    }

    /// What each pool's machines cost per hour, pools without any included.
    pub fn costs(&self) -> BTreeMap<PoolName, Price> {
        // Machines of a pool are mostly alike: each kind of them is looked up once.
        let mut counts: BTreeMap<(PoolName, Sold<'_>), u64> = BTreeMap::new();
        for claim in self.claims.values() {
            if let (Some(pool), Some(sold)) = (pool_name(claim), Sold::of(claim)) {
                *counts.entry((pool, sold)).or_default() += 1;
            }
        }
        let mut costs: BTreeMap<PoolName, Price> =
            self.pools.keys().map(|pool| (pool.clone(), Price::default())).collect();
        for ((pool, sold), count) in counts {
            if let (ClaimPrice::Known(price), Some(cost)) = (self.price_in(&pool, sold), costs.get_mut(&pool)) {
                *cost = cost.plus(price.times(count));
            }
        }
        costs
    }

    fn price_in(&self, pool: &PoolName, sold: Sold<'_>) -> ClaimPrice {
        let Some(types) = self.types.get(pool) else { return ClaimPrice::NotYet };
        let kinds = types.iter().filter(|kind| kind.name.as_str() == sold.kind);
        let offering = kinds.flat_map(|kind| &kind.offerings).find(|offering| {
            offering.zone().is_some_and(|zone| &**zone == sold.zone)
                && offering.capacity_type().as_str() == sold.capacity_type
        });
        offering.map_or(ClaimPrice::Unknown, |offering| ClaimPrice::Known(offering.price))
    }
}
