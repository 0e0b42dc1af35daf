//! JSON Patch, with the habits of the library that the API server uses: `replace` may set a field that is not there,
//! an index may count from the end (`-1`), and a copied or added value that is missing is `null`.

use serde_json::{Map, Value};

use super::error::{PatchError, json_type};

/// An operation does not fit the object.
struct DoesNotApply;

pub(super) fn apply(original: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = decode(patch)?;
    let mut document = original.clone();
    let applied = operations.iter().try_for_each(|operation| run(&mut document, operation));
    applied.map(|()| document).map_err(|DoesNotApply| PatchError::OperationFailed)
}

/// Checks the types of what the decoder knows, and leaves the rest to [`run`].
fn decode(patch: &Value) -> Result<&[Value], PatchError> {
    let wrong = |found: &Value, wanted: String| PatchError::WrongType {
        prefix: "error decoding patch: ",
        found: json_type(found),
        wanted,
    };
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(wrong(other, "value of type []handlers.jsonPatchOp".to_owned())),
    };
    for operation in operations {
        match operation {
            Value::Object(members) => {
                for name in ["op", "path", "from"] {
                    match members.get(name) {
                        None | Some(Value::String(_) | Value::Null) => {}
                        Some(other) => {
                            return Err(wrong(other, format!("struct field jsonPatchOp.{name} of type string")));
                        }
                    }
                }
            }
            Value::Null => {}
            other => return Err(wrong(other, "value of type handlers.jsonPatchOp".to_owned())),
        }
    }
    Ok(operations)
}

fn run(document: &mut Value, operation: &Value) -> Result<(), DoesNotApply> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let path = || text("path").ok_or(DoesNotApply);
    let from = || text("from").ok_or(DoesNotApply);
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match text("op") {
        Some("add") => add(document, path()?, value()),
        Some("remove") => remove(document, path()?).map(drop),
        Some("replace") => replace(document, path()?, value()),
        Some("move") => {
            let moved = remove(document, from()?)?;
            add(document, path()?, moved)
        }
        Some("copy") => {
            let copied = get(document, from()?)?.cloned().unwrap_or(Value::Null);
            add(document, path()?, copied)
        }
        Some("test") => test(document, path()?, &value()),
        _ => Err(DoesNotApply),
    }
}

/// The place that a path ends in: a field of an object, or an index of a list.
enum Place<'a> {
    Field(&'a mut Map<String, Value>, String),
    Item(&'a mut Vec<Value>, String),
}

fn place<'a>(document: &'a mut Value, path: &str) -> Result<Place<'a>, DoesNotApply> {
    let (parents, last) = split(path).ok_or(DoesNotApply)?;
    let mut current = document;
    for parent in parents {
        current = match current {
            Value::Object(fields) => fields.get_mut(&parent).ok_or(DoesNotApply)?,
            Value::Array(items) => {
                let index = existing(&parent, items.len())?;
                items.get_mut(index).ok_or(DoesNotApply)?
            }
            _ => return Err(DoesNotApply),
        };
    }
    match current {
        Value::Object(fields) => Ok(Place::Field(fields, last)),
        Value::Array(items) => Ok(Place::Item(items, last)),
        _ => Err(DoesNotApply),
    }
}

/// The unescaped parts of a JSON pointer: those on the way, and the last.
fn split(path: &str) -> Option<(Vec<String>, String)> {
    let mut parts: Vec<String> =
        path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let last = parts.pop()?;
    Some((parts, last))
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), DoesNotApply> {
    match place(document, path)? {
        Place::Field(fields, name) => {
            fields.insert(name, value);
        }
        Place::Item(items, key) if key == "-" => items.push(value),
        Place::Item(items, key) => {
            let index = existing(&key, items.len() + 1)?;
            items.insert(index, value);
        }
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, DoesNotApply> {
    match place(document, path)? {
        Place::Field(fields, name) => fields.remove(&name).ok_or(DoesNotApply),
        Place::Item(items, key) => {
            let index = existing(&key, items.len())?;
            Ok(items.remove(index))
        }
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), DoesNotApply> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(DoesNotApply);
        }
        *document = value;
        return Ok(());
    }
    match place(document, path)? {
        Place::Field(fields, name) => {
            fields.insert(name, value);
        }
        Place::Item(items, key) => {
            let index = existing(&key, items.len())?;
            items[index] = value;
        }
    }
    Ok(())
}

fn get<'a>(document: &'a mut Value, path: &str) -> Result<Option<&'a Value>, DoesNotApply> {
    match place(document, path)? {
        Place::Field(fields, name) => Ok(fields.get(&name)),
        Place::Item(items, key) => {
            let index = existing(&key, items.len())?;
            Ok(items.get(index))
        }
    }
}

fn test(document: &mut Value, path: &str, wanted: &Value) -> Result<(), DoesNotApply> {
    let equal =
        if path.is_empty() { document == wanted } else { get(document, path)?.unwrap_or(&Value::Null) == wanted };
    if equal { Ok(()) } else { Err(DoesNotApply) }
}

/// An index below `length`; a negative one counts from the end.
fn existing(key: &str, length: usize) -> Result<usize, DoesNotApply> {
    let number: i64 = key.parse().map_err(|_| DoesNotApply)?;
    let length = i64::try_from(length).map_err(|_| DoesNotApply)?;
    let index = if number < 0 { number + length } else { number };
    if index < 0 || index >= length { Err(DoesNotApply) } else { usize::try_from(index).map_err(|_| DoesNotApply) }
}
