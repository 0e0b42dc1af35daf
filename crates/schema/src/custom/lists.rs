//! Lists whose items must differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::custom::schema::{ListType, Structural};
use crate::errors::FieldError;
use crate::path::Path;

/// Reports every item of a set, and every key of a map written as a list, that stands twice.
pub(crate) fn check_lists(schema: &Structural, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let is_property = schema.properties.contains_key(key);
                let path = if is_property { path.field(key) } else { path.key(key) };
                if let Some(field) = schema.child(key) {
                    check_lists(field, value, &path, errors);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list {
                Some(ListType::Set) => check_unique(items, path, errors, Value::clone),
                Some(ListType::Map(keys)) => check_unique(items, path, errors, |item| key_of(schema, keys, item)),
                Some(ListType::Atomic) | None => {}
            }
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check_lists(schema, item, &path.index(index), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_unique(items: &[Value], path: &Path, errors: &mut Vec<FieldError>, key: impl Fn(&Value) -> Value) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let key = key(item);
        let times = seen.entry(key.to_string()).or_default();
        *times += 1;
        // The third and later ones would only repeat the complaint.
        if *times == 2 {
            errors.push(FieldError::duplicate(path.index(index).shown(), key));
        }
    }
}

/// The part of an item that tells it apart.
fn key_of(schema: &Structural, keys: &[String], item: &Value) -> Value {
    let mut found = Map::new();
    for key in keys {
        let default = schema.items.as_ref().and_then(|items| items.properties.get(key)?.default.clone());
        if let Some(value) = item.get(key).cloned().or(default) {
            found.insert(key.clone(), value);
        }
    }
    Value::Object(found)
}
