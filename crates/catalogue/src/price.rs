//! Prices, and where they come from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A price per hour in millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroDollars(pub u64);

impl MicroDollars {
    /// Dollars per hour.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// This price times so many millionths, rounded to the nearest.
    #[must_use]
    pub fn times_millionths(self, millionths: u64) -> Self {
        Self((self.0 * millionths + 500_000) / 1_000_000)
    }
}

impl fmt::Display for MicroDollars {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "${}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Where the on-demand prices of a region come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDemandOrigin {
    /// From a list of the region's own prices.
    Listed,
    /// From the list of another region, times a factor that is right for the median type of this one.
    Scaled {
        /// The factor.
        millionths: u64,
    },
}

/// Where a spot price comes from. Neither kind is current: spot prices move all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpotOrigin {
    /// It was seen in one of the region's zones; which one was not recorded, so the prices seen are dealt out to the
    /// zones.
    Recorded,
    /// It is the on-demand price times a share that is usual, varied by type and zone.
    Estimated,
}

/// A spot price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpotPrice {
    /// Price per hour.
    pub price: MicroDollars,
    /// Where it comes from.
    pub origin: SpotOrigin,
}

/// The usual share of the on-demand price: the median over all types with both prices in us-east-1.
const SPOT_SHARE_MILLIONTHS: u64 = 340_000;
/// How far zones differ: shares lie in a band of this width around the usual one.
const SPOT_SPREAD_MILLIONTHS: u64 = 100_000;

/// A plausible spot price where none was recorded.
pub(crate) fn estimated_spot(on_demand: MicroDollars, type_name: &str, zone: &str) -> MicroDollars {
    let lowest = SPOT_SHARE_MILLIONTHS - SPOT_SPREAD_MILLIONTHS / 2;
    on_demand.times_millionths(lowest + stable_hash(&[type_name, zone]) % (SPOT_SPREAD_MILLIONTHS + 1))
}

/// Which of the prices recorded for a region stands for a zone: neighbouring zones get neighbouring prices, and each
/// type starts elsewhere, so that no zone is the cheapest for all.
pub(crate) fn recorded_spot(prices: &[u32], type_name: &str, zone_index: usize) -> Option<MicroDollars> {
    let count = prices.len();
    let first = stable_hash(&[type_name]) % u64::try_from(count.max(1)).unwrap_or(1);
    let chosen = prices.get((usize::try_from(first).unwrap_or(0) + zone_index) % count.max(1))?;
    Some(MicroDollars(u64::from(*chosen)))
}

/// FNV-1a: the same on every machine and in every version, which the standard library does not promise of its own.
fn stable_hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    let mixed = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    // The low bits of FNV follow the last byte too closely for a remainder.
    mixed ^ (mixed >> 32)
}
