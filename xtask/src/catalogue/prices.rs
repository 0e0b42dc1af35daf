//! Prices: how regions differ, and what spot capacity was seen to cost.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result};
use catalogue::{InstanceTypeFacts, MicroDollars, RegionTable, UsageClass};
use serde::Deserialize;

/// Prices that were recorded, by type and region.
#[derive(Debug)]
pub(crate) struct Recorded(BTreeMap<String, BTreeMap<String, RegionPrices>>);

#[derive(Debug, Deserialize)]
struct RecordedType {
    instance_type: String,
    pricing: BTreeMap<String, RegionPrices>,
}

#[derive(Debug, Deserialize)]
struct RegionPrices {
    linux: Option<LinuxPrices>,
}

#[derive(Debug, Deserialize)]
struct LinuxPrices {
    ondemand: Option<String>,
    #[serde(default)]
    spot: Vec<String>,
}

/// Reads the recorded prices. The file is large; only what is needed of it is kept.
pub(crate) fn read(file: &Path) -> Result<Recorded> {
    let opened = File::open(file).with_context(|| format!("open `{}`", file.display()))?;
    let types: Vec<RecordedType> =
        serde_json::from_reader(BufReader::new(opened)).with_context(|| format!("read `{}`", file.display()))?;
    Ok(Recorded(types.into_iter().map(|kind| (kind.instance_type, kind.pricing)).collect()))
}

/// A price in dollars as whole millionths; `None` unless it is above zero.
pub(crate) fn micro_dollars(dollars: f64) -> Option<MicroDollars> {
    let micros = (dollars * 1e6).round();
    (micros >= 1.0).then_some(MicroDollars(micros as u64))
}

impl Recorded {
    fn linux(&self, type_name: &str, region: &str) -> Option<&LinuxPrices> {
        self.0.get(type_name)?.get(region)?.linux.as_ref()
    }

    /// The median over all types of what they cost in a region by what they cost in another, in millionths.
    pub(crate) fn on_demand_millionths(&self, from: &str, to: &str) -> Option<u64> {
        let on_demand = |name: &str, region: &str| {
            let dollars: f64 = self.linux(name, region)?.ondemand.as_ref()?.parse().ok()?;
            (dollars > 0.0).then_some(dollars)
        };
        let ratio = |name: &String| Some(on_demand(name, to)? / on_demand(name, from)?);
        let mut ratios: Vec<f64> = self.0.keys().filter_map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let middle = ratios.len() / 2;
        let median = match (ratios.get(middle)?, ratios.len() % 2) {
            (upper, 0) => f64::midpoint(*ratios.get(middle - 1)?, *upper),
            (middle, _) => *middle,
        };
        Some((median * 1e6).round() as u64)
    }
}

/// The spot prices that were seen in a region, by the place of their type.
///
/// Those above today's on-demand price are left out: the type has become cheaper since they were seen.
pub(crate) fn spot_of_region(
    region: &RegionTable,
    types: &[InstanceTypeFacts],
    on_demand: &[MicroDollars],
    recorded: &Recorded,
) -> Vec<(usize, Vec<u32>)> {
    let mut found = Vec::new();
    for (place, (facts, listed)) in types.iter().zip(on_demand).enumerate() {
        let is_offered = region.offered.get(place).is_some_and(|zones| *zones != 0);
        let Some(linux) = recorded.linux(&facts.name, &region.region.name) else { continue };
        if !is_offered || !facts.is_sold_as(UsageClass::Spot) {
            continue;
        }
        let limit = listed.times_millionths(region.on_demand_millionths);
        let prices = linux.spot.iter().filter_map(|text| micro_dollars(text.parse().ok()?));
        let affordable = prices.filter(|price| limit.0 == 0 || *price <= limit);
        let mut prices: Vec<u32> = affordable.filter_map(|price| u32::try_from(price.0).ok()).collect();
        prices.sort_unstable();
        if !prices.is_empty() {
            found.push((place, prices));
        }
    }
    found
}
