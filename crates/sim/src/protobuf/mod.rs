//! Reading objects that clients send in protobuf, as clients written in Go do for built-in kinds.
//!
//! A message is turned into the JSON that the same client would have sent, and goes on from there. Numbers and names of
//! fields come from a table that `cargo xtask protobuf` writes. Answers are always JSON: every such client accepts it.

mod special;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use wire::{Field, Reader};

/// What every message begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The object in a body; `None` if it is not protobuf of a kind that is known.
pub(crate) fn to_json(body: &[u8]) -> Option<Value> {
    let envelope = Envelope::read(body.strip_prefix(MAGIC)?)?;
    let messages = Messages::known();
    let group = envelope.api_version.rsplit_once('/').map_or("core", |(group, _)| group);
    let group = group.split('.').next().unwrap_or(group);
    let version = envelope.api_version.rsplit('/').next()?;
    let own = format!("{group}.{version}.{}", envelope.kind);
    let common = format!("meta.v1.{}", envelope.kind);
    let name = if messages.0.contains_key(own.as_str()) { own } else { common };
    let mut object = messages.read(&name, &envelope.raw)?;
    let fields = object.as_object_mut()?;
    fields.insert("apiVersion".to_owned(), envelope.api_version.into());
    fields.insert("kind".to_owned(), envelope.kind.into());
    Some(object)
}

/// The outer message: what it is, and the message itself.
struct Envelope {
    api_version: String,
    kind: String,
    raw: Vec<u8>,
}

impl Envelope {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), Vec::new());
        for field in Reader::new(bytes) {
            match field? {
                Field { number: 1, value: wire::Value::Bytes(type_meta) } => {
                    for field in Reader::new(type_meta) {
                        match field? {
                            Field { number: 1, value: wire::Value::Bytes(text) } => api_version = utf8(text)?,
                            Field { number: 2, value: wire::Value::Bytes(text) } => kind = utf8(text)?,
                            _ => {}
                        }
                    }
                }
                Field { number: 2, value: wire::Value::Bytes(bytes) } => raw = bytes.to_vec(),
                _ => {}
            }
        }
        Some(Self { api_version, kind, raw })
    }
}

fn utf8(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// The messages of the table, by name.
struct Messages(BTreeMap<&'static str, BTreeMap<u32, Known>>);

/// A field that the table knows.
#[derive(Clone, Copy)]
struct Known {
    name: &'static str,
    shape: Shape,
    kind: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    List,
    Map,
    /// Its fields are those of the owner.
    Inline,
}

impl Messages {
    fn known() -> &'static Self {
        static KNOWN: OnceLock<Messages> = OnceLock::new();
        KNOWN.get_or_init(|| Self::parse(include_str!("messages.txt")))
    }

    fn parse(table: &'static str) -> Self {
        let lines = table.lines().filter(|line| !line.starts_with('#'));
        Self(
            lines
                .filter_map(|line| {
                    let mut words = line.split_whitespace();
                    Some((words.next()?, words.filter_map(parse_field).collect()))
                })
                .collect(),
        )
    }

    /// Reads one message.
    fn read(&self, message: &str, bytes: &[u8]) -> Option<Value> {
        if let Some(read) = special::reader(message) {
            return read(bytes);
        }
        let known = self.0.get(message)?;
        let mut object = Map::new();
        for field in Reader::new(bytes) {
            let Field { number, value } = field?;
            // A newer client may know more fields than we do; the JSON of such a client would be pruned as well.
            let Some(field) = known.get(&number) else { continue };
            match field.shape {
                Shape::One => put(&mut object, field.name, self.value(field.kind, value)?),
                Shape::List => {
                    let item = self.value(field.kind, value)?;
                    let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                    list.as_array_mut()?.push(item);
                }
                Shape::Map => {
                    let (key, item) = self.entry(field.kind, value)?;
                    let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
                    map.as_object_mut()?.insert(key, item);
                }
                Shape::Inline => {
                    let part = self.value(field.kind, value)?;
                    object.extend(part.as_object()?.clone());
                }
            }
        }
        Some(Value::Object(object))
    }

    fn value(&self, kind: &str, value: wire::Value<'_>) -> Option<Value> {
        match (kind, value) {
            ("bool", wire::Value::Number(number)) => Some((number != 0).into()),
            ("int32" | "int64", wire::Value::Number(number)) => Some(number.cast_signed().into()),
            ("string", wire::Value::Bytes(bytes)) => utf8(bytes).map(Value::from),
            ("bytes", wire::Value::Bytes(bytes)) => Some(special::base64(bytes).into()),
            (message, wire::Value::Bytes(bytes)) => self.read(message, bytes),
            _ => None,
        }
    }

    fn entry(&self, kind: &str, value: wire::Value<'_>) -> Option<(String, Value)> {
        let wire::Value::Bytes(bytes) = value else { return None };
        let (mut key, mut item) = (String::new(), None);
        for field in Reader::new(bytes) {
            match field? {
                Field { number: 1, value: wire::Value::Bytes(text) } => key = utf8(text)?,
                Field { number: 2, value } => item = Some(self.value(kind, value)?),
                _ => {}
            }
        }
        // An empty value may be left out.
        let item = item.or_else(|| self.value(kind, wire::Value::Bytes(&[])));
        Some((key, item?))
    }
}

/// A time that is not set is an empty message, and nothing in JSON.
fn put(object: &mut Map<String, Value>, name: &str, value: Value) {
    if !value.is_null() {
        object.insert(name.to_owned(), value);
    }
}

/// `3=binaryData:{}bytes`
fn parse_field(text: &'static str) -> Option<(u32, Known)> {
    let (number, rest) = text.split_once('=')?;
    let (name, kind) = rest.split_once(':')?;
    let shapes = [("[]", Shape::List), ("{}", Shape::Map), ("+", Shape::Inline)];
    let (shape, kind) = shapes
        .into_iter()
        .find_map(|(mark, shape)| Some((shape, kind.strip_prefix(mark)?)))
        .unwrap_or((Shape::One, kind));
    Some((number.parse().ok()?, Known { name, shape, kind }))
}
