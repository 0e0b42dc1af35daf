//! What kind of AWS this is.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::log::Action;
use crate::{CapacityPlan, FaultPlan};

/// Everything that a run depends on, besides the calls made.
#[derive(Clone, Debug, PartialEq)]
pub struct AwsSettings {
    /// Chooses ids, delays and the depth of pools.
    pub seed: u64,
    /// Region.
    pub region: String,
    /// Zones of the region that are in use, each with one subnet.
    pub zones: Vec<String>,
    /// How many instances each pool can give.
    pub capacity: CapacityPlan,
    /// What the account may use.
    pub quotas: Quotas,
    /// Free addresses of each subnet at the start.
    pub subnet_addresses: u32,
    /// How long things take.
    pub delays: Delays,
    /// How often calls may be made; an action that is not named is not limited.
    pub rate_limits: BTreeMap<Action, RateLimit>,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// Whether every call is kept for [`crate::Aws::calls`].
    pub keep_log: bool,
}

/// Addresses of a subnet that spans 32 third-octet blocks, less the five that AWS keeps.
const SUBNET_ADDRESSES: u32 = 8192 - 5;

impl AwsSettings {
    /// A healthy region: plentiful capacity, ordinary delays, no limits, no faults.
    pub fn new(seed: u64, region: impl Into<String>, zones: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            seed,
            region: region.into(),
            zones: zones.into_iter().map(Into::into).collect(),
            capacity: CapacityPlan::default(),
            quotas: Quotas::default(),
            subnet_addresses: SUBNET_ADDRESSES,
            delays: Delays::default(),
            rate_limits: BTreeMap::new(),
            faults: FaultPlan::default(),
            keep_log: true,
        }
    }
}

/// What the account may use; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Virtual processors of on-demand instances.
    pub on_demand_vcpus: Option<u32>,
    /// Spot instances.
    pub spot_instances: Option<u32>,
}

/// A range of durations, both ends included; draws are in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The shortest.
    pub shortest: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Span {
    /// Always the same.
    pub const fn exactly(duration: Duration) -> Self {
        Self { shortest: duration, longest: duration }
    }

    const fn milliseconds(shortest: u64, longest: u64) -> Self {
        Self { shortest: Duration::from_millis(shortest), longest: Duration::from_millis(longest) }
    }

    pub(crate) fn draw(self, rng: &mut fastrand::Rng) -> Duration {
        let whole = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let (shortest, longest) = (whole(self.shortest), whole(self.longest));
        Duration::from_millis(rng.u64(shortest..=longest.max(shortest)))
    }
}

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// From the launch until calls other than the launch know the instance.
    pub visible: Span,
    /// From the launch until the instance runs.
    pub running: Span,
    /// From the order to end until the instance has ended.
    pub terminated: Span,
    /// From the end until nobody remembers the instance.
    pub forgotten: Span,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            visible: Span::milliseconds(0, 500),
            running: Span::milliseconds(4_000, 12_000),
            terminated: Span::milliseconds(15_000, 45_000),
            forgotten: Span::exactly(Duration::from_secs(3600)),
        }
    }
}

impl Delays {
    /// Everything at once, though ended instances are still remembered for an hour.
    pub fn none() -> Self {
        let none = Span::exactly(Duration::ZERO);
        Self { visible: none, running: none, terminated: none, ..Self::default() }
    }
}

/// A bucket of tokens: each call takes one, and without any the call is refused with `RequestLimitExceeded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Tokens that come back per second.
    pub per_second: u32,
    /// Tokens that the bucket holds.
    pub burst: u32,
}
