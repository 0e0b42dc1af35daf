//! Pods stay five minutes on nodes that are not ready or not reachable, unless they say otherwise.

use serde_json::{Value, json};

const SECONDS: u64 = 300;
const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

pub(crate) fn admit(pod: &mut Value) {
    let Some(spec) = pod["spec"].as_object_mut() else { return };
    let given = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut all = given.clone();
    for taint in TAINTS.iter().filter(|taint| !given.iter().any(|toleration| tolerates(toleration, taint))) {
        all.push(json!({
            "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS,
        }));
    }
    if all.len() > given.len() {
        spec.insert("tolerations".to_owned(), Value::Array(all));
    }
}

fn tolerates(toleration: &Value, taint: &str) -> bool {
    let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
    matches!(text("key"), key if key == taint || key.is_empty()) && matches!(text("effect"), "NoExecute" | "")
}
