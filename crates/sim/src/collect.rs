//! Garbage: what goes because something else went.
//!
//! The store notes what has to be looked at; looking decides, and the decision is carried out through the API like
//! everybody's, under the names of the controllers that do it in a real cluster.

use crate::event::ObjectKey;
use crate::hands::Hands;
use crate::header::{FOREGROUND, ORPHAN};
use crate::server::ApiServer;
use crate::store::{Store, Stored};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, Preconditions};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};

const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const NAMESPACE_CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";

/// Objects to be looked at, first come, first served, each once.
#[derive(Debug, Default)]
pub(crate) struct GarbageQueue {
    order: VecDeque<ObjectKey>,
    waiting: BTreeSet<ObjectKey>,
}

impl GarbageQueue {
    pub(crate) fn push(&mut self, key: ObjectKey) {
        if self.waiting.insert(key.clone()) {
            self.order.push_back(key);
        }
    }

    fn pop(&mut self) -> Option<ObjectKey> {
        let key = self.order.pop_front()?;
        self.waiting.remove(&key);
        Some(key)
    }
}

/// One thing to be done about an object.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// It goes; its dependents before it, after it, or not at all.
    Delete { key: ObjectKey, uid: String, propagation: Option<&'static str> },
    /// It belongs to these owners only.
    SetOwners { key: ObjectKey, uid: String, owners: Vec<Value> },
    /// It waits for these only.
    SetFinalizers { key: ObjectKey, uid: String, finalizers: Vec<String> },
    /// A namespace is empty and may go.
    Finalize { name: String },
}

impl ApiServer {
    /// Lets old events go, then looks at up to `limit` objects whose owner, dependents or namespace went, and does what follows. Gives how many
    /// were looked at; 0 means that nothing waits.
    pub fn collect_garbage(&self, limit: usize) -> usize {
        self.with_store(|store, _| store.expire_events());
        for looked in 0..limit {
            let Some(key) = self.with_store(|store, _| store.garbage.pop()) else { return looked };
            let steps = self.with_store(|store, _| decide(store, &key));
            for step in steps {
                carry_out(self, step);
            }
        }
        limit
    }
}

/// What is to be done about one object.
fn decide(store: &Store, key: &ObjectKey) -> Vec<Step> {
    let Some(stored) = store.find(key) else { return Vec::new() };
    let header = &stored.header;
    if key.group.is_empty() && key.resource == "namespaces" && header.deleting {
        return empty_namespace(store, &header.name);
    }
    if header.deleting && header.has_finalizer(ORPHAN) {
        return release_dependents(store, key, stored);
    }
    if header.deleting && header.has_finalizer(FOREGROUND) {
        return delete_dependents(store, key, stored);
    }
    if header.deleting || header.owners.is_empty() {
        return Vec::new();
    }
    judge_owners(store, key, stored)
}

/// An object without a living owner goes; one with other owners forgets the dead ones.
fn judge_owners(store: &Store, key: &ObjectKey, stored: &Stored) -> Vec<Step> {
    let header = &stored.header;
    let solid: Vec<&str> =
        header.owners.iter().map(|owner| owner.uid.as_str()).filter(|uid| store.is_solid_owner(uid)).collect();
    if solid.len() == header.owners.len() {
        return Vec::new();
    }
    if !solid.is_empty() {
        let references = stored.value()["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let owners = references
            .into_iter()
            .filter(|reference| solid.contains(&reference["uid"].as_str().unwrap_or_default()))
            .collect();
        return vec![Step::SetOwners { key: key.clone(), uid: header.uid.clone(), owners }];
    }
    let is_waited_for = header.owners.iter().any(|owner| store.key_by_uid(&owner.uid).is_some());
    let has_dependents = store.dependents(&header.uid).next().is_some();
    let propagation = if is_waited_for && has_dependents { "Foreground" } else { "Background" };
    vec![Step::Delete { key: key.clone(), uid: header.uid.clone(), propagation: Some(propagation) }]
}

/// Dependents forget their owner, then the owner may go.
fn release_dependents(store: &Store, key: &ObjectKey, stored: &Stored) -> Vec<Step> {
    let uid = &stored.header.uid;
    let mut steps: Vec<Step> = Vec::new();
    for dependent in store.dependents(uid) {
        let Some(object) = store.find(dependent) else { continue };
        let references = object.value()["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let owners = references.into_iter().filter(|reference| reference["uid"] != uid.as_str()).collect();
        steps.push(Step::SetOwners { key: dependent.clone(), uid: object.header.uid.clone(), owners });
    }
    steps.push(without_finalizer(key, stored, ORPHAN));
    steps
}

/// Dependents go first; those that block the owner hold it.
fn delete_dependents(store: &Store, key: &ObjectKey, stored: &Stored) -> Vec<Step> {
    let uid = &stored.header.uid;
    let dependents: Vec<(&ObjectKey, &Stored)> =
        store.dependents(uid).filter_map(|dependent| Some((dependent, &**store.find(dependent)?))).collect();
    let blocks =
        |dependent: &Stored| dependent.header.owners.iter().any(|owner| owner.uid == *uid && owner.blocks_deletion);
    if !dependents.iter().any(|(_, dependent)| blocks(dependent)) {
        return vec![without_finalizer(key, stored, FOREGROUND)];
    }
    dependents
        .into_iter()
        .filter(|(_, dependent)| !dependent.header.deleting)
        .flat_map(|(dependent_key, dependent)| judge_owners(store, dependent_key, dependent))
        .collect()
}

fn without_finalizer(key: &ObjectKey, stored: &Stored, name: &str) -> Step {
    let kept = stored.header.finalizers.iter().filter(|finalizer| *finalizer != name);
    Step::SetFinalizers { key: key.clone(), uid: stored.header.uid.clone(), finalizers: kept.cloned().collect() }
}

/// Everything in a namespace that is going goes; an empty one may go itself.
fn empty_namespace(store: &Store, name: &str) -> Vec<Step> {
    let mut is_empty = true;
    let mut steps = Vec::new();
    for id in store.collection_ids() {
        let objects = store.collection(id).into_iter().flat_map(|collection| collection.objects.values());
        for stored in objects.filter(|stored| stored.header.namespace.as_deref() == Some(name)) {
            is_empty = false;
            if !stored.header.deleting {
                let key = ObjectKey::new(&id.group, &id.resource, Some(name), &stored.header.name);
                steps.push(Step::Delete { key, uid: stored.header.uid.clone(), propagation: None });
            }
        }
    }
    if is_empty { vec![Step::Finalize { name: name.to_owned() }] } else { steps }
}

/// Does one thing. What fails because the object changed or went meanwhile is noticed again by itself.
fn carry_out(server: &ApiServer, step: Step) {
    let done = match step {
        Step::Delete { key, uid, propagation } => {
            let actor = if propagation.is_some() { COLLECTOR } else { NAMESPACE_CONTROLLER };
            let options = DeleteOptions {
                preconditions: Some(Preconditions { uid: Some(uid), resource_version: None }),
                propagation_policy: Some(propagation.unwrap_or("Background").to_owned()),
                ..DeleteOptions::default()
            };
            server.act(actor).delete_object(&key, &options).map(|_| ())
        }
        Step::SetOwners { key, uid, owners } => {
            let owners = if owners.is_empty() { Value::Null } else { json!(owners) };
            patch(server, &key, &json!({ "metadata": { "uid": uid, "ownerReferences": owners } }))
        }
        Step::SetFinalizers { key, uid, finalizers } => {
            let finalizers = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
            patch(server, &key, &json!({ "metadata": { "uid": uid, "finalizers": finalizers } }))
        }
        Step::Finalize { name } => finalize(&server.act(NAMESPACE_CONTROLLER), &name),
    };
    // A refusal is one of: gone, changed (which was noticed), or a finalizer that holds the object for its owner.
    let _ = done;
}

fn patch(server: &ApiServer, key: &ObjectKey, patch: &Value) -> Result<(), crate::Status> {
    server.act(COLLECTOR).patch_object(key, None, patch).map(|_| ())
}

fn finalize(hands: &Hands, name: &str) -> Result<(), crate::Status> {
    let key = ObjectKey::new("", "namespaces", None, name);
    let mut namespace = hands.get_object(&key)?;
    namespace["spec"] = json!({});
    hands.replace_object(&key, Some("finalize"), &namespace).map(|_| ())
}
