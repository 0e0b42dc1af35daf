//! Launches that fail, that never come to anything, and that go well.

use std::time::Duration;

use cloud::LaunchError;
use kube::ResourceExt;
use serde_json::json;

use super::stage::{claim, fillers, is_running, play, play_with, pod, pool, with};

const DISRUPTED: &str = "karpenter_nodeclaims_disrupted_total";

/// LIFE-01: the answer to a launch could not be written down. The instance is looked up, and no second one launched.
#[test]
fn a_launch_that_could_not_be_written_down_is_not_repeated() {
    let standing_alone = || vec![claim("solo", json!({}))];
    let of_a_pool = || vec![pool(json!({})), fillers(1)];
    for (faults, objects) in [
        ("patch nodeclaims/status #1 fails, patch nodeclaims/status #2 request-lost", standing_alone()),
        ("patch nodeclaims #2 fails", standing_alone()),
        ("patch nodeclaims/status #1 fails, patch nodeclaims/status #2 conflicts", of_a_pool()),
        ("patch nodeclaims #1 fails", of_a_pool()),
    ] {
        play_with(faults, async |stage| {
            for object in objects {
                stage.apply(object).await;
            }
            stage.until("a claim", async || !stage.claims().await.is_empty()).await;
            let (name, _) = stage.claims().await.pop_first().unwrap();
            stage.until_condition(&name, "Ready", "True").await;
            assert_eq!(stage.script.launches(), [name], "{faults}");
            assert_eq!(stage.nodes().await.len(), 1, "{faults}");
        });
    }
}

/// LIFE-08: what the provider says of an instance is written down. Of two labels the claim's own stays, of two
/// annotations the provider's.
#[test]
fn what_was_launched_is_written_down() {
    play(async |stage| {
        stage.order(|orders| orders.made_by_hand = Some("kwok://by-hand".to_owned()));
        let own = json!({"metadata": {"labels": {"example.com/team": "own"},
            "annotations": {"example.com/note": "own", "example.com/kept": "own"}}});
        stage.apply(with(claim("solo", json!({})), &own)).await;
        stage.until_condition("solo", "Launched", "True Launched: ").await;
        let claim = stage.claim("solo").await.unwrap();
        let pairs = claim.labels().iter().chain(claim.annotations()).filter(|(key, _)| key.starts_with("example.com/"));
        assert_eq!(
            pairs.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>(),
            [
                "example.com/rack=r1",
                "example.com/team=own",
                "example.com/host=h1",
                "example.com/kept=own",
                "example.com/note=provider",
            ]
        );
        let status = serde_json::to_value(claim.status.unwrap()).unwrap();
        let found = ["providerID", "imageID", "capacity", "allocatable"].map(|field| status[field].clone());
        let amounts = |cpu: &str| json!({"cpu": cpu, "memory": "8Gi", "pods": "64"});
        assert_eq!(found, [json!("kwok://by-hand"), json!("image-1"), amounts("4"), amounts("3900m")]);
    });
}

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

/// LIFE-02, LIFE-05: a claim that nothing is sold for goes at once, is counted once, and says why in 1024 bytes at most.
#[test]
fn a_claim_without_a_pool_is_sold_out_like_any_other() {
    play(async |stage| {
        let message = "x".repeat(2000);
        stage.order(|orders| orders.refusal = Some(LaunchError::InsufficientCapacity { message }));
        stage.apply(claim("solo", json!({}))).await;
        let took = stage.until_claim_gone("solo").await;
        assert!(took < Duration::from_secs(5), "{took:?}");
        stage.wait(1).await;
        assert_eq!(stage.metric(DISRUPTED, "reason=\"insufficient_capacity\""), 1.0);
        assert_eq!(stage.script.launches(), ["solo"]);
        let begin = "NodeClaim solo event: insufficient capacity, ";
        let words = format!("{begin}{}...", "x".repeat(1021 - begin.len()));
        assert_eq!(stage.events("InsufficientCapacityError").await, [format!("NodeClaim/solo: {words}")]);
    });
}

/// LIFE-32: where many pods wait for one claim, ten are told at once, and then five a second.
#[test]
fn pods_that_wait_for_one_claim_are_not_told_all_at_once() {
    play(async |stage| {
        let message = "all offerings are sold out".to_owned();
        stage.order(|orders| orders.refusal = Some(LaunchError::InsufficientCapacity { message }));
        stage.apply(pool(json!({}))).await;
        for number in 0..30 {
            stage.apply(pod(&format!("web-{number}"), &json!({}))).await;
        }
        let told = async || {
            let events = stage.events("InsufficientCapacityError").await;
            events.iter().filter(|event| event.starts_with("Pod/web-")).count()
        };
        stage.until("pods that are told", async || told().await > 0).await;
        stage.wait(1).await;
        let count = told().await;
        assert!((10..=16).contains(&count), "{count} of 30 within a second");
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
        let message = format!("the cloud is down{}", "!".repeat(2000));
        stage.order(|orders| orders.refusal = Some(LaunchError::Failed { message }));
        stage.until_condition("solo", "Launched", "Unknown LaunchFailed: the cloud is down").await;
        let words = stage.condition("solo", "Launched").await.unwrap();
        assert_eq!(words.len(), "Unknown LaunchFailed: ".len() + 1024, "{words}");
        stage.until_claim_gone("solo").await;
        let seconds = stage.now().as_secs();
        assert!((300..330).contains(&seconds), "given up after {seconds} s");
        assert_eq!(stage.metric(DISRUPTED, "launch_timeout"), 1.0);
    });
}

/// CP-01: a provider that asks for a slower pace is not asked before the pause it named is over.
#[test]
fn a_provider_that_asks_for_a_pause_gets_it() {
    play(async |stage| {
        let (message, after) = ("too many calls".to_owned(), Some(Duration::from_secs(90)));
        stage.order(|orders| orders.refusal = Some(LaunchError::Throttled { message, after }));
        stage.apply(claim("solo", json!({}))).await;
        stage.until_condition("solo", "Launched", "Unknown LaunchFailed: throttled, too many calls").await;
        stage.order(|orders| orders.refusal = None);
        stage.wait(85).await;
        let asked = stage.script.launches().len();
        stage.until_condition("solo", "Launched", "True").await;
        assert_eq!((asked, stage.script.launches().len()), (1, 2), "before the pause was over, and after");
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
        let seconds = stage.now().as_secs();
        assert!((900..=902).contains(&seconds), "given up after {seconds} s");
        assert_eq!(stage.metric(DISRUPTED, "registration_timeout"), 1.0);
        assert_eq!(stage.script.ends_of("solo").len(), 1);
    });
}

/// LIFE-07: the fifteen minutes are those of the claim, however long its launch took.
#[test]
fn a_late_launch_leaves_less_time_to_join() {
    play(async |stage| {
        stage.order(|orders| orders.refusal = Some(LaunchError::Failed { message: "the cloud is down".to_owned() }));
        stage.apply(claim("solo", json!({}))).await;
        stage.wait(200).await;
        stage.order(|orders| {
            orders.refusal = None;
            orders.made_by_hand = Some("kwok://nobody".to_owned());
        });
        stage.until_condition("solo", "Launched", "True").await;
        stage.until_claim_gone("solo").await;
        let seconds = stage.now().as_secs();
        assert!((900..=902).contains(&seconds), "given up after {seconds} s");
    });
}

/// LIFE-07, LIFE-27: a node that joined in time is given all the time it needs to become usable, and is not judged before.
#[test]
fn a_node_that_joined_is_not_given_up() {
    play(async |stage| {
        let taint = json!({"key": "example.com/agent", "effect": "NoSchedule"});
        stage.apply(claim("solo", json!({"startupTaints": [taint]}))).await;
        stage.until_condition("solo", "Initialized", "Unknown StartupTaintsExist").await;
        stage.wait(60 * 60).await;
        assert!(stage.claim("solo").await.is_some_and(|claim| claim.metadata.deletion_timestamp.is_none()));
        assert_eq!(stage.metric(DISRUPTED, ""), 0.0);
        assert_eq!(stage.condition("solo", "ConsistentStateFound").await, None);
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

/// LIFE-17: pods count on the node of a claim that no pool stands behind before it is there.
#[test]
fn pods_wait_for_the_node_of_a_claim_without_a_pool() {
    play(async |stage| {
        stage.apply(pool(json!({}))).await;
        stage.order(|orders| orders.made_by_hand = Some("kwok://nobody".to_owned()));
        stage.apply(claim("solo", json!({}))).await;
        stage.until_condition("solo", "Launched", "True").await;
        stage.apply(pod("web", &json!({}))).await;
        stage.wait(60).await;
        assert_eq!(stage.claims().await.into_keys().collect::<Vec<_>>(), ["solo"], "room for it is on its way");
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
