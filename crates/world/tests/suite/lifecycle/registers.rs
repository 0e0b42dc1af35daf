//! Nodes that join: alone, twice, without what they should have, or held back.

use std::sync::Arc;
use std::time::Duration;

use api::NodeClaim;
use cloud::{CloudError, HookAnswer, RegistrationHook};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use world::clock::VirtualClock;

use super::stage::{Stage, claim, node, play, pod};

const BY_HAND: &str = "kwok://by-hand";

/// LIFE-12: a node that came without the taint that holds pods off is warned about, and registered. Of one that came
/// with it, or that was registered before, nothing is said.
#[test]
fn a_node_without_the_taint_is_registered_with_a_warning() {
    play(async |stage| {
        stage.ready_claim("usual", json!({})).await;
        stage.order(|orders| orders.made_by_hand = Some(BY_HAND.to_owned()));
        stage.apply(claim("solo", json!({}))).await;
        stage.until_condition("solo", "Launched", "True").await;
        stage.apply(node("by-hand", BY_HAND, &json!({"spec": {"taints": []}}))).await;
        stage.until_condition("solo", "Registered", "True").await;
        stage.order(|orders| orders.made_by_hand = Some("kwok://again".to_owned()));
        let before = json!({"metadata": {"labels": {"karpenter.sh/registered": "true"}}, "spec": {"taints": []}});
        stage.apply(node("again", "kwok://again", &before)).await;
        stage.apply(claim("again", json!({}))).await;
        stage.until_condition("again", "Registered", "True").await;
        stage.wait(1).await;
        let expected = "NodeClaim/solo: Missing karpenter.sh/unregistered taint which prevents registration related race \
                        conditions on Karpenter-managed nodes";
        assert_eq!(stage.events("UnregisteredTaintMissing").await, [expected]);
    });
}

/// LIFE-13, LIFE-20: two nodes say that they are one instance. The claim is not registered, for good, and its end
/// leaves both nodes alone.
#[test]
fn two_nodes_of_one_instance_are_not_registered() {
    play(async |stage| {
        stage.order(|orders| {
            orders.made_by_hand = Some(BY_HAND.to_owned());
            orders.machines_stay = true;
        });
        stage.apply(node("one", BY_HAND, &json!({}))).await;
        stage.apply(node("two", BY_HAND, &json!({}))).await;
        stage.apply(claim("solo", json!({}))).await;
        let expected = "False MultipleNodesFound: Invariant violated, matched multiple nodes";
        stage.until_condition("solo", "Registered", expected).await;
        stage.delete_node("two").await;
        stage.wait(60).await;
        assert_eq!(stage.condition("solo", "Registered").await.as_deref(), Some(expected), "it stays refused");
        stage.delete_claim("solo").await;
        stage.until_claim_gone("solo").await;
        let left = stage.node("one").await.unwrap();
        assert!(left.metadata.deletion_timestamp.is_none() && left.finalizers().is_empty());
    });
}

/// LIFE-13, LIFE-20: a claim that two nodes say is theirs is given up when its time to join is over, and they stay.
#[test]
fn a_claim_of_two_nodes_is_given_up() {
    play(async |stage| {
        stage.order(|orders| {
            orders.made_by_hand = Some(BY_HAND.to_owned());
            orders.machines_stay = true;
        });
        for name in ["one", "two"] {
            stage.apply(node(name, BY_HAND, &json!({}))).await;
        }
        stage.apply(claim("solo", json!({}))).await;
        stage.until_condition("solo", "Registered", "False MultipleNodesFound").await;
        let took = stage.until_claim_gone("solo").await.as_secs();
        assert!((899..=902).contains(&took), "given up after {took} s");
        assert_eq!(stage.metric("karpenter_nodeclaims_disrupted_total", "registration_timeout"), 1.0);
        for (name, node) in stage.nodes().await {
            assert!(node.metadata.deletion_timestamp.is_none() && node.finalizers().is_empty(), "{name}");
        }
        assert_eq!(stage.nodes().await.len(), 2);
    });
}

/// LIFE-31: a second node that turns up later goes with the first, and the claim goes last, however long that takes.
#[test]
fn all_nodes_of_a_claim_go_before_it() {
    play(async |stage| {
        let first = stage.ready_claim("solo", json!({})).await;
        let id = format!("kwok://{first}");
        let ours = json!({"metadata": {"finalizers": ["karpenter.sh/termination"],
            "labels": {"karpenter.kwok.sh/kwoknodeclass": "default"}}, "spec": {"taints": []}});
        stage.apply(node("second", &id, &ours)).await;
        let held = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": {"nodeSelector": {"kubernetes.io/hostname": "second"}}});
        stage.apply(pod("held", &held)).await;
        stage.until_running("held").await;
        assert_eq!(stage.condition("solo", "Registered").await.as_deref(), Some("True Registered: "));
        stage.delete_claim("solo").await;
        stage.until("the end of the first node", async || stage.node(&first).await.is_none()).await;
        stage.wait(5 * 60).await;
        assert!(stage.node("second").await.is_some_and(|node| node.metadata.deletion_timestamp.is_some()));
        assert!(stage.claim("solo").await.is_some(), "it waits for its second node");
        stage.pod_api().delete("held", &DeleteParams::default()).await.unwrap();
        stage.until("the end of all nodes", async || stage.nodes().await.is_empty()).await;
        stage.until_claim_gone("solo").await;
    });
}

/// Somebody says of the node of `solo` whether it is rebooting.
async fn say_rebooting(stage: &Stage, status: &str, reason: &str) {
    let mut stored = serde_json::to_value(stage.claim("solo").await.unwrap().status).unwrap();
    let conditions = stored["conditions"].as_array_mut().unwrap();
    conditions.retain(|found| found["type"] != "Rebooting");
    conditions.push(json!({"type": "Rebooting", "status": status, "reason": reason, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}));
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    stage.claim_api().patch_status("solo", &PatchParams::default(), &patch).await.unwrap();
}

/// LIFE-15: as long as its node is rebooting, a claim is not initialized, and no reason for that is written over.
#[test]
fn a_node_is_not_initialized_before_its_reboot_is_over() {
    play(async |stage| {
        let taint = json!({"key": "example.com/agent", "effect": "NoSchedule"});
        stage.apply(claim("solo", json!({"startupTaints": [taint]}))).await;
        stage.until_condition("solo", "Initialized", "Unknown StartupTaintsExist").await;
        say_rebooting(stage, "True", "RebootIssued").await;
        let (name, _) = stage.nodes().await.pop_first().unwrap();
        stage.patch_node(&name, json!({"spec": {"taints": []}})).await;
        stage.wait(60).await;
        let words = stage.condition("solo", "Initialized").await.unwrap();
        assert!(words.starts_with("Unknown StartupTaintsExist"), "{words}");
        assert!(!stage.node(&name).await.unwrap().labels().contains_key("karpenter.sh/initialized"));
        say_rebooting(stage, "False", "RebootSucceeded").await;
        stage.until_condition("solo", "Initialized", "True Initialized: ").await;
        assert_eq!(stage.node(&name).await.unwrap().labels()["karpenter.sh/initialized"], "true");
    });
}

/// LIFE-16: a node that joined, and vanished before it could be used, is missed.
#[test]
fn a_node_that_vanished_is_missed() {
    play(async |stage| {
        let taint = json!({"key": "example.com/agent", "effect": "NoSchedule"});
        stage.apply(claim("solo", json!({"startupTaints": [taint]}))).await;
        stage.until_condition("solo", "Initialized", "Unknown StartupTaintsExist").await;
        let (name, _) = stage.nodes().await.pop_first().unwrap();
        stage.patch_node(&name, json!({"metadata": {"finalizers": Value::Null}})).await;
        stage.delete_node(&name).await;
        stage.until_condition("solo", "Initialized", "Unknown NodeNotFound: Node not registered with cluster").await;
        assert_eq!(stage.condition("solo", "Registered").await.as_deref(), Some("True Registered: "));
    });
}

/// A provider's check that takes until a time.
struct Slow {
    clock: VirtualClock,
    until: Duration,
}

impl RegistrationHook for Slow {
    fn name(&self) -> &'static str {
        "firewall"
    }

    fn check<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<HookAnswer, CloudError>> {
        let passed = self.clock.elapsed() >= self.until;
        let pending = HookAnswer::Pending { again: Some(Duration::from_secs(2)) };
        ready(Ok(if passed { HookAnswer::Passed } else { pending })).boxed()
    }
}

/// LIFE-14: a node that a hook holds back has everything but the label and keeps the taint, until the hook has passed.
#[test]
fn hooks_hold_pods_off() {
    play(async |stage| {
        let clock = stage.world.clock();
        let until = stage.now() + Duration::from_secs(40);
        stage.order(|orders| orders.hooks = vec![Arc::new(Slow { clock, until })]);
        stage.apply(claim("solo", json!({}))).await;
        stage.until_condition("solo", "Registered", "Unknown RegistrationHookPending: firewall").await;
        stage.wait(5).await;
        let (_, held) = stage.nodes().await.pop_first().unwrap();
        let is_tainted = |node: &k8s_openapi::api::core::v1::Node| {
            let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
            taints.any(|taint| taint.key == "karpenter.sh/unregistered")
        };
        assert!(is_tainted(&held) && !held.labels().contains_key("karpenter.sh/registered"));
        assert_eq!(held.finalizers(), ["karpenter.sh/termination"]);
        stage.until_condition("solo", "Ready", "True").await;
        assert!(stage.now() >= until && stage.now() < until + Duration::from_secs(4), "{:?}", stage.now());
        assert!(!is_tainted(&stage.nodes().await.pop_first().unwrap().1));
    });
}

/// LIFE-28: claims and nodes of older versions get the label of their NodeClass.
#[test]
fn the_class_label_comes_back() {
    play(async |stage| {
        const LABEL: &str = "karpenter.kwok.sh/kwoknodeclass";
        let name = stage.ready_claim("solo", json!({})).await;
        let without = json!({"metadata": {"labels": {LABEL: Value::Null}}});
        stage.patch_claim("solo", without.clone()).await;
        stage.patch_node(&name, without).await;
        stage
            .until("the label", async || {
                let (claim, node) = (stage.claim("solo").await.unwrap(), stage.node(&name).await.unwrap());
                [claim.labels().get(LABEL), node.labels().get(LABEL)]
                    .iter()
                    .all(|found| *found == Some(&"default".to_owned()))
            })
            .await;
    });
}

/// LIFE-27: a node with half of what was promised is complained about, and no longer when it has all.
#[test]
fn a_node_that_lacks_something_is_complained_about() {
    play(async |stage| {
        stage.order(|orders| orders.made_by_hand = Some(BY_HAND.to_owned()));
        stage.apply(claim("solo", json!({"resources": {"requests": {"cpu": "1"}}}))).await;
        stage.apply(node("by-hand", BY_HAND, &json!({"status": {"capacity": {"cpu": "2"}}}))).await;
        stage
            .until_condition("solo", "ConsistentStateFound", "False ConsistencyCheckFailed: Consistency Check Failed")
            .await;
        assert!(stage.condition("solo", "Ready").await.unwrap().starts_with("True"), "it can be used all the same");
        stage.wait(1).await;
        let expected = "NodeClaim/solo: expected 4 of resource cpu, but found 2 (50.0% of expected)";
        assert_eq!(stage.events("FailedConsistencyCheck").await, [expected]);
        let api = stage.node_api();
        let patch = Patch::Merge(json!({"status": {"capacity": {"cpu": "4"}}}));
        api.patch_status("by-hand", &PatchParams::default(), &patch).await.unwrap();
        stage.until_condition("solo", "ConsistentStateFound", "True").await;
    });
}

/// LIFE-29: a pod that comes or begins to go is written down, at most every ten seconds; daemons are not.
#[test]
fn pod_events_are_written_down() {
    play(async |stage| {
        stage.ready_claim("solo", json!({})).await;
        let noted = async || {
            let status = stage.claim("solo").await.unwrap().status.unwrap();
            status.last_pod_event_time.map(|time| time.0)
        };
        let owner =
            json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
        stage.apply(pod("daemon", &json!({"metadata": {"ownerReferences": owner}}))).await;
        stage.wait(15).await;
        assert_eq!(noted().await, None, "daemons come with every node");
        let slow = json!({"metadata": {"annotations": {"sim.karpenter.sh/stop-for": "10m"}},
            "spec": {"terminationGracePeriodSeconds": 600}});
        let after = |earlier: jiff::Timestamp| stage.world.clock().timestamp().duration_since(earlier).as_secs_f64();
        stage.apply(pod("first", &slow)).await;
        stage.until_running("first").await;
        stage.wait(6).await;
        let bound = noted().await.unwrap();
        assert!((5.0..9.0).contains(&after(bound)), "{bound}");
        stage.apply(pod("second", &json!({}))).await;
        stage.until_running("second").await;
        assert!(after(bound) < 10.0, "{bound}");
        stage.wait(6).await;
        assert_eq!(noted().await, Some(bound), "too soon after the first");
        stage.apply(pod("third", &json!({}))).await;
        stage.until_running("third").await;
        stage.wait(6).await;
        let third = noted().await.unwrap();
        assert!((10..=17).contains(&third.duration_since(bound).as_secs()), "{bound} {third}");
        stage.wait(30).await;
        stage.pod_api().delete("first", &DeleteParams::default()).await.unwrap();
        stage.wait(6).await;
        assert!(stage.pod("first").await.is_some(), "it takes its time");
        assert!((5.0..9.0).contains(&after(noted().await.unwrap())), "it was seen as it began to go");
    });
}
