//! Reading JSON as a built-in type: what does not fit is an error, what is unknown is left out and reported.

use serde_json::{Map, Value};

use crate::errors::quote;
use crate::json::{Json, child, make_integral};
use crate::quantity;
use crate::times;
use crate::typed::arena::{Arena, Field, NodeKind};

/// What was noticed while reading.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The first value that does not fit its type, in the words of the Go decoder.
    pub(crate) misfit: Option<String>,
    /// Unknown and repeated fields, in the order of the text.
    pub(crate) strict: Vec<String>,
}

/// Reads a value as the type at `node`.
pub(crate) fn decode(arena: &Arena, node: usize, json: Json) -> (Value, Findings) {
    let mut reader = Reader { arena, findings: Findings::default(), fields: Vec::new(), owner: None, wanted: None };
    let value = reader.read(node, json, "").unwrap_or(Value::Null);
    (value, reader.findings)
}

struct Reader<'a> {
    arena: &'a Arena,
    findings: Findings,
    /// The names of the fields that lead here; items of lists and maps do not count.
    fields: Vec<String>,
    /// The type whose field is being read.
    owner: Option<&'a str>,
    /// The name of the text type that the field has.
    wanted: Option<&'a str>,
}

impl<'a> Reader<'a> {
    /// The value, or none for null and for what does not fit.
    fn read(&mut self, node: usize, json: Json, path: &str) -> Option<Value> {
        let arena = self.arena;
        match (&arena.node(node).kind, json) {
            (_, Json::Null) => None,
            (NodeKind::Struct(fields), Json::Object(entries)) => {
                Some(self.read_struct(&arena.node(node).name, fields, entries, path))
            }
            (NodeKind::Map(item), Json::Object(entries)) => Some(self.read_map(*item, entries, path)),
            (NodeKind::List(item), Json::List(items)) => {
                let numbered = items.into_iter().enumerate();
                let read = numbered.map(|(index, json)| {
                    self.read(*item, json, &format!("{path}[{index}]")).unwrap_or_else(|| self.zero(*item))
                });
                Some(Value::Array(read.collect()))
            }
            (NodeKind::Text, Json::Text(text)) => Some(Value::String(text)),
            (NodeKind::Base64, Json::Text(text)) => self.keep(base64_problem(&text), text),
            (NodeKind::Boolean, Json::Bool(value)) => Some(Value::Bool(value)),
            (NodeKind::Integer { bits }, Json::Number(number)) => self.read_integer(*bits, number),
            (NodeKind::Number, Json::Number(number)) => Some(integral(Value::Number(number))),
            (NodeKind::Quantity, Json::Text(text)) => self.read_quantity(&text),
            (NodeKind::Quantity, Json::Number(number)) => self.read_quantity(&number.to_string()),
            (NodeKind::Quantity, json) => self.read_quantity(&json.into_value("", &mut Vec::new()).to_string()),
            (NodeKind::IntOrString, Json::Text(text)) => Some(Value::String(text)),
            (NodeKind::IntOrString, Json::Number(number)) => self.read_plain_integer(number),
            (NodeKind::Time, Json::Text(text)) => self.accept(times::canonical(&text)),
            (NodeKind::MicroTime, Json::Text(text)) => self.accept(times::canonical_micro(&text)),
            (NodeKind::Object, json @ Json::Object(_)) | (NodeKind::Anything, json) => {
                Some(integral(json.into_value(path, &mut Vec::new())))
            }
            (NodeKind::Time | NodeKind::MicroTime | NodeKind::IntOrString | NodeKind::Object, json) => {
                let wanted = match &arena.node(node).kind {
                    NodeKind::IntOrString => "int32",
                    NodeKind::Object => "map[string]interface {}",
                    _ => "string",
                };
                self.misfit(format!("json: cannot unmarshal {} into Go value of type {wanted}", json.sort()))
            }
            (_, json) => {
                let problem = self.type_problem(node, json.sort());
                self.misfit(problem)
            }
        }
    }

    fn read_struct(
        &mut self,
        name: &'a str,
        fields: &'a std::collections::BTreeMap<String, Field>,
        entries: Vec<(String, Json)>,
        path: &str,
    ) -> Value {
        let mut object = Map::new();
        let mut seen = std::collections::BTreeSet::new();
        let outer = (self.owner, self.wanted);
        for (key, json) in entries {
            let path = child(path, &key);
            let Some(field) = fields.get(&key) else {
                self.findings.strict.push(format!("unknown field {}", quote(&path)));
                continue;
            };
            if !seen.insert(key.clone()) {
                self.findings.strict.push(format!("duplicate field {}", quote(&path)));
            }
            self.fields.push(key.clone());
            (self.owner, self.wanted) = (Some(name), field.type_name.as_deref());
            let value = self.read(field.node, json, &path);
            self.fields.pop();
            if let Some(value) = value {
                object.insert(key, value);
            }
        }
        (self.owner, self.wanted) = outer;
        Value::Object(object)
    }

    fn read_map(&mut self, item: usize, entries: Vec<(String, Json)>, path: &str) -> Value {
        let mut object = Map::new();
        for (key, json) in entries {
            let path = child(path, &key);
            if object.contains_key(&key) {
                self.findings.strict.push(format!("duplicate field {}", quote(&path)));
            }
            let value = self.read(item, json, &path).unwrap_or_else(|| self.zero(item));
            object.insert(key, value);
        }
        Value::Object(object)
    }

    fn read_integer(&mut self, bits: u32, number: serde_json::Number) -> Option<Value> {
        let fits = number.as_i64().is_some_and(|value| bits == 64 || i32::try_from(value).is_ok());
        if fits {
            return Some(Value::Number(number));
        }
        let problem = self.problem(&format!("number {number}"), &format!("int{bits}"));
        self.misfit(problem)
    }

    fn read_plain_integer(&mut self, number: serde_json::Number) -> Option<Value> {
        if number.as_i64().is_some_and(|value| i32::try_from(value).is_ok()) {
            return Some(Value::Number(number));
        }
        self.misfit(format!("json: cannot unmarshal number {number} into Go value of type int32"))
    }

    fn read_quantity(&mut self, text: &str) -> Option<Value> {
        self.accept(quantity::canonical(text.trim()).map_err(|error| error.to_string()))
    }

    fn accept(&mut self, outcome: Result<String, String>) -> Option<Value> {
        match outcome {
            Ok(text) => Some(Value::String(text)),
            Err(problem) => self.misfit(problem),
        }
    }

    fn keep(&mut self, problem: Option<String>, text: String) -> Option<Value> {
        match problem {
            None => Some(Value::String(text)),
            Some(problem) => self.misfit(problem),
        }
    }

    /// Notes the first misfit; the rest is read nevertheless, as unknown fields are reported too.
    fn misfit(&mut self, problem: String) -> Option<Value> {
        self.findings.misfit.get_or_insert(problem);
        None
    }

    fn type_problem(&self, node: usize, sort: &str) -> String {
        let wanted = match (&self.arena.node(node).kind, self.wanted) {
            (NodeKind::Text, Some(name)) => name.to_owned(),
            _ => self.go_type(node),
        };
        self.problem(sort, &wanted)
    }

    fn problem(&self, sort: &str, wanted: &str) -> String {
        match self.owner {
            Some(owner) => {
                let owner = owner.rsplit('.').next().unwrap_or_default();
                let fields = self.fields.join(".");
                format!("json: cannot unmarshal {sort} into Go struct field {owner}.{fields} of type {wanted}")
            }
            None => format!("json: cannot unmarshal {sort} into Go value of type {wanted}"),
        }
    }

    /// The name of the Go type of a node.
    fn go_type(&self, node: usize) -> String {
        let node = self.arena.node(node);
        match &node.kind {
            NodeKind::Struct(_) => {
                let mut parts = node.name.rsplit('.');
                let (name, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                format!("{version}.{name}")
            }
            NodeKind::Map(item) => format!("map[string]{}", self.go_type(*item)),
            NodeKind::List(item) => format!("[]{}", self.go_type(*item)),
            NodeKind::Text | NodeKind::Time | NodeKind::MicroTime => "string".to_owned(),
            NodeKind::Base64 => "[]uint8".to_owned(),
            NodeKind::Integer { bits } => format!("int{bits}"),
            NodeKind::Number => "float64".to_owned(),
            NodeKind::Boolean => "bool".to_owned(),
            NodeKind::IntOrString => "intstr.IntOrString".to_owned(),
            NodeKind::Quantity => "resource.Quantity".to_owned(),
            NodeKind::Object | NodeKind::Anything => "map[string]interface {}".to_owned(),
        }
    }

    /// What null means as an item of a list or map.
    fn zero(&self, node: usize) -> Value {
        match &self.arena.node(node).kind {
            NodeKind::Struct(_) | NodeKind::Map(_) | NodeKind::Object => Value::Object(Map::new()),
            NodeKind::List(_) => Value::Array(Vec::new()),
            NodeKind::Text | NodeKind::Base64 => Value::String(String::new()),
            NodeKind::Integer { .. } | NodeKind::Number | NodeKind::IntOrString => Value::from(0),
            NodeKind::Boolean => Value::Bool(false),
            NodeKind::Quantity => Value::String("0".to_owned()),
            NodeKind::Time | NodeKind::MicroTime | NodeKind::Anything => Value::Null,
        }
    }
}

/// The value with whole numbers written as such.
fn integral(mut value: Value) -> Value {
    make_integral(&mut value);
    value
}

/// What is wrong with a text as base64, in the words of the Go decoder.
fn base64_problem(text: &str) -> Option<String> {
    let bytes: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let padding = bytes.iter().rev().take_while(|byte| **byte == b'=').count().min(2);
    let body = &bytes[..bytes.len() - padding];
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let wrong = body.iter().position(|byte| !is_digit(byte));
    let at = wrong.or_else(|| (!bytes.len().is_multiple_of(4) || body.len() % 4 == 1).then_some(bytes.len()))?;
    Some(format!("illegal base64 data at input byte {at}"))
}
