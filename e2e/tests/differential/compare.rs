//! Comparing what two servers say, place by place.

use std::fmt;

use serde_json::Value;

use crate::accepted::is_accepted;
use crate::normal::Normaliser;
use crate::request::Request;
use crate::servers::Reply;

/// One place in which the answers differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// A JSON pointer into the body, or `code`, `content-type`, `warnings`.
    pub(crate) place: String,
    pub(crate) embedded: Value,
    pub(crate) real: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}\n      embedded: {}\n      real:     {}", self.place, self.embedded, self.real)
    }
}

/// Where the replies to one request differ beyond what is accepted.
pub(crate) fn compare(normaliser: &Normaliser, request: &Request, embedded: &Reply, real: &Reply) -> Vec<Difference> {
    let mut found = Vec::new();
    differ("code", &embedded.code.into(), &real.code.into(), &mut found);
    differ("content-type", &embedded.content_type.clone().into(), &real.content_type.clone().into(), &mut found);
    let warnings = |reply: &Reply| Value::from(reply.warnings.clone());
    differ("warnings", &warnings(embedded), &warnings(real), &mut found);
    differ("", &normaliser.normal(&embedded.body), &normaliser.normal(&real.body), &mut found);
    found.retain(|difference| !is_accepted(&request.to_string(), difference));
    found
}

/// Where two sequences of watch events differ beyond what is accepted.
pub(crate) fn compare_events(
    normaliser: &Normaliser,
    watch: &str,
    embedded: &[Value],
    real: &[Value],
) -> Vec<Difference> {
    let mut found = Vec::new();
    let normal = |events: &[Value]| events.iter().map(|event| normaliser.normal(event)).collect::<Vec<_>>();
    differ("", &normal(embedded).into(), &normal(real).into(), &mut found);
    found.retain(|difference| !is_accepted(watch, difference));
    found
}

fn differ(place: &str, embedded: &Value, real: &Value, found: &mut Vec<Difference>) {
    match (embedded, real) {
        (Value::Object(left), Value::Object(right)) => {
            let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
                differ(&place, &member(left, name), &member(right, name), found);
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            for index in 0..left.len().max(right.len()) {
                let item = |items: &[Value]| items.get(index).cloned().unwrap_or_else(absent);
                differ(&format!("{place}/{index}"), &item(left), &item(right), found);
            }
        }
        (left, right) if left == right => {}
        (left, right) => {
            found.push(Difference { place: place.to_owned(), embedded: left.clone(), real: right.clone() });
        }
    }
}

fn member(fields: &serde_json::Map<String, Value>, name: &str) -> Value {
    fields.get(name).cloned().unwrap_or_else(absent)
}

fn absent() -> Value {
    "<absent>".into()
}
