//! Tables of custom resources: the name, then the columns that the definition names by JSONPath.

use jiff::Timestamp;
use serde_json::Value;

use super::json_path::Path;
use super::{Column, CustomColumn, builtin, duration};

/// A column with its path read. A path that cannot be read gives empty cells.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    column: Column,
    path: Option<Path>,
}

pub(super) fn compile(columns: &[CustomColumn]) -> Vec<Compiled> {
    if columns.is_empty() {
        let path = ".metadata.creationTimestamp";
        let column = Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: builtin::describe("Age").to_owned(),
            priority: 0,
        };
        return vec![Compiled { column, path: Path::parse(path) }];
    }
    columns.iter().map(compile_one).collect()
}

fn compile_one(column: &CustomColumn) -> Compiled {
    let CustomColumn { name, kind, format, description, priority, json_path } = column;
    let description = if description.is_empty() {
        format!("Custom resource definition column (in JSONPath format): {json_path}")
    } else {
        description.clone()
    };
    Compiled {
        column: Column {
            name: name.clone(),
            kind: kind.clone(),
            format: format.clone(),
            description,
            priority: *priority,
        },
        path: Path::parse(json_path),
    }
}

pub(super) fn columns(columns: &[Compiled]) -> Vec<Column> {
    std::iter::once(builtin::name_column()).chain(columns.iter().map(|compiled| compiled.column.clone())).collect()
}

pub(super) fn cells(columns: &[Compiled], object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
    let others = columns.iter().map(|compiled| {
        let found = compiled.path.as_ref().map(|path| path.find(object)).unwrap_or_default();
        // A path may lead to several values; the server shows the first.
        found.first().map_or(Value::Null, |value| cell(&compiled.column.kind, value, now))
    });
    std::iter::once(name).chain(others).collect()
}

fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", Value::String(_)) => value.clone(),
        ("string", Value::Null) => Value::from("<no value>"),
        ("string", other) => Value::from(other.to_string()),
        ("integer", Value::Number(number)) => number.as_i64().map_or_else(
            // A number with a fraction is cut off.
            || number.as_f64().map_or(Value::Null, |number| Value::from(number.trunc() as i64)),
            Value::from,
        ),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) if text.is_empty() || text == "null" => Value::from("<unknown>"),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(time) => Value::from(duration::between(time, now)),
            Err(_) => Value::from("<invalid>"),
        },
        _ => Value::Null,
    }
}
