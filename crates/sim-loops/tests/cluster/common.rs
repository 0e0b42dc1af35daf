//! A cluster for stories: objects in as YAML, time passes, a compact picture out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use sim::{Answer, ApiServer, ServerSettings};
use sim_loops::{LoopSettings, Order, Pace, run};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// A running cluster on the virtual clock of the test.
pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    pub(crate) orders: UnboundedSender<Order>,
    loops: JoinHandle<()>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.loops.abort();
    }
}

impl Cluster {
    pub(crate) fn start(seed: u64, pace: Pace) -> Self {
        let began = tokio::time::Instant::now();
        let epoch: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Arc::new(move || epoch + jiff::SignedDuration::try_from(began.elapsed()).unwrap());
        let settings = ServerSettings { seed, keep_history: true, ..ServerSettings::default() };
        let server = ApiServer::new(settings, clock.clone());
        let (orders, receiver) = unbounded_channel();
        let loops = tokio::spawn(run(server.clone(), LoopSettings { seed, pace }, clock, receiver));
        Self { server, orders, loops }
    }

    pub(crate) fn instant() -> Self {
        Self::start(1, Pace::instant())
    }

    /// Creates every document, or replaces the spec of what exists.
    pub(crate) fn apply(&self, yaml: &str) {
        for document in yaml.split("\n---") {
            let object: Value = serde_yaml_ng::from_str(document).unwrap();
            if object.is_null() {
                continue;
            }
            let (collection, name) = place(&object);
            let (code, body) = self.call("POST", &collection, "application/json", &object);
            if code == 409 {
                let path = format!("{collection}/{name}");
                self.must("PATCH", &path, "application/merge-patch+json", &object);
                continue;
            }
            assert!(code < 300, "{code} {body}");
        }
    }

    pub(crate) fn call(&self, method: &str, path: &str, content_type: &str, body: &Value) -> (u16, Value) {
        let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(serde_json::to_vec(body).unwrap()) };
        match self.server.handle("test", request.body(body).unwrap()) {
            Answer::Document(response) => {
                let code = response.status().as_u16();
                (code, serde_json::from_slice(response.body()).unwrap_or(Value::Null))
            }
            Answer::Watch(..) => panic!("a stream"),
        }
    }

    pub(crate) fn must(&self, method: &str, path: &str, content_type: &str, body: &Value) -> Value {
        let (code, body) = self.call(method, path, content_type, body);
        assert!(code < 300, "{method} {path}: {code} {body}");
        body
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.must("GET", path, "application/json", &Value::Null)
    }

    pub(crate) fn items(&self, path: &str) -> Vec<Value> {
        self.get(path)["items"].as_array().cloned().unwrap_or_default()
    }

    pub(crate) fn patch(&self, path: &str, patch: Value) {
        self.must("PATCH", path, "application/merge-patch+json", &patch);
    }

    pub(crate) fn delete(&self, path: &str) {
        self.must("DELETE", path, "application/json", &Value::Null);
    }

    pub(crate) fn scale(&self, deployment: &str, replicas: i32) {
        let path = format!("/apis/apps/v1/namespaces/default/deployments/{deployment}");
        self.patch(&path, json!({"spec": {"replicas": replicas}}));
    }

    pub(crate) fn order(&self, order: Order) {
        self.orders.send(order).unwrap();
    }

    /// Nodes that ask for a played kubelet: `name cpu zone`.
    pub(crate) fn nodes(&self, lines: &[&str]) {
        for line in lines {
            let object = json!(node(line, true));
            self.must("POST", "/api/v1/nodes", "application/json", &object);
        }
    }

    pub(crate) async fn pass(&self, seconds: f64) {
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }

    /// Pods by owner, node and state, counted; nodes with their readiness and taints.
    pub(crate) fn show(&self) -> String {
        let mut lines: BTreeMap<String, usize> = BTreeMap::new();
        let sets: BTreeMap<String, String> = self
            .items("/apis/apps/v1/replicasets")
            .iter()
            .map(|set| (text(&set["metadata"]["name"]), revision(set)))
            .collect();
        for node in self.items("/api/v1/nodes") {
            lines.insert(node_line(&node), 1);
        }
        for pod in self.items("/api/v1/pods") {
            *lines.entry(pod_line(&pod, &sets)).or_insert(0) += 1;
        }
        let line = |(line, count): (&String, &usize)| match count {
            1 => line.clone(),
            count => format!("{line} x{count}"),
        };
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// A hash of everything that was asked and answered.
    pub(crate) fn history_hash(&self) -> u64 {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for record in self.server.history() {
            for byte in format!("{record:?}").bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        hash
    }

    /// Reasons of events with how often each was told.
    pub(crate) fn events(&self) -> String {
        let mut reasons: BTreeMap<String, i64> = BTreeMap::new();
        for event in self.items("/api/v1/events") {
            *reasons.entry(text(&event["reason"])).or_insert(0) += event["count"].as_i64().unwrap_or(1);
        }
        reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect::<Vec<_>>().join("\n")
    }
}

/// A node of a line `name cpu zone`.
pub(crate) fn node(line: &str, fake: bool) -> Node {
    let mut words = line.split(' ');
    let name = words.next().unwrap();
    let cpu = words.next().unwrap_or("4");
    let zone = words.next().unwrap_or("a");
    let annotations = if fake { json!({"kwok.x-k8s.io/node": "fake"}) } else { json!({}) };
    serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": annotations,
            "labels": {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name},
        },
        "status": {
            "capacity": {"cpu": cpu, "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"},
        },
    }))
    .unwrap()
}

/// A Deployment as YAML.
pub(crate) fn deployment(name: &str, replicas: u32, cpu: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: default}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - {{name: main, image: pause:1, resources: {{requests: {{cpu: {cpu}}}}}}}
"
    )
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

fn revision(set: &Value) -> String {
    let owner = text(&set["metadata"]["ownerReferences"][0]["name"]);
    format!("{owner}#{}", text(&set["metadata"]["annotations"]["deployment.kubernetes.io/revision"]))
}

fn place(object: &Value) -> (String, String) {
    let api_version = text(&object["apiVersion"]);
    let kind = text(&object["kind"]).to_lowercase();
    let root = if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") };
    let plural = match kind.as_str() {
        kind if kind.ends_with("class") => format!("{kind}es"),
        kind => format!("{kind}s"),
    };
    let name = text(&object["metadata"]["name"]);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => (format!("{root}/namespaces/{namespace}/{plural}"), name),
        None => (format!("{root}/{plural}"), name),
    }
}

fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().find(|condition| condition["type"] == kind).map(|it| text(&it["status"])).unwrap_or_default()
}

fn node_line(node: &Value) -> String {
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let taint = |taint: &Value| {
        let key = text(&taint["key"]);
        format!(" {}:{}", key.rsplit('/').next().unwrap(), text(&taint["effect"]))
    };
    let taints: String = taints.iter().map(taint).collect();
    format!("node {} ready={}{taints}", text(&node["metadata"]["name"]), condition(node, "Ready"))
}

fn pod_line(pod: &Value, sets: &BTreeMap<String, String>) -> String {
    let owner = &pod["metadata"]["ownerReferences"][0];
    let own = text(&pod["metadata"]["name"]);
    let name = match owner["kind"].as_str() {
        Some("ReplicaSet") => sets.get(&text(&owner["name"])).cloned().unwrap_or_default(),
        Some("StatefulSet") | None => own,
        Some(_) => text(&owner["name"]),
    };
    let node = pod["spec"]["nodeName"].as_str().unwrap_or("-").to_owned();
    let ready = if condition(pod, "Ready") == "True" { " ready" } else { "" };
    let deleting = if pod["metadata"]["deletionTimestamp"].is_null() { "" } else { " deleting" };
    format!("pod {name} {node} {}{ready}{deleting}", text(&pod["status"]["phase"]))
}
