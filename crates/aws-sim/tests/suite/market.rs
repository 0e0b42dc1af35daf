//! A region small enough to reckon in the head.
//!
//! | type | vCPUs | on-demand | spot | zones |
//! |---|---|---|---|---|
//! | large | 8 | $0.40 | $0.12 | a b c |
//! | medium | 4 | $0.20 | $0.05 | a b c |
//! | small | 2 | $0.10 | $0.03 | a b |
//! | steady | 4 | $0.15 | none | a b c |

use std::collections::BTreeMap;
use std::sync::OnceLock;

use aws_sim::{AllocationStrategy, Aws, AwsSettings, CapacityType, Delays, FleetRequest, Override};
use catalogue::{Catalogue, InstanceTypeFacts, MicroDollars, Region, RegionTable, Table, UsageClass, Zone};
use jiff::Timestamp;

/// The zones by their letters.
pub(crate) const ZONES: [&str; 3] = ["a", "b", "c"];

pub(crate) fn catalogue() -> &'static Catalogue {
    static SMALL: OnceLock<Catalogue> = OnceLock::new();
    SMALL.get_or_init(|| Catalogue::new(table()))
}

fn table() -> Table {
    let kind = |name: &str, vcpus, spot: bool| InstanceTypeFacts {
        name: name.to_owned(),
        vcpus,
        usage_classes: if spot { vec![UsageClass::OnDemand, UsageClass::Spot] } else { vec![UsageClass::OnDemand] },
        ..InstanceTypeFacts::default()
    };
    let zone = |letter: &&str| Zone { name: (*letter).to_owned(), id: format!("use1-{letter}") };
    Table {
        notices: Vec::new(),
        types: vec![kind("large", 8, true), kind("medium", 4, true), kind("small", 2, true), kind("steady", 4, false)],
        on_demand: [400_000, 200_000, 100_000, 150_000].map(MicroDollars).to_vec(),
        listed_region: "us-east-1".to_owned(),
        regions: vec![RegionTable {
            region: Region { name: "us-east-1".to_owned(), zones: ZONES.iter().map(zone).collect() },
            on_demand_millionths: 1_000_000,
            offered: vec![0b111, 0b111, 0b011, 0b111],
            spot: vec![(0, vec![120_000]), (1, vec![50_000]), (2, vec![30_000])],
        }],
    }
}

/// A region without delays.
pub(crate) fn settings() -> AwsSettings {
    AwsSettings { delays: Delays::none(), ..AwsSettings::new(7, "us-east-1", ZONES) }
}

pub(crate) fn region(settings: AwsSettings) -> Aws {
    Aws::new(settings, catalogue())
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// `small/a` or `small/a=3` with a priority.
pub(crate) fn overrides(text: &str) -> Vec<Override> {
    let one = |word: &str| {
        let (pool, priority) = word.split_once('=').unwrap_or((word, ""));
        let (kind, zone) = pool.split_once('/').unwrap();
        Override { priority: priority.parse().ok(), ..Override::new(kind, zone) }
    };
    text.split_whitespace().map(one).collect()
}

pub(crate) fn request(strategy: AllocationStrategy, capacity_type: CapacityType, text: &str) -> FleetRequest {
    FleetRequest {
        client_token: None,
        capacity_type,
        allocation_strategy: strategy,
        overrides: overrides(text),
        count: 1,
        tags: BTreeMap::new(),
        dry_run: false,
    }
}

pub(crate) fn on_demand(text: &str) -> FleetRequest {
    request(AllocationStrategy::LowestPrice, CapacityType::OnDemand, text)
}

pub(crate) fn spot(text: &str) -> FleetRequest {
    request(AllocationStrategy::PriceCapacityOptimized, CapacityType::Spot, text)
}
