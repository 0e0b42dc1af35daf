//! From pending to forgotten.

use std::time::Duration;

use aws_sim::{
    Aws, AwsSettings, CapacityType, Delays, FleetRequest, InstanceId, InstanceState, LaunchFault, LaunchFaultKind,
    PoolKey, PoolPattern, Span, Window,
};
use expect_test::{Expect, expect};
use jiff::Timestamp;

use crate::market::{at, on_demand, region, settings, spot};

fn slow() -> AwsSettings {
    let exactly = |seconds| Span::exactly(Duration::from_secs(seconds));
    let delays =
        Delays { visible: exactly(1), running: exactly(10), terminated: exactly(30), forgotten: exactly(3600) };
    AwsSettings { delays, ..settings() }
}

fn launch(aws: &mut Aws, now: Timestamp, request: &FleetRequest) -> InstanceId {
    aws.create_fleet(now, request).unwrap().instances[0].id.clone()
}

/// All events up to some moment, with seconds instead of times and names instead of ids.
fn story(aws: &mut Aws, until: Timestamp, expected: Expect) {
    let mut lines = Vec::new();
    let names: Vec<InstanceId> = aws.instances().map(|instance| instance.id.clone()).collect();
    for event in aws.advance(until) {
        let seconds = event.at.as_second() - at(0).as_second();
        let name = names.iter().position(|id| *id == event.instance).unwrap();
        let text = event.to_string();
        let words = text.splitn(3, ' ').nth(2).unwrap().replace(&at(220).to_string(), "220");
        lines.push(format!("{seconds}: {name} {words}\n"));
    }
    expected.assert_eq(&lines.concat());
}

#[test]
fn an_instance_lives_and_is_forgotten() {
    let mut aws = region(slow());
    let id = launch(&mut aws, at(0), &on_demand("small/a"));
    assert_eq!(aws.next_change(), Some(at(0)));
    story(
        &mut aws,
        at(5),
        expect![[r#"
        0: 0 is pending
    "#]],
    );
    assert_eq!(aws.next_change(), Some(at(10)));
    story(
        &mut aws,
        at(50),
        expect![[r#"
        10: 0 is running
    "#]],
    );
    assert_eq!(aws.next_change(), None);
    aws.terminate_instances(at(100), std::slice::from_ref(&id)).unwrap();
    story(
        &mut aws,
        at(4000),
        expect![[r#"
        100: 0 is shutting-down
        130: 0 is terminated
        3730: 0 is forgotten
    "#]],
    );
    assert_eq!(aws.instances().count(), 0);
    assert_eq!(aws.next_change(), None);
}

#[test]
fn ending_a_pending_instance_means_that_it_never_runs() {
    let mut aws = region(slow());
    let id = launch(&mut aws, at(0), &on_demand("small/a"));
    aws.terminate_instances(at(4), &[id]).unwrap();
    story(
        &mut aws,
        at(100),
        expect![[r#"
        0: 0 is pending
        4: 0 is shutting-down
        34: 0 is terminated
    "#]],
    );
    assert!(aws.bill(at(100)).lines.is_empty(), "what never ran costs nothing");
}

#[test]
fn spot_capacity_is_taken_back_two_minutes_after_the_warning() {
    let mut aws = region(slow());
    let id = launch(&mut aws, at(0), &spot("small/a"));
    let pool = PoolKey::new("small", "a", CapacityType::Spot);
    let free = aws.free_capacity(&pool);
    aws.recommend_rebalance(at(90), &id).unwrap();
    assert_eq!(aws.interrupt(at(100), &id), Ok(at(220)));
    assert_eq!(aws.interrupt(at(110), &id), Ok(at(220)), "one warning is enough");
    story(
        &mut aws,
        at(300),
        expect![[r#"
        0: 0 is pending
        10: 0 is running
        90: 0 should be rebalanced
        100: 0 will be interrupted at 220
        220: 0 is shutting-down
        250: 0 is terminated
    "#]],
    );
    assert_eq!(aws.free_capacity(&pool), free, "what AWS took back is not for sale");
    assert!(aws.interrupt(at(300), &id).is_err(), "it is gone");
}

#[test]
fn an_interruption_that_comes_too_late_does_nothing() {
    let mut aws = region(slow());
    let id = launch(&mut aws, at(0), &spot("small/a"));
    aws.interrupt(at(100), &id).unwrap();
    aws.terminate_instances(at(150), std::slice::from_ref(&id)).unwrap();
    aws.advance(at(179));
    assert_eq!(aws.instance(&id).unwrap().state, InstanceState::ShuttingDown);
    story(
        &mut aws,
        at(300),
        expect![[r#"
        180: 0 is terminated
    "#]],
    );
}

#[test]
fn on_demand_instances_are_not_interrupted() {
    let mut aws = region(slow());
    let id = launch(&mut aws, at(0), &on_demand("small/a"));
    assert!(aws.interrupt(at(20), &id).is_err());
}

#[test]
fn withdrawn_capacity_hits_the_youngest_first() {
    let mut aws = region(slow());
    let ids = [0, 1, 2].map(|second| launch(&mut aws, at(second), &spot("small/a")));
    let pool = PoolKey::new("small", "a", CapacityType::Spot);
    assert_eq!(aws.withdraw_capacity(at(50), &pool, 2), [ids[2].clone(), ids[1].clone()]);
    let refused = aws.create_fleet(at(60), &spot("small/a")).unwrap();
    assert!(refused.instances.is_empty());
}

#[test]
fn room_comes_back_when_an_instance_has_ended() {
    let mut aws = region(AwsSettings { subnet_addresses: 1, ..slow() });
    let pool = PoolKey::new("small", "a", CapacityType::OnDemand);
    aws.set_capacity(pool.clone(), 1);
    let id = launch(&mut aws, at(0), &on_demand("small/a"));
    assert_eq!(aws.free_capacity(&pool), 0);
    aws.terminate_instances(at(20), &[id]).unwrap();
    assert!(aws.create_fleet(at(49), &on_demand("small/a")).unwrap().instances.is_empty());
    assert_eq!(aws.create_fleet(at(50), &on_demand("small/a")).unwrap().instances.len(), 1);
}

#[test]
fn launches_can_go_wrong() {
    let mut settings = slow();
    let fault = |kind| LaunchFault { pools: PoolPattern::default(), window: Window::ALWAYS, instances_max: 1, kind };
    settings.faults.launches = vec![
        fault(LaunchFaultKind::Slow(Duration::from_secs(60))),
        fault(LaunchFaultKind::Invisible(Duration::from_secs(5))),
    ];
    let mut aws = region(settings);
    let slow_one = launch(&mut aws, at(0), &on_demand("small/a"));
    assert_eq!(aws.instance(&slow_one).unwrap().visible_at, at(6));
    aws.add_faults(aws_sim::FaultPlan { launches: vec![fault(LaunchFaultKind::Fails)], ..Default::default() });
    launch(&mut aws, at(1), &on_demand("small/a"));
    aws.add_faults(aws_sim::FaultPlan { launches: vec![fault(LaunchFaultKind::Silent)], ..Default::default() });
    let silent = launch(&mut aws, at(2), &on_demand("small/a"));
    assert!(aws.instance(&silent).unwrap().silent && !aws.instance(&slow_one).unwrap().silent);
    story(
        &mut aws,
        at(100),
        expect![[r#"
        0: 0 is pending
        1: 1 is pending
        2: 2 is pending
        11: 1 is shutting-down
        12: 2 is running
        41: 1 is terminated
        70: 0 is running
    "#]],
    );
}

#[test]
fn identities_follow_from_seed_and_region() {
    let mut aws = region(settings());
    let id = launch(&mut aws, at(0), &spot("small/b"));
    let instance = aws.instance(&id).unwrap();
    assert!(id.as_str().starts_with("i-0") && id.as_str().len() == 19, "{id}");
    assert_eq!(instance.provider_id(), format!("aws:///b/{id}"));
    assert_eq!(instance.private_dns_name, "ip-10-0-32-4.ec2.internal");
    assert!(instance.spot_request_id.as_ref().unwrap().starts_with("sir-"));
}

#[test]
fn the_bill_counts_from_running_to_the_order_to_end() {
    let mut aws = region(slow());
    let id = launch(&mut aws, at(0), &on_demand("small/a"));
    launch(&mut aws, at(0), &spot("medium/a"));
    aws.advance(at(10));
    aws.terminate_instances(at(10 + 1800), &[id]).unwrap();
    let bill = aws.bill(at(10 + 3600));
    assert!((bill.instance_hours() - 1.5).abs() < 1e-9);
    assert_eq!(bill.lines.iter().map(|line| line.cost().0).collect::<Vec<_>>(), [50_000, 50_000]);
    assert_eq!(bill.cost().0, 100_000);
    aws.advance(at(10_000));
    assert_eq!(aws.instances().count(), 1, "one is forgotten, but not by the bill");
    assert_eq!(aws.bill(at(10 + 3600)).lines.len(), 2);
}

#[test]
fn a_short_life_is_charged_for_a_minute() {
    let mut aws = region(settings());
    let id = launch(&mut aws, at(0), &on_demand("large/a"));
    aws.advance(at(0));
    aws.terminate_instances(at(1), &[id]).unwrap();
    assert_eq!(aws.bill(at(1)).cost().0, 400_000 / 60 + 1, "rounded to the nearest");
}
