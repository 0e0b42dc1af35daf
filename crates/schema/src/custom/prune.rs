//! Taking out what a definition does not know.

use serde_json::Value;

use crate::custom::schema::{Additional, Structural};
use crate::json::child;

/// Fields that every object has, whatever its schema says.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes every unknown field and tells `unknown` its path.
pub(crate) fn prune(schema: &Structural, value: &mut Value, is_root: bool, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            let is_resource = is_root || schema.embedded_resource;
            object.retain(|key, value| {
                if is_resource && OBJECT_FIELDS.contains(&key.as_str()) {
                    return true;
                }
                let path = child(path, key);
                if let Some(field) = schema.child(key) {
                    prune(field, value, false, &path, unknown);
                    return true;
                }
                let known = schema.preserves_unknown || matches!(schema.additional, Some(Additional::Anything));
                if !known {
                    unknown.push(path);
                }
                known
            });
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    prune(schema, item, false, &format!("{path}[{index}]"), unknown);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
