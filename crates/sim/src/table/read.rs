//! Reading an object that is about to become a row.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::duration;

/// One object and the time at which it is looked at. Pointers are JSON pointers (`/spec/nodeName`).
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> Subject<'a> {
    pub(super) fn get(self, pointer: &str) -> Option<&'a Value> {
        self.object.pointer(pointer).filter(|value| !value.is_null())
    }

    /// The text at a pointer; empty if there is none.
    pub(super) fn text(self, pointer: &str) -> &'a str {
        self.get(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text at a pointer, or a word for its absence.
    pub(super) fn text_or(self, pointer: &str, absent: &'static str) -> &'a str {
        let text = self.text(pointer);
        if text.is_empty() { absent } else { text }
    }

    /// The number at a pointer; zero if there is none.
    pub(super) fn number(self, pointer: &str) -> i64 {
        self.get(pointer).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn flag(self, pointer: &str) -> Option<bool> {
        self.get(pointer).and_then(Value::as_bool)
    }

    pub(super) fn list(self, pointer: &str) -> &'a [Value] {
        self.get(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// How many fields the object at a pointer has.
    pub(super) fn size(self, pointer: &str) -> usize {
        self.get(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
    }

    pub(super) fn time(self, pointer: &str) -> Option<Timestamp> {
        duration::timestamp(self.get(pointer))
    }

    pub(super) fn name(self) -> Value {
        self.text("/metadata/name").into()
    }

    pub(super) fn age(self) -> Value {
        duration::since(self.time("/metadata/creationTimestamp"), self.now).into()
    }

    pub(super) fn is_deleted(self) -> bool {
        self.get("/metadata/deletionTimestamp").is_some()
    }

    /// Whether the condition of this type is `True`.
    pub(super) fn condition_holds(self, kind: &str) -> bool {
        self.condition(kind) == Some("True")
    }

    /// The status of the first condition of this type.
    pub(super) fn condition(self, kind: &str) -> Option<&'a str> {
        self.list("/status/conditions")
            .iter()
            .find(|condition| field(condition, "type") == kind)
            .map(|condition| field(condition, "status"))
    }

    /// Names and images of the containers of a pod template at a pointer, as two cells.
    pub(super) fn containers(self, pointer: &str) -> [Value; 2] {
        let all = self.list(&format!("{pointer}/spec/containers"));
        let join = |name| all.iter().map(|container| field(container, name)).collect::<Vec<_>>().join(",");
        [join("name").into(), join("image").into()]
    }

    /// A map of labels as `key=value,key=value`, or `<none>`.
    pub(super) fn labels(self, pointer: &str) -> Value {
        let pairs: BTreeSet<String> = self
            .get(pointer)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        or_none(pairs.into_iter().collect::<Vec<_>>().join(",")).into()
    }

    /// A label selector as one would write it on a command line; empty if it selects by nothing.
    pub(super) fn selector(self, pointer: &str) -> String {
        let mut requirements: Vec<(String, String)> = self
            .get(&format!("{pointer}/matchLabels"))
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
            .collect();
        for expression in self.list(&format!("{pointer}/matchExpressions")) {
            let key = field(expression, "key");
            let values: BTreeSet<&str> =
                expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let values = values.into_iter().collect::<Vec<_>>().join(",");
            let text = match field(expression, "operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                _ => format!("!{key}"),
            };
            requirements.push((key.to_owned(), text));
        }
        requirements.sort_by(|left, right| left.0.cmp(&right.0));
        requirements.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
    }
}

/// The text in a field of a value; empty if there is none.
pub(super) fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The text, or `<none>` if it is empty.
pub(super) fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text }
}
