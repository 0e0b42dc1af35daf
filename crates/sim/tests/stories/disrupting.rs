//! Evictions and disruption budgets.

use crate::story::{Story, pod};
use expect_test::expect;
use serde_json::json;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn running(story: &Story, name: &str, ready: bool) {
    story.ok(&format!("POST {PODS} {}", pod(name, ",\"labels\":{\"app\":\"web\"}")));
    story.ok(&format!(
        "POST {PODS}/{name}/binding {{\"metadata\":{{\"name\":\"{name}\"}},\"target\":{{\"name\":\"node\"}}}}"
    ));
    let ready = if ready { "True" } else { "False" };
    let status = json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] } });
    story.ok(&format!("PATCH {PODS}/{name}/status {status}"));
}

fn budget(story: &Story, name: &str, status: &serde_json::Value) {
    let budget = json!({
        "metadata": { "name": name },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } },
    });
    story.ok(&format!("POST {BUDGETS} {budget}"));
    story.ok(&format!("PATCH {BUDGETS}/{name}/status {}", json!({ "status": status })));
}

fn evict(name: &str) -> String {
    format!(
        "POST {PODS}/{name}/eviction {{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{{\"name\":\"{name}\"}}}}"
    )
}

#[test]
fn a_budget_is_spent() {
    let story = Story::new();
    for name in ["a", "b"] {
        running(&story, name, true);
    }
    running(&story, "c", false);
    budget(
        &story,
        "web",
        &json!({ "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 3 }),
    );
    let told = story.play(&format!(
        "{}
         GET {PODS}/a => /metadata/deletionGracePeriodSeconds /status/conditions/1/type /status/conditions/1/reason
         GET {BUDGETS}/web => /status/disruptionsAllowed /status/disruptedPods /status/conditions/0/reason
         {}
         {}
         PATCH {BUDGETS}/web {{\"spec\":{{\"minAvailable\":2}}}} => /metadata/generation
         {}
         {}",
        evict("a"),
        evict("b"),
        evict("c"),
        evict("b"),
        evict("a"),
    ));
    expect![[r#"
        201 Success 
        200 Pod a 30 "DisruptionTarget" "EvictionByEvictionAPI"
        200 PodDisruptionBudget web 0 {"a":"2023-11-14T22:13:20Z"} "InsufficientPods"
        429 TooManyRequests: Cannot evict pod as it would violate the pod's disruption budget. ["DisruptionBudget The disruption budget web does not allow evicting pods currently"]
        201 Success 
        200 PodDisruptionBudget web 2
        429 TooManyRequests: Cannot evict pod as it would violate the pod's disruption budget. ["DisruptionBudget The disruption budget web is still being processed by the server."]
        201 Success 
    "#]].assert_eq(&told);
}

#[test]
fn two_budgets_are_one_too_many() {
    let story = Story::new();
    running(&story, "a", true);
    for name in ["one", "two"] {
        budget(
            &story,
            name,
            &json!({ "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1 }),
        );
    }
    expect![[r#"
        201 -: This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.
        200 Pod a -
    "#]]
    .assert_eq(&story.play(&format!("{}\nGET {PODS}/a => /metadata/deletionTimestamp", evict("a"))));
}

#[test]
fn a_pod_without_budget_goes() {
    let story = Story::new();
    running(&story, "a", true);
    story.ok(&format!("POST {PODS} {}", pod("pending", "")));
    let told = story.play(&format!(
        "{}
         GET {PODS}/pending
         POST {PODS}/a/eviction?dryRun=All {{\"metadata\":{{\"name\":\"a\"}}}}
         GET {PODS}/a => /metadata/deletionTimestamp
         {}
         GET {PODS}/a => /metadata/deletionTimestamp
         {}",
        evict("pending"),
        evict("a"),
        evict("nobody"),
    ));
    expect![[r#"
        201 Success 
        404 NotFound: pods "pending" not found
        201 Success 
        200 Pod a -
        201 Success 
        200 Pod a "2023-11-14T22:13:50Z"
        404 NotFound: pods "nobody" not found
    "#]]
    .assert_eq(&told);
}
