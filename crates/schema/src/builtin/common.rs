//! Checks that several kinds share.

use serde_json::{Map, Value};

use crate::errors::{FieldError, shown_fields};
use crate::metadata::{check_labels, push_invalid};
use crate::names;
use crate::path::Path;

/// The text of a field; empty if it is absent.
pub(super) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

/// The items of a list; none if it is absent.
pub(super) fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The entries of a map; none if it is absent.
pub(super) fn entries<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object[key].as_object().map(Map::iter).into_iter().flatten()
}

/// The number of a field; zero if it is absent.
pub(super) fn number(object: &Value, key: &str) -> i64 {
    object[key].as_i64().unwrap_or_default()
}

/// A number that may not be below zero.
pub(super) fn check_not_negative(object: &Value, key: &str, path: &Path, errors: &mut Vec<FieldError>) {
    if number(object, key) < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path.field(key).shown(), number(object, key), detail));
    }
}

/// One of some words; required, or only checked if it is there.
pub(super) fn check_word(
    object: &Value,
    key: &str,
    supported: &[&str],
    required: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    match text(object, key) {
        "" if required => errors.push(FieldError::required(path.field(key).shown(), "")),
        "" => {}
        word if supported.contains(&word) => {}
        word => errors.push(FieldError::not_supported(path.field(key).shown(), word, supported)),
    }
}

/// A field that stays as it is.
pub(super) fn check_immutable(new: &Value, old: &Value, key: &str, path: &Path, errors: &mut Vec<FieldError>) {
    if new.get(key) == old.get(key) {
        return;
    }
    let error = |value: Value| FieldError::invalid(path.field(key).shown(), value, "field is immutable");
    errors.push(if key == "selector" && new[key].is_object() {
        FieldError::invalid_as(path.field(key).shown(), shown_selector(&new[key]), "field is immutable")
    } else {
        error(new[key].clone())
    });
}

/// A label selector as the API server shows it.
fn shown_selector(selector: &Value) -> String {
    let keys = ["matchLabels", "matchExpressions"].into_iter();
    let fields: Vec<_> = keys.filter_map(|key| Some((key, selector.get(key)?.clone()))).collect();
    shown_fields(&fields)
}

/// A label selector as objects hold it.
pub(super) fn check_label_selector(selector: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    check_labels(&selector["matchLabels"], &path.field("matchLabels"), errors);
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = path.field("matchExpressions").index(index);
        let values = list(expression, "values");
        check_operator_values(text(expression, "operator"), values.len(), &["In", "NotIn"], &path, errors);
        push_invalid(
            &path.field("key"),
            text(expression, "key"),
            names::qualified_name(text(expression, "key")),
            errors,
        );
        check_label_values(values, &path.field("values"), errors);
    }
}

/// Whether an operator has as many values as it takes; the operators of node selectors that compare are told by
/// their absence from `counted`.
pub(super) fn check_operator_values(
    operator: &str,
    values: usize,
    counted: &[&str],
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let values_path = path.field("values");
    match operator {
        _ if counted.contains(&operator) => {
            if values == 0 {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(values_path.shown(), detail));
            }
        }
        "Exists" | "DoesNotExist" => {
            if values > 0 {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(values_path.shown(), detail));
            }
        }
        _ => {
            errors.push(FieldError::invalid(path.field("operator").shown(), operator, "not a valid selector operator"));
        }
    }
}

/// Values that are compared with those of labels.
pub(super) fn check_label_values(values: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        push_invalid(&path.index(index), value, names::label_value(value), errors);
    }
}

/// Whether a selector asks for anything.
pub(super) fn is_empty_selector(selector: &Value) -> bool {
    entries(selector, "matchLabels").next().is_none() && list(selector, "matchExpressions").is_empty()
}

/// Whether labels are what a selector asks for.
pub(super) fn selector_matches(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let equal = entries(selector, "matchLabels").all(|(key, value)| label(key) == value.as_str());
    equal
        && list(selector, "matchExpressions").iter().all(|expression| {
            let found = label(text(expression, "key"));
            let listed = || list(expression, "values").iter().any(|value| value.as_str() == found);
            match text(expression, "operator") {
                "In" => found.is_some() && listed(),
                "NotIn" => found.is_none() || !listed(),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

/// A count or a percentage.
pub(super) fn check_int_or_percent(object: &Value, key: &str, path: &Path, errors: &mut Vec<FieldError>) {
    match &object[key] {
        Value::String(percent) => push_invalid(&path.field(key), percent, names::percent(percent), errors),
        Value::Number(_) => check_not_negative(object, key, path, errors),
        _ => {}
    }
}

/// A percentage of all at most.
pub(super) fn check_at_most_all(object: &Value, key: &str, path: &Path, errors: &mut Vec<FieldError>) {
    if let Value::String(percent) = &object[key]
        && names::percent(percent).is_empty()
        && int_or_percent(&object[key]) > 100
    {
        errors.push(FieldError::invalid(path.field(key).shown(), percent.as_str(), "must not be greater than 100%"));
    }
}

/// The number of a count or percentage.
pub(super) fn int_or_percent(value: &Value) -> i64 {
    match value {
        Value::String(percent) => percent.trim_end_matches('%').parse().unwrap_or_default(),
        other => other.as_i64().unwrap_or_default(),
    }
}
