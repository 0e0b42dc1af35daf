//! Which pools a fleet takes, and what it says about those it could not.

use aws_sim::{
    AllocationStrategy, Aws, AwsSettings, CapacityRule, CapacityType, FleetErrorCode, FleetRequest, PoolFault, PoolKey,
    PoolPattern, Quotas, Window,
};
use catalogue::{Catalogue, MicroDollars};
use expect_test::{Expect, expect};

use crate::market::{at, on_demand, region, request, settings, spot};

/// Reads `small/a=2 medium/b=0` as counts of the pools of one capacity type.
fn with_pools(capacity_type: CapacityType, text: &str) -> AwsSettings {
    let mut settings = settings();
    for word in text.split_whitespace() {
        let (pool, count) = word.split_once('=').unwrap();
        let (kind, zone) = pool.split_once('/').unwrap();
        let pools = PoolPattern::from(PoolKey::new(kind, zone, capacity_type));
        settings.capacity.rules.push(CapacityRule { pools, count: count.parse().unwrap() });
    }
    settings
}

/// One line: what was launched, then what was tried in vain.
fn check(settings: AwsSettings, request: &FleetRequest, expected: Expect) {
    let answer = region(settings).create_fleet(at(0), request).unwrap();
    let launched = answer.instances.iter().map(|instance| format!("{}/{}", instance.instance_type, instance.zone));
    let failed = answer.errors.iter().map(|error| {
        let pool = &error.pool;
        format!("!{}/{} {}", pool.instance_type, pool.zone, error.code)
    });
    let words: Vec<String> = launched.chain(failed).collect();
    expected.assert_eq(&words.join(", "));
}

fn of(count: u32, request: FleetRequest) -> FleetRequest {
    FleetRequest { count, ..request }
}

#[test]
fn lowest_price_tries_the_cheapest_first_and_tells_what_was_empty() {
    let pools = "small/a=0 small/b=1";
    let all = "large/a medium/a small/a small/b";
    check(settings(), &on_demand(all), expect!["small/a"]);
    check(
        with_pools(CapacityType::OnDemand, pools),
        &on_demand(all),
        expect!["small/b, !small/a InsufficientInstanceCapacity"],
    );
    check(
        with_pools(CapacityType::OnDemand, pools),
        &of(3, on_demand(all)),
        expect![
            "small/b, medium/a, medium/a, !small/a InsufficientInstanceCapacity, !small/b InsufficientInstanceCapacity"
        ],
    );
}

#[test]
fn prioritized_goes_by_number_whatever_the_price() {
    let prioritized = |text| request(AllocationStrategy::Prioritized, CapacityType::OnDemand, text);
    check(settings(), &prioritized("small/a=3 large/a=1 medium/a=2"), expect!["large/a"]);
    check(settings(), &prioritized("small/a large/a=9"), expect!["large/a"]);
    check(
        with_pools(CapacityType::OnDemand, "large/a=0"),
        &prioritized("small/a=3 large/a=1 medium/a=2"),
        expect!["medium/a, !large/a InsufficientInstanceCapacity"],
    );
}

#[test]
fn price_capacity_optimized_takes_the_cheapest_of_the_deep_pools() {
    let all = "large/a medium/a small/a";
    check(settings(), &spot(all), expect!["small/a"]);
    check(with_pools(CapacityType::Spot, "small/a=5"), &spot(all), expect!["medium/a"]);
    check(with_pools(CapacityType::Spot, "small/a=5 medium/a=4 large/a=9"), &spot(all), expect!["small/a"]);
    check(
        with_pools(CapacityType::Spot, "small/a=0 medium/a=0 large/a=0"),
        &spot(all),
        expect![
            "!small/a InsufficientInstanceCapacity, !medium/a InsufficientInstanceCapacity, !large/a InsufficientInstanceCapacity"
        ],
    );
}

#[test]
fn capacity_optimized_prioritized_takes_the_first_of_the_deep_pools() {
    let by_number =
        request(AllocationStrategy::CapacityOptimizedPrioritized, CapacityType::Spot, "small/a=3 large/a=1 medium/a=2");
    check(settings(), &by_number, expect!["large/a"]);
    check(with_pools(CapacityType::Spot, "large/a=5"), &by_number, expect!["medium/a"]);
}

#[test]
fn equal_pools_are_taken_in_the_order_of_the_request() {
    check(settings(), &on_demand("small/b small/a"), expect!["small/b"]);
}

#[test]
fn what_a_zone_does_not_sell_cannot_be_had() {
    check(settings(), &on_demand("small/c"), expect!["!small/c Unsupported"]);
    check(settings(), &spot("steady/a"), expect!["!steady/a UnfulfillableCapacity"]);
    check(
        settings(),
        &on_demand("huge/a small/z"),
        expect!["!huge/a InvalidParameterValue, !small/z InvalidParameterValue"],
    );
    check(settings(), &on_demand("small/a small/c"), expect!["small/a"]);
}

#[test]
fn quotas_of_the_account_count() {
    let vcpus = Quotas { on_demand_vcpus: Some(6), ..Quotas::default() };
    check(
        AwsSettings { quotas: vcpus, ..settings() },
        &of(3, on_demand("medium/a small/a")),
        expect!["small/a, small/a, small/a"],
    );
    check(
        AwsSettings { quotas: vcpus, ..settings() },
        &of(2, on_demand("large/a medium/a")),
        expect!["medium/a, !medium/a VcpuLimitExceeded, !large/a VcpuLimitExceeded"],
    );
    let spots = Quotas { spot_instances: Some(1), ..Quotas::default() };
    check(
        AwsSettings { quotas: spots, ..settings() },
        &of(2, spot("medium/a small/b")),
        expect!["small/b, !small/b MaxSpotInstanceCountExceeded, !medium/a MaxSpotInstanceCountExceeded"],
    );
}

#[test]
fn a_subnet_without_addresses_refuses() {
    let settings = AwsSettings { subnet_addresses: 1, ..settings() };
    check(
        settings,
        &of(3, on_demand("small/a small/b")),
        expect![
            "small/a, small/b, !small/a InsufficientFreeAddressesInSubnet, !small/b InsufficientFreeAddressesInSubnet"
        ],
    );
}

#[test]
fn spot_is_bought_up_to_the_maximal_price() {
    let mut dear = spot("small/a medium/a");
    dear.overrides[0].max_price = Some(MicroDollars(29_999));
    check(settings(), &dear, expect!["medium/a, !small/a SpotMaxPriceTooLow"]);
}

#[test]
fn faults_speak_for_pools() {
    let mut settings = settings();
    let pools = PoolPattern { zone: Some("a".to_owned()), ..PoolPattern::default() };
    let window = Window { from: at(0), until: at(10) };
    settings.faults.pools.push(PoolFault { pools, window, code: FleetErrorCode::UnfulfillableCapacity });
    check(settings.clone(), &on_demand("small/a medium/b"), expect!["medium/b, !small/a UnfulfillableCapacity"]);
    let later = region(settings).create_fleet(at(10), &on_demand("small/a medium/b")).unwrap();
    assert_eq!(later.instances[0].instance_type, "small");
}

#[test]
fn errors_read_like_those_of_aws() {
    let settings = with_pools(CapacityType::OnDemand, "small/a=0");
    let answer = region(settings).create_fleet(at(0), &on_demand("small/a small/c")).unwrap();
    let texts: Vec<String> = answer.errors.iter().map(ToString::to_string).collect();
    expect![[r#"
        InsufficientInstanceCapacity: There is no capacity for small in the Availability Zone a at the moment.
        Unsupported: The instance type small is not supported in c."#]]
    .assert_eq(&texts.join("\n"));
}

#[test]
fn real_types_are_sold_at_the_prices_of_the_catalogue() {
    let catalogue = Catalogue::bundled();
    let mut aws = Aws::new(AwsSettings::new(1, "eu-west-1", ["eu-west-1a", "eu-west-1b"]), catalogue);
    let answer = aws.create_fleet(at(0), &on_demand("m5.xlarge/eu-west-1a m5.large/eu-west-1b")).unwrap();
    let instance = aws.instance(&answer.instances[0].id).unwrap();
    assert_eq!(instance.instance_type, "m5.large");
    assert_eq!(Some(instance.price), catalogue.on_demand_price("eu-west-1", "m5.large"));
    assert!(instance.private_dns_name.ends_with(".eu-west-1.compute.internal"));
    let answer = aws.create_fleet(at(0), &spot("m5.large/eu-west-1a")).unwrap();
    let spot_price = catalogue.spot_price("eu-west-1a", "m5.large").map(|spot| spot.price);
    assert_eq!(Some(aws.instance(&answer.instances[0].id).unwrap().price), spot_price);
}
