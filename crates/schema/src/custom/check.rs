//! Whether a value is what its schema says, in the words of the API server.

use serde_json::Value;

use crate::custom::schema::{Additional, Bound, JsonType, ListType, Structural};
use crate::errors::{FieldError, FieldErrorKind};
use crate::path::Path;
use crate::times;

/// Reports everything in `new` that is not as the schema says.
///
/// What did not change since `old` was good once and is not judged again.
pub(crate) fn check(schema: &Structural, new: &Value, old: Option<&Value>, path: &Path, errors: &mut Vec<FieldError>) {
    if old == Some(new) {
        return;
    }
    check_type(schema, new, path, errors);
    if new.is_null() {
        check_allowed(schema, new, path, errors);
        return;
    }
    check_branches(schema, new, path, errors);
    match new {
        Value::String(text) => check_text(schema, text, path, errors),
        Value::Number(number) => check_number(schema, number, path, errors),
        Value::Array(items) => check_items(schema, items, old, path, errors),
        Value::Object(_) | Value::Null | Value::Bool(_) => {}
    }
    check_allowed(schema, new, path, errors);
    if let Value::Object(object) = new {
        check_object(schema, object, old, path, errors);
    }
}

/// The JSON type that a value has.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_type(schema: &Structural, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let found = type_of(value);
    if value.is_null() {
        if let (Some(wanted), false) = (schema.json_type, schema.nullable) {
            errors.push(wrong_type(path, wanted.name(), found));
        }
        return;
    }
    if schema.int_or_string {
        if !matches!(found, "integer" | "string") {
            errors.push(wrong_type(path, "integer,string", found));
        }
        return;
    }
    let Some(wanted) = schema.json_type else { return };
    let fits = match (wanted, value) {
        (JsonType::Number, Value::Number(_)) => true,
        (JsonType::Integer, Value::Number(number)) => number.as_f64().is_some_and(|value| value.fract() == 0.0),
        _ => wanted.name() == found,
    };
    if fits {
        return;
    }
    let format = &schema.bounds.format;
    let has_plain_form = matches!(value, Value::String(_) | Value::Array(_));
    errors.push(if format.is_empty() || has_plain_form {
        wrong_type(path, wanted.name(), found)
    } else {
        wrong_type(path, format, format_of(value))
    });
}

/// The format that a value has by itself.
fn format_of(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => "",
    }
}

fn wrong_type(path: &Path, wanted: &str, found: &str) -> FieldError {
    let detail = format!("{} in body must be of type {wanted}: {found:?}", path.repeated());
    FieldError::with(FieldErrorKind::TypeInvalid, path.shown(), Some(&found.into()), detail)
}

fn wrong(path: &Path, value: impl Into<Value>, problem: &str) -> FieldError {
    FieldError::invalid(path.shown(), value, format!("{} in body {problem}", path.repeated()))
}

fn check_allowed(schema: &Structural, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let allowed = &schema.bounds.allowed;
    if allowed.is_empty() || allowed.contains(value) {
        return;
    }
    let named: Vec<_> =
        allowed.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
    let named: Vec<_> = named.iter().map(String::as_str).collect();
    errors.push(FieldError::not_supported(path.shown(), value.clone(), &named));
}

fn check_text(schema: &Structural, text: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let bounds = &schema.bounds;
    let length = text.chars().count();
    if let Some(max) = bounds.max_length.filter(|max| length > *max) {
        errors.push(FieldError::too_long(path.shown(), max));
    } else if let Some(min) = bounds.min_length.filter(|min| length < *min) {
        errors.push(wrong(path, text, &format!("should be at least {min} chars long")));
    } else if let Some((pattern, regex)) = &bounds.pattern
        && !regex.is_match(text)
    {
        errors.push(wrong(path, text, &format!("should match '{pattern}'")));
    }
    if !has_format(&bounds.format, text) {
        let detail = format!("{} in body must be of type {}: {text:?}", path.repeated(), bounds.format);
        errors.push(FieldError::with(FieldErrorKind::TypeInvalid, path.shown(), Some(&text.into()), detail));
    }
}

/// Whether a text has a format; formats that are not checked are those that the API server ignores, or that none of
/// the definitions served here uses.
fn has_format(format: &str, text: &str) -> bool {
    match format {
        "date-time" => times::is_date_time(text),
        "date" => text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        _ => true,
    }
}

fn check_number(schema: &Structural, number: &serde_json::Number, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(value) = number.as_f64() else { return };
    let shown = || Value::Number(number.clone());
    let is_small = || number.as_i64().is_some_and(|value| i32::try_from(value).is_ok());
    let in_range = if schema.bounds.format == "int32" { is_small() } else { number.is_i64() };
    if schema.json_type == Some(JsonType::Integer) && !in_range {
        let format = match schema.bounds.format.as_str() {
            "" => "(default format)".to_owned(),
            format => format!("with format {format}"),
        };
        let detail = format!("Checked value must be of type integer {format} in {}", path.repeated());
        errors.push(FieldError::invalid("<nil>", "", detail));
    }
    if let Some(factor) = schema.bounds.multiple_of.filter(|factor| (value / factor).fract() != 0.0) {
        errors.push(wrong(path, shown(), &format!("should be a multiple of {factor}")));
    }
    if let Some(Bound { value: min, exclusive }) = &schema.bounds.minimum
        && (value < *min || (*exclusive && value <= *min))
    {
        let words = if *exclusive { "greater than" } else { "greater than or equal to" };
        errors.push(wrong(path, shown(), &format!("should be {words} {min}")));
    }
    if let Some(Bound { value: max, exclusive }) = &schema.bounds.maximum
        && (value > *max || (*exclusive && value >= *max))
    {
        let words = if *exclusive { "less than" } else { "less than or equal to" };
        errors.push(wrong(path, shown(), &format!("should be {words} {max}")));
    }
}

fn check_items(schema: &Structural, items: &[Value], old: Option<&Value>, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(item_schema) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let old_item = old_item(schema, item, old);
            check(item_schema, item, old_item, &path.index(index), errors);
        }
    }
    let size = items.len();
    if let Some(min) = schema.bounds.min_items.filter(|min| size < *min) {
        errors.push(wrong(path, size, &format!("should have at least {min} items")));
    }
    if let Some(max) = schema.bounds.max_items.filter(|max| size > *max) {
        errors.push(FieldError::too_many(path.shown(), size, max));
    }
    if schema.bounds.unique_items && (1..size).any(|index| items[..index].contains(&items[index])) {
        errors.push(wrong(path, "", "shouldn't contain duplicates"));
    }
}

/// The item of the old list that is the same one, if the list says how to tell.
pub(crate) fn old_item<'a>(schema: &Structural, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    let Some(ListType::Map(keys)) = &schema.list else { return None };
    let items = old?.as_array()?;
    let same = |other: &&Value| keys.iter().all(|key| other.get(key) == item.get(key));
    items.iter().find(same)
}

fn check_object(
    schema: &Structural,
    object: &serde_json::Map<String, Value>,
    old: Option<&Value>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let size = object.len();
    if let Some(min) = schema.bounds.min_properties.filter(|min| size < *min) {
        errors.push(wrong(path, size, &format!("should have at least {min} properties")));
    }
    if let Some(max) = schema.bounds.max_properties.filter(|max| size > *max) {
        errors.push(FieldError::too_many(path.shown(), size, max));
    }
    let old_field = |key: &str| old.and_then(|old| old.get(key));
    if let Some(Additional::Values(values)) = &schema.additional {
        for (key, value) in object.iter().filter(|(key, _)| !schema.properties.contains_key(*key)) {
            check(values, value, old_field(key), &path.field(key), errors);
        }
    }
    for (key, field) in &schema.properties {
        if let Some(value) = object.get(key) {
            check(field, value, old_field(key), &path.field(key), errors);
        }
    }
    for key in schema.bounds.required.iter().filter(|key| !object.contains_key(*key)) {
        errors.push(FieldError::required(path.field(key).shown(), ""));
    }
}

fn check_branches(schema: &Structural, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let bounds = &schema.bounds;
    let problems = |branch: &Structural| {
        let mut problems = Vec::new();
        check(branch, value, None, path, &mut problems);
        problems
    };
    let composite = |words: &str| FieldError::invalid("<nil>", "", format!("{:?} {words}", path.repeated()));
    if !bounds.any_of.is_empty() {
        let outcomes: Vec<_> = bounds.any_of.iter().map(problems).collect();
        if outcomes.iter().all(|problems| !problems.is_empty()) {
            errors.push(composite("must validate at least one schema (anyOf)"));
            errors.extend(outcomes.into_iter().next().unwrap_or_default());
        }
    }
    if !bounds.one_of.is_empty() {
        let outcomes: Vec<_> = bounds.one_of.iter().map(problems).collect();
        match outcomes.iter().filter(|problems| problems.is_empty()).count() {
            1 => {}
            0 => {
                errors.push(composite("must validate one and only one schema (oneOf). Found none valid"));
                errors.extend(outcomes.into_iter().next().unwrap_or_default());
            }
            valid => errors.push(composite(&format!(
                "must validate one and only one schema (oneOf). Found {valid} valid alternatives"
            ))),
        }
    }
    let outcomes: Vec<_> = bounds.all_of.iter().map(problems).collect();
    let valid = outcomes.iter().filter(|problems| problems.is_empty()).count();
    if valid != outcomes.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        errors.extend(outcomes.into_iter().flatten());
        errors.push(composite(&format!("must validate all the schemas (allOf){none}")));
    }
    if bounds.not.as_ref().is_some_and(|not| problems(not).is_empty()) {
        errors.push(composite("must not validate the schema (not)"));
    }
}
