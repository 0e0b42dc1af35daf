//! A node under change: many steps, one write.

use std::collections::BTreeMap;

use api::lower::NodeFacts;
use k8s_openapi::api::core::v1::Taint as StoredTaint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};

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

    /// The merge patch, or nothing. Lists are replaced whole, so a patch with one insists on the version it was
    /// computed from; labels and annotations merge key by key and need no such thing.
    pub(crate) fn patch(&self) -> Option<Value> {
        let stored = self.stored;
        let mut metadata = Map::new();
        let mut patch = Map::new();
        for (field, own, before) in
            [("labels", &self.labels, &stored.labels), ("annotations", &self.annotations, &stored.annotations)]
        {
            let news: Map<String, Value> = own
                .iter()
                .filter(|(key, value)| before.get(*key) != Some(value))
                .map(|(key, value)| (key.clone(), json!(value)))
                .collect();
            if !news.is_empty() {
                metadata.insert(field.to_owned(), Value::Object(news));
            }
        }
        let mut replaces_list = false;
        if self.finalizers != stored.finalizers {
            metadata.insert("finalizers".to_owned(), json!(self.finalizers));
            replaces_list = true;
        }
        if self.owners != stored.owners {
            metadata.insert("ownerReferences".to_owned(), json!(self.owners));
            replaces_list = true;
        }
        if self.taints != stored.stored_taints {
            patch.insert("spec".to_owned(), json!({"taints": self.taints}));
            replaces_list = true;
        }
        if replaces_list {
            metadata.insert("resourceVersion".to_owned(), json!(stored.resource_version));
        }
        if !metadata.is_empty() {
            patch.insert("metadata".to_owned(), Value::Object(metadata));
        }
        (!patch.is_empty()).then_some(Value::Object(patch))
    }
}
