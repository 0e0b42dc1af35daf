//! What loops decide: writes as data, and when to look again.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};

use crate::key::Key;
use crate::pods::{earlier, name, uid};

/// What a loop wants done, and when it wants to look again even if nothing happens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decision {
    pub(crate) writes: Vec<Write>,
    pub(crate) look_again: Option<Timestamp>,
}

impl Decision {
    /// Nothing to do before that time.
    pub(crate) fn at(look_again: Timestamp) -> Self {
        Self { writes: Vec::new(), look_again: Some(look_again) }
    }

    /// Just these writes.
    pub(crate) fn of(writes: Vec<Write>) -> Self {
        Self { writes, look_again: None }
    }

    pub(crate) fn look_again_at(&mut self, at: Option<Timestamp>) {
        self.look_again = earlier(self.look_again, at);
    }
}

/// Where the objects of a kind live in the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) root: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
}

macro_rules! resources {
    ($($name:ident = $root:literal $plural:literal $api_version:literal $kind:literal;)*) => {
        $(pub(crate) const $name: Resource =
            Resource { root: $root, plural: $plural, api_version: $api_version, kind: $kind };)*
    };
}

resources! {
    PODS = "/api/v1" "pods" "v1" "Pod";
    NODES = "/api/v1" "nodes" "v1" "Node";
    EVENTS = "/api/v1" "events" "v1" "Event";
    SERVICE_ACCOUNTS = "/api/v1" "serviceaccounts" "v1" "ServiceAccount";
    CLAIMS = "/api/v1" "persistentvolumeclaims" "v1" "PersistentVolumeClaim";
    REPLICA_SETS = "/apis/apps/v1" "replicasets" "apps/v1" "ReplicaSet";
    DEPLOYMENTS = "/apis/apps/v1" "deployments" "apps/v1" "Deployment";
    DAEMON_SETS = "/apis/apps/v1" "daemonsets" "apps/v1" "DaemonSet";
    STATEFUL_SETS = "/apis/apps/v1" "statefulsets" "apps/v1" "StatefulSet";
    JOBS = "/apis/batch/v1" "jobs" "batch/v1" "Job";
    BUDGETS = "/apis/policy/v1" "poddisruptionbudgets" "policy/v1" "PodDisruptionBudget";
}

/// One change to ask the API for.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// Makes an object. With an owner, the outcome is told as an event of that owner.
    Create { resource: Resource, namespace: String, object: Value, owner: Option<ObjectReference> },
    /// A JSON merge patch of an object or of its status.
    Patch { resource: Resource, key: Key, part: Part, patch: Value },
    /// Replaces the status: the whole object as it was read, with the new status.
    ReplaceStatus { resource: Resource, key: Key, object: Value },
    /// Deletes an object that still has this uid. With an owner, the deletion is told as an event of that owner.
    Delete { resource: Resource, key: Key, uid: String, grace_seconds: Option<i64>, owner: Option<ObjectReference> },
    /// Binds a pod to a node.
    Bind { key: Key, uid: String, node: String },
    /// Tells of something.
    Tell(Telling),
    /// A line in the log of a container.
    Log { key: Key, container: String, line: String },
}

/// Which part of an object a patch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
}

/// How much an event matters to readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Written at every level of detail.
    Normal,
    /// Written only with all details.
    Detail,
    /// A warning: always written.
    Warning,
}

/// An event to be: about what, why, in which words.
#[derive(Clone, Debug)]
pub(crate) struct Telling {
    pub(crate) about: ObjectReference,
    pub(crate) weight: Weight,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// A reference to an object, for events.
pub(crate) fn reference(resource: Resource, metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(resource.api_version.to_owned()),
        kind: Some(resource.kind.to_owned()),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// An owner reference that makes its bearer controlled by an object.
pub(crate) fn controller_reference(resource: Resource, metadata: &ObjectMeta) -> Value {
    json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name(metadata),
        "uid": uid(metadata),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// A replacement of the status of an object that was read.
pub(crate) fn replace_status<K: Serialize, S: Serialize>(
    resource: Resource,
    metadata: &ObjectMeta,
    object: &K,
    status: &S,
) -> Option<Write> {
    let mut object = serde_json::to_value(object).ok()?;
    object["status"] = serde_json::to_value(status).ok()?;
    Some(Write::ReplaceStatus { resource, key: Key::of(metadata), object })
}

/// A merge patch of the main part of an object.
pub(crate) fn patch(resource: Resource, metadata: &ObjectMeta, patch: Value) -> Write {
    Write::Patch { resource, key: Key::of(metadata), part: Part::Main, patch }
}

/// A merge patch of the status of an object.
pub(crate) fn patch_status(resource: Resource, metadata: &ObjectMeta, status: Value) -> Write {
    Write::Patch { resource, key: Key::of(metadata), part: Part::Status, patch: json!({ "status": status }) }
}

/// A deletion with the object's own grace period.
pub(crate) fn delete(resource: Resource, metadata: &ObjectMeta, owner: Option<ObjectReference>) -> Write {
    Write::Delete { resource, key: Key::of(metadata), uid: uid(metadata).to_owned(), grace_seconds: None, owner }
}

/// A deletion at once.
pub(crate) fn delete_now(resource: Resource, metadata: &ObjectMeta) -> Write {
    Write::Delete {
        resource,
        key: Key::of(metadata),
        uid: uid(metadata).to_owned(),
        grace_seconds: Some(0),
        owner: None,
    }
}
