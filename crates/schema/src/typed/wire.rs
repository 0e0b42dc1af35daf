//! What the Go types of built-in kinds do to JSON: which fields are left out, and which are written though empty.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::typed::arena::{Arena, Field, NodeKind};

/// The facts of `wire_form.txt`, by type and field.
pub(crate) struct WireForm {
    omitted: BTreeSet<(String, String)>,
    null: BTreeSet<(String, String)>,
    zeros: BTreeMap<(String, String), Value>,
    type_names: BTreeMap<(String, String), String>,
}

impl WireForm {
    pub(crate) fn known() -> &'static Self {
        static KNOWN: OnceLock<WireForm> = OnceLock::new();
        KNOWN.get_or_init(|| Self::parse(include_str!("../wire_form.txt")))
    }

    fn parse(text: &str) -> Self {
        let mut form = Self {
            omitted: BTreeSet::new(),
            null: BTreeSet::new(),
            zeros: BTreeMap::new(),
            type_names: BTreeMap::new(),
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let (Some(fact), Some(owner)) = (words.next(), words.next()) else { continue };
            for word in words {
                let (field, value) = word.split_once('=').unwrap_or((word, ""));
                let key = (owner.to_owned(), field.to_owned());
                match fact {
                    "omit" => drop(form.omitted.insert(key)),
                    "null" => drop(form.null.insert(key)),
                    "zero" => drop(form.zeros.insert(key, serde_json::from_str(value).unwrap_or_default())),
                    _ => drop(form.type_names.insert(key, value.to_owned())),
                }
            }
        }
        form
    }

    pub(crate) fn omits(&self, owner: &str, field: &str) -> bool {
        self.omitted.contains(&(owner.to_owned(), field.to_owned()))
    }

    pub(crate) fn is_null(&self, owner: &str, field: &str) -> bool {
        self.null.contains(&(owner.to_owned(), field.to_owned()))
    }

    pub(crate) fn zero(&self, owner: &str, field: &str) -> Option<&Value> {
        self.zeros.get(&(owner.to_owned(), field.to_owned()))
    }

    pub(crate) fn type_name(&self, owner: &str, field: &str) -> Option<&str> {
        self.type_names.get(&(owner.to_owned(), field.to_owned())).map(String::as_str)
    }
}

/// Gives a value the form in which its Go type would write it: empty fields are left out where the type leaves them
/// out, and written where it writes them.
pub(crate) fn write_zeros(arena: &Arena, node: usize, value: &mut Value) {
    match (&arena.node(node).kind, value) {
        (NodeKind::Struct(fields), Value::Object(object)) => {
            object.retain(|key, value| fields.get(key).is_none_or(|field| !is_left_out(field, value)));
            for (key, field) in fields {
                write_field(arena, key, field, object);
            }
        }
        (NodeKind::Map(item), Value::Object(object)) => {
            object.values_mut().for_each(|value| write_zeros(arena, *item, value));
        }
        (NodeKind::List(item), Value::Array(items)) => {
            items.iter_mut().for_each(|value| write_zeros(arena, *item, value));
        }
        _ => {}
    }
}

fn write_field(arena: &Arena, key: &str, field: &Field, object: &mut Map<String, Value>) {
    if let (None, Some(zero)) = (object.get(key), &field.zero) {
        object.insert(key.to_owned(), zero.clone());
    }
    if let Some(value) = object.get_mut(key) {
        write_zeros(arena, field.node, value);
    }
}

fn is_left_out(field: &Field, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => field.omits_zero && text.is_empty(),
        Value::Bool(value) => field.omits_zero && !value,
        Value::Number(number) => field.omits_zero && number.as_f64() == Some(0.0),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => field.omits_zero && object.is_empty(),
    }
}
