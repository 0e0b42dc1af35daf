//! An API server of one map, and the objects that the tests put into it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cloud::{LaunchId, LaunchRequest};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use karpenter_kwok::{KwokProvider, instance_types, node};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

const CLASSES: &str = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const NODES: &str = "/api/v1/nodes";

#[derive(Default)]
struct Stored {
    objects: BTreeMap<String, Value>,
    refusals: u32,
    creation_takes: Duration,
    deletion_takes: Duration,
}

/// Objects by path: enough of an API server to get, list, create and delete.
#[derive(Clone, Default)]
pub(crate) struct FakeApi(Arc<Mutex<Stored>>);

impl FakeApi {
    pub(crate) fn with(objects: impl IntoIterator<Item = (String, Value)>) -> Self {
        let api = Self::default();
        objects.into_iter().for_each(|(path, object)| api.put(&path, object));
        api
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.stored().objects.get(path).cloned()
    }

    pub(crate) fn put(&self, path: &str, object: Value) {
        self.stored().objects.insert(path.to_owned(), object);
    }

    pub(crate) fn remove(&self, path: &str) -> Option<Value> {
        self.stored().objects.remove(path)
    }

    pub(crate) fn count(&self, prefix: &str) -> usize {
        self.stored().objects.keys().filter(|path| path.starts_with(prefix)).count()
    }

    /// Refuses the next creations.
    pub(crate) fn refuse_creations(&self, count: u32) {
        self.stored().refusals = count;
    }

    /// Lets every creation take effect only after a while.
    pub(crate) fn slow_creations(&self, by: Duration) {
        self.stored().creation_takes = by;
    }

    /// Lets every deletion be answered only a while after it took effect.
    pub(crate) fn slow_deletions(&self, by: Duration) {
        self.stored().deletion_takes = by;
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().expect("no test panics while it holds the lock")
    }

    fn client(&self) -> Client {
        let api = self.clone();
        let answer = move |request: Request<Body>| {
            let api = api.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.expect("a body in memory").to_bytes();
                let latency = if head.method == Method::POST { api.stored().creation_takes } else { Duration::ZERO };
                tokio::time::sleep(latency).await;
                let (status, object) = api.answer(&head.method, head.uri.path(), &body);
                let latency = if head.method == Method::DELETE { api.stored().deletion_takes } else { Duration::ZERO };
                tokio::time::sleep(latency).await;
                let body = Body::from(object.to_string().into_bytes());
                Ok::<_, Infallible>(Response::builder().status(status).body(body).expect("a status and a body"))
            }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    fn answer(&self, method: &Method, path: &str, body: &[u8]) -> (StatusCode, Value) {
        let mut stored = self.stored();
        match *method {
            Method::GET if [CLASSES, CLAIMS, NODES].contains(&path) => {
                let inside = format!("{path}/");
                let items: Vec<&Value> =
                    stored.objects.iter().filter(|(path, _)| path.starts_with(&inside)).map(|(_, item)| item).collect();
                (StatusCode::OK, json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}))
            }
            Method::GET => stored.objects.get(path).map_or_else(not_found, |found| (StatusCode::OK, found.clone())),
            Method::DELETE => stored.objects.remove(path).map_or_else(not_found, |gone| (StatusCode::OK, gone)),
            Method::POST if stored.refusals > 0 => {
                stored.refusals -= 1;
                refusal(StatusCode::FORBIDDEN, "Forbidden", "refused by a test")
            }
            Method::POST => {
                let object: Value = serde_json::from_slice(body).expect("JSON");
                let path = format!("{path}/{}", object["metadata"]["name"].as_str().expect("a name"));
                if stored.objects.contains_key(&path) {
                    return refusal(StatusCode::CONFLICT, "AlreadyExists", "already exists");
                }
                stored.objects.insert(path, object.clone());
                (StatusCode::CREATED, object)
            }
            _ => refusal(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", "not part of this test"),
        }
    }
}

fn not_found() -> (StatusCode, Value) {
    refusal(StatusCode::NOT_FOUND, "NotFound", "not found")
}

fn refusal(code: StatusCode, reason: &str, message: &str) -> (StatusCode, Value) {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": code.as_u16(), "reason": reason, "message": message,
    });
    (code, status)
}

/// A provider with the built-in types; a second one on the same API is the process after a restart.
pub(crate) fn provider(api: &FakeApi) -> KwokProvider {
    KwokProvider::new(api.client(), instance_types::built_in().into())
}

/// The class `default`.
pub(crate) fn class(delay: Option<&str>) -> (String, Value) {
    let class = json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "default"},
        "spec": {"nodeRegistrationDelay": delay},
    });
    (format!("{CLASSES}/default"), class)
}

/// A claim of the class `default`, with a launch id of its own.
pub(crate) fn claim(name: &str) -> (String, Value) {
    let claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "uid": format!("uid-{name}"),
            "annotations": {"karpenter.sh/launch-id": format!("launch-{name}")},
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-2x-amd64-linux"]},
            ],
        },
    });
    (claim_path(name), claim)
}

pub(crate) fn request(name: &str) -> LaunchRequest {
    let claim = serde_json::from_value(claim(name).1).expect("a NodeClaim");
    LaunchRequest { id: LaunchId::new(format!("launch-{name}")), claim: Arc::new(claim) }
}

pub(crate) fn claim_path(name: &str) -> String {
    format!("{CLAIMS}/{name}")
}

pub(crate) fn node_name(claim: &str) -> String {
    node::node_name(claim, &LaunchId::new(format!("launch-{claim}"))).to_string()
}

pub(crate) fn node_path(claim: &str) -> String {
    format!("{NODES}/{}", node_name(claim))
}
