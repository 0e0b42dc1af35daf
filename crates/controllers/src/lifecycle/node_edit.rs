//! A node under change: many steps, one write.

use std::collections::BTreeMap;

use api::lower::NodeFacts;
use k8s_openapi::api::core::v1::Taint as StoredTaint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Serialize;
use serde_json::{Value, json};

/// What a node shall look like; [`NodeEdit::patch`] says how it differs from what is stored.
#[derive(Clone, Debug)]
pub(crate) struct NodeEdit<'a> {
    stored: &'a NodeFacts,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) taints: Vec<StoredTaint>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owners: Vec<OwnerReference>,
}

impl<'a> NodeEdit<'a> {
    pub(crate) fn open(stored: &'a NodeFacts) -> Self {
        Self {
            stored,
            labels: stored.labels.clone(),
            annotations: stored.annotations.clone(),
            taints: stored.stored_taints.clone(),
            finalizers: stored.finalizers.clone(),
            owners: stored.owners.clone(),
        }
    }

    /// Adds a taint unless one with its key and effect is there.
    pub(crate) fn add_taint(&mut self, taint: StoredTaint) {
        if !self.taints.iter().any(|found| found.key == taint.key && found.effect == taint.effect) {
            self.taints.push(taint);
        }
    }

    pub(crate) fn remove_taint(&mut self, key: &str) {
        self.taints.retain(|taint| taint.key != key);
    }

    /// The JSON patch, or nothing. Lists are replaced whole, so it insists on finding those that it was computed from; what
    /// else changes about a node meanwhile does not matter.
    pub(crate) fn patch(&self) -> Option<Value> {
        let stored = self.stored;
        let mut patch = Patch::default();
        patch.set_entries("/metadata/labels", &self.labels, &stored.labels);
        patch.set_entries("/metadata/annotations", &self.annotations, &stored.annotations);
        patch.replace("/metadata/finalizers", &self.finalizers, &stored.finalizers);
        patch.replace("/metadata/ownerReferences", &self.owners, &stored.owners);
        patch.replace("/spec/taints", &self.taints, &stored.stored_taints);
        patch.of(&stored.uid)
    }
}

/// Operations of a JSON patch.
#[derive(Default)]
struct Patch(Vec<Value>);

impl Patch {
    /// The patch for the object with this identity and no namesake.
    fn of(self, uid: &str) -> Option<Value> {
        let identity = json!({"op": "test", "path": "/metadata/uid", "value": uid});
        (!self.0.is_empty()).then(|| Value::Array([identity].into_iter().chain(self.0).collect()))
    }

    fn add(&mut self, path: &str, value: Value) {
        self.0.push(json!({"op": "add", "path": path, "value": value}));
    }

    fn insist(&mut self, path: &str, value: Value) {
        self.0.push(json!({"op": "test", "path": path, "value": value}));
    }

    /// Sets the entries that differ; others may write theirs at the same time.
    fn set_entries(&mut self, path: &str, own: &BTreeMap<String, String>, before: &BTreeMap<String, String>) {
        let news: BTreeMap<&String, &String> =
            own.iter().filter(|(key, value)| before.get(*key) != Some(value)).collect();
        if news.is_empty() {
        } else if before.is_empty() {
            // What is not there has no entries to set.
            self.insist(path, Value::Null);
            self.add(path, json!(news));
        } else {
            for (key, value) in news {
                self.add(&format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), json!(value));
            }
        }
    }

    fn replace<T: Serialize + PartialEq>(&mut self, path: &str, own: &[T], before: &[T]) {
        if own != before {
            self.insist(path, if before.is_empty() { Value::Null } else { json!(before) });
            self.add(path, json!(own));
        }
    }
}
