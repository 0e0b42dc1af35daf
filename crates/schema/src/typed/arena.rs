//! The schemas of one group, with references resolved.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::typed::wire::WireForm;

const REFERENCE_PREFIX: &str = "#/components/schemas/";

/// All schemas of one OpenAPI document.
#[derive(Debug)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    /// By group, version and kind.
    kinds: BTreeMap<(String, String, String), usize>,
}

/// One schema.
#[derive(Debug)]
pub(crate) struct Node {
    /// The name of the type behind it, as `core.v1.PodSpec`; empty for inline schemas.
    pub(crate) name: String,
    pub(crate) kind: NodeKind,
}

/// What sort of value is wanted.
#[derive(Debug)]
pub(crate) enum NodeKind {
    Struct(BTreeMap<String, Field>),
    Map(usize),
    List(usize),
    Text,
    Base64,
    Integer {
        bits: u32,
    },
    Number,
    Boolean,
    IntOrString,
    Quantity,
    Time,
    MicroTime,
    /// Anything that is an object.
    Object,
    Anything,
}

/// A field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) node: usize,
    /// What is written when the field is absent.
    pub(crate) zero: Option<Value>,
    /// Whether an empty, zero or false value is left out.
    pub(crate) omits_zero: bool,
    /// The name of the text type behind it, if it has one.
    pub(crate) type_name: Option<String>,
    pub(crate) patch: PatchRule,
}

/// How strategic merge patches treat a field.
#[derive(Debug, Default)]
pub(crate) struct PatchRule {
    pub(crate) merge: bool,
    pub(crate) retain_keys: bool,
    pub(crate) merge_key: Option<String>,
}

impl Arena {
    /// Reads the schemas of a document.
    pub(crate) fn read(schemas: &Map<String, Value>) -> Self {
        let mut builder = Builder { nodes: Vec::new(), names: BTreeMap::new(), wire: WireForm::known() };
        for name in schemas.keys() {
            let index = builder.reserve(short_name(name));
            builder.names.insert(name.clone(), index);
        }
        let mut kinds = BTreeMap::new();
        for (name, schema) in schemas {
            let index = builder.names[name];
            builder.nodes[index].kind = builder.component(name, schema);
            for gvk in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
                let part = |key: &str| gvk[key].as_str().unwrap_or_default().to_owned();
                kinds.insert((part("group"), part("version"), part("kind")), index);
            }
        }
        Self { nodes: builder.nodes, kinds }
    }

    pub(crate) fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    /// The schema of a type, by a name such as `meta.v1.ObjectMeta`.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The schema of a kind.
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<usize> {
        self.kinds.get(&(group.to_owned(), version.to_owned(), kind.to_owned())).copied()
    }
}

struct Builder {
    nodes: Vec<Node>,
    names: BTreeMap<String, usize>,
    wire: &'static WireForm,
}

impl Builder {
    fn reserve(&mut self, name: String) -> usize {
        self.nodes.push(Node { name, kind: NodeKind::Anything });
        self.nodes.len() - 1
    }

    /// A schema with a name; some have a form of their own on the wire.
    fn component(&mut self, name: &str, schema: &Value) -> NodeKind {
        match name.rsplit('.').next().unwrap_or_default() {
            "Quantity" => NodeKind::Quantity,
            "IntOrString" => NodeKind::IntOrString,
            "Time" => NodeKind::Time,
            "MicroTime" => NodeKind::MicroTime,
            "FieldsV1" | "RawExtension" => NodeKind::Object,
            _ => self.inline(&short_name(name), schema),
        }
    }

    fn inline(&mut self, name: &str, schema: &Value) -> NodeKind {
        match schema["type"].as_str() {
            Some("object") => self.object(name, schema),
            Some("array") => NodeKind::List(self.place(&schema["items"])),
            Some("string") if schema["format"] == "byte" => NodeKind::Base64,
            Some("string") => NodeKind::Text,
            Some("integer") => NodeKind::Integer { bits: if schema["format"] == "int32" { 32 } else { 64 } },
            Some("number") => NodeKind::Number,
            Some("boolean") => NodeKind::Boolean,
            _ => NodeKind::Anything,
        }
    }

    fn object(&mut self, name: &str, schema: &Value) -> NodeKind {
        if let Some(properties) = schema["properties"].as_object() {
            let fields = properties.iter().map(|(key, schema)| (key.clone(), self.field(name, key, schema)));
            return NodeKind::Struct(fields.collect());
        }
        match &schema["additionalProperties"] {
            values @ Value::Object(_) => NodeKind::Map(self.place(values)),
            // A type without fields, which takes an object with none.
            _ => NodeKind::Struct(BTreeMap::new()),
        }
    }

    fn field(&mut self, owner: &str, key: &str, schema: &Value) -> Field {
        let strategy = schema["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
        let has = |word: &str| strategy.split(',').any(|part| part == word);
        let patch = PatchRule {
            merge: has("merge"),
            retain_keys: has("retainKeys"),
            merge_key: schema["x-kubernetes-patch-merge-key"].as_str().map(str::to_owned),
        };
        let node = self.place(schema);
        let is_collection = matches!(schema["type"].as_str(), Some("array"))
            || (schema["type"] == "object" && schema["additionalProperties"].is_object());
        let null_when_empty = self.wire.is_null(owner, key);
        let zero = if null_when_empty {
            Some(Value::Null)
        } else {
            self.wire.zero(owner, key).or_else(|| schema.get("default")).cloned()
        };
        let omits_zero = self.wire.omits(owner, key) || is_collection;
        Field { node, zero, omits_zero, type_name: self.wire.type_name(owner, key).map(str::to_owned), patch }
    }

    /// The place of a schema that stands in another one: its own, or that of the schema it refers to.
    fn place(&mut self, schema: &Value) -> usize {
        let reference = schema.get("$ref").or_else(|| schema["allOf"].get(0).and_then(|first| first.get("$ref")));
        let target = reference.and_then(Value::as_str).and_then(|text| text.strip_prefix(REFERENCE_PREFIX));
        if let Some(index) = target.and_then(|name| self.names.get(name)) {
            return *index;
        }
        let index = self.reserve(String::new());
        self.nodes[index].kind = self.inline("", schema);
        index
    }
}

/// The last three parts of a schema's name: `core.v1.PodSpec`.
fn short_name(name: &str) -> String {
    let parts: Vec<_> = name.rsplitn(4, '.').take(3).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(".")
}
