//! A proxy between the controller and the API server that sees every write and may end the controller at any of them.
//!
//! The controller is not told: it runs as in production, and what is killed is the whole process, as a node failure
//! or the kernel would do it.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::net::TcpListener;
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

    /// Whether to kill here; asks for it if so.
    fn strikes(&self, effect: &str, side: Side) -> bool {
        let point = (effect.to_owned(), side);
        let is_new = self.visited.lock().unwrap_or_else(PoisonError::into_inner).insert(point.clone());
        is_new && self.kill.send(point).is_ok()
    }
}

/// Starts the proxy on a free port; it lives as long as the runtime. The address is plain HTTP.
pub async fn start(upstream: Client, plan: KillEverywhere) -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("bind the proxy")?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (upstream, plan) = (upstream.clone(), plan.clone());
            // A task of its own: a write that has begun is carried through although the controller is dead by then.
            let service = service_fn(move |request| {
                let forwarded = tokio::spawn(forward(upstream.clone(), plan.clone(), request));
                async move { forwarded.await.unwrap_or_else(|_| Ok(Response::new(Body::empty()))) }
            });
            // A connection that breaks is the controller being killed: that is the point.
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service),
            );
        }
    });
    Ok(address)
}

/// A kubeconfig that leads through the proxy.
pub fn kubeconfig(address: SocketAddr, folder: &Path) -> Result<PathBuf> {
    let path = folder.join("proxy.kubeconfig");
    let text = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        "users": [{"name": "proxy", "user": {}}],
    });
    std::fs::write(&path, text.to_string()).context("write the kubeconfig")?;
    Ok(path)
}

async fn forward(
    upstream: Client,
    plan: KillEverywhere,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes) else { return never().await };
    let effect = effect(&head.method, head.uri.path(), &body);
    if effect.as_ref().is_some_and(|effect| plan.strikes(effect, Side::Before)) {
        return never().await;
    }
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri.path_and_query().and_then(|path| path.as_str().parse().ok()).unwrap_or_default();
    for (name, value) in head.headers.iter().filter(|(name, _)| ["accept", "content-type"].contains(&name.as_str())) {
        request.headers_mut().insert(name, value.clone());
    }
    let Ok(response) = upstream.send(request).await else { return never().await };
    let Some(effect) = effect else { return Ok(response) };
    let (head, body) = response.into_parts();
    let Ok(body) = body.collect_bytes().await else { return never().await };
    if head.status.is_success() && plan.strikes(&effect, Side::After) {
        return never().await;
    }
    Ok(Response::from_parts(head, Body::from(body)))
}

/// No answer: the controller is dead before it could read one.
async fn never() -> Result<Response<Body>, Infallible> {
    std::future::pending().await
}

/// What a request does to the cluster; `None` for reads.
fn effect(method: &Method, path: &str, body: &[u8]) -> Option<String> {
    if [Method::GET, Method::HEAD].contains(method) {
        return None;
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    let resource = words.iter().rposition(|word| RESOURCES.contains(word))?;
    let subresource = words.get(resource + 2).map_or(String::new(), |sub| format!("/{sub}"));
    let detail = match (words[resource], subresource.as_str()) {
        ("nodes", "") if *method == Method::PATCH => node_detail(&body),
        ("nodeclaims", "") if *method == Method::PATCH => claim_detail(&body),
        ("nodeclaims", "/status") => status_detail(&body),
        _ => String::new(),
    };
    Some(format!("{} {}{subresource}{detail}", method.as_str().to_lowercase(), words[resource]))
}

const RESOURCES: [&str; 6] = ["nodes", "nodeclaims", "nodepools", "pods", "events", "leases"];

fn node_detail(body: &Value) -> String {
    let label = |key: &str| body["metadata"]["labels"].get(key).is_some();
    let taints = body["spec"]["taints"].as_array();
    let disrupted = taints.is_some_and(|taints| taints.iter().any(|taint| taint["key"] == "karpenter.sh/disrupted"));
    let detail = match () {
        () if label("karpenter.sh/registered") => "register",
        () if label("karpenter.sh/initialized") => "initialize",
        () if disrupted => "taint",
        () if body["metadata"]["finalizers"].is_array() => "let go",
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
        let registered = json!({"metadata": {"labels": {"karpenter.sh/registered": "true"}}});
        let released = json!({"metadata": {"finalizers": []}});
        let launched = json!({"status": {"conditions": [
            {"type": "Launched", "status": "True"}, {"type": "Ready", "status": "True"}, {"type": "Drained", "status": "Unknown"}]}});
        let table = [
            (Method::GET, "/api/v1/nodes", &none, None),
            (Method::POST, "/apis/karpenter.sh/v1/nodeclaims", &none, Some("post nodeclaims")),
            (patch.clone(), "/api/v1/nodes/n1", &registered, Some("patch nodes (register)")),
            (patch.clone(), "/api/v1/nodes/n1", &released, Some("patch nodes (let go)")),
            (patch.clone(), "/apis/karpenter.sh/v1/nodeclaims/c", &released, Some("patch nodeclaims (let go)")),
            (patch, "/apis/karpenter.sh/v1/nodeclaims/c/status", &launched, Some("patch nodeclaims/status (Launched)")),
            (Method::POST, "/api/v1/namespaces/default/pods/p/eviction", &none, Some("post pods/eviction")),
            (Method::DELETE, "/api/v1/namespaces/default/pods/p", &none, Some("delete pods")),
        ];
        for (method, path, body, expected) in table {
            assert_eq!(effect(&method, path, body.to_string().as_bytes()).as_deref(), expected, "{method} {path}");
        }
    }
}
