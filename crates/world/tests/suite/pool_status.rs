//! What a pool says about itself.

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::kwok_world::{KwokWorld, node_class, pod, pool, pool_condition, tell};

const HEALTHY: &str = "NodeRegistrationHealthy";

async fn counts(story: &KwokWorld, name: &str) -> String {
    let status = story.pool(name).await.status.unwrap();
    let resources: Vec<String> =
        status.resources.unwrap_or_default().iter().map(|(name, amount)| format!("{name}={}", amount.0)).collect();
    format!("{} nodes, {}", status.nodes, resources.join(" "))
}

/// OBS-02: what runs is counted within seconds, and nothing is left of it once it is gone. Twenty nodes at once are not
/// twenty writes.
#[test]
fn a_pool_counts_what_it_has() {
    tell("StaticCapacity", async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 0}))]).await;
        story.sleep(10).await;
        let nothing = "0 nodes, cpu=0 ephemeral-storage=0 memory=0 nodes=0 pods=0";
        assert_eq!(counts(story, "fixed").await, nothing);
        let before = story.calls("patch nodepools/status");
        story.scale_pool("fixed", 20).await;
        while story.nodes().await.len() < 20 {
            story.sleep(1).await;
        }
        story.sleep(5).await;
        assert_eq!(
            counts(story, "fixed").await,
            "20 nodes, cpu=80 ephemeral-storage=400Gi memory=320Gi nodes=20 pods=1280"
        );
        let writes = story.calls("patch nodepools/status") - before;
        assert!(writes <= 8, "{writes} writes for twenty nodes");
        story.scale_pool("fixed", 0).await;
        while !story.nodes().await.is_empty() {
            story.sleep(1).await;
        }
        story.sleep(5).await;
        assert_eq!(counts(story, "fixed").await, nothing);
    });
}

/// API-46, API-47, API-49: unknown at first, true once a node has joined, unknown again when the pool changes; the pool
/// is ready all the time.
#[test]
fn a_node_that_joins_makes_a_pool_healthy() {
    tell("", async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class(), pool("default", json!({}))]).await;
        story.sleep(10).await;
        let unknown = Some("Unknown AwaitingReconciliation: object is awaiting reconciliation".to_owned());
        let told = async |type_: &str| pool_condition(&story.pool("default").await, type_);
        assert_eq!(told(HEALTHY).await, unknown);
        assert_eq!(told("Ready").await, Some("True Ready: ".to_owned()));
        story.apply(vec![pod("web", "1", None, &json!({}))]).await;
        story.sleep(60).await;
        assert_eq!(told(HEALTHY).await, Some("True NodeRegistrationHealthy: ".to_owned()));
        story.patch_pool("default", &json!({"spec": {"weight": 7}})).await;
        story.sleep(10).await;
        assert_eq!(told(HEALTHY).await, unknown);
        assert_eq!(told("Ready").await, Some("True Ready: ".to_owned()));
    });
}

/// API-41, API-42, API-43, API-44, API-58: a pool that the schema lets pass and nobody could use says what is wrong, and
/// is not ready; a capacity type that does not exist beside one that does is no fault.
#[test]
fn faulty_pools_say_why_and_are_not_ready() {
    let taint = json!({"key": "example.com/t", "effect": "NoSchedule"});
    let capacity = |values: &[&str], least: Option<u32>| {
        json!({"requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": values,
            "minValues": least}]})
    };
    let cases = [
        (
            json!({"requirements": [{"key": "team", "operator": "In", "values": ["a b"]}]}),
            "invalid value: invalid value a b for key team, ",
        ),
        (
            json!({"taints": [taint], "startupTaints": [taint]}),
            "duplicate taint Key/Effect pair example.com/t=NoSchedule",
        ),
        (
            capacity(&["sport"], None),
            "invalid value: no valid values found in [\"sport\"] for karpenter.sh/capacity-type",
        ),
        (
            capacity(&["sport", "spot"], Some(2)),
            "invalid value: karpenter.sh/capacity-type has 1 valid values, minValues needs 2",
        ),
        (capacity(&["sport", "spot"], None), ""),
    ];
    tell("", async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class()]).await;
        for (number, (template, _)) in cases.iter().enumerate() {
            let mut faulty = pool(&format!("pool-{number}"), json!({}));
            let spec = faulty["spec"]["template"]["spec"].as_object_mut().unwrap();
            spec.extend(template.as_object().unwrap().clone());
            story.apply(vec![faulty]).await;
        }
        story.sleep(10).await;
        for (number, (template, fault)) in cases.iter().enumerate() {
            let found = story.pool(&format!("pool-{number}")).await;
            let told = |type_: &str| pool_condition(&found, type_).unwrap();
            if fault.is_empty() {
                assert_eq!(told("ValidationSucceeded"), "True ValidationSucceeded: ", "{template}");
                assert_eq!(told("Ready"), "True Ready: ", "{template}");
            } else {
                let expected = format!("False NodePoolValidationFailed: {fault}");
                assert!(told("ValidationSucceeded").starts_with(&expected), "{}", told("ValidationSucceeded"));
                assert_eq!(told("Ready"), "False UnhealthyDependents: ValidationSucceeded=False", "{template}");
            }
            assert_eq!(told("NodeClassReady"), "True NodeClassReady: ");
        }
    });
}

/// Patches the class; its nodes join after the delay.
async fn delay_nodes(story: &KwokWorld, delay: Option<&str>) {
    let classes: Api<api::KWOKNodeClass> = Api::all(story.world.client());
    let patch = json!({"spec": {"nodeRegistrationDelay": delay}});
    classes.patch("default", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// API-46, API-48, API-49, API-50: two nodes that do not join in time make a pool unhealthy. That is still so for
/// another process, does not make the pool unready, and is forgotten when the class changes.
#[test]
fn nodes_that_do_not_join_make_a_pool_unhealthy() {
    tell("", async |story: &KwokWorld| {
        let first = story.start("alpha");
        story.apply(vec![node_class(), pool("default", json!({}))]).await;
        delay_nodes(story, Some("10h")).await;
        story.apply(vec![pod("web", "1", None, &json!({}))]).await;
        let told = async |type_: &str| pool_condition(&story.pool("default").await, type_).unwrap();
        story.sleep(17 * 60).await;
        assert!(told(HEALTHY).await.starts_with("Unknown"), "one failure decides nothing");
        story.sleep(17 * 60).await;
        let failed = "False RegistrationFailed: Failed to register node";
        assert_eq!(told(HEALTHY).await, failed);
        assert_eq!(told("Ready").await, "True Ready: ");
        first.kill();
        let _second = story.start("beta");
        story.sleep(60).await;
        assert_eq!(told(HEALTHY).await, failed);
        delay_nodes(story, None).await;
        story.sleep(10).await;
        assert!(told(HEALTHY).await.starts_with("Unknown AwaitingReconciliation"));
        story.sleep(17 * 60).await;
        assert_eq!(told(HEALTHY).await, "True NodeRegistrationHealthy: ");
        let generation = story.pool("default").await.status.and_then(|status| status.node_class_observed_generation);
        assert_eq!(generation, Some(3), "that of the class");
    });
}

/// API-48: claims that only bear a pool's name do not speak for it.
#[test]
fn strays_say_nothing_about_a_pool() {
    tell("", async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class(), pool("default", json!({}))]).await;
        delay_nodes(story, Some("10h")).await;
        let mut stray = pool("stray", json!({}))["spec"]["template"].clone();
        stray["apiVersion"] = json!("karpenter.sh/v1");
        stray["kind"] = json!("NodeClaim");
        for name in ["one", "two"] {
            stray["metadata"] = json!({"name": name, "labels": {"karpenter.sh/nodepool": "default"}});
            story.apply(vec![stray.clone()]).await;
        }
        story.sleep(60).await;
        assert_eq!(story.claims().await.len(), 2);
        story.sleep(30 * 60).await;
        assert_eq!(story.claims().await.len(), 0, "both were given up");
        let told = pool_condition(&story.pool("default").await, HEALTHY).unwrap();
        assert!(told.starts_with("Unknown AwaitingReconciliation"), "{told}");
    });
}

/// API-50: what an earlier process wrote stands for two failures. Two nodes that join do not outweigh them, a third
/// does.
#[test]
fn another_process_remembers_failures() {
    tell("", async |story: &KwokWorld| {
        let first = story.start("alpha");
        story.apply(vec![node_class(), pool("default", json!({}))]).await;
        story.sleep(30).await;
        first.kill();
        let mut status = serde_json::to_value(story.pool("default").await.status.unwrap()).unwrap();
        let mut conditions = status["conditions"].as_array_mut().unwrap().iter_mut();
        let health = conditions.find(|condition| condition["type"] == HEALTHY).unwrap();
        health["status"] = json!("False");
        health["reason"] = json!("RegistrationFailed");
        let patch = Patch::Merge(json!({"status": status}));
        story.pools_api().patch_status("default", &PatchParams::default(), &patch).await.unwrap();
        let _second = story.start("beta");
        for (name, expected) in [("one", "False RegistrationFailed"), ("two", "False"), ("three", "True")] {
            story.apply(vec![pod(name, "3", None, &json!({}))]).await;
            story.sleep(60).await;
            let told = pool_condition(&story.pool("default").await, HEALTHY).unwrap();
            assert!(told.starts_with(expected), "{name}: {told}");
        }
        assert_eq!(story.nodes().await.len(), 3, "a node for each");
    });
}

/// API-48: where not even the launch succeeds, the pool says why, in the words of the claim.
#[test]
fn launches_that_fail_tell_the_pool_why() {
    tell("StaticCapacity", async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        let mut open = pool("open", json!({"replicas": 1}));
        open["spec"]["template"]["spec"]["requirements"] = json!([]);
        story.apply(vec![node_class(), open]).await;
        story.sleep(12 * 60).await;
        assert_eq!(
            pool_condition(&story.pool("open").await, HEALTHY).unwrap(),
            "False LaunchFailed: instance type requirement not found"
        );
    });
}

/// API-56: claims with a hash of another version get the new version, and those that are not drifted the new hash; then
/// the pool gets both.
#[test]
fn hashes_of_another_version_are_replaced() {
    tell("StaticCapacity", async |story: &KwokWorld| {
        let first = story.start("alpha");
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 2}))]).await;
        story.sleep(60).await;
        first.kill();
        let stamp = |annotations: &std::collections::BTreeMap<String, String>| {
            let of = |key: &str| annotations.get(key).cloned().unwrap_or_default();
            (of("karpenter.sh/nodepool-hash"), of("karpenter.sh/nodepool-hash-version"))
        };
        let (hash, _) = stamp(story.pool("fixed").await.annotations());
        let old: Value = json!({"metadata": {"annotations":
            {"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v2"}}});
        let names: Vec<String> = story.claims().await.iter().map(ResourceExt::name_any).collect();
        for name in &names {
            story.patch_claim(name, &old).await;
        }
        story.patch_pool("fixed", &old).await;
        let drifted = story.claims_api().get(&names[0]).await.unwrap();
        let mut status = serde_json::to_value(drifted.status.unwrap()).unwrap();
        status["conditions"].as_array_mut().unwrap().push(json!({"type": "Drifted", "status": "True",
            "reason": "NodePoolDrifted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}));
        let patch = Patch::Merge(json!({"status": status}));
        story.claims_api().patch_status(&names[0], &PatchParams::default(), &patch).await.unwrap();
        let _second = story.start("beta");
        story.sleep(60).await;
        let found: Vec<(String, String)> =
            story.claims().await.iter().map(|claim| stamp(claim.annotations())).collect();
        assert_eq!(found, [("1".to_owned(), "v3".to_owned()), (hash.clone(), "v3".to_owned())]);
        assert_eq!(stamp(story.pool("fixed").await.annotations()), (hash, "v3".to_owned()));
        // A pool that has the new version means that its claims can be compared with it: they come first.
        let history = story.world.server().history();
        let own =
            history.iter().filter(|call| call.actor == world::accounts::KARPENTER && call.verb.as_str() == "patch");
        let stamped: Vec<&str> = own
            .filter(|call| call.subresource.is_none() && ["nodeclaims", "nodepools"].contains(&call.resource.as_str()))
            .map(|call| call.resource.as_str())
            .collect();
        assert_eq!(stamped[stamped.len() - 3..], ["nodeclaims", "nodeclaims", "nodepools"]);
    });
}

/// A class that is gone makes a pool unready; its claims and its health are not touched.
#[test]
fn a_class_that_is_gone_does_not_change_health() {
    tell("StaticCapacity", async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        story.apply(vec![node_class(), pool("fixed", json!({"replicas": 1}))]).await;
        story.sleep(60).await;
        let classes: Api<api::KWOKNodeClass> = Api::all(story.world.client());
        classes.delete("default", &DeleteParams::default()).await.unwrap();
        story.sleep(30).await;
        let pool = story.pool("fixed").await;
        assert!(pool_condition(&pool, "NodeClassReady").unwrap().starts_with("False NodeClassNotFound"));
        assert!(pool_condition(&pool, HEALTHY).unwrap().starts_with("True"));
        story.scale_pool("fixed", 2).await;
        story.sleep(60).await;
        assert_eq!(story.claims().await.len(), 1, "a pool that is not ready makes nothing");
        story.scale_pool("fixed", 0).await;
        story.sleep(60).await;
        assert_eq!(story.claims().await.len(), 0, "but it can be made smaller");
    });
}
