//! Requests as the generator writes them: the same for both servers, but for what only a server can know.

use std::fmt;

use serde_json::Value;

use crate::memory::Memory;

/// One request. Texts that begin with `@` name something that the server said before; see [`Memory::resolve`].
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) accept: &'static str,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) body: Body,
}

/// What a request carries.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Nothing,
    /// As it is, not even JSON.
    Text(&'static str),
    Json(Value),
    /// The object last seen at a path, or another one if none was seen, laid over with a merge patch.
    Seen {
        path: String,
        otherwise: Value,
        change: Value,
    },
}

/// A request with every name filled in for one server.
#[derive(Clone, Debug)]
pub(crate) struct Concrete {
    pub(crate) method: &'static str,
    pub(crate) uri: String,
    pub(crate) accept: &'static str,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            accept: "application/json",
            content_type: None,
            body: Body::Nothing,
        }
    }

    pub(crate) fn json(mut self, body: Value) -> Self {
        self.body = Body::Json(body);
        self.content_type = Some("application/json");
        self
    }

    pub(crate) fn body(mut self, content_type: &'static str, body: Body) -> Self {
        self.body = body;
        self.content_type = Some(content_type);
        self
    }

    pub(crate) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    /// Whether the answer may be older than the last write.
    pub(crate) fn takes_old_news(&self) -> bool {
        self.query.iter().any(|(name, value)| *name == "resourceVersion" && value == "0")
    }

    /// Fills in what one server said before.
    pub(crate) fn for_server(&self, memory: &Memory) -> Concrete {
        let query: Vec<String> = self
            .query
            .iter()
            .map(|(name, value)| format!("{name}={}", percent_encoded(&memory.resolve(value))))
            .collect();
        let separator = if query.is_empty() { "" } else { "?" };
        let body = match &self.body {
            Body::Nothing => Vec::new(),
            Body::Text(text) => text.as_bytes().to_vec(),
            Body::Json(value) => filled(value, memory).to_string().into_bytes(),
            Body::Seen { path, otherwise, change } => {
                let mut object = memory.object(path).unwrap_or(otherwise).clone();
                lay_over(&mut object, &filled(change, memory));
                object.to_string().into_bytes()
            }
        };
        Concrete {
            method: self.method,
            uri: format!("{}{separator}{}", self.path, query.join("&")),
            accept: self.accept,
            content_type: self.content_type,
            body,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.method, self.path)?;
        for (index, (name, value)) in self.query.iter().enumerate() {
            write!(out, "{}{name}={value}", if index == 0 { "?" } else { "&" })?;
        }
        if self.accept != "application/json" {
            write!(out, "\n    accept: {}", self.accept)?;
        }
        if let Some(content_type) = self.content_type {
            write!(out, "\n    content-type: {content_type}")?;
        }
        match &self.body {
            Body::Nothing => Ok(()),
            Body::Text(text) => write!(out, "\n    {text}"),
            Body::Json(value) => write!(out, "\n    {value}"),
            Body::Seen { path, otherwise, change } => {
                write!(out, "\n    what was last seen at {path}, or else {otherwise}, with {change}")
            }
        }
    }
}

fn filled(value: &Value, memory: &Memory) -> Value {
    match value {
        Value::String(text) if text.starts_with('@') => Value::String(memory.resolve(text)),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), filled(value, memory)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|item| filled(item, memory)).collect::<Vec<_>>().into(),
        plain => plain.clone(),
    }
}

/// A merge patch in a few lines: this test must not use what it tests.
pub(crate) fn lay_over(target: &mut Value, change: &Value) {
    let Value::Object(changes) = change else {
        *target = change.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    for (name, value) in changes {
        match target.as_object_mut() {
            Some(fields) if value.is_null() => drop(fields.remove(name)),
            Some(fields) => lay_over(fields.entry(name.clone()).or_insert(Value::Null), value),
            None => {}
        }
    }
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}
