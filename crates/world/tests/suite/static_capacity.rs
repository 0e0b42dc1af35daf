//! Pools of fixed size.

use std::collections::BTreeSet;

use api::NodeClaim;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::json;

use crate::kwok_world::{KwokWorld, claim_condition, node_class, pod, pool, tell, tell_with};

const GATE: &str = "StaticCapacity";

fn names(claims: &[NodeClaim]) -> BTreeSet<String> {
    claims.iter().map(ResourceExt::name_any).collect()
}

fn is_ready(claim: &NodeClaim) -> bool {
    claim_condition(claim, "Ready").is_some_and(|text| text.starts_with("True"))
}

fn node_of(claim: &NodeClaim) -> String {
    claim.status.as_ref().and_then(|status| status.node_name.clone()).unwrap_or_default()
}

/// STAT-01: as many claims as replicas, more when somebody scales up; the claims say no more than the template does.
#[test]
fn a_pool_has_as_many_claims_as_replicas() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 3}))]).await;
        story.sleep(60).await;
        let before = story.claims().await;
        assert_eq!((before.len(), story.nodes().await.len()), (3, 3));
        for claim in &before {
            assert!(is_ready(claim), "{claim:?}");
            assert!(claim.spec.resources.is_none(), "the provider decides on the size");
            let keys: Vec<&str> = claim.spec.requirements.iter().map(|one| one.key.as_str()).collect();
            assert_eq!(
                keys,
                ["karpenter.kwok.sh/kwoknodeclass", "karpenter.sh/nodepool", "node.kubernetes.io/instance-type"]
            );
            assert_eq!(claim.spec.requirements[2].values, Some(vec!["s-4x-amd64-linux".to_owned()]));
            assert_eq!(claim.annotations().get("karpenter.sh/nodeclaim-min-values-relaxed"), None);
            assert_eq!(claim.owner_references()[0].name, "fixed");
        }
        story.scale_pool("fixed", 5).await;
        story.sleep(60).await;
        let after = story.claims().await;
        assert_eq!(after.len(), 5);
        assert!(names(&before).is_subset(&names(&after)), "those that were there stay");
        assert_eq!(story.calls("create nodeclaims"), 5, "none was made in vain");
    });
}

/// STAT-01: a pool whose class is not there grows as soon as it is.
#[test]
fn a_pool_that_is_not_ready_waits() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![pool("fixed", json!({"replicas": 2}))]).await;
        story.sleep(60).await;
        assert_eq!(story.calls("create nodeclaims"), 0, "nothing could be launched");
        story.apply(vec![node_class()]).await;
        story.sleep(60).await;
        assert_eq!(story.claims().await.iter().filter(|claim| is_ready(claim)).count(), 2);
    });
}

/// STAT-01: a template that lists no types makes claims that list none.
#[test]
fn no_types_are_listed_that_the_template_does_not_list() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        let mut open = pool("open", json!({"replicas": 1}));
        open["spec"]["template"]["spec"]["requirements"] = json!([]);
        story.apply(vec![node_class(), open]).await;
        story.sleep(30).await;
        let claims = story.claims().await;
        let listed = claims[0].spec.requirements.iter().any(|one| one.key == "node.kubernetes.io/instance-type");
        assert!(!listed, "{:?}", claims[0].spec.requirements);
        let launched = claim_condition(&claims[0], "Launched").unwrap();
        assert_eq!(launched, "Unknown LaunchFailed: instance type requirement not found");
    });
}

/// STAT-02: never more claims than the limit, those that are going among them.
#[test]
fn the_limit_holds_for_claims_that_are_going_too() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 10, "limits": {"nodes": "5"}}))]).await;
        for _ in 0..300 {
            story.sleep(1).await;
            assert!(story.claims().await.len() <= 5);
        }
        let claims = story.claims().await;
        assert_eq!(claims.len(), 5);
        let held = claims[0].name_any();
        let finalizers = json!(["karpenter.sh/termination", "example.com/hold"]);
        story.patch_claim(&held, &json!({"metadata": {"finalizers": finalizers}})).await;
        story.delete_claim(&held).await;
        for _ in 0..120 {
            story.sleep(1).await;
            assert_eq!(names(&story.claims().await), names(&claims), "the one that is going holds its place");
        }
        assert_eq!(story.calls("create nodeclaims"), 5, "nor was one made that had to go at once");
        story.patch_claim(&held, &json!({"metadata": {"finalizers": []}})).await;
        story.sleep(60).await;
        let after = story.claims().await;
        assert!(after.len() == 5 && !names(&after).contains(&held));
        story.patch_pool("fixed", &json!({"spec": {"limits": {"nodes": "7"}}})).await;
        story.sleep(60).await;
        assert_eq!(story.claims().await.len(), 7);
    });
}

/// STAT-02: a claim that may still appear holds its place for a minute, whether it appears or not.
#[test]
fn a_claim_without_an_answer_holds_its_place() {
    for fault in ["request-lost", "fails"] {
        tell_with(GATE, &format!("create nodeclaims #1 {fault}"), async |story: &KwokWorld| {
            let _controller = story.start("alpha");
            story.apply(vec![node_class(), pool("fixed", json!({"replicas": 2, "limits": {"nodes": "2"}}))]).await;
            story.sleep(50).await;
            assert_eq!(story.claims().await.len(), 1, "{fault}: the other may come");
            story.sleep(60).await;
            assert_eq!(story.claims().await.len(), 2, "{fault}: it no longer can");
        });
    }
}

/// STAT-02: an answer that is lost does not make a claim too many.
#[test]
fn a_claim_without_an_answer_is_not_made_twice() {
    for fault in ["answer-lost", "request-lost", "late", "fails"] {
        tell_with(GATE, &format!("create nodeclaims #1 {fault}"), async |story: &KwokWorld| {
            let _controller = story.start("alpha");
            story.apply(vec![node_class(), pool("fixed", json!({"replicas": 2, "limits": {"nodes": "2"}}))]).await;
            for _ in 0..180 {
                story.sleep(1).await;
                assert!(story.claims().await.len() <= 2, "{fault}");
            }
            assert_eq!(story.claims().await.iter().filter(|claim| is_ready(claim)).count(), 2, "{fault}");
            assert_eq!(story.calls("delete nodeclaims"), 0, "{fault}");
        });
    }
}

/// STAT-03, STAT-04: the order in which nodes go, although a budget allows no disruption at all.
#[test]
fn nodes_go_in_the_order_of_what_is_lost_with_them() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        let disruption = json!({"budgets": [{"nodes": "0"}]});
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 5, "disruption": disruption}))]).await;
        story.sleep(60).await;
        let nodes: Vec<String> = story.claims().await.iter().map(node_of).collect();
        let [held, busy, cheap, lone, empty] = &nodes[..] else { panic!("{nodes:?}") };
        let none = json!({});
        story
            .apply(vec![
                pod("held", "100m", Some(held), &json!({"karpenter.sh/do-not-disrupt": "true"})),
                pod("busy-1", "100m", Some(busy), &none),
                pod("busy-2", "100m", Some(busy), &none),
                pod("cheap-1", "100m", Some(cheap), &json!({"karpenter.sh/disruption-cost": "-2000000000"})),
                pod("cheap-2", "100m", Some(cheap), &none),
                pod("lone", "100m", Some(lone), &none),
            ])
            .await;
        story.sleep(30).await;
        for (replicas, gone) in [(4, empty), (3, cheap), (2, lone), (1, busy)] {
            story.scale_pool("fixed", replicas).await;
            story.sleep(60).await;
            let left: BTreeSet<String> = story.nodes().await.iter().map(ResourceExt::name_any).collect();
            assert_eq!(left.len(), usize::try_from(replicas).unwrap(), "{left:?}");
            assert!(!left.contains(gone), "to {replicas}");
        }
        let pods: Vec<String> = story.pods().await.iter().map(ResourceExt::name_any).collect();
        assert_eq!(pods, ["held"], "the others were evicted");
        story.scale_pool("fixed", 0).await;
        story.sleep(60).await;
        assert!(
            story.claims().await.iter().all(|claim| claim.metadata.deletion_timestamp.is_some()),
            "last, but it goes"
        );
    });
}

/// PDC-06: what people say about deletion costs of pods counts as long as we do not write them ourselves.
#[test]
fn deletion_costs_count_while_they_are_not_ours() {
    for (gates, is_counted) in [(GATE, true), ("StaticCapacity PodDeletionCostManagement", false)] {
        tell(gates, async |story: &KwokWorld| {
            let _controller = story.start("alpha");
            story.apply(vec![node_class(), pool("fixed", json!({"replicas": 2}))]).await;
            story.sleep(60).await;
            let nodes: Vec<String> = story.claims().await.iter().map(node_of).collect();
            let [first, last] = &nodes[..] else { panic!("{nodes:?}") };
            let cheap = json!({"controller.kubernetes.io/pod-deletion-cost": "-2000000000"});
            story.apply(vec![pod("one", "1", Some(first), &json!({})), pod("two", "1", Some(last), &cheap)]).await;
            story.sleep(30).await;
            story.scale_pool("fixed", 1).await;
            story.sleep(60).await;
            let left: Vec<String> = story.nodes().await.iter().map(ResourceExt::name_any).collect();
            assert_eq!(left, [if is_counted { first } else { last }.clone()], "{gates}");
        });
    }
}

/// STAT-03: a claim that has no instance yet goes before one that has.
#[test]
fn unlaunched_claims_go_first() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 2}))]).await;
        story.sleep(60).await;
        let ready = names(&story.claims().await);
        // The next machines cannot be had: the provider wants a list of types.
        story.patch_pool("fixed", &json!({"spec": {"template": {"spec": {"requirements": []}}}})).await;
        story.scale_pool("fixed", 4).await;
        story.sleep(60).await;
        assert_eq!(story.claims().await.len(), 4);
        story.scale_pool("fixed", 2).await;
        story.sleep(60).await;
        assert_eq!(names(&story.claims().await), ready);
    });
}

/// STAT-05: nodes of fixed size are neither marked nor taken away, empty as they are.
#[test]
fn empty_static_nodes_stay() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        let disruption = json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s",
            "budgets": [{"nodes": "100%"}]});
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 2, "disruption": disruption}))]).await;
        story.sleep(60).await;
        let before = names(&story.claims().await);
        story.sleep(3600).await;
        let claims = story.claims().await;
        assert_eq!(names(&claims), before);
        assert!(claims.iter().all(|claim| claim_condition(claim, "Consolidatable").is_none()));
    });
}

/// STAT-08: pods go to nodes of fixed size, also to those that have not joined yet, and make none.
#[test]
fn pods_find_their_place_on_static_nodes() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        let slow = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
            "metadata": {"name": "default"}, "spec": {"nodeRegistrationDelay": "1m"}});
        story.apply(vec![slow, pool("fixed", json!({"replicas": 1})), pool("dynamic", json!({}))]).await;
        story.sleep(30).await;
        assert_eq!(story.nodes().await.len(), 0, "the node is still to come");
        story.apply(vec![pod("web", "3", None, &json!({}))]).await;
        story.sleep(120).await;
        let claims = story.claims().await;
        assert_eq!(claims.len(), 1, "no other node was made");
        let bound = story.pods().await[0].spec.as_ref().and_then(|spec| spec.node_name.clone());
        assert_eq!(bound, Some(node_of(&claims[0])));
        story.apply(vec![pod("more", "3", None, &json!({}))]).await;
        story.sleep(180).await;
        let pools: Vec<String> =
            story.claims().await.iter().map(|claim| claim.labels()["karpenter.sh/nodepool"].clone()).collect();
        assert_eq!(pools, ["dynamic", "fixed"], "what does not fit makes a node of another pool");
    });
}

/// STAT-09: with the pool go its claims and nodes, and none is made any more.
#[test]
fn a_deleted_pool_takes_its_nodes_along() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 3}))]).await;
        story.sleep(60).await;
        assert_eq!(story.nodes().await.len(), 3);
        story.pools_api().delete("fixed", &DeleteParams::background()).await.unwrap();
        story.sleep(120).await;
        assert_eq!((story.claims().await.len(), story.nodes().await.len()), (0, 0));
        story.sleep(600).await;
        assert_eq!(story.calls("create nodeclaims"), 3);
    });
}

/// STAT-09: a pool that is going and not gone makes none either, whatever becomes of those that it has.
#[test]
fn a_pool_that_is_going_makes_nothing() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        let mut held = pool("fixed", json!({"replicas": 2}));
        held["metadata"]["finalizers"] = json!(["example.com/hold"]);
        story.apply(vec![node_class(), held]).await;
        story.sleep(60).await;
        let claims = story.claims().await;
        assert_eq!(claims.len(), 2);
        story.pools_api().delete("fixed", &DeleteParams::background()).await.unwrap();
        story.delete_claim(&claims[0].name_any()).await;
        story.sleep(600).await;
        assert_eq!(story.calls("create nodeclaims"), 2);
        assert!(story.pool("fixed").await.metadata.deletion_timestamp.is_some(), "it is still there");
    });
}

/// STAT-10: without the gate a pool with replicas makes nothing, neither by itself nor for pods.
#[test]
fn without_the_gate_nothing_happens() {
    tell("", async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 3})), pod("web", "1", None, &json!({}))]).await;
        story.sleep(600).await;
        assert_eq!(story.calls("create nodeclaims"), 0);
    });
}

/// STAT-10: without the gate nobody counts either, and what a pool has too many of stays.
#[test]
fn without_the_gate_nothing_is_taken_away() {
    tell("", async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        let fixed = pool("fixed", json!({"replicas": 1}));
        let claim = |name: &str| {
            json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "fixed"}},
                "spec": fixed["spec"]["template"]["spec"]})
        };
        story.apply(vec![node_class(), fixed.clone(), claim("one"), claim("two"), claim("three")]).await;
        story.sleep(600).await;
        assert_eq!(story.claims().await.iter().filter(|claim| is_ready(claim)).count(), 3);
    });
}

/// A node that somebody deletes, or whose claim somebody deletes, is replaced.
#[test]
fn what_is_lost_is_replaced() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 2}))]).await;
        story.sleep(60).await;
        let before = story.claims().await;
        story.delete_claim(&before[0].name_any()).await;
        let nodes: Api<Node> = Api::all(story.world.client());
        nodes.delete(&node_of(&before[1]), &DeleteParams::default()).await.unwrap();
        story.sleep(120).await;
        let after = story.claims().await;
        assert_eq!(after.iter().filter(|claim| is_ready(claim)).count(), 2);
        assert!(names(&before).is_disjoint(&names(&after)));
        assert_eq!(story.calls("create nodeclaims"), 4, "one for one");
    });
}

/// A pool for which nothing can be bought asks less and less often, and goes on once something can.
#[test]
fn a_pool_that_nobody_sells_to_does_not_hurry() {
    tell(GATE, async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        let mut barren = pool("fixed", json!({"replicas": 2}));
        let requirements = barren["spec"]["template"]["spec"]["requirements"].as_array_mut().unwrap();
        requirements.push(json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["nowhere"]}));
        story.apply(vec![node_class(), barren]).await;
        story.sleep(600).await;
        let tries = story.calls("create nodeclaims");
        assert!((10..=50).contains(&tries), "{tries} claims in ten minutes");
        story.apply(vec![pool("fixed", json!({"replicas": 2}))]).await;
        story.sleep(120).await;
        assert_eq!(story.claims().await.iter().filter(|claim| is_ready(claim)).count(), 2);
    });
}

/// A process that is killed in the middle is followed by one that ends up with the same number.
#[test]
fn a_kill_loses_nothing() {
    for fault in ["kill-before", "kill-after"] {
        tell_with(GATE, &format!("create nodeclaims #2 {fault}"), async |story: &KwokWorld| {
            let mut first = story.start("alpha");
            story.apply(vec![node_class(), pool("fixed", json!({"replicas": 3, "limits": {"nodes": "3"}}))]).await;
            first.ended().await;
            let _second = story.start("beta");
            for _ in 0..120 {
                story.sleep(1).await;
                assert!(story.nodes().await.len() <= 3, "{fault}");
            }
            assert_eq!(story.claims().await.iter().filter(|claim| is_ready(claim)).count(), 3, "{fault}");
        });
    }
}
