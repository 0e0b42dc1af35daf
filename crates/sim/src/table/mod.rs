//! Tables: what `kubectl get` prints, made by the server as the real one makes it.
//!
//! A [`Printer`] knows the columns of one resource and the cells of one object. Objects come in as JSON and may lack
//! anything; a missing value prints as the real server prints it and never fails.

mod builtin;
mod custom;
mod duration;
mod json_path;
mod read;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// One column of a table, as `columnDefinitions` of a `meta.k8s.io/v1` Table lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Column {
    /// The header, before kubectl puts it in capitals.
    pub(crate) name: String,
    /// The OpenAPI type of the cells.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The OpenAPI format of the cells; `name` marks the column that identifies the object.
    pub(crate) format: String,
    /// What the column says, for people.
    pub(crate) description: String,
    /// 0 is always shown, greater numbers only in wide output.
    pub(crate) priority: i32,
}

/// One entry of `additionalPrinterColumns` of a CustomResourceDefinition version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CustomColumn {
    /// The header.
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) kind: String,
    /// The OpenAPI format, often empty.
    pub(crate) format: String,
    /// What the column says; empty takes a default.
    pub(crate) description: String,
    /// 0 is always shown.
    pub(crate) priority: i32,
    /// Where the value is, for example `.spec.nodeClassRef.name`.
    pub(crate) json_path: String,
}

/// Makes the table of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Printer(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Builtin(builtin::Builtin),
    Custom(Vec<custom::Compiled>),
}

impl Printer {
    /// The printer of a built-in resource, by API group (empty for core) and plural name. One that has no columns of
    /// its own gets `Name` and `Created At`.
    pub(crate) fn builtin(group: &str, resource: &str) -> Self {
        Self(Kind::Builtin(builtin::Builtin::find(group, resource)))
    }

    /// The printer of a custom resource. Without columns of its own it shows the age.
    pub(crate) fn custom(columns: &[CustomColumn]) -> Self {
        Self(Kind::Custom(custom::compile(columns)))
    }

    /// The columns, in order.
    pub(crate) fn columns(&self) -> Vec<Column> {
        match &self.0 {
            Kind::Builtin(builtin) => builtin.columns(),
            Kind::Custom(columns) => custom::columns(columns),
        }
    }

    /// The cells of one object, one for each column. Ages are counted up to `now`.
    pub(crate) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.0 {
            Kind::Builtin(builtin) => builtin.cells(object, now),
            Kind::Custom(columns) => custom::cells(columns, object, now),
        }
    }
}
