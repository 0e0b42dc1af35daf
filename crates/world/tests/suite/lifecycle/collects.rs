//! Garbage collection, both ways.

use serde_json::{Value, json};

use super::stage::{claim, node, play, pod};

/// LIFE-23, LIFE-24: a claim whose instance the provider has lost stays as long as its node reports ready, and goes two
/// minutes after that at the latest.
#[test]
fn claims_without_an_instance_are_collected() {
    play(async |stage| {
        let node = stage.ready_claim("lost", json!({})).await;
        let other = stage.ready_claim("found", json!({})).await;
        stage.order(|orders| orders.knows_nothing = true);
        stage.wait(10 * 60).await;
        assert!(stage.node(&node).await.is_some() && stage.node(&other).await.is_some(), "their kubelets are heard");
        stage.silence(&node).await;
        let took = stage.until_claim_gone("lost").await;
        assert!(took.as_secs() <= 125, "{took:?}");
        assert!(stage.claim("found").await.is_some());
        assert_eq!(stage.metric("karpenter_nodeclaims_disrupted_total", "garbage_collected"), 1.0);
    });
}

/// LIFE-23: every two minutes the provider is asked what there is. A claim whose node went without a word is collected
/// too; one whose node has not joined yet is not.
#[test]
fn claims_whose_node_vanished_are_collected() {
    play(async |stage| {
        let name = stage.ready_claim("lost", json!({})).await;
        stage.order(|orders| {
            orders.knows_nothing = true;
            orders.made_by_hand = Some("kwok://nobody".to_owned());
        });
        stage.apply(claim("young", json!({}))).await;
        stage.until_condition("young", "Launched", "True").await;
        stage.patch_node(&name, json!({"metadata": {"finalizers": Value::Null}})).await;
        stage.delete_node(&name).await;
        let took = stage.until_claim_gone("lost").await;
        assert!(took.as_secs() <= 125, "{took:?}");
        stage.wait(10 * 60).await;
        assert!(stage.claim("young").await.unwrap().metadata.deletion_timestamp.is_none());
        assert_eq!(stage.metric("karpenter_nodeclaims_disrupted_total", "garbage_collected"), 1.0);
        let asked = stage.script.lists();
        let pauses: Vec<u64> = asked.windows(2).map(|two| (two[1] - two[0]).as_secs_f64().round() as u64).collect();
        assert!(pauses.len() >= 5 && pauses.iter().all(|pause| *pause == 120), "{pauses:?}");
    });
}

/// Instances that we launched for claims which are no more are ended, after their pods have left in good order; what
/// others have made is left alone.
#[test]
fn instances_without_a_claim_are_collected() {
    play(async |stage| {
        let launched = |id: &str| json!({"metadata": {"annotations": {"karpenter.sh/launch-id": id}}});
        stage.apply(node("bare", "kwok://bare", &launched("dead-1"))).await;
        stage.apply(node("foreign", "kwok://foreign", &json!({}))).await;
        let ours = json!({"metadata": {"annotations": {"karpenter.sh/launch-id": "dead-2"},
            "finalizers": ["karpenter.sh/termination"], "labels": {"karpenter.kwok.sh/kwoknodeclass": "default"}},
            "spec": {"taints": []}});
        stage.apply(node("busy", "kwok://busy", &ours)).await;
        stage.apply(pod("web", &json!({}))).await;
        stage.until_running("web").await;
        let kept = stage.ready_claim("kept", json!({})).await;
        stage
            .until("the orphans' end", async || {
                let nodes = stage.nodes().await;
                !nodes.contains_key("bare") && !nodes.contains_key("busy")
            })
            .await;
        assert!(stage.now().as_secs() < 5 * 60, "{:?}", stage.now());
        assert!(stage.writes().iter().any(|(write, _)| write == "create pods/eviction"), "its pod was evicted first");
        stage.wait(10 * 60).await;
        let left: Vec<String> = stage.nodes().await.into_keys().collect();
        assert_eq!(left, ["foreign".to_owned(), kept]);
    });
}
