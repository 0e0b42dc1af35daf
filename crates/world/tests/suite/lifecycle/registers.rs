//! Nodes that join: alone, twice, without what they should have, or held back.

use std::sync::Arc;
use std::time::Duration;

use api::NodeClaim;
use cloud::{CloudError, HookAnswer, RegistrationHook};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use kube::ResourceExt;
use serde_json::{Value, json};
use world::clock::VirtualClock;

use super::stage::{claim, node, play, pod};

const BY_HAND: &str = "kwok://by-hand";

/// LIFE-12: a node that came without the taint that holds pods off is warned about, and registered. Of one that came
/// with it nothing is said.
#[test]
fn a_node_without_the_taint_is_registered_with_a_warning() {
    play(async |stage| {
        stage.ready_claim("usual", json!({})).await;
        stage.order(|orders| orders.made_by_hand = Some(BY_HAND.to_owned()));
        stage.apply(claim("solo", json!({}))).await;
        stage.until_condition("solo", "Launched", "True").await;
        stage.apply(node("by-hand", BY_HAND, &json!({"spec": {"taints": []}}))).await;
        stage.until_condition("solo", "Registered", "True").await;
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

/// LIFE-31: a second node that turns up later goes with the first, and the claim goes last.
#[test]
fn all_nodes_of_a_claim_go_before_it() {
    play(async |stage| {
        let first = stage.ready_claim("solo", json!({})).await;
        let id = format!("kwok://{first}");
        let finalizer = json!({"metadata": {"finalizers": ["karpenter.sh/termination"],
            "labels": {"karpenter.kwok.sh/kwoknodeclass": "default"}}});
        stage.apply(node("second", &id, &finalizer)).await;
        stage.wait(5).await;
        assert_eq!(stage.condition("solo", "Registered").await.as_deref(), Some("True Registered: "));
        stage.delete_claim("solo").await;
        stage.until("the end of all nodes", async || stage.nodes().await.is_empty()).await;
        stage.until_claim_gone("solo").await;
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
        let patch = kube::api::Patch::Merge(json!({"status": {"capacity": {"cpu": "4"}}}));
        api.patch_status("by-hand", &kube::api::PatchParams::default(), &patch).await.unwrap();
        stage.until_condition("solo", "ConsistentStateFound", "True").await;
    });
}

/// LIFE-29: a pod that comes, ends or goes is written down, at most every ten seconds; daemons are not.
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
        stage.apply(pod("first", &json!({}))).await;
        stage.until_running("first").await;
        stage.wait(6).await;
        let bound = noted().await.unwrap();
        stage.apply(pod("second", &json!({}))).await;
        stage.until_running("second").await;
        stage.wait(6).await;
        assert_eq!(noted().await, Some(bound), "too soon after the first");
        stage.wait(30).await;
        stage.pod_api().delete("first", &kube::api::DeleteParams::default()).await.unwrap();
        stage.wait(6).await;
        let gone = noted().await.unwrap();
        assert!(gone.duration_since(bound).as_secs() >= 30, "{bound} {gone}");
    });
}
