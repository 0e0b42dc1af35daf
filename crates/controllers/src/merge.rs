//! Merge patches that say everything that changes, removals included.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// The patch that turns one status into another, computed from one version of the object.
///
/// A key that is only in the old status is named with `null`: left out of a merge patch it would stay, the status would
/// never become what was wanted, and the next pass would write it again, for ever.
pub(crate) fn status_patch<S: Serialize>(version: Option<&str>, old: Option<&S>, new: &S) -> Value {
    let value = |status: Option<&S>| status.and_then(|status| serde_json::to_value(status).ok()).unwrap_or_default();
    json!({"metadata": {"resourceVersion": version}, "status": difference(&value(old), &value(Some(new)))})
}

/// What a merge patch must say to turn `old` into `new`.
fn difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return new.clone() };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) => drop(patch.insert(key.clone(), difference(before, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    patch.extend(removed.map(|key| (key.clone(), Value::Null)));
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_said_and_removals_are_among_them() {
        for (old, new, patch) in [
            (json!({"a": 1}), json!({"a": 1}), json!({})),
            (json!({"a": 1, "b": 2}), json!({"a": 3}), json!({"a": 3, "b": null})),
            (
                json!({"r": {"cpu": "4", "gpu": "1"}}),
                json!({"r": {"cpu": "0"}}),
                json!({"r": {"cpu": "0", "gpu": null}}),
            ),
            (json!({"list": [1, 2]}), json!({"list": [2]}), json!({"list": [2]})),
            (Value::Null, json!({"a": {"b": 1}}), json!({"a": {"b": 1}})),
        ] {
            assert_eq!(difference(&old, &new), patch, "{old} to {new}");
        }
    }
}
