//! JSON merge patch: objects are merged, `null` removes, everything else replaces.

use serde_json::{Map, Value};

use super::error::{PatchError, json_type};

pub(super) fn apply(original: &Value, patch: &Value) -> Result<Value, PatchError> {
    match patch {
        Value::Object(fields) => {
            let mut result = original.clone();
            match &mut result {
                Value::Object(target) => merge_fields(target, fields),
                _ => result = without_nulls(patch),
            }
            Ok(result)
        }
        Value::Null => Err(PatchError::NullMergePatch),
        other => Err(PatchError::WrongType {
            prefix: "error decoding patch: ",
            found: json_type(other),
            wanted: "value of type map[string]interface {}".to_owned(),
        }),
    }
}

fn merge_fields(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match (target.get_mut(name), value) {
            (_, Value::Null) => {
                target.remove(name);
            }
            (Some(Value::Object(current)), Value::Object(fields)) => merge_fields(current, fields),
            // A list that takes an object's place is taken as it is, nulls and all; so the real server does.
            (Some(current @ Value::Object(_)), other) => *current = other.clone(),
            (_, other) => {
                target.insert(name.clone(), without_nulls(other));
            }
        }
    }
}

/// The value without fields that are `null`; items of lists stay, because their places count.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        plain => plain.clone(),
    }
}
