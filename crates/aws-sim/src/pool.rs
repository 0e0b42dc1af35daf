//! Capacity pools: how many instances of a type a zone can still give.

use std::collections::BTreeMap;
use std::fmt;

/// How capacity is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapacityType {
    /// At list price, until it is given back.
    OnDemand,
    /// Cheaper, and may be taken away.
    Spot,
}

impl fmt::Display for CapacityType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
        })
    }
}

/// Names a pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolKey {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// How it is bought.
    pub capacity_type: CapacityType,
}

impl PoolKey {
    /// A key from its parts.
    pub fn new(instance_type: impl Into<String>, zone: impl Into<String>, capacity_type: CapacityType) -> Self {
        Self { instance_type: instance_type.into(), zone: zone.into(), capacity_type }
    }
}

impl fmt::Display for PoolKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.instance_type, self.zone, self.capacity_type)
    }
}

/// Names many pools: what is not given matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolPattern {
    /// Instance type.
    pub instance_type: Option<String>,
    /// Zone.
    pub zone: Option<String>,
    /// How it is bought.
    pub capacity_type: Option<CapacityType>,
}

impl PoolPattern {
    /// Whether a pool is among those named.
    pub fn matches(&self, pool: &PoolKey) -> bool {
        self.instance_type.as_ref().is_none_or(|wanted| *wanted == pool.instance_type)
            && self.zone.as_ref().is_none_or(|wanted| *wanted == pool.zone)
            && self.capacity_type.is_none_or(|wanted| wanted == pool.capacity_type)
    }
}

impl From<PoolKey> for PoolPattern {
    fn from(pool: PoolKey) -> Self {
        let PoolKey { instance_type, zone, capacity_type } = pool;
        Self { instance_type: Some(instance_type), zone: Some(zone), capacity_type: Some(capacity_type) }
    }
}

/// A number of instances for some pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityRule {
    /// The pools.
    pub pools: PoolPattern,
    /// Instances that each of them has at the start.
    pub count: u32,
}

/// How many instances each pool has at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityPlan {
    /// Pools without a rule have at least this many.
    pub plenty_min: u32,
    /// Pools without a rule have at most this many; the seed chooses.
    pub plenty_max: u32,
    /// Exceptions; the last that matches counts.
    pub rules: Vec<CapacityRule>,
}

impl Default for CapacityPlan {
    fn default() -> Self {
        // More than a demonstration needs, few enough that a thousand nodes of one type do not all fit one pool.
        Self { plenty_min: 100, plenty_max: 900, rules: Vec::new() }
    }
}

impl CapacityPlan {
    fn at_start(&self, seed: u64, pool: &PoolKey) -> u32 {
        let rule = self.rules.iter().rev().find(|rule| rule.pools.matches(pool));
        let plenty = || {
            let mut rng = fastrand::Rng::with_seed(seed ^ stable_hash(&pool.to_string()));
            rng.u32(self.plenty_min..=self.plenty_max.max(self.plenty_min))
        };
        rule.map_or_else(plenty, |rule| rule.count)
    }
}

/// FNV-1a: the same in every process and on every machine.
fn stable_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The pools that have been asked for so far; the others are as the plan says.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    seed: u64,
    plan: CapacityPlan,
    free: BTreeMap<PoolKey, u32>,
}

impl Pools {
    pub(crate) fn new(seed: u64, plan: CapacityPlan) -> Self {
        Self { seed, plan, free: BTreeMap::new() }
    }

    pub(crate) fn free(&self, pool: &PoolKey) -> u32 {
        self.free.get(pool).copied().unwrap_or_else(|| self.plan.at_start(self.seed, pool))
    }

    pub(crate) fn set(&mut self, pool: PoolKey, count: u32) {
        self.free.insert(pool, count);
    }

    /// Takes one instance out; false when there is none.
    pub(crate) fn take(&mut self, pool: &PoolKey) -> bool {
        let Some(left) = self.free(pool).checked_sub(1) else { return false };
        self.set(pool.clone(), left);
        true
    }

    pub(crate) fn give_back(&mut self, pool: &PoolKey) {
        let free = self.free(pool).saturating_add(1);
        self.set(pool.clone(), free);
    }
}
