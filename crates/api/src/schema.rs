//! Schema pieces that several kinds share and that attributes on fields cannot say.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A key such as `example.com/team`: an optional DNS prefix and a name.
pub(crate) const QUALIFIED_NAME: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";

/// What Kubernetes accepts as the value of a label.
pub(crate) const LABEL_VALUE: &str = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";

/// One CEL rule of `x-kubernetes-validations`.
pub(crate) fn cel(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// A map of strings without rules of its own.
pub(crate) fn string_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": { "type": "string" } })
}

/// The tags of a selector term: few enough for a CEL rule to look at each.
pub(crate) fn selector_tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string" },
        "maxProperties": 20,
        "x-kubernetes-validations": [
            cel("self.all(key, key != '' && self[key] != '')", "empty tag keys or values aren't supported"),
        ],
    })
}

/// An object whose content the API server keeps without looking at it.
pub(crate) fn open_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
