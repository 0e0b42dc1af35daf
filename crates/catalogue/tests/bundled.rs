//! The bundled table holds what it should.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};

use catalogue::{Catalogue, Hypervisor, InstanceTypeFacts, OnDemandOrigin, SpotOrigin, UsageClass};
use expect_test::expect;

fn bundled() -> &'static Catalogue {
    Catalogue::bundled()
}

fn facts(name: &str) -> &'static InstanceTypeFacts {
    bundled().instance_type(name).unwrap()
}

#[test]
fn types_and_regions_are_all_there_and_in_order() {
    let catalogue = bundled();
    let names: Vec<&str> = catalogue.types().iter().map(|facts| facts.name.as_str()).collect();
    assert_eq!(names.len(), 1395);
    assert!(names.is_sorted());
    assert_eq!(catalogue.regions().len(), 30);
    assert!(catalogue.regions().iter().map(|region| &region.name).is_sorted());
    let mut names_and_ids = BTreeSet::new();
    for zone in catalogue.regions().iter().flat_map(|region| &region.zones) {
        assert!(names_and_ids.insert(&zone.name) && names_and_ids.insert(&zone.id), "{zone:?} is there twice");
        assert!(!zone.id.is_empty());
        assert!(catalogue.region_of_zone(&zone.name).unwrap().zones.contains(zone));
    }
}

#[test]
fn well_known_machines_look_as_they_should() {
    let line = |name: &str| {
        let facts = facts(name);
        let network = &facts.network;
        let limits = network.vpc_limits.unwrap_or_default();
        let gpus: String = facts.gpus.iter().map(|gpu| format!(", {}x {}", gpu.count, gpu.name)).collect();
        let neuron: String =
            facts.neuron_devices.iter().map(|device| format!(", {}x {}", device.count, device.name)).collect();
        format!(
            "{name}: {} vcpu, {} MiB, {}, {} x {} addresses, {} branches, {:?} Mbps{gpus}{neuron}\n",
            facts.vcpus,
            facts.memory_mib,
            facts.architectures.join(" "),
            network.default_card_interfaces_max(),
            network.ipv4_per_interface,
            limits.branch_interfaces,
            network.baseline_bandwidth_mbps,
        )
    };
    let names = ["m5.large", "m7g.xlarge", "t3.nano", "p4d.24xlarge", "trn1.32xlarge", "c1.medium", "m5.metal"];
    expect![[r#"
        m5.large: 2 vcpu, 8192 MiB, x86_64, 3 x 10 addresses, 9 branches, Some(750) Mbps
        m7g.xlarge: 4 vcpu, 16384 MiB, arm64, 4 x 15 addresses, 18 branches, Some(1876) Mbps
        t3.nano: 2 vcpu, 512 MiB, x86_64, 2 x 2 addresses, 0 branches, Some(32) Mbps
        p4d.24xlarge: 96 vcpu, 1179648 MiB, x86_64, 15 x 50 addresses, 62 branches, Some(400000) Mbps, 8x A100
        trn1.32xlarge: 128 vcpu, 524288 MiB, x86_64, 5 x 50 addresses, 82 branches, Some(800000) Mbps, 16x Trainium
        c1.medium: 2 vcpu, 1740 MiB, i386 x86_64, 2 x 6 addresses, 0 branches, None Mbps
        m5.metal: 96 vcpu, 393216 MiB, x86_64, 15 x 50 addresses, 120 branches, Some(25000) Mbps
    "#]]
    .assert_eq(&names.map(line).concat());
    assert_eq!(facts("m5.large").hypervisor, Some(Hypervisor::Nitro));
    assert_eq!(facts("m5.metal").hypervisor, None);
    assert!(facts("t3.nano").burstable && !facts("m5.large").burstable);
    assert_eq!((facts("m5.metal").family(), facts("m5.metal").size()), ("m5", "metal"));
}

#[test]
fn us_east_1_is_covered() {
    let catalogue = bundled();
    let zones = &catalogue.region("us-east-1").unwrap().zones;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for facts in catalogue.types() {
        let offered = zones.iter().any(|zone| catalogue.is_offered(&facts.name, &zone.name));
        let spot = zones.iter().find_map(|zone| catalogue.spot_price(&zone.name, &facts.name));
        let recorded = spot.is_some_and(|spot| spot.origin == SpotOrigin::Recorded);
        let on_demand = catalogue.on_demand_price("us-east-1", &facts.name);
        for (what, holds) in [
            ("offered", offered),
            ("with an on-demand price", on_demand.is_some()),
            ("with a spot price", spot.is_some()),
            ("with a recorded spot price", recorded),
            ("known to the VPC controller", facts.network.vpc_limits.is_some()),
        ] {
            *counts.entry(what).or_default() += usize::from(holds);
        }
    }
    let text: String = counts.iter().map(|(what, count)| format!("{count} {what}\n")).collect();
    expect![[r#"
        1381 known to the VPC controller
        1375 offered
        865 with a recorded spot price
        1321 with a spot price
        1334 with an on-demand price
    "#]]
    .assert_eq(&text);
}

/// Prices are positive, spot is never dearer than on-demand, and what is not offered has none.
#[test]
fn prices_make_sense_everywhere() {
    let catalogue = bundled();
    for region in catalogue.regions() {
        for facts in catalogue.types() {
            let on_demand = catalogue.on_demand_price(&region.name, &facts.name);
            assert!(on_demand.is_none_or(|price| price.0 > 0));
            for zone in &region.zones {
                let Some(spot) = catalogue.spot_price(&zone.name, &facts.name) else { continue };
                assert!(catalogue.is_offered(&facts.name, &zone.name), "{} in {}", facts.name, zone.name);
                assert!(facts.is_sold_as(UsageClass::Spot));
                assert!(spot.price.0 > 0);
                assert!(on_demand.is_none_or(|on_demand| spot.price <= on_demand), "{} in {}", facts.name, zone.name);
            }
        }
    }
}

#[test]
fn prices_say_where_they_come_from() {
    let catalogue = bundled();
    let spot = |zone: &str, name: &str| {
        let found = catalogue.spot_price(zone, name).unwrap();
        format!("{zone} {name} spot {} {:?}\n", found.price, found.origin)
    };
    let on_demand = |region: &str, name: &str| {
        let price = catalogue.on_demand_price(region, name).unwrap();
        format!("{region} {name} {price} {:?}\n", catalogue.on_demand_origin(region).unwrap())
    };
    let lines = [
        on_demand("us-east-1", "m5.large"),
        on_demand("eu-west-1", "m5.large"),
        spot("us-east-1a", "m5.large"),
        spot("us-east-1b", "m5.large"),
        spot("eu-west-1a", "m5.large"),
        spot("us-west-2a", "m8g.large"),
        spot("us-west-2b", "m8g.large"),
        spot("af-south-1a", "m5.large"),
    ];
    expect![[r#"
        us-east-1 m5.large $0.096000 Listed
        eu-west-1 m5.large $0.107044 Scaled { millionths: 1115044 }
        us-east-1a m5.large spot $0.036000 Recorded
        us-east-1b m5.large spot $0.038300 Recorded
        eu-west-1a m5.large spot $0.048300 Recorded
        us-west-2a m8g.large spot $0.036700 Recorded
        us-west-2b m8g.large spot $0.028800 Recorded
        af-south-1a m5.large spot $0.047210 Estimated
    "#]]
    .assert_eq(&lines.concat());
    assert_eq!(catalogue.on_demand_origin("us-east-1"), Some(OnDemandOrigin::Listed));
}

#[test]
fn what_is_unknown_has_no_price() {
    let catalogue = bundled();
    assert_eq!(catalogue.on_demand_price("mars-north-1", "m5.large"), None);
    assert_eq!(catalogue.on_demand_price("us-east-1", "m5.tiny"), None);
    assert_eq!(catalogue.on_demand_origin("mars-north-1"), None);
    assert_eq!(catalogue.spot_price("mars-north-1a", "m5.large"), None);
    assert_eq!(catalogue.spot_price("us-east-1a", "m5.tiny"), None);
    assert!(!catalogue.is_offered("m5.tiny", "us-east-1a"));
}

/// The notices in the table and those for people are the same.
#[test]
fn every_source_is_named() {
    let lines: Vec<String> = bundled().notices().iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 4);
    let told = include_str!("../data/NOTICE");
    assert!(lines.iter().all(|line| told.lines().any(|told| told == line)));
}
