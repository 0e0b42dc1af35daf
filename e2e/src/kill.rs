//! A plan that ends the controller before and after every kind of write it makes, and the names of those writes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use serde_json::Value;
use tokio::sync::mpsc;

/// On which side of a write the controller is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Before the API server has heard of it.
    Before,
    /// After it is done, before the controller has heard of that.
    After,
}

/// A write, told apart by what it does, and a side of it.
pub type KillPoint = (String, Side);

/// Every write that was seen is a reason to kill, once on each side.
#[derive(Clone)]
pub struct KillEverywhere {
    visited: Arc<Mutex<BTreeSet<KillPoint>>>,
    kill: mpsc::UnboundedSender<KillPoint>,
}

impl KillEverywhere {
    /// The plan, and where it asks for kills.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<KillPoint>) {
        let (kill, asked) = mpsc::unbounded_channel();
        (Self { visited: Arc::default(), kill }, asked)
    }

    /// All points at which the controller was killed.
    pub fn visited(&self) -> BTreeSet<KillPoint> {
        self.visited.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether to kill here; asks for it if so. The controller must then hear nothing more.
    pub fn strikes(&self, effect: &str, side: Side) -> bool {
        let point = (effect.to_owned(), side);
        let is_new = self.visited.lock().unwrap_or_else(PoisonError::into_inner).insert(point.clone());
        is_new && self.kill.send(point).is_ok()
    }
}

/// The verb and the resource of a request that changes something, such as `create pods/eviction`; `None` for reads.
pub(crate) fn write(method: &Method, path: &str) -> Option<String> {
    let verb = match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => return None,
    };
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    let resource = words.iter().rposition(|word| RESOURCES.contains(word))?;
    let subresource = words.get(resource + 2).map_or(String::new(), |sub| format!("/{sub}"));
    Some(format!("{verb} {}{subresource}", words[resource]))
}

const RESOURCES: [&str; 6] = ["nodes", "nodeclaims", "nodepools", "pods", "events", "leases"];

/// What a write does, as words that tell the stages of a life apart which are written to one resource.
pub(crate) fn effect(write: &str, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = match write {
        "patch nodes" => node_detail(&body),
        "patch nodeclaims" => claim_detail(&body),
        "patch nodeclaims/status" => status_detail(&body),
        _ => String::new(),
    };
    format!("{write}{detail}")
}

/// Nodes are changed by lists of operations.
fn node_detail(body: &Value) -> String {
    let set = |path: &str| {
        let operations = body.as_array().into_iter().flatten().filter(|operation| operation["op"] == "add");
        operations.into_iter().find(|operation| operation["path"] == path).map(|operation| &operation["value"])
    };
    let label = |key: &str| set(&format!("/metadata/labels/{}", key.replace('/', "~1"))).is_some();
    let taints = set("/spec/taints").and_then(Value::as_array);
    let disrupted = taints.is_some_and(|taints| taints.iter().any(|taint| taint["key"] == "karpenter.sh/disrupted"));
    let detail = match () {
        () if label("karpenter.sh/registered") => "register",
        () if label("karpenter.sh/initialized") => "initialize",
        () if disrupted => "taint",
        () if set("/metadata/finalizers").is_some() => "let go",
        () => "other",
    };
    format!(" ({detail})")
}

fn claim_detail(body: &Value) -> String {
    let annotation = |key: &str| body["metadata"]["annotations"].get(key).is_some();
    let detail = match () {
        () if annotation("karpenter.sh/launch-id") => "prepare",
        () if annotation("karpenter.sh/nodeclaim-termination-timestamp") => "deadline",
        () if body["metadata"]["finalizers"].is_array() => "let go",
        () if body["metadata"]["labels"].is_object() => "labels",
        () => "other",
    };
    format!(" ({detail})")
}

/// The conditions that hold, which tell the stage; `Ready` follows from them.
fn status_detail(body: &Value) -> String {
    let conditions = body["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let holds = |condition: &&Value| condition["status"] == "True" && condition["type"] != "Ready";
    let mut names: Vec<&str> = conditions.iter().filter(holds).filter_map(|one| one["type"].as_str()).collect();
    names.sort_unstable();
    if conditions.iter().any(|one| one["reason"] == "Draining") {
        names.push("draining");
    }
    format!(" ({})", names.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_are_told_apart_by_what_they_do() {
        let patch = Method::PATCH;
        let none = json!({});
        let registered = json!([{"op": "add", "path": "/metadata/labels/karpenter.sh~1registered", "value": "true"}]);
        let let_go = json!([{"op": "add", "path": "/metadata/finalizers", "value": []}]);
        let released = json!({"metadata": {"finalizers": []}});
        let launched = json!({"status": {"conditions": [
            {"type": "Launched", "status": "True"}, {"type": "Ready", "status": "True"}, {"type": "Drained", "status": "Unknown"}]}});
        let table = [
            (Method::GET, "/api/v1/nodes", &none, None),
            (Method::POST, "/apis/karpenter.sh/v1/nodeclaims", &none, Some("create nodeclaims")),
            (patch.clone(), "/api/v1/nodes/n1", &registered, Some("patch nodes (register)")),
            (patch.clone(), "/api/v1/nodes/n1", &let_go, Some("patch nodes (let go)")),
            (patch.clone(), "/apis/karpenter.sh/v1/nodeclaims/c", &released, Some("patch nodeclaims (let go)")),
            (patch, "/apis/karpenter.sh/v1/nodeclaims/c/status", &launched, Some("patch nodeclaims/status (Launched)")),
            (Method::POST, "/api/v1/namespaces/default/pods/p/eviction", &none, Some("create pods/eviction")),
            (Method::DELETE, "/api/v1/namespaces/default/pods/p", &none, Some("delete pods")),
        ];
        for (method, path, body, expected) in table {
            let found = write(&method, path).map(|write| effect(&write, body.to_string().as_bytes()));
            assert_eq!(found.as_deref(), expected, "{method} {path}");
        }
    }
}
