//! Typed calls for loops of this process. They go through the server like everybody's, and into the history.

use crate::answer::Answer;
use crate::event::ObjectKey;
use crate::path::encode_percent;
use crate::server::ApiServer;
use crate::status_body::Status;
use bytes::Bytes;
use http::Method;
use http::header::CONTENT_TYPE;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What the typed calls work on: objects of a kind that `k8s-openapi` knows.
pub trait Kind: k8s_openapi::Metadata<Ty = ObjectMeta> + Serialize + DeserializeOwned {}

impl<K: k8s_openapi::Metadata<Ty = ObjectMeta> + Serialize + DeserializeOwned> Kind for K {}

/// One user's hands on the server. Delays, lost answers and faults do not exist here.
#[derive(Debug, Clone)]
pub struct Hands {
    server: ApiServer,
    actor: &'static str,
}

impl Hands {
    pub(crate) fn new(server: ApiServer, actor: &'static str) -> Self {
        Self { server, actor }
    }

    /// Makes an object, in the namespace that its metadata names.
    pub fn create<K: Kind>(&self, object: &K) -> Result<K, Status> {
        let path = path_of::<K>(object.metadata().namespace.as_deref(), "", None);
        self.typed(Method::POST, &path, JSON, to_body(object)?)
    }

    /// Reads an object.
    pub fn get<K: Kind>(&self, namespace: Option<&str>, name: &str) -> Result<K, Status> {
        self.typed(Method::GET, &path_of::<K>(namespace, name, None), JSON, Bytes::new())
    }

    /// Reads all objects of a kind, of one namespace or of all, in the order of their names.
    pub fn list<K: Kind>(&self, namespace: Option<&str>) -> Result<Vec<K>, Status> {
        let list = self.send(Method::GET, &path_of::<K>(namespace, "", None), JSON, Bytes::new())?;
        let Value::Object(mut list) = list else { return Err(unreadable("a list is not an object")) };
        let items = list.remove("items").unwrap_or_default();
        serde_json::from_value(items).map_err(|problem| unreadable(&problem.to_string()))
    }

    /// Replaces an object.
    pub fn replace<K: Kind>(&self, object: &K) -> Result<K, Status> {
        self.replace_part(object, None)
    }

    /// Replaces an object's status.
    pub fn replace_status<K: Kind>(&self, object: &K) -> Result<K, Status> {
        self.replace_part(object, Some("status"))
    }

    /// Changes an object, or a part of it such as its status, by a merge patch.
    pub fn patch_merge<K: Kind>(
        &self,
        namespace: Option<&str>,
        name: &str,
        subresource: Option<&str>,
        patch: &Value,
    ) -> Result<K, Status> {
        let path = path_of::<K>(namespace, name, subresource);
        self.typed(Method::PATCH, &path, MERGE_PATCH, Bytes::from(patch.to_string()))
    }

    /// Deletes an object.
    pub fn delete<K: Kind>(&self, namespace: Option<&str>, name: &str, options: &DeleteOptions) -> Result<(), Status> {
        self.send(Method::DELETE, &path_of::<K>(namespace, name, None), JSON, to_body(options)?).map(|_| ())
    }

    /// Gives a pod its node.
    pub fn bind(&self, namespace: &str, pod: &str, node: &str) -> Result<(), Status> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": pod, "namespace": namespace },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        self.send(Method::POST, &pod_path(namespace, pod, "binding"), JSON, to_body(&binding)?).map(|_| ())
    }

    /// Evicts a pod, if its disruption budget allows it.
    pub fn evict(&self, namespace: &str, pod: &str, options: &DeleteOptions) -> Result<(), Status> {
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": pod, "namespace": namespace },
            "deleteOptions": options,
        });
        self.send(Method::POST, &pod_path(namespace, pod, "eviction"), JSON, to_body(&eviction)?).map(|_| ())
    }

    /// Makes an object of any kind that the server knows; `namespace` and name come from the object.
    pub fn create_object(&self, group: &str, resource: &str, object: &Value) -> Result<Value, Status> {
        let namespace = object["metadata"]["namespace"].as_str();
        let path = self.dynamic_path(&ObjectKey::new(group, resource, namespace, ""), None)?;
        self.send(Method::POST, &path, JSON, to_body(object)?)
    }

    /// Reads an object of any kind.
    pub fn get_object(&self, key: &ObjectKey) -> Result<Value, Status> {
        self.send(Method::GET, &self.dynamic_path(key, None)?, JSON, Bytes::new())
    }

    /// Replaces an object of any kind, or a part of it.
    pub fn replace_object(&self, key: &ObjectKey, subresource: Option<&str>, object: &Value) -> Result<Value, Status> {
        self.send(Method::PUT, &self.dynamic_path(key, subresource)?, JSON, to_body(object)?)
    }

    /// Changes an object of any kind, or a part of it, by a merge patch.
    pub fn patch_object(&self, key: &ObjectKey, subresource: Option<&str>, patch: &Value) -> Result<Value, Status> {
        self.send(Method::PATCH, &self.dynamic_path(key, subresource)?, MERGE_PATCH, Bytes::from(patch.to_string()))
    }

    /// Deletes an object of any kind.
    pub fn delete_object(&self, key: &ObjectKey, options: &DeleteOptions) -> Result<(), Status> {
        self.send(Method::DELETE, &self.dynamic_path(key, None)?, JSON, to_body(options)?).map(|_| ())
    }

    fn replace_part<K: Kind>(&self, object: &K, subresource: Option<&str>) -> Result<K, Status> {
        let ObjectMeta { namespace, name, .. } = object.metadata();
        let path = path_of::<K>(namespace.as_deref(), name.as_deref().unwrap_or_default(), subresource);
        self.typed(Method::PUT, &path, JSON, to_body(object)?)
    }

    /// The path of an object in the first version that the server offers of its resource.
    fn dynamic_path(&self, key: &ObjectKey, subresource: Option<&str>) -> Result<String, Status> {
        let version = self.server.with_store(|_, schemas| {
            let mut all = schemas.resources();
            all.find(|info| info.group == key.group && info.plural == key.resource).map(|info| info.version.clone())
        });
        let version = version.ok_or_else(Status::no_such_path)?;
        Ok(path([&key.group, &version, &key.resource], key.namespace.as_deref(), &key.name, subresource))
    }

    fn typed<K: DeserializeOwned>(&self, method: Method, path: &str, media: &str, body: Bytes) -> Result<K, Status> {
        let value = self.send(method, path, media, body)?;
        serde_json::from_value(value).map_err(|problem| unreadable(&problem.to_string()))
    }

    fn send(&self, method: Method, path: &str, media: &str, body: Bytes) -> Result<Value, Status> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, media)
            .body(body)
            .map_err(|problem| Status::bad_request(problem.to_string()))?;
        let Answer::Document(response) = self.server.handle(self.actor, request) else {
            return Err(unreadable("a stream where an object was expected"));
        };
        let is_success = response.status().is_success();
        let value: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        // Some failures come with a success's code; their body tells.
        if is_success && !(value["kind"] == "Status" && value["status"] == "Failure") {
            return Ok(value);
        }
        Err(serde_json::from_value(value).unwrap_or_else(|_| Status::no_such_path()))
    }
}

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

fn unreadable(problem: &str) -> Status {
    Status::internal(&format!("the answer cannot be read: {problem}"))
}

fn to_body(object: &impl Serialize) -> Result<Bytes, Status> {
    serde_json::to_vec(object).map(Bytes::from).map_err(|problem| Status::bad_request(problem.to_string()))
}

fn path_of<K: Kind>(namespace: Option<&str>, name: &str, subresource: Option<&str>) -> String {
    path([K::GROUP, K::VERSION, K::URL_PATH_SEGMENT], namespace, name, subresource)
}

fn pod_path(namespace: &str, pod: &str, part: &str) -> String {
    path(["", "v1", "pods"], Some(namespace), pod, Some(part))
}

/// The path of an object, or of a collection if the name is empty.
fn path([group, version, resource]: [&str; 3], namespace: Option<&str>, name: &str, part: Option<&str>) -> String {
    let mut path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    if let Some(namespace) = namespace {
        path.push_str(&format!("/namespaces/{}", encode_percent(namespace)));
    }
    path.push_str(&format!("/{resource}"));
    if !name.is_empty() {
        path.push_str(&format!("/{}", encode_percent(name)));
    }
    if let Some(part) = part {
        path.push_str(&format!("/{part}"));
    }
    path
}
