//! Amounts of resources.

use serde_json::Value;

use crate::builtin::common::entries;
use crate::errors::FieldError;
use crate::metadata::push_invalid;
use crate::names;
use crate::path::Path;
use crate::quantity::{self, Amount};

/// Resources of containers without a domain in their name.
const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Resources without a domain in their name that exist elsewhere.
const OTHER_RESOURCES: [&str; 16] = [
    "storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

/// What containers ask for and are limited to.
pub(super) fn check_requirements(resources: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let (limits_path, requests_path) = (path.field("limits"), path.field("requests"));
    for (name, amount) in entries(resources, "limits") {
        check_entry(name, amount, &limits_path.key(name), errors);
    }
    for (name, amount) in entries(resources, "requests") {
        check_entry(name, amount, &requests_path.key(name), errors);
        check_against_limit(name, amount, resources, path, errors);
    }
    let names = || entries(resources, "limits").chain(entries(resources, "requests")).map(|(name, _)| name.as_str());
    if names().any(is_huge_page) && !names().any(|name| matches!(name, "cpu" | "memory")) {
        errors.push(FieldError::forbidden(path.shown(), "HugePages require cpu or memory"));
    }
}

fn check_against_limit(name: &str, request: &Value, resources: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let (Some(request_text), requests_path) = (request.as_str(), path.field("requests")) else { return };
    let limit = resources["limits"].get(name).and_then(Value::as_str);
    let can_share = is_native(name) && !is_huge_page(name);
    match limit {
        Some(limit) => {
            let (wanted, allowed) = (parse(request_text), parse(limit));
            if wanted != allowed && !can_share {
                let detail = format!("must be equal to {name} limit of {limit}");
                errors.push(FieldError::invalid(requests_path.shown(), request_text, detail));
            } else if wanted > allowed {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                errors.push(FieldError::invalid(requests_path.shown(), request_text, detail));
            }
        }
        None if !can_share => {
            let detail = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(path.field("limits").shown(), detail));
        }
        None => {}
    }
}

fn check_entry(name: &str, amount: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    check_name(name, path, errors);
    check_amount(name, amount, path, errors);
}

fn check_name(name: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let problems = names::qualified_name(name);
    if !problems.is_empty() {
        push_invalid(path, name, problems, errors);
        return;
    }
    let known = CONTAINER_RESOURCES.contains(&name) || is_huge_page(name);
    if !name.contains('/') {
        if !known && !OTHER_RESOURCES.contains(&name) {
            let detail = "must be a standard resource type or fully qualified";
            errors.push(FieldError::invalid(path.shown(), name, detail));
        }
        if !known {
            errors.push(FieldError::invalid(path.shown(), name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && name.starts_with("requests.") {
        errors.push(FieldError::invalid(path.shown(), name, "doesn't follow extended resource name standard"));
    }
}

/// An amount that is not negative, and whole for what cannot be split.
pub(super) fn check_amount(name: &str, amount: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(text) = amount.as_str() else { return };
    let value = parse(text);
    if value < Amount::ZERO {
        errors.push(FieldError::invalid(path.shown(), text, "must be greater than or equal to 0"));
    }
    if !is_native(name) && !value.is_whole() {
        errors.push(FieldError::invalid(path.shown(), text, "must be an integer"));
    }
}

fn parse(text: &str) -> Amount {
    quantity::parse(text).unwrap_or(Amount::ZERO)
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}
