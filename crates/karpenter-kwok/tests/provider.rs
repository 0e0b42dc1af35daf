//! The provider against an API server that holds objects in memory.

mod support;

use std::sync::Arc;
use std::time::Duration;

use cloud::{CloudProvider, LaunchError, LaunchId, LaunchRequest, Next, Termination};
use jiff::Timestamp;
use karpenter_kwok::node;
use model::ProviderId;
use serde_json::{Value, json};
use support::{FakeApi, claim, claim_path, class, node_path, provider, request};

/// Lets the tasks in the background run.
async fn advance(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_launch_makes_a_node_at_once() {
    let api = FakeApi::with([class(None), claim("one")]);
    let provider = provider(&api);
    let launched = provider.launch(&request("one")).await.unwrap();
    let stored = api.get(&node_path("one")).unwrap();
    assert_eq!(stored["spec"]["providerID"], launched.provider_id.as_str());
    assert_eq!(stored["metadata"]["annotations"]["karpenter.sh/launch-id"], "launch-one");
    assert_eq!(launched.labels["kubernetes.io/hostname"], "one");
}

/// A launch that was interrupted after the Node was made ends at the same Node.
#[tokio::test(start_paused = true)]
async fn a_repeated_launch_is_the_same_instance() {
    let api = FakeApi::with([class(None), claim("one")]);
    let first = provider(&api).launch(&request("one")).await.unwrap();
    let second = provider(&api).launch(&request("one")).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(api.count("/api/v1/nodes/"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_launch_is_not_taken_over() {
    let api = FakeApi::with([class(None), claim("one")]);
    let mut stranger = json!({"metadata": {"name": support::node_name("one"), "annotations": {}}});
    stranger["metadata"]["annotations"]["karpenter.sh/launch-id"] = json!("another");
    api.put(&node_path("one"), stranger);
    let error = provider(&api).launch(&request("one")).await.unwrap_err();
    assert!(error.to_string().contains("belongs to another launch"), "{error}");
    assert_eq!(error.next(), Next::Retry { after: None });
    assert_eq!(provider(&api).find_launched(&request("one")).await, Ok(None));
}

/// KWOK-07: without a class, or with one that is not ready, the claim is given up.
#[tokio::test(start_paused = true)]
async fn a_class_that_cannot_be_used_means_a_new_plan() {
    let since = "2026-01-01T00:00:00Z";
    let conditions =
        |status: &str| json!([{"type": "Ready", "status": status, "reason": "Broken", "lastTransitionTime": since}]);
    let mut not_ready = class(None);
    not_ready.1["status"] = json!({"conditions": conditions("False")});
    let mut unknown = class(None);
    unknown.1["status"] = json!({"conditions": conditions("Unknown")});
    let mut going = class(None);
    going.1["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let missing = Some("insufficient_capacity");
    let table = [
        (None, missing),
        (Some(going), missing),
        (Some(not_ready), Some("nodeclass_not_ready")),
        (Some(unknown), None),
    ];
    for (class, expected) in table {
        let api = FakeApi::with(class.into_iter().chain([claim("one")]));
        let error = provider(&api).launch(&request("one")).await.err();
        assert_eq!(error.as_ref().map(LaunchError::metric_reason), expected);
        assert!(error.is_none_or(|error| error.next() == Next::Replan));
    }
}

/// KWOK-07: a class that goes is not remembered for longer than one plan's launches take.
#[tokio::test(start_paused = true)]
async fn a_class_that_was_there_before_is_missing_now() {
    let api = FakeApi::with([class(None), claim("one"), claim("two")]);
    let provider = provider(&api);
    provider.launch(&request("one")).await.unwrap();
    api.remove(&class(None).0).unwrap();
    advance(1).await;
    let error = provider.launch(&request("two")).await.unwrap_err();
    assert_eq!(error.to_string(), "insufficient capacity, KWOKNodeClass `default` not found");
}

/// KWOK-03: the claim is not launched and says why.
#[tokio::test(start_paused = true)]
async fn a_claim_must_list_instance_types() {
    let api = FakeApi::with([class(None)]);
    let mut request = request("one");
    Arc::make_mut(&mut request.claim).spec.requirements.clear();
    let error = provider(&api).launch(&request).await.unwrap_err();
    assert_eq!(error, LaunchError::Failed { message: "instance type requirement not found".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn a_refused_node_fails_the_launch() {
    let api = FakeApi::with([class(None), claim("one")]);
    api.refuse_creations(1);
    let error = provider(&api).launch(&request("one")).await.unwrap_err();
    assert!(error.to_string().ends_with("refused by a test"), "{error}");
}

/// KWOK-06: the instance exists at once, its Node after the delay.
#[tokio::test(start_paused = true)]
async fn the_node_waits_for_the_delay() {
    let api = FakeApi::with([class(Some("30s")), claim("one")]);
    let provider = provider(&api);
    let launched = provider.launch(&request("one")).await.unwrap();
    advance(29).await;
    assert_eq!(api.get(&node_path("one")), None);
    assert!(provider.get(&launched.provider_id).await.unwrap().is_some());
    assert_eq!(provider.list().await.unwrap().len(), 1);
    assert_eq!(provider.launch(&request("one")).await.as_ref(), Ok(&launched));
    assert_eq!(provider.find_launched(&request("one")).await, Ok(Some(launched.clone())));
    advance(2).await;
    assert!(api.get(&node_path("one")).is_some());
    assert_eq!(provider.list().await.unwrap().len(), 1);
    assert_eq!(provider.find_launched(&request("one")).await, Ok(Some(launched)));
}

/// KWOK-06: a refusal is not the end of it.
#[tokio::test(start_paused = true)]
async fn a_delayed_node_is_tried_again() {
    let api = FakeApi::with([class(Some("30s")), claim("one")]);
    api.refuse_creations(3);
    let provider = provider(&api);
    provider.launch(&request("one")).await.unwrap();
    advance(36).await;
    assert_eq!(api.get(&node_path("one")), None);
    advance(3).await;
    assert!(api.get(&node_path("one")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_delayed_node_is_not_made_by_a_provider_that_is_gone() {
    let api = FakeApi::with([class(Some("30s")), claim("one")]);
    provider(&api).launch(&request("one")).await.unwrap();
    advance(60).await;
    assert_eq!(api.get(&node_path("one")), None);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_always_refused_is_given_up() {
    let api = FakeApi::with([class(Some("1s")), claim("one")]);
    api.refuse_creations(u32::MAX);
    let provider = provider(&api);
    let launched = provider.launch(&request("one")).await.unwrap();
    advance(600).await;
    assert_eq!(provider.get(&launched.provider_id).await, Ok(None));
    assert_eq!(provider.list().await, Ok(Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_node_is_not_made_for_a_claim_that_goes() {
    let going = |claim: &mut Value| claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let another = |claim: &mut Value| claim["metadata"]["uid"] = json!("another");
    let changes: [Option<fn(&mut Value)>; 3] = [None, Some(going), Some(another)];
    for change in changes {
        let api = FakeApi::with([class(Some("30s")), claim("one")]);
        let provider = provider(&api);
        provider.launch(&request("one")).await.unwrap();
        let stored = api.remove(&claim_path("one"));
        if let Some((change, mut claim)) = change.zip(stored) {
            change(&mut claim);
            api.put(&claim_path("one"), claim);
        }
        advance(60).await;
        assert_eq!(api.count("/api/v1/nodes/"), 0);
        assert_eq!(provider.list().await, Ok(Vec::new()));
    }
}

/// KWOK-08: what is ended is gone at once, with or without a Node, as often as one asks.
#[tokio::test(start_paused = true)]
async fn a_terminated_instance_is_gone() {
    let api = FakeApi::with([class(None), claim("one")]);
    let provider = provider(&api);
    let launched = provider.launch(&request("one")).await.unwrap();
    let mut claim = (*request("one").claim).clone();
    claim.status.get_or_insert_default().provider_id = Some(launched.provider_id.to_string());
    for _ in 0..2 {
        assert_eq!(provider.terminate(&claim).await, Ok(Termination::Gone));
        assert_eq!(api.count("/api/v1/nodes/"), 0);
        assert_eq!(provider.get(&launched.provider_id).await, Ok(None));
    }
}

/// KWOK-08: a launch whose result was never written down is ended too, and a claim that was never launched is fine.
#[tokio::test(start_paused = true)]
async fn termination_finds_the_node_by_the_launch_id() {
    let api = FakeApi::with([class(None), claim("one")]);
    let provider = provider(&api);
    provider.launch(&request("one")).await.unwrap();
    assert_eq!(provider.terminate(&request("one").claim).await, Ok(Termination::Gone));
    assert_eq!(api.count("/api/v1/nodes/"), 0);
    let mut never_launched = (*request("two").claim).clone();
    never_launched.metadata.annotations = None;
    assert_eq!(provider.terminate(&never_launched).await, Ok(Termination::Gone));
}

/// KWOK-08: a Node that was still to come does not come any more.
#[tokio::test(start_paused = true)]
async fn termination_cancels_a_delayed_node() {
    let api = FakeApi::with([class(Some("30s")), claim("one")]);
    let provider = provider(&api);
    provider.launch(&request("one")).await.unwrap();
    assert_eq!(provider.terminate(&request("one").claim).await, Ok(Termination::Gone));
    assert_eq!(provider.list().await, Ok(Vec::new()));
    advance(60).await;
    assert_eq!(api.count("/api/v1/nodes/"), 0);
}

/// KWOK-08: a Node whose making is under way when its instance is ended does not stay.
#[tokio::test(start_paused = true)]
async fn termination_overtakes_the_making_of_a_node() {
    let api = FakeApi::with([class(Some("30s")), claim("one")]);
    api.slow_creations(Duration::from_secs(5));
    let provider = provider(&api);
    provider.launch(&request("one")).await.unwrap();
    advance(32).await;
    assert_eq!(provider.terminate(&request("one").claim).await, Ok(Termination::Gone));
    advance(60).await;
    assert_eq!(api.count("/api/v1/nodes/"), 0);
}

/// KWOK-08: nor does one that is made while its end is still waiting for an answer.
#[tokio::test(start_paused = true)]
async fn termination_may_take_longer_than_the_making_of_a_node() {
    let api = FakeApi::with([class(Some("30s")), claim("one")]);
    api.slow_creations(Duration::from_secs(5));
    api.slow_deletions(Duration::from_secs(20));
    let provider = provider(&api);
    provider.launch(&request("one")).await.unwrap();
    advance(32).await;
    assert_eq!(provider.terminate(&request("one").claim).await, Ok(Termination::Gone));
    advance(60).await;
    assert_eq!(api.count("/api/v1/nodes/"), 0);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_going_or_foreign_are_no_instances() {
    let api = FakeApi::default();
    let going = json!("2026-01-01T00:00:00Z");
    for (name, id, deletion) in [
        ("stays", Some("kwok://stays"), Value::Null),
        ("goes", Some("kwok://goes"), going),
        ("foreign", Some("aws:///i-1"), Value::Null),
        ("bare", None, Value::Null),
    ] {
        let metadata = json!({"name": name, "deletionTimestamp": deletion});
        api.put(&format!("/api/v1/nodes/{name}"), json!({"metadata": metadata, "spec": {"providerID": id}}));
    }
    let provider = provider(&api);
    let listed: Vec<String> =
        provider.list().await.unwrap().into_iter().map(|found| found.provider_id.to_string()).collect();
    assert_eq!(listed, ["kwok://stays"]);
    for (id, exists) in [("kwok://stays", true), ("kwok://goes", false), ("aws:///i-1", false), ("kwok://bare", false)]
    {
        assert_eq!(provider.get(&ProviderId::new(id)).await.unwrap().is_some(), exists, "{id}");
    }
}

/// KWOK-06: a restart during the delay loses nothing and repeats nothing.
#[tokio::test(start_paused = true)]
async fn a_restart_takes_up_what_was_waiting() {
    let api = FakeApi::with([class(Some("30s")), claim("one")]);
    let mut claim = (*request("one").claim).clone();
    let id = node::provider_id(&node::node_name("one", &LaunchId::new("launch-one")));
    let launched = json!({
        "providerID": id.as_str(),
        "conditions": [{"type": "Launched", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    });
    claim.status = serde_json::from_value(launched).unwrap();
    let now: Timestamp = "2026-01-01T00:00:20Z".parse().unwrap();
    let first = provider(&api);
    assert_eq!(first.resume(vec![Arc::new(claim.clone())], now).await, Ok(1));
    assert_eq!(first.list().await.unwrap().len(), 1);
    advance(9).await;
    assert_eq!(api.get(&node_path("one")), None);
    advance(2).await;
    assert!(api.get(&node_path("one")).is_some());
    assert_eq!(provider(&api).resume(vec![Arc::new(claim)], now).await, Ok(0));
}

#[tokio::test(start_paused = true)]
async fn the_provider_speaks_of_its_own_labels() {
    let api = FakeApi::default();
    let provider = provider(&api);
    let vocabulary = provider.vocabulary();
    for label in ["size", "family", "cpu", "memory"] {
        assert!(vocabulary.is_well_known(&format!("karpenter.kwok.sh/instance-{label}")));
    }
    assert!(vocabulary.is_restricted("karpenter.kwok.sh/anything-else"));
    assert_eq!(provider.node_class_kind().label(), "karpenter.kwok.sh/kwoknodeclass");
    let unused: LaunchRequest = request("never-launched");
    assert_eq!(provider.find_launched(&unused).await, Ok(None));
}
