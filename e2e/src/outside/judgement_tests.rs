use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object")
}

/// Plays lines such as `pod a ready`, `budget minAvailable 2`, `pool cpu 8`, `claim a 4`, `node a 4`, `listed pods b`;
/// what was broken.
fn seen(lines: &str) -> Vec<String> {
    let mut ledger = Ledger::default();
    for line in lines.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["budget", field, value] => {
                let value: Value = value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number));
                ledger.see_budget(Sight::Is(object(json!({
                    "metadata": {"name": "web", "namespace": "default"},
                    "spec": {"selector": {"matchLabels": {"app": "web"}}, *field: value},
                    "status": {"expectedPods": 3, "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0},
                }))));
            }
            ["pod", name, state] => {
                let ready = if *state == "waits" { "False" } else { "True" };
                let mut pod = json!({
                    "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}},
                    "status": {"conditions": [{"type": "Ready", "status": ready}]},
                });
                if ["goes", "evicted", "driven-off"].contains(state) {
                    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                }
                let cause = match *state {
                    "evicted" => Some("EvictionByEvictionAPI"),
                    "driven-off" => Some("DeletionByTaintManager"),
                    _ => None,
                };
                if let (Some(cause), Some(conditions)) = (cause, pod["status"]["conditions"].as_array_mut()) {
                    conditions.push(json!({"type": "DisruptionTarget", "status": "True", "reason": cause}));
                }
                let pod: Pod = object(pod);
                ledger.see_pod(if *state == "gone" { Sight::Gone(pod) } else { Sight::Is(pod) });
            }
            ["listed", "pods", names @ ..] => {
                let names = names.iter().map(|name| ("default".to_owned(), (*name).to_owned()));
                ledger.see_pod(Sight::Only(names.collect()));
            }
            ["pool", resource, limit] => ledger.see_pool(Sight::Is(object(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
                "spec": {
                    "limits": {*resource: limit},
                    "template": {"spec": {"nodeClassRef": {"group": "a", "kind": "b", "name": "c"}, "requirements": []}},
                },
            })))),
            ["claim", name, cpu] => ledger.see_claim(Sight::Is(object(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "default"}},
                "spec": {"nodeClassRef": {"group": "a", "kind": "b", "name": "c"}, "requirements": []},
                "status": {"capacity": {"cpu": cpu, "memory": "16Gi"}},
            })))),
            ["node", name, claim, taints @ ..] => ledger.see_node(Sight::Is(object(json!({
                "metadata": {
                    "name": name, "uid": name,
                    "labels": {"karpenter.sh/nodepool": "default", "kubernetes.io/hostname": claim},
                },
                "spec": {
                    "providerID": format!("kwok://{name}"),
                    "taints": taints.iter().map(|key| json!({"key": key, "effect": "NoExecute"})).collect::<Vec<_>>(),
                },
                "status": {"capacity": {"cpu": "4"}},
            })))),
            other => panic!("{other:?}"),
        }
    }
    ledger.broken().to_vec()
}

const THREE: &str = "pod a ready\npod b ready\npod c ready\n";

#[test]
fn budgets_are_kept_by_what_stays() {
    let table = [
        ("budget minAvailable 2", "pod a goes", 0),
        ("budget minAvailable 2", "pod a goes\npod b goes", 1),
        // The second may go when another has taken the place of the first.
        ("budget minAvailable 2", "pod a goes\npod a gone\npod d ready\npod b goes", 0),
        ("budget minAvailable 2", "pod a gone\npod b gone", 1),
        ("budget minAvailable 50%", "pod a goes", 0),
        ("budget minAvailable 50%", "pod a goes\npod b goes", 1),
        ("budget maxUnavailable 1", "pod a goes\npod b goes", 1),
        ("budget maxUnavailable 34%", "pod a goes\npod b goes", 0),
        ("budget maxUnavailable 0", "pod a goes", 1),
        // Who is not healthy takes nothing away, and nobody is ended by becoming so.
        ("budget minAvailable 3", "pod a waits\npod a goes", 0),
        ("budget minAvailable 3", "pod d waits\npod d goes", 0),
        ("budget minAvailable 3", "pod a evicted", 1),
        ("budget minAvailable 3", "pod a driven-off", 1),
        // One end is one end, however often it is seen.
        ("budget minAvailable 3", "pod a goes\npod a goes\npod a gone", 1),
        // What a list no longer has went unseen.
        ("budget minAvailable 2", "listed pods c", 2),
        ("budget minAvailable 2", "listed pods b c", 0),
    ];
    for (budget, story, broken) in table {
        let found = seen(&format!("{budget}\n{THREE}{story}"));
        assert_eq!(found.len(), broken, "{budget}: {story}: {found:?}");
    }
    assert_eq!(
        seen(&format!("budget minAvailable 3\n{THREE}pod a goes")),
        ["pod `a` went (no cause told) and left 2 healthy pods where budget `web` demands 3"]
    );
    assert_eq!(
        seen(&format!("budget minAvailable 3\n{THREE}pod a driven-off")),
        ["pod `a` went (DeletionByTaintManager) and left 2 healthy pods where budget `web` demands 3"]
    );
}

#[test]
fn limits_hold_for_claims_and_for_nodes() {
    let table = [
        ("pool cpu 8", "claim a 4\nclaim b 4", vec![]),
        ("pool cpu 7500m", "claim a 4\nclaim b 4", vec!["claims of pool `default` have 8000m cpu of 7500m"]),
        (
            "pool memory 20Gi",
            "claim a 1\nclaim b 1",
            vec!["claims of pool `default` have 34359738368000m memory of 21474836480000m"],
        ),
        ("pool nodes 1", "claim a 1\nclaim b 1", vec!["claims of pool `default` have 2000m nodes of 1000m"]),
        ("pool cpu 4", "node a a\nnode b b", vec!["nodes of pool `default` have 8000m cpu of 4000m"]),
        // What is seen again is no more than before.
        ("pool cpu 8", "claim a 4\nclaim b 4\npool cpu 4\nclaim b 4", vec![]),
    ];
    for (pool, story, broken) in table {
        assert_eq!(seen(&format!("{pool}\n{story}")), broken, "{pool}: {story}");
    }
}

#[test]
fn a_claim_has_one_node() {
    assert_eq!(seen("node a a\nnode a a\nnode b b"), [""; 0]);
    assert_eq!(seen("node a a\nnode b a"), ["claim `a` got another node, `b`"]);
}

#[test]
fn a_node_that_let_pods_stay_does_not_drive_them_off() {
    let unregistered = "node a a karpenter.sh/unregistered";
    assert_eq!(seen(&format!("{unregistered}\n{unregistered}\nnode a a")), [""; 0]);
    assert_eq!(seen("node a a\nnode a a node.kubernetes.io/unreachable"), [""; 0]);
    assert_eq!(seen(&format!("node a a\n{unregistered}")), ["node `a` drives pods off again"]);
}

#[test]
fn quantities_become_thousandths() {
    for (text, thousandths) in [("250m", 250), ("1", 1000), ("1.5", 1500), ("2Ki", 2_048_000), ("3k", 3_000_000)] {
        assert_eq!(super::thousandths(text), Some(thousandths), "{text}");
    }
    assert_eq!(super::thousandths("much"), None);
}
