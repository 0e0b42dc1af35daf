//! A structural schema, read once.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use crate::custom::rules::NodeRules;

/// A JSON type that a schema can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    Object,
    Array,
    Text,
    Integer,
    Number,
    Boolean,
}

impl JsonType {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::Text,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// What an object may hold beside its properties.
#[derive(Debug)]
pub(crate) enum Additional {
    Anything,
    Values(Box<Structural>),
}

/// How items of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    Map(Vec<String>),
}

/// A number as a bound.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) value: f64,
    pub(crate) exclusive: bool,
}

/// A schema of one place.
#[derive(Debug, Default)]
pub(crate) struct Structural {
    pub(crate) json_type: Option<JsonType>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    pub(crate) preserves_unknown: bool,
    pub(crate) embedded_resource: bool,
    pub(crate) properties: BTreeMap<String, Structural>,
    pub(crate) additional: Option<Additional>,
    pub(crate) items: Option<Box<Structural>>,
    pub(crate) default: Option<Value>,
    pub(crate) list: Option<ListType>,
    pub(crate) bounds: Bounds,
    pub(crate) rules: Option<NodeRules>,
    /// Whether a rule here or below compares with the former value.
    pub(crate) has_transitions: bool,
}

/// What a schema asks of a value beside its type.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) format: String,
    pub(crate) required: Vec<String>,
    pub(crate) allowed: Vec<Value>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<usize>,
    pub(crate) max_length: Option<usize>,
    pub(crate) pattern: Option<(String, Regex)>,
    pub(crate) min_items: Option<usize>,
    pub(crate) max_items: Option<usize>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<usize>,
    pub(crate) max_properties: Option<usize>,
    pub(crate) all_of: Vec<Structural>,
    pub(crate) any_of: Vec<Structural>,
    pub(crate) one_of: Vec<Structural>,
    pub(crate) not: Option<Box<Structural>>,
}

impl Structural {
    /// Reads a schema. What cannot be read (a pattern, a rule) is told with the path of its schema.
    pub(crate) fn read(schema: &Value, path: &str, problems: &mut Vec<(String, String)>) -> Self {
        let flag = |key: &str| schema[key].as_bool().unwrap_or_default();
        let int_or_string = flag("x-kubernetes-int-or-string");
        let mut read = Self {
            json_type: schema["type"].as_str().and_then(JsonType::named),
            nullable: flag("nullable"),
            int_or_string,
            preserves_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            default: schema.get("default").cloned(),
            bounds: read_bounds(schema, path, problems),
            ..Self::default()
        };
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.properties[{name}]");
            read.properties.insert(name.clone(), Self::read(property, &path, problems));
        }
        read.additional = match &schema["additionalProperties"] {
            Value::Bool(true) => Some(Additional::Anything),
            values @ Value::Object(_) => {
                let path = format!("{path}.additionalProperties");
                Some(Additional::Values(Box::new(Self::read(values, &path, problems))))
            }
            _ => None,
        };
        if let Some(items) = schema.get("items") {
            read.items = Some(Box::new(Self::read(items, &format!("{path}.items"), problems)));
        }
        read.list = read_list_type(schema);
        read.rules = NodeRules::read(schema, path, problems);
        read.has_transitions = read.rules.as_ref().is_some_and(NodeRules::has_transitions)
            || read.properties.values().any(|property| property.has_transitions)
            || read.items.as_ref().is_some_and(|items| items.has_transitions)
            || matches!(&read.additional, Some(Additional::Values(values)) if values.has_transitions);
        read
    }

    /// The schema of a property, or of the value of a map.
    pub(crate) fn child(&self, key: &str) -> Option<&Self> {
        let values = match &self.additional {
            Some(Additional::Values(values)) => Some(&**values),
            Some(Additional::Anything) | None => None,
        };
        self.properties.get(key).or(values)
    }
}

fn read_list_type(schema: &Value) -> Option<ListType> {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Some(ListType::Set),
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            Some(ListType::Map(keys.filter_map(Value::as_str).map(str::to_owned).collect()))
        }
        Some(_) => Some(ListType::Atomic),
        None => None,
    }
}

fn read_bounds(schema: &Value, path: &str, problems: &mut Vec<(String, String)>) -> Bounds {
    let count = |key: &str| schema[key].as_u64().and_then(|value| usize::try_from(value).ok());
    let bound = |key: &str, exclusive: &str| {
        let exclusive = schema[exclusive].as_bool().unwrap_or_default();
        schema[key].as_f64().map(|value| Bound { value, exclusive })
    };
    let mut pattern = None;
    if let Some(text) = schema["pattern"].as_str() {
        match Regex::new(text) {
            Ok(regex) => pattern = Some((text.to_owned(), regex)),
            Err(error) => problems.push((format!("{path}.pattern"), error.to_string())),
        }
    }
    let required = schema["required"].as_array().into_iter().flatten();
    Bounds {
        format: schema["format"].as_str().unwrap_or_default().to_owned(),
        required: required.filter_map(Value::as_str).map(str::to_owned).collect(),
        allowed: schema["enum"].as_array().cloned().unwrap_or_default(),
        minimum: bound("minimum", "exclusiveMinimum"),
        maximum: bound("maximum", "exclusiveMaximum"),
        multiple_of: schema["multipleOf"].as_f64(),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern,
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: schema["uniqueItems"].as_bool().unwrap_or_default(),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        all_of: read_branches(schema, "allOf", path, problems),
        any_of: read_branches(schema, "anyOf", path, problems),
        one_of: read_branches(schema, "oneOf", path, problems),
        not: schema.get("not").map(|not| Box::new(Structural::read(not, &format!("{path}.not"), problems))),
    }
}

fn read_branches(schema: &Value, key: &str, path: &str, problems: &mut Vec<(String, String)>) -> Vec<Structural> {
    let branches = schema[key].as_array().into_iter().flatten().enumerate();
    branches.map(|(index, branch)| Structural::read(branch, &format!("{path}.{key}[{index}]"), problems)).collect()
}
