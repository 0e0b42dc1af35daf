//! What calls have in common, and what they refuse.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sim::{
    Action, AwsError, AwsSettings, CallFault, CallFaultKind, DescribeRequest, Filter, FleetRequest, InstanceId,
    Outcome, RateLimit, Span, Window,
};

use crate::market::{at, on_demand, region, request, settings, spot};

fn with_token(token: &str, request: FleetRequest) -> FleetRequest {
    FleetRequest { client_token: Some(token.to_owned()), ..request }
}

fn everything() -> DescribeRequest {
    DescribeRequest::default()
}

fn by(filters: impl IntoIterator<Item = Filter>) -> DescribeRequest {
    DescribeRequest { ids: Vec::new(), filters: filters.into_iter().collect() }
}

#[test]
fn a_token_gives_the_same_instances_for_ever() {
    let mut aws = region(settings());
    let first = aws.create_fleet(at(0), &with_token("x", on_demand("small/a"))).unwrap();
    let again = aws.create_fleet(at(9), &with_token("x", on_demand("small/a"))).unwrap();
    assert_eq!(first, again);
    assert_eq!(aws.instances().count(), 1);
    let other = aws.create_fleet(at(9), &with_token("x", on_demand("small/b")));
    assert_eq!(other, Err(AwsError::IdempotentParameterMismatch { client_token: "x".to_owned() }));
    assert_ne!(aws.create_fleet(at(9), &with_token("y", on_demand("small/a"))).unwrap(), first);
    assert!(matches!(aws.calls()[1].outcome, Some(Outcome::Fleet { repeated: true, .. })));
}

#[test]
fn a_lost_answer_leaves_an_instance_behind_that_the_token_finds() {
    let mut settings = settings();
    let fault = CallFault {
        action: Some(Action::CreateFleet),
        window: Window::ALWAYS,
        calls_max: 1,
        kind: CallFaultKind::AnswerLost,
    };
    settings.faults.calls.push(fault);
    let mut aws = region(settings);
    let request = with_token("x", on_demand("small/a"));
    assert_eq!(aws.create_fleet(at(0), &request), Err(AwsError::RequestTimeout));
    let found = aws.describe_instances(at(1), &by([Filter::new("client-token", ["x"])])).unwrap();
    let again = aws.create_fleet(at(2), &request).unwrap();
    assert_eq!(again.instances[0].id, found[0].id);
    assert!(aws.calls()[0].outcome.is_some() && aws.calls()[0].error.is_some());
}

#[test]
fn faults_refuse_calls_before_anything_is_done() {
    for (kind, code) in [
        (CallFaultKind::Throttled, "RequestLimitExceeded"),
        (CallFaultKind::Unauthorized, "UnauthorizedOperation"),
        (CallFaultKind::Internal, "InternalError"),
    ] {
        let mut settings = settings();
        let window = Window { from: at(5), until: at(10) };
        settings.faults.calls.push(CallFault { action: None, window, calls_max: 2, kind });
        let mut aws = region(settings);
        let codes: Vec<_> = [0, 5, 6, 7, 11]
            .map(|second| aws.create_fleet(at(second), &on_demand("small/a")).map_err(|error| error.code()).err())
            .into();
        assert_eq!(codes, [None, Some(code), Some(code), None, None]);
        assert_eq!(aws.instances().count(), 3);
        assert_eq!(aws.calls().len(), 5);
    }
}

#[test]
fn buckets_run_dry_and_fill_again() {
    let mut settings = settings();
    settings.rate_limits.insert(Action::DescribeInstances, RateLimit { per_second: 1, burst: 2 });
    let mut aws = region(settings);
    let answers: Vec<bool> =
        [0, 0, 0, 1, 1, 9, 9, 9].map(|second| aws.describe_instances(at(second), &everything()).is_ok()).into();
    assert_eq!(answers, [true, true, false, true, false, true, true, false]);
}

#[test]
fn nonsense_is_refused() {
    let mut aws = region(settings());
    let nothing = FleetRequest { overrides: Vec::new(), ..on_demand("small/a") };
    let none = FleetRequest { count: 0, ..on_demand("small/a") };
    let strategy = aws_sim::AllocationStrategy::PriceCapacityOptimized;
    let mixed = request(strategy, aws_sim::CapacityType::OnDemand, "small/a");
    let dry = FleetRequest { dry_run: true, ..on_demand("small/a") };
    let codes = [nothing, none, mixed, dry].map(|request| aws.create_fleet(at(0), &request).unwrap_err().code());
    assert_eq!(codes, ["MissingParameter", "InvalidParameterValue", "InvalidParameterValue", "DryRunOperation"]);
    let unknown = aws.describe_instances(at(0), &by([Filter::new("colour", ["red"])])).unwrap_err();
    assert_eq!(unknown.to_string(), "InvalidParameterValue: The filter 'colour' is invalid");
    assert_eq!(aws.instances().count(), 0);
}

#[test]
fn a_launched_instance_is_not_known_everywhere_at_once() {
    let mut settings = settings();
    settings.delays.visible = Span::exactly(Duration::from_secs(2));
    let mut aws = region(settings);
    let id = aws.create_fleet(at(0), &on_demand("small/a")).unwrap().instances[0].id.clone();
    let by_id = DescribeRequest { ids: vec![id.clone()], filters: Vec::new() };
    assert_eq!(aws.describe_instances(at(1), &by_id).unwrap_err().code(), "InvalidInstanceID.NotFound");
    assert_eq!(aws.describe_instances(at(1), &everything()), Ok(Vec::new()));
    assert!(aws.terminate_instances(at(1), std::slice::from_ref(&id)).is_err());
    assert_eq!(aws.describe_instances(at(2), &by_id).unwrap().len(), 1);
}

#[test]
fn filters_must_all_hold() {
    let mut aws = region(settings());
    let tagged = |pairs: &[(&str, &str)], request: FleetRequest| {
        let tags = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        FleetRequest { tags, ..request }
    };
    aws.create_fleet(at(0), &tagged(&[("team", "red"), ("pool", "x")], on_demand("small/a"))).unwrap();
    aws.create_fleet(at(0), &tagged(&[("team", "blue")], spot("medium/b"))).unwrap();
    let mut count = |filters: &[(&str, &str)]| {
        let filters = filters.iter().map(|(name, value)| Filter::new(*name, [*value]));
        aws.describe_instances(at(1), &by(filters)).unwrap().len()
    };
    assert_eq!(count(&[("tag:team", "red")]), 1);
    assert_eq!(count(&[("tag:team", "*")]), 2);
    assert_eq!(count(&[("tag-key", "team")]), 2);
    assert_eq!(count(&[("tag-key", "team"), ("tag-key", "pool")]), 1);
    assert_eq!(count(&[("instance-state-name", "running")]), 2);
    assert_eq!(count(&[("instance-state-name", "pending")]), 0);
    assert_eq!(count(&[("instance-type", "small"), ("availability-zone", "b")]), 0);
}

#[test]
fn tags_can_be_added_later() {
    let mut aws = region(settings());
    let id = aws.create_fleet(at(0), &on_demand("small/a")).unwrap().instances[0].id.clone();
    let tags = BTreeMap::from([("Name".to_owned(), "web".to_owned())]);
    aws.create_tags(at(1), std::slice::from_ref(&id), &tags).unwrap();
    assert_eq!(aws.describe_instances(at(1), &by([Filter::tag("Name", "web")])).unwrap().len(), 1);
    assert!(aws.create_tags(at(1), &[id, InstanceId::new("i-unknown")], &tags).is_err());
}

#[test]
fn one_unknown_id_ends_nobody_and_ending_twice_is_fine() {
    let mut aws = region(AwsSettings { seed: 3, ..settings() });
    let id = aws.create_fleet(at(0), &on_demand("small/a")).unwrap().instances[0].id.clone();
    let unknown = aws.terminate_instances(at(1), &[id.clone(), InstanceId::new("i-1"), InstanceId::new("i-2")]);
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "InvalidInstanceID.NotFound: The instance IDs 'i-1, i-2' do not exist"
    );
    assert!(aws.instance(&id).unwrap().is_alive());
    aws.terminate_instances(at(1), std::slice::from_ref(&id)).unwrap();
    let again = aws.terminate_instances(at(2), &[id]).unwrap();
    assert_eq!(again[0].previous, again[0].current);
}

#[test]
fn subnets_tell_what_is_left() {
    let mut aws = region(AwsSettings { subnet_addresses: 9, ..settings() });
    aws.create_fleet(at(0), &on_demand("small/b")).unwrap();
    let free: Vec<u32> = aws.describe_subnets(at(0)).unwrap().iter().map(|subnet| subnet.free_addresses).collect();
    assert_eq!(free, [9, 8, 9]);
}
