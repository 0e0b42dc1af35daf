//! The CEL rules of a definition.
//!
//! Each place with rules is compiled on its own and judged on its own, so that complaints come in a fixed order and
//! items of lists meet their own former selves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube_cel::{CompiledSchema, ErrorKind, compile_schema};
use serde_json::Value;

use crate::custom::check::old_item;
use crate::custom::schema::{Additional, JsonType, Structural};
use crate::errors::{FieldError, FieldErrorKind};
use crate::path::Path;

const RULES: &str = "x-kubernetes-validations";

/// The rules of one place.
#[derive(Debug)]
pub(crate) struct NodeRules {
    compiled: Arc<CompiledSchema>,
    rules: Vec<RuleFacts>,
}

#[derive(Debug)]
struct RuleFacts {
    text: String,
    /// Whether it compares with the former value.
    is_transition: bool,
    /// The rule as it is named in messages about its failure.
    name: String,
}

impl NodeRules {
    /// Compiles the rules of a schema, if it has any.
    pub(crate) fn read(schema: &Value, path: &str, problems: &mut Vec<(String, String)>) -> Option<Self> {
        let written = schema.get(RULES)?.as_array().filter(|rules| !rules.is_empty())?;
        let mut single = schema.clone();
        remove_rules(&mut single);
        single[RULES] = Value::Array(written.clone());
        let compiled = compiled(&single);
        let mut rules = Vec::new();
        for (index, (rule, outcome)) in written.iter().zip(&compiled.validations).enumerate() {
            if let Err(error) = outcome {
                problems.push((format!("{path}.{RULES}[{index}].rule"), format!("compilation failed: {error}")));
            }
            let text = |key: &str| rule[key].as_str().map(str::to_owned);
            let name = text("message").or_else(|| text("rule")).unwrap_or_default().trim().to_owned();
            let is_transition = outcome.as_ref().is_ok_and(|rule| rule.is_transition_rule);
            rules.push(RuleFacts { text: text("rule").unwrap_or_default(), is_transition, name });
        }
        Some(Self { compiled, rules })
    }

    /// Whether any rule compares with the former value.
    pub(crate) fn has_transitions(&self) -> bool {
        self.rules.iter().any(|rule| rule.is_transition)
    }
}

/// Compiled schemas that are kept: many more than the definitions of one cluster have.
const COMPILED_MAX: usize = 4096;

/// A schema compiled once per process. The parser of rules never gives its memory back, and a simulation defines the
/// same kinds thousands of times.
fn compiled(schema: &Value) -> Arc<CompiledSchema> {
    static COMPILED: Mutex<BTreeMap<String, Arc<CompiledSchema>>> = Mutex::new(BTreeMap::new());
    let text = schema.to_string();
    if let Some(known) = COMPILED.lock().unwrap_or_else(PoisonError::into_inner).get(&text) {
        return Arc::clone(known);
    }
    let compiled = Arc::new(compile_schema(schema));
    let mut kept = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() < COMPILED_MAX {
        kept.insert(text, Arc::clone(&compiled));
    }
    compiled
}

/// Removes the rules of a schema and of everything in it.
fn remove_rules(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove(RULES);
            fields.values_mut().for_each(remove_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_rules),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether there is any rule, here or below.
pub(crate) fn has_rules(schema: &Structural) -> bool {
    let values = match &schema.additional {
        Some(Additional::Values(values)) => Some(&**values),
        _ => None,
    };
    schema.rules.is_some()
        || schema.properties.values().any(has_rules)
        || values.is_some_and(has_rules)
        || schema.items.as_deref().is_some_and(has_rules)
}

/// Reports every rule that `new` breaks.
pub(crate) fn check_rules(
    schema: &Structural,
    new: &Value,
    old: Option<&Value>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    // Rules are about values; a null that is allowed has none. What did not change may go on breaking a rule that
    // came later, unless the rule is about changes.
    let unchanged = old == Some(new);
    if new.is_null() || (unchanged && !schema.has_transitions) {
        return;
    }
    if let Some(rules) = schema.rules.as_ref().filter(|rules| !unchanged || rules.has_transitions()) {
        check_node(rules, schema, new, old, path, errors);
    }
    match new {
        Value::Object(object) => {
            for (key, value) in object {
                let old = old.and_then(|old| old.get(key));
                if let Some(field) = schema.properties.get(key) {
                    check_rules(field, value, old, &path.field(key), errors);
                } else if let Some(Additional::Values(values)) = &schema.additional {
                    check_rules(values, value, old, &path.key(key), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check_rules(item_schema, item, old_item(schema, item, old), &path.index(index), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_node(
    rules: &NodeRules,
    schema: &Structural,
    new: &Value,
    old: Option<&Value>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let Err(broken) = kube_cel::validate_compiled(&rules.compiled, new, old) else { return };
    for problem in broken {
        let rule = rules.rules.iter().find(|rule| rule.text == problem.rule);
        if old == Some(new) && !rule.is_some_and(|rule| rule.is_transition) {
            continue;
        }
        let field = if problem.field_path.is_empty() {
            path.clone()
        } else {
            path.field(problem.field_path.trim_start_matches('.'))
        };
        errors.push(match problem.kind {
            ErrorKind::ValidationFailure => {
                let value = match schema.json_type {
                    Some(JsonType::Object | JsonType::Array) => None,
                    _ => Some(new),
                };
                let kind = reason_kind(problem.reason.as_deref());
                let detail = if kind == FieldErrorKind::Duplicate { "" } else { problem.message.trim() };
                FieldError::with(kind, field.shown(), value, detail)
            }
            _ => {
                let json_type = schema.json_type.map_or("", JsonType::name);
                let name = rule.map(|rule| rule.name.as_str()).unwrap_or_default();
                let detail = format!("{} evaluating rule: {name}", problem.message);
                FieldError::invalid(path.shown(), json_type, detail)
            }
        });
    }
}

fn reason_kind(reason: Option<&str>) -> FieldErrorKind {
    match reason {
        Some("FieldValueForbidden") => FieldErrorKind::Forbidden,
        Some("FieldValueRequired") => FieldErrorKind::Required,
        Some("FieldValueDuplicate") => FieldErrorKind::Duplicate,
        _ => FieldErrorKind::Invalid,
    }
}
