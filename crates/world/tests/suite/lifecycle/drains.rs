//! Drains: who is evicted, who holds one back, and what people are told.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::stage::{budget, is_running, play, pod};

const HELD_BACK: &str = "karpenter_pods_evictions_held_back_total";

/// LIFE-17, TERM-09, TERM-10, TERM-23: a claim that no pool stands behind gets a node for pods like any other. When it
/// goes, pods of nobody's are evicted too, each by its identity, and told why.
#[test]
fn pods_are_evicted_by_identity() {
    play(async |stage| {
        stage.ready_claim("solo", json!({})).await;
        let pods = ["one", "two"];
        for name in pods {
            stage.apply(pod(name, &json!({}))).await;
            stage.until_running(name).await;
        }
        let mut uids: Vec<String> = stage.pods().await.into_iter().map(|pod| pod.metadata.uid.unwrap()).collect();
        stage.delete_claim("solo").await;
        stage.until_claim_gone("solo").await;
        let mut evictions: Vec<String> = stage
            .writes()
            .into_iter()
            .filter(|(write, _)| write == "create pods/eviction")
            .map(|(_, body)| body["deleteOptions"]["preconditions"]["uid"].as_str().unwrap().to_owned())
            .collect();
        uids.sort();
        evictions.sort();
        assert_eq!(evictions, uids, "each once, and no pod of the same name that comes later");
        let told = stage.events("Evicted").await;
        for name in pods {
            assert!(told.contains(&format!("Pod/{name}: Evicted pod: Forceful Termination")), "{told:?}");
        }
    });
}

/// TERM-09: a pod that takes the place and the name of one that was evicted is left alone.
#[test]
fn a_replaced_pod_is_left_alone() {
    play(async |stage| {
        stage.ready_claim("solo", json!({})).await;
        stage
            .apply(json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"},
                "spec": {"serviceName": "db", "replicas": 1, "selector": {"matchLabels": {"app": "db"}},
                    "template": pod("db", &json!({}))},
            }))
            .await;
        stage.until_running("db-0").await;
        stage.ready_claim("other", json!({})).await;
        let before = stage.pod("db-0").await.unwrap().metadata.uid;
        stage.delete_claim("solo").await;
        stage
            .until("another pod of the name", async || {
                stage.pod("db-0").await.is_some_and(|pod| pod.metadata.uid != before && is_running(&pod))
            })
            .await;
        let after = stage.pod("db-0").await.unwrap().metadata.uid;
        stage.until_claim_gone("solo").await;
        stage.wait(60).await;
        assert_eq!(stage.pod("db-0").await.unwrap().metadata.uid, after);
        assert_eq!(stage.writes().iter().filter(|(write, _)| write == "create pods/eviction").count(), 1);
    });
}

/// TERM-08: a pod with two budgets cannot be evicted by the API at all; that is told, and tried again until it can.
#[test]
fn several_budgets_hold_a_drain_back() {
    play(async |stage| {
        let node = stage.ready_claim("solo", json!({})).await;
        stage.apply(pod("web", &json!({}))).await;
        stage.until_running("web").await;
        for name in ["a", "b"] {
            stage.apply(budget(name, "web", &json!({"minAvailable": 0}))).await;
        }
        stage.wait(5).await;
        stage.delete_claim("solo").await;
        stage.wait(60).await;
        assert!(stage.metric(HELD_BACK, "several_budgets") >= 6.0, "it is tried again and again");
        let told = stage.events("FailedDraining").await;
        let expected =
            format!("Node/{node}: Failed to drain node, eviction does not support multiple PDBs (Pod=default/web)");
        assert!(told.contains(&expected), "{told:?}");
        assert!(stage.events("Evicted").await.is_empty());
        assert!(is_running(&stage.pod("web").await.unwrap()));
        let budgets: kube::Api<k8s_openapi::api::policy::v1::PodDisruptionBudget> =
            kube::Api::namespaced(stage.world.client(), "default");
        budgets.delete("b", &DeleteParams::default()).await.unwrap();
        stage.until_claim_gone("solo").await;
    });
}

/// TERM-07: a budget that is used up, and one that can never allow an eviction, hold a drain back alike. Only of the
/// second people are told that waiting will not help.
#[test]
fn budgets_that_never_allow_are_told_from_those_that_wait() {
    for (spec, hold, is_for_ever) in [
        (json!({"minAvailable": 1}), "budget_exhausted", false),
        (json!({"minAvailable": 2}), "budget_never_allows", true),
        (json!({"maxUnavailable": 0}), "budget_never_allows", true),
    ] {
        play(async |stage| {
            let node = stage.ready_claim("solo", json!({})).await;
            // The one that is not ready stays where it is, so that there are always two.
            for (name, ready, held) in [("well", "true", "1ms"), ("ill", "false", "true")] {
                let more = json!({"metadata": {"labels": {"app": "web"}, "annotations": {"sim.karpenter.sh/ready": ready,
                    "karpenter.sh/do-not-disrupt": held}}});
                stage.apply(pod(name, &more)).await;
                stage.until_running(name).await;
            }
            stage.apply(budget("web", "web", &spec)).await;
            stage.wait(10).await;
            stage.delete_claim("solo").await;
            stage.wait(60).await;
            assert!(stage.metric(HELD_BACK, hold) >= 6.0, "{spec}: {hold}");
            let told = stage.events("FailedDraining").await;
            for words in ["evicting pod violates a PDB (Pod=default/well)", "2 pods are waiting to be evicted"] {
                assert!(told.contains(&format!("Node/{node}: Failed to drain node, {words}")), "{spec}: {told:?}");
            }
            let told = stage.events("DisruptionBudgetNeverAllows").await;
            let about = |kind: &str| {
                let begin = format!(
                    "{kind}: PodDisruptionBudget default/web can never allow the eviction of pod default/well: "
                );
                told.iter().any(|event| event.starts_with(&begin))
            };
            assert_eq!([about(&format!("Node/{node}")), about("Pod/well")], [is_for_ever; 2], "{spec}: {told:?}");
            assert!(is_running(&stage.pod("well").await.unwrap()), "{spec}: nobody is evicted beyond a budget");
        });
    }
}

/// CAND-03, CAND-04, CAND-05: a drain waits for protected pods: for ever, for as long as they said, or not at all.
#[test]
fn protected_pods_leave_when_their_time_has_come() {
    play(async |stage| {
        stage.ready_claim("solo", json!({})).await;
        for (name, value) in [("held", "true"), ("minutes", "3m"), ("odd", "soon")] {
            stage.apply(pod(name, &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}}}))).await;
            stage.until_running(name).await;
        }
        let started = stage.pod("minutes").await.unwrap().status.unwrap().start_time.unwrap().0;
        stage.delete_claim("solo").await;
        stage.until("the odd one to leave", async || stage.pod("odd").await.is_none()).await;
        let gone = async || stage.pod("minutes").await.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
        stage.until("the one with a duration to leave", gone).await;
        let protected = stage.world.clock().timestamp().duration_since(started).as_secs();
        assert!((180..=185).contains(&protected), "protected for {protected} s");
        stage.wait(30 * 60).await;
        assert!(is_running(&stage.pod("held").await.unwrap()));
        let message = "Pod/odd: Invalid karpenter.sh/do-not-disrupt annotation: failed to parse \"soon\" as a duration: time: \
                       invalid duration \"soon\", ignoring annotation";
        assert_eq!(stage.events("InvalidDoNotDisruptAnnotation").await, [message]);
        assert!(!stage.events("DoNotDisruptUntil").await.is_empty());
        stage.pod_api().delete("held", &DeleteParams::default()).await.unwrap();
        stage.until_claim_gone("solo").await;
    });
}

/// TERM-06: a pod that asks not to be disrupted while a budget holds its eviction back stays when the budget is gone.
#[test]
fn a_pod_may_ask_to_stay_while_it_is_held_back() {
    play(async |stage| {
        stage.ready_claim("solo", json!({})).await;
        stage.apply(pod("web", &json!({"metadata": {"labels": {"app": "web"}}}))).await;
        stage.until_running("web").await;
        stage.apply(budget("web", "web", &json!({"maxUnavailable": 0}))).await;
        stage.wait(10).await;
        stage.delete_claim("solo").await;
        stage.wait(60).await;
        let asks = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        stage.pod_api().patch("web", &PatchParams::default(), &Patch::Merge(asks)).await.unwrap();
        stage.wait(1).await;
        let budgets: Api<PodDisruptionBudget> = Api::namespaced(stage.world.client(), "default");
        budgets.delete("web", &DeleteParams::default()).await.unwrap();
        stage.wait(5 * 60).await;
        assert!(stage.pod("web").await.is_some_and(|pod| is_running(&pod)));
    });
}
