//! Launches that fail, that never come to anything, and that go well.

use std::time::Duration;

use cloud::LaunchError;
use serde_json::json;

use super::stage::{claim, fillers, is_running, play, pool};

const DISRUPTED: &str = "karpenter_nodeclaims_disrupted_total";

/// LIFE-02, LIFE-32, CP-01: nobody sells what a claim wants. Claim and waiting pods hear of it, the claim goes, and when
/// there is capacity again the pods get their nodes.
#[test]
fn a_claim_that_is_sold_out_goes() {
    play(async |stage| {
        let message = "all offerings are sold out".to_owned();
        stage.order(|orders| orders.refusal = Some(LaunchError::InsufficientCapacity { message }));
        stage.apply(pool(json!({}))).await;
        stage.apply(fillers(2)).await;
        stage
            .until("a claim that was given up", async || stage.metric(DISRUPTED, "insufficient_capacity") >= 2.0)
            .await;
        stage.wait(1).await;
        let events = stage.events("InsufficientCapacityError").await;
        let says = |kind: &str, words: &str| {
            let end = "insufficient capacity, all offerings are sold out";
            events.iter().any(|event| event.starts_with(kind) && event.contains(words) && event.ends_with(end))
        };
        assert!(says("NodeClaim/default-", " event: "), "{events:?}");
        assert!(says("Pod/filler-", " nominated for this pod failed to launch: "), "{events:?}");
        assert_eq!(stage.nodes().await.len(), 0);
        stage.order(|orders| orders.refusal = None);
        stage.until_all_running(2).await;
    });
}

/// LIFE-03, CP-01: a class that cannot be used ends the claim, without an event about capacity.
#[test]
fn a_claim_whose_class_is_not_ready_goes() {
    play(async |stage| {
        let message = "no subnets".to_owned();
        stage.order(|orders| orders.refusal = Some(LaunchError::NodeClassNotReady { message }));
        stage.apply(claim("solo", json!({}))).await;
        stage.until_claim_gone("solo").await;
        assert_eq!(stage.metric(DISRUPTED, "nodeclass_not_ready"), 1.0);
        assert!(stage.events("InsufficientCapacityError").await.is_empty());
    });
}

/// LIFE-04, LIFE-05, LIFE-06, CP-01: any other failure is shown and tried again, and after five minutes the claim is
/// given up.
#[test]
fn a_launch_that_keeps_failing_is_shown_and_given_up() {
    play(async |stage| {
        let (reason, message) = ("SubnetsFull".to_owned(), "no free addresses".to_owned());
        stage.order(|orders| orders.refusal = Some(LaunchError::Refused { reason, message }));
        stage.apply(claim("solo", json!({}))).await;
        stage.until_condition("solo", "Launched", "Unknown SubnetsFull: no free addresses").await;
        stage.order(|orders| orders.refusal = Some(LaunchError::Failed { message: "the cloud is down".to_owned() }));
        stage.until_condition("solo", "Launched", "Unknown LaunchFailed: the cloud is down").await;
        stage.until_claim_gone("solo").await;
        let minutes = stage.now().as_secs() / 60;
        assert!((5..=6).contains(&minutes), "given up after {minutes} minutes");
        assert_eq!(stage.metric(DISRUPTED, "launch_timeout"), 1.0);
    });
}

/// LIFE-07: an instance whose node does not come within fifteen minutes is given up, and ended.
#[test]
fn an_instance_that_never_joins_is_given_up() {
    play(async |stage| {
        stage.order(|orders| orders.made_by_hand = Some("kwok://nobody".to_owned()));
        stage.apply(claim("solo", json!({}))).await;
        stage.until_condition("solo", "Registered", "Unknown NodeNotFound: Node not registered with cluster").await;
        stage.until_claim_gone("solo").await;
        let minutes = stage.now().as_secs_f64() / 60.0;
        assert!((15.0..15.5).contains(&minutes), "given up after {minutes} minutes");
        assert_eq!(stage.metric(DISRUPTED, "registration_timeout"), 1.0);
        assert_eq!(stage.script.ends_of("solo").len(), 1);
    });
}

/// LIFE-07: a node that joined in time is given all the time it needs to become usable.
#[test]
fn a_node_that_joined_is_not_given_up() {
    play(async |stage| {
        let taint = json!({"key": "example.com/agent", "effect": "NoSchedule"});
        stage.apply(claim("solo", json!({"startupTaints": [taint]}))).await;
        stage.until_condition("solo", "Initialized", "Unknown StartupTaintsExist").await;
        stage.wait(60 * 60).await;
        assert!(stage.claim("solo").await.is_some_and(|claim| claim.metadata.deletion_timestamp.is_none()));
        assert_eq!(stage.metric(DISRUPTED, ""), 0.0);
    });
}

/// One claim whose launch is never answered stalls no other, and is given up in its time.
#[test]
fn a_stuck_claim_stalls_nobody() {
    play(async |stage| {
        stage.order(|orders| orders.silent_for = Some("stuck".to_owned()));
        stage.apply(claim("stuck", json!({}))).await;
        stage.apply(pool(json!({}))).await;
        stage.apply(fillers(3)).await;
        let took = stage.until_all_running(3).await;
        assert!(took < Duration::from_secs(60), "{took:?}");
        stage.until_condition("stuck", "Launched", "Unknown LaunchFailed: the provider did not answer").await;
        stage.until_claim_gone("stuck").await;
        assert_eq!(stage.metric(DISRUPTED, "launch_timeout"), 1.0);
        assert!(stage.pods().await.iter().all(is_running));
    });
}

/// LIFE-18, CP-05: a claim of a class that is not the provider's is none of our business, alive or going. A class is of
/// another provider if its group or its kind is.
#[test]
fn claims_of_other_classes_are_left_alone() {
    play(async |stage| {
        let classes = [
            ("foreign", "example.com", "OtherNodeClass"),
            ("namesake", "example.com", "KWOKNodeClass"),
            ("relative", "karpenter.kwok.sh", "OtherNodeClass"),
        ];
        for (name, group, kind) in classes {
            let class = json!({"group": group, "kind": kind, "name": "default"});
            stage.apply(claim(name, json!({"nodeClassRef": class, "expireAfter": "1m"}))).await;
            stage.patch_claim(name, json!({"metadata": {"finalizers": ["karpenter.sh/termination"]}})).await;
        }
        let before = stage.claims().await;
        stage.wait(20 * 60).await;
        assert_eq!(stage.claims().await, before, "not launched, not expired, not given up");
        for (name, ..) in classes {
            stage.delete_claim(name).await;
        }
        stage.wait(20 * 60).await;
        assert_eq!(stage.claims().await.len(), classes.len(), "their own controllers have to let them go");
        let written: Vec<String> = stage.writes().into_iter().map(|(write, _)| write).collect();
        assert!(written.iter().all(|write| !write.contains("nodeclaims")), "{written:?}");
    });
}

/// LIFE-30: amounts that Kubernetes would write otherwise are left as they are, so nobody takes the spec for changed.
#[test]
fn odd_quantities_are_left_alone() {
    play(async |stage| {
        let requests = json!({"cpu": "1000m", "memory": "1048576Ki", "ephemeral-storage": "0.5Gi"});
        let spec = json!({"resources": {"requests": requests}, "terminationGracePeriod": "90s"});
        let node = stage.ready_claim("odd", spec).await;
        let stored = stage.claim("odd").await.unwrap().spec.resources.unwrap().requests.unwrap();
        assert_eq!(serde_json::to_value(&stored).unwrap(), requests);
        stage.delete_claim("odd").await;
        stage.until_claim_gone("odd").await;
        assert!(stage.node(&node).await.is_none());
    });
}
