//! Rules for the metadata that all kinds share.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::errors::{FieldError, quote, shown_fields};
use crate::names::{self, NameRule};
use crate::path::Path;

/// All annotations of an object together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// Fields that stay as they are once the object is there.
const IMMUTABLE: [&str; 6] =
    ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// What a kind asks of its metadata.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataRule {
    pub(crate) names: NameRule,
    pub(crate) namespaced: bool,
    /// Whether finalizers without a domain must be known ones.
    pub(crate) strict_finalizers: bool,
}

/// Judges the metadata of a new object, or of an update of `old`.
pub(crate) fn check(rule: MetadataRule, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let new = &new["metadata"];
    match old {
        None => check_create(rule, new, errors),
        Some(old) => check_update(new, &old["metadata"], errors),
    }
}

fn check_create(rule: MetadataRule, metadata: &Value, errors: &mut Vec<FieldError>) {
    let path = Path::of("metadata");
    let text = |key: &str| metadata[key].as_str().unwrap_or_default();
    if !text("generateName").is_empty() {
        let problems = rule.names.problems(text("generateName"), true);
        push_invalid(&path.field("generateName"), text("generateName"), problems, errors);
    }
    if text("name").is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        push_invalid(&path.field("name"), text("name"), rule.names.problems(text("name"), false), errors);
    }
    match (rule.namespaced, text("namespace")) {
        (true, "") => errors.push(FieldError::required("metadata.namespace", "")),
        (true, namespace) => {
            push_invalid(&path.field("namespace"), namespace, names::label(namespace), errors);
        }
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden("metadata.namespace", "not allowed on this type")),
    }
    check_labels(&metadata["labels"], &path.field("labels"), errors);
    check_annotations(&metadata["annotations"], &path.field("annotations"), errors);
    check_owners(&metadata["ownerReferences"], errors);
    check_finalizers(rule, &metadata["finalizers"], errors);
}

fn check_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if !old["deletionTimestamp"].is_null() {
        check_no_new_finalizers(&new["finalizers"], &old["finalizers"], errors);
    }
    let generation = |metadata: &Value| metadata["generation"].as_i64().unwrap_or_default();
    if generation(new) < generation(old) {
        errors.push(FieldError::invalid("metadata.generation", generation(new), "must not be decremented"));
    }
    for field in IMMUTABLE {
        if new[field] != old[field] {
            let shown = match (&new[field], field) {
                (Value::Null, "name" | "namespace" | "uid") => Value::from(""),
                (value, _) => value.clone(),
            };
            errors.push(FieldError::invalid(&format!("metadata.{field}"), shown, "field is immutable"));
        }
    }
    let path = Path::of("metadata");
    check_labels(&new["labels"], &path.field("labels"), errors);
    check_annotations(&new["annotations"], &path.field("annotations"), errors);
    check_owners(&new["ownerReferences"], errors);
}

/// Adds one complaint per problem about a text.
pub(crate) fn push_invalid(path: &Path, text: &str, problems: Vec<String>, errors: &mut Vec<FieldError>) {
    errors.extend(problems.into_iter().map(|problem| FieldError::invalid(path.shown(), text, problem)));
}

/// Judges a map of labels.
pub(crate) fn check_labels(labels: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for (key, value) in entries(labels) {
        push_invalid(path, key, names::qualified_name(key), errors);
        push_invalid(path, value, names::label_value(value), errors);
    }
}

fn entries(map: &Value) -> impl Iterator<Item = (&str, &str)> {
    let entries = map.as_object().map(Map::iter).into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

/// Judges a map of annotations.
pub(crate) fn check_annotations(annotations: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for (key, _) in entries(annotations) {
        push_invalid(path, key, names::qualified_name(&key.to_lowercase()), errors);
    }
    let bytes: usize = entries(annotations).map(|(key, value)| key.len() + value.len()).sum();
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(path.shown(), ANNOTATIONS_BYTES_MAX));
    }
}

fn check_owners(owners: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for owner in owners.as_array().into_iter().flatten() {
        let text = |key: &str| owner[key].as_str().unwrap_or_default();
        let version = text("apiVersion").rsplit('/').next().unwrap_or_default();
        if version.is_empty() {
            let detail = "version must not be empty";
            errors.push(FieldError::invalid(&format!("{FIELD}.apiVersion"), text("apiVersion"), detail));
        }
        for key in ["kind", "name", "uid"] {
            if text(key).is_empty() {
                errors.push(FieldError::invalid(&format!("{FIELD}.{key}"), "", "must not be empty"));
            }
        }
        if text("apiVersion") == "v1" && text("kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(FIELD, owner.clone(), detail));
        }
        if owner["controller"] == true {
            let name = format!("{}/{}", text("kind"), text("name"));
            if let Some(first) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                errors.push(FieldError::invalid_as(FIELD, shown_owners(owners), detail));
            } else {
                controller = Some(name);
            }
        }
    }
}

fn shown_owners(owners: &Value) -> String {
    let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let owner = |owner: &Value| {
        let fields: Vec<_> = order.iter().filter_map(|key| Some((*key, owner.get(key)?.clone()))).collect();
        shown_fields(&fields)
    };
    let owners: Vec<_> = owners.as_array().into_iter().flatten().map(owner).collect();
    format!("[{}]", owners.join(","))
}

fn check_finalizers(rule: MetadataRule, finalizers: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.finalizers";
    let known = ["foregroundDeletion", "orphan", "kubernetes"];
    let names: Vec<_> = finalizers.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (index, name) in names.iter().enumerate() {
        push_invalid(&Path::of(FIELD), name, names::qualified_name(name), errors);
        if rule.strict_finalizers && !name.contains('/') && !known.contains(name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(Path::of(FIELD).index(index).shown(), *name, detail));
        }
    }
    if names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(FIELD, finalizers.clone(), detail));
    }
}

fn check_no_new_finalizers(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let set = |value: &Value| -> BTreeSet<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (new, old) = (set(new), set(old));
    let added: Vec<_> = new.difference(&old).map(|name| quote(name)).collect();
    if !added.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        errors.push(FieldError::forbidden("metadata.finalizers", detail));
    }
}
