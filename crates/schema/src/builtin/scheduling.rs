//! Where pods may run: affinity, tolerations, spread.

use serde_json::Value;

use crate::builtin::common::{
    check_label_selector, check_label_values, check_operator_values, check_word, list, number, text,
};
use crate::errors::{FieldError, shown_fields};
use crate::metadata::push_invalid;
use crate::names;
use crate::path::Path;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The affinity of a pod.
pub(super) fn check_affinity(affinity: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let node_path = path.field("nodeAffinity");
    let node = &affinity["nodeAffinity"];
    if let Some(required) = node.get(REQUIRED) {
        check_node_selector(required, &node_path.field(REQUIRED), errors);
    }
    for (index, term) in list(node, PREFERRED).iter().enumerate() {
        let path = node_path.field(PREFERRED).index(index);
        check_weight(term, &path, errors);
        check_node_term(&term["preference"], false, &path.field("preference"), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let path = path.field(kind);
        for (index, term) in list(&affinity[kind], REQUIRED).iter().enumerate() {
            check_pod_term(term, &path.field(REQUIRED).index(index), errors);
        }
        for (index, term) in list(&affinity[kind], PREFERRED).iter().enumerate() {
            let path = path.field(PREFERRED).index(index);
            check_weight(term, &path, errors);
            check_pod_term(&term["podAffinityTerm"], &path.field("podAffinityTerm"), errors);
        }
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn check_weight(term: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let weight = number(term, "weight");
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(path.field("weight").shown(), weight, "must be in the range 1-100"));
    }
}

/// Terms of which one must fit a node.
pub(super) fn check_node_selector(selector: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let path = path.field("nodeSelectorTerms");
    let terms = list(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(FieldError::required(path.shown(), "must have at least one node selector term"));
    }
    for (index, term) in terms.iter().enumerate() {
        check_node_term(term, true, &path.index(index), errors);
    }
}

fn check_node_term(term: &Value, check_values: bool, path: &Path, errors: &mut Vec<FieldError>) {
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let path = path.field("matchExpressions").index(index);
        let (operator, values) = (text(requirement, "operator"), list(requirement, "values"));
        if matches!(operator, "Gt" | "Lt") {
            if values.len() != 1 {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(FieldError::required(path.field("values").shown(), detail));
            }
        } else {
            check_operator_values(operator, values.len(), &["In", "NotIn"], &path, errors);
        }
        let key = text(requirement, "key");
        push_invalid(&path.field("key"), key, names::qualified_name(key), errors);
        if check_values {
            check_label_values(values, &path.field("values"), errors);
        }
    }
    for (index, requirement) in list(term, "matchFields").iter().enumerate() {
        check_field_requirement(requirement, &path.field("matchFields").index(index), errors);
    }
}

fn check_field_requirement(requirement: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let (operator, values) = (text(requirement, "operator"), list(requirement, "values"));
    if !matches!(operator, "In" | "NotIn") {
        errors.push(FieldError::invalid(path.field("operator").shown(), operator, "not a valid selector operator"));
    } else if values.len() != 1 {
        let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.push(FieldError::required(path.field("values").shown(), detail));
    }
    if text(requirement, "key") != "metadata.name" {
        let detail = "not a valid field selector key";
        errors.push(FieldError::invalid(path.field("key").shown(), text(requirement, "key"), detail));
    }
}

fn check_pod_term(term: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for selector in ["labelSelector", "namespaceSelector"] {
        check_label_selector(&term[selector], &path.field(selector), errors);
    }
    for namespace in list(term, "namespaces").iter().filter_map(Value::as_str) {
        push_invalid(&path.field("namespace"), namespace, names::label(namespace), errors);
    }
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(path.field("topologyKey").shown(), "can not be empty"));
    }
    push_invalid(&path.field("topologyKey"), key, names::qualified_name(key), errors);
}

/// The tolerations of a pod.
pub(super) fn check_tolerations(tolerations: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    for (index, toleration) in tolerations.iter().enumerate() {
        check_toleration(toleration, &path.index(index), errors);
    }
}

fn check_toleration(toleration: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let field = |key: &str| text(toleration, key);
    let (key, operator, value) = (field("key"), field("operator"), field("value"));
    let operator_path = path.field("operator");
    if !key.is_empty() {
        push_invalid(&path.field("key"), key, names::qualified_name(key), errors);
    } else if operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(operator_path.shown(), operator, detail));
    }
    if toleration.get("tolerationSeconds").is_some() && field("effect") != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(path.field("effect").shown(), field("effect"), detail));
    }
    match operator {
        "Equal" | "" => {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                errors.push(FieldError::invalid(operator_path.shown(), value, problems.join(";")));
            }
        }
        "Exists" => {
            if !value.is_empty() {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(operator_path.shown(), value, detail));
            }
        }
        // Comparing operators are switched off by default, and named nevertheless.
        "Lt" | "Gt" => {
            let supported = ["Equal", "Exists", "Lt", "Gt"];
            errors.push(FieldError::not_supported(operator_path.shown(), operator, &supported));
        }
        _ => errors.push(FieldError::not_supported(operator_path.shown(), operator, &["Equal", "Exists"])),
    }
    check_word(toleration, "effect", &EFFECTS, false, path, errors);
}

/// The taints of a node.
pub(super) fn check_taints(taints: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        let field = |key: &str| text(taint, key);
        push_invalid(&path.field("key"), field("key"), names::qualified_name(field("key")), errors);
        let problems = names::label_value(field("value"));
        if !problems.is_empty() {
            errors.push(FieldError::invalid(path.field("value").shown(), field("value"), problems.join(";")));
        }
        check_word(taint, "effect", &EFFECTS, true, &path, errors);
        let same = |other: &Value| other["key"] == taint["key"] && other["effect"] == taint["effect"];
        if taints[..index].iter().any(same) {
            let mut error = FieldError::duplicate(path.shown(), Value::Null);
            error.value = Some(shown_fields(&[
                ("Key", field("key").into()),
                ("Value", field("value").into()),
                ("Effect", field("effect").into()),
                ("TimeAdded", taint["timeAdded"].clone()),
            ]));
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
    }
}

/// How pods spread over places.
pub(super) fn check_spread(constraints: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        let skew = number(constraint, "maxSkew");
        if skew <= 0 {
            errors.push(FieldError::invalid(path.field("maxSkew").shown(), skew, "must be greater than zero"));
        }
        let key = text(constraint, "topologyKey");
        if key.is_empty() {
            errors.push(FieldError::required(path.field("topologyKey").shown(), "can not be empty"));
        }
        check_word(constraint, "whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"], true, &path, errors);
        let action = text(constraint, "whenUnsatisfiable");
        let same = |other: &Value| text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action;
        if constraints[index + 1..].iter().any(same) {
            let field = path.field("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(field.shown(), format!("{{{key}, {action}}}")));
        }
        check_min_domains(constraint, &path, errors);
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            check_word(constraint, policy, &["Ignore", "Honor"], false, &path, errors);
        }
        check_label_selector(&constraint["labelSelector"], &path.field("labelSelector"), errors);
    }
}

fn check_min_domains(constraint: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(count) = constraint["minDomains"].as_i64() else { return };
    let path = path.field("minDomains");
    if count <= 0 {
        errors.push(FieldError::invalid(path.shown(), count, "must be greater than zero"));
    }
    if text(constraint, "whenUnsatisfiable") != "DoNotSchedule" {
        let action = text(constraint, "whenUnsatisfiable");
        let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(FieldError::invalid(path.shown(), count, detail));
    }
}
