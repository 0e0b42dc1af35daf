//! The small part of an object that the store keeps parsed, beside the JSON text.

use serde_json::Value;
use std::collections::BTreeMap;

/// Everything that selectors, owners and deletion need to know about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) revision: u64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) owners: Vec<Owner>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) deleting: bool,
    /// Values for field selectors, beside name and namespace.
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// A reference to an object that this one belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: String,
    pub(crate) blocks_deletion: bool,
}

/// Puts its dependents' deletion before an owner's.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Puts the release of its dependents before an owner's deletion.
pub(crate) const ORPHAN: &str = "orphan";

impl Header {
    /// Reads the header of an object; `fields` are the paths its resource can be selected by.
    pub(crate) fn of(object: &Value, fields: &'static [&'static str]) -> Self {
        let metadata = &object["metadata"];
        Self {
            namespace: text(metadata, "namespace").map(str::to_owned),
            name: text(metadata, "name").unwrap_or_default().to_owned(),
            uid: text(metadata, "uid").unwrap_or_default().to_owned(),
            revision: text(metadata, "resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0),
            labels: text_map(&metadata["labels"]),
            owners: metadata["ownerReferences"].as_array().into_iter().flatten().map(owner).collect(),
            finalizers: texts(&metadata["finalizers"]),
            deleting: metadata.get("deletionTimestamp").is_some_and(|time| !time.is_null()),
            fields: fields.iter().map(|path| (*path, field_value(object, path))).collect(),
        }
    }

    /// The key below which the store keeps the object.
    pub(crate) fn key(&self) -> String {
        object_key(self.namespace.as_deref(), &self.name)
    }

    /// The value that a field selector sees; None for a path that the resource cannot be selected by.
    pub(crate) fn field(&self, path: &str) -> Option<&str> {
        match path {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(self.namespace.as_deref().unwrap_or_default()),
            _ => self.fields.iter().find(|(known, _)| *known == path).map(|(_, value)| value.as_str()),
        }
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }
}

/// The key below which the store keeps an object: its order is the order of lists.
pub(crate) fn object_key(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

fn owner(reference: &Value) -> Owner {
    Owner {
        uid: text(reference, "uid").unwrap_or_default().to_owned(),
        blocks_deletion: reference["blockOwnerDeletion"].as_bool().unwrap_or(false),
    }
}

/// The value at a dotted path as selectors compare it. Pod addresses and the parts of an event's source are the only
/// ones that are not plain paths.
fn field_value(object: &Value, path: &str) -> String {
    match path {
        "status.podIPs" => object["status"]["podIPs"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|entry| text(entry, "ip"))
            .collect::<Vec<_>>()
            .join(","),
        "source" => text(&object["source"], "component")
            .or_else(|| text(object, "reportingComponent"))
            .unwrap_or_default()
            .to_owned(),
        "status.successful" => at(object, "status.succeeded", "0"),
        "spec.unschedulable" | "spec.hostNetwork" => at(object, path, "false"),
        "status.replicas" => at(object, path, "0"),
        _ => at(object, path, ""),
    }
}

fn at(object: &Value, path: &str, absent: &str) -> String {
    let mut value = object;
    for segment in path.split('.') {
        value = &value[segment];
    }
    match value {
        Value::Null => absent.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field)?.as_str()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text_map(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
