//! How instance types can be bought.

use std::collections::BTreeMap;

use crate::common::{class, for_sale, label, named, of_family, one, one_with, region_types, types};
use ec2::{ClassView, PlacementGroup, PlacementStrategy, Settings};
use expect_test::{Expect, expect};
use model::{CapacityType, InstanceType};

fn lines(kind: &InstanceType) -> String {
    let line = |offering: &model::Offering| {
        let price = if offering.available { offering.price.to_string() } else { "not for sale".to_owned() };
        let left = offering.reservation_capacity.map_or_else(String::new, |left| format!(" {left} left"));
        let values = offering.requirements.iter().filter_map(|(_, requirement)| requirement.single_value());
        let values: Vec<&str> = values.map(|value| &**value).collect();
        format!("{}: {price}{left}\n", values.join(" "))
    };
    kind.offerings.iter().map(line).collect()
}

fn check(kind: &InstanceType, expected: Expect) {
    expected.assert_eq(&lines(kind));
}

/// AWS-OF-01
#[test]
fn every_zone_and_capacity_type_is_an_offering() {
    let two_zones = "subnets: [{id: subnet-1, zone: us-west-2a, zoneID: usw2-az2}, {id: subnet-2, zone: us-west-2c}]";
    let class = class("amiSelectorTerms: [{alias: al2023@latest}]", two_zones);
    check(
        &one(&class, "m5.large"),
        expect![[r#"
        on-demand usw2-az2 us-west-2a: $0.0960/h
        spot usw2-az2 us-west-2a: $0.0366/h
        on-demand us-west-2b: not for sale
        spot us-west-2b: not for sale
        on-demand us-west-2c: $0.0960/h
        spot us-west-2c: $0.0388/h
        on-demand us-west-2d: not for sale
        spot us-west-2d: not for sale
    "#]],
    );
    let absent = |offering: &model::Offering| {
        let id = offering.requirements.get("karpenter.k8s.aws/capacity-reservation-id");
        id.is_some_and(|id| id.operator() == model::Operator::DoesNotExist)
    };
    assert!(one(&class, "m5.large").offerings.iter().all(absent));
}

/// What ran out is not for sale where and how it ran out; everything else is.
#[test]
fn what_ran_out_is_not_for_sale() {
    let out = |name: &str, zone: &str, capacity_type: CapacityType| {
        name == "m5.large" && zone == "us-west-2b" && capacity_type == CapacityType::Spot
    };
    let class = of_family("AL2023", "");
    let types = region_types().instance_types(&class, &Settings::default(), &out);
    assert_eq!(for_sale(&named(&types, "m5.large")), BTreeMap::from([("on-demand", 4), ("spot", 3)]));
    assert_eq!(for_sale(&named(&types, "m5.xlarge")), BTreeMap::from([("on-demand", 4), ("spot", 4)]));
}

/// An answer that is brought up to date is the answer that a fresh question gets, and shares what did not change.
#[test]
fn refreshed_types_are_as_if_asked_anew() {
    let all = |_: &str, _: &str, _: CapacityType| false;
    let some_out = |name: &str, zone: &str, capacity_type: CapacityType| {
        name.starts_with("m5.") && zone == "us-west-2b" && capacity_type != CapacityType::OnDemand
    };
    let partitioned = PlacementGroup { id: "pg-1".to_owned(), strategy: PlacementStrategy::Partition { count: 2 } };
    let settings = Settings::default();
    let table = [
        (of_family("AL2023", ""), of_family("AL2023", ""), 9),
        (reserved_class(), reserved_class(), 9),
        (
            reserved_class().with_placement_group(partitioned.clone()),
            reserved_class().with_placement_group(partitioned),
            9,
        ),
    ];
    for (before, after, changed) in table {
        let previous = region_types().instance_types(&before, &settings, &all);
        let fresh = region_types().instance_types(&after, &settings, &some_out);
        let refreshed = region_types().refresh(&previous, &after, &settings, &some_out);
        assert_eq!(refreshed, fresh);
        let shared = refreshed.iter().zip(&previous).filter(|(now, then)| std::sync::Arc::ptr_eq(now, then)).count();
        assert_eq!(refreshed.len() - shared, changed);
        let same = region_types().refresh(&refreshed, &after, &settings, &some_out);
        assert!(same.iter().zip(&refreshed).all(|(now, then)| std::sync::Arc::ptr_eq(now, then)));
    }
    let less = reserved_class().with_reserved(&BTreeMap::from([("cr-1".to_owned(), 2)]));
    let previous = types(&reserved_class());
    let refreshed = region_types().refresh(&previous, &less, &settings, &all);
    assert_eq!(refreshed, types(&less));
    let changed = refreshed.iter().zip(&previous).filter(|(now, then)| !std::sync::Arc::ptr_eq(now, then));
    assert_eq!(changed.map(|(now, _)| now.name.as_str()).collect::<Vec<_>>(), ["m5.large"]);
}

const RESERVED: &str = "\
capacityReservations:
- {id: cr-1, availabilityZone: us-west-2a, instanceType: m5.large, instanceMatchCriteria: targeted, ownerID: \"012345678901\"}
- {id: cr-2, availabilityZone: us-west-2b, instanceType: m5.large, instanceMatchCriteria: open, ownerID: \"012345678901\", interruptible: true}
- {id: cr-3, availabilityZone: us-west-2a, instanceType: m5.large, instanceMatchCriteria: open, ownerID: \"012345678901\", reservationType: capacity-block, state: expiring}
- {id: cr-4, availabilityZone: elsewhere-1a, instanceType: m5.large, instanceMatchCriteria: open, ownerID: \"012345678901\"}";

fn reserved_class() -> ClassView {
    let left =
        BTreeMap::from([("cr-1", 3), ("cr-3", 1), ("cr-4", 1)]).into_iter().map(|(id, left)| (id.to_owned(), left));
    class("amiSelectorTerms: [{alias: al2023@latest}]", RESERVED).with_reserved(&left.collect())
}

/// AWS-OF-02
#[test]
fn reservations_are_offerings_that_cost_next_to_nothing() {
    let types = types(&reserved_class());
    let kind = named(&types, "m5.large");
    let reserved: String =
        lines(&kind).lines().filter(|line| line.contains("reserved")).map(|line| format!("{line}\n")).collect();
    expect![[r#"
        cr-1 false default reserved usw2-az2 us-west-2a: $0.0000/h 3 left
        cr-2 true default reserved usw2-az1 us-west-2b: not for sale 0 left
        cr-3 false capacity-block reserved usw2-az2 us-west-2a: not for sale 1 left
        cr-4 false default reserved elsewhere-1a: not for sale 1 left
    "#]]
    .assert_eq(&reserved);
    let first = kind.offerings.iter().find(|offering| offering.capacity_type() == CapacityType::Reserved).unwrap();
    assert_eq!(first.price, model::Price::from_dollars(0.096 / 10_000_000.0));
    assert_eq!(label(&kind, "karpenter.sh/capacity-type"), "on-demand|reserved|spot");
    assert_eq!(label(&kind, "karpenter.k8s.aws/capacity-reservation-id"), "cr-1|cr-2|cr-3|cr-4");
    assert_eq!(label(&kind, "karpenter.k8s.aws/capacity-reservation-type"), "capacity-block|default");
    assert_eq!(label(&kind, "karpenter.k8s.aws/capacity-reservation-interruptible"), "false|true");
    assert_eq!(label(&named(&types, "m5.xlarge"), "karpenter.sh/capacity-type"), "on-demand|spot");
    let off = Settings { reserved_capacity: false, ..Settings::default() };
    let kind = one_with(&reserved_class(), &off, "m5.large");
    assert_eq!(label(&kind, "karpenter.sh/capacity-type"), "on-demand|spot");
    assert!(kind.offerings.iter().all(|offering| offering.capacity_type() != CapacityType::Reserved));
}

/// AWS-OF-03
#[test]
fn partitions_multiply_offerings() {
    let group = |strategy| PlacementGroup { id: "pg-1".to_owned(), strategy };
    let key = "karpenter.k8s.aws/placement-group-partition";
    let table = [
        (PlacementStrategy::Partition { count: 3 }, "1|2|3", 24),
        (PlacementStrategy::Partition { count: 0 }, "undefined", 8),
        (PlacementStrategy::Spread, "undefined", 8),
    ];
    for (strategy, partitions, offerings) in table {
        let class = of_family("AL2023", "").with_placement_group(group(strategy));
        let kind = one(&class, "m5.large");
        assert_eq!(label(&kind, "karpenter.k8s.aws/placement-group-id"), "pg-1");
        assert_eq!((label(&kind, key).as_str(), kind.offerings.len()), (partitions, offerings), "{strategy:?}");
        let told = kind.offerings.iter().filter(|offering| offering.requirements.get(key).is_some()).count();
        assert_eq!(told, if partitions == "undefined" { 0 } else { offerings });
    }
}

/// AWS-IT-21
#[test]
fn what_a_class_cannot_launch_is_not_for_sale() {
    let interfaces = |more: &str| {
        format!("networkInterfaces:\n- {{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}}\n{more}")
    };
    let efa = |card: u32, device: u32| {
        format!("- {{networkCardIndex: {card}, deviceIndex: {device}, interfaceType: efa-only}}\n")
    };
    let table = [
        ("AL2023", String::new(), "m5.large", true),
        ("AL2023", String::new(), "a1.large", false),
        ("AL2", String::new(), "a1.large", true),
        // The Elastic Network Adapter, cards, places on a card, interfaces of the fabric adapter.
        ("AL2", interfaces(""), "m5.large", true),
        ("AL2", interfaces(""), "m3.large", false),
        ("AL2", String::new(), "m3.large", true),
        ("AL2", interfaces(&efa(0, 1)), "m5.large", false),
        ("AL2", interfaces(&efa(0, 1)), "p4d.24xlarge", true),
        ("AL2", interfaces(&efa(4, 1)), "p4d.24xlarge", false),
        ("AL2", interfaces(&efa(1, 15)), "p4d.24xlarge", false),
        ("AL2", interfaces("- {networkCardIndex: 0, deviceIndex: 2, interfaceType: interface}"), "m5.large", true),
        ("AL2", interfaces("- {networkCardIndex: 0, deviceIndex: 3, interfaceType: interface}"), "m5.large", false),
        ("AL2023", "cpuOptions: {nestedVirtualization: enabled}".to_owned(), "m5.large", false),
        ("AL2023", "cpuOptions: {nestedVirtualization: enabled}".to_owned(), "m8i.large", true),
        ("AL2023", "cpuOptions: {nestedVirtualization: disabled}".to_owned(), "m5.large", true),
        ("AL2023", "connectionTracking: {udpTimeout: 30}".to_owned(), "m5.large", true),
        ("AL2023", "connectionTracking: {udpTimeout: 30}".to_owned(), "m4.large", false),
        ("AL2023", "connectionTracking: {udpTimeout: 30}".to_owned(), "m5.metal", false),
    ];
    for (family, spec, name, sold) in table {
        let kind = one(&of_family(family, &spec), name);
        assert_eq!(!for_sale(&kind).is_empty(), sold, "{family} {name} {spec}");
        assert!(!kind.offerings.is_empty(), "{name} stays known");
    }
    let clustered = PlacementGroup { id: "pg-1".to_owned(), strategy: PlacementStrategy::Cluster };
    let types = types(&of_family("AL2023", "").with_placement_group(clustered));
    assert!(for_sale(&named(&types, "t3.large")).is_empty() && !for_sale(&named(&types, "m5.large")).is_empty());
}

/// Zones that do not have a type do not sell it, and neither does a region without it.
#[test]
fn only_what_a_zone_offers_is_for_sale() {
    let catalogue = catalogue::Catalogue::bundled();
    for kind in types(&of_family("AL2", "")) {
        for offering in &kind.offerings {
            let zone = offering.zone().unwrap();
            let offered = catalogue.is_offered(kind.name.as_str(), zone);
            assert!(!offering.available || offered, "{} in {zone}", kind.name);
        }
    }
    let count = types(&of_family("AL2", "")).len();
    expect![[r#"
        1345 types in us-west-2
    "#]]
    .assert_eq(&format!("{count} types in us-west-2\n"));
}

#[test]
fn a_region_that_nobody_knows_has_no_types() {
    let none = ec2::instance_types(
        catalogue::Catalogue::bundled(),
        "mars-north-1",
        &of_family("AL2023", ""),
        &Settings::default(),
        &|_, _, _| false,
    );
    assert!(none.is_empty());
}
