//! The containers of a pod.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::builtin::common::{check_not_negative, check_word, list, number, text};
use crate::builtin::resources;
use crate::errors::FieldError;
use crate::metadata::push_invalid;
use crate::names;
use crate::path::Path;

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Checks the containers of a pod whose volumes have these names.
pub(super) fn check_containers(
    containers: &[Value],
    volumes: &BTreeSet<&str>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    if containers.is_empty() {
        errors.push(FieldError::required(path.shown(), ""));
    }
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        check_container(container, volumes, &path, errors);
        if containers[..index].iter().any(|other| other["name"] == container["name"]) {
            errors.push(FieldError::duplicate(path.field("name").shown(), text(container, "name")));
        }
        check_probes(container, &path, errors);
    }
    check_host_ports(containers, path, errors);
}

/// Checks containers that run before the others.
pub(super) fn check_init_containers(
    containers: &[Value],
    regular: &[Value],
    volumes: &BTreeSet<&str>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    for (index, container) in containers.iter().enumerate() {
        let item = path.index(index);
        check_container(container, volumes, &item, errors);
        let goes_on = text(container, "restartPolicy") == "Always";
        let mut others = regular.iter().chain(&containers[..index]);
        if others.any(|other| other["name"] == container["name"]) {
            errors.push(FieldError::duplicate(item.field("name").shown(), text(container, "name")));
        }
        check_host_ports(std::slice::from_ref(container), path, errors);
        if goes_on {
            check_probes(container, &item, errors);
            continue;
        }
        for key in ["lifecycle"].into_iter().chain(PROBES).filter(|key| container.get(key).is_some()) {
            let detail = "may not be set for init containers without restartPolicy=Always";
            errors.push(FieldError::forbidden(item.field(key).shown(), detail));
        }
    }
}

fn check_container(container: &Value, volumes: &BTreeSet<&str>, path: &Path, errors: &mut Vec<FieldError>) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.push(FieldError::required(path.field("name").shown(), ""));
    } else {
        push_invalid(&path.field("name"), name, names::label(name), errors);
    }
    if text(container, "image").is_empty() {
        errors.push(FieldError::required(path.field("image").shown(), ""));
    }
    let policies = ["File", "FallbackToLogsOnError"];
    check_word(container, "terminationMessagePolicy", &policies, true, path, errors);
    check_ports(list(container, "ports"), &path.field("ports"), errors);
    check_environment(list(container, "env"), &path.field("env"), errors);
    check_mounts(list(container, "volumeMounts"), volumes, &path.field("volumeMounts"), errors);
    check_word(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], true, path, errors);
    resources::check_requirements(&container["resources"], &path.field("resources"), errors);
}

fn check_ports(ports: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let problems = names::port_name(name);
            if problems.is_empty() && !seen.insert(name) {
                errors.push(FieldError::duplicate(path.field("name").shown(), name));
            }
            push_invalid(&path.field("name"), name, problems, errors);
        }
        for (key, required) in [("containerPort", true), ("hostPort", false)] {
            match (number(port, key), required) {
                (0, true) => errors.push(FieldError::required(path.field(key).shown(), "")),
                (0, false) => {}
                (value, _) => {
                    let problems = names::range(value, 1, 65535).into_iter();
                    errors.extend(problems.map(|problem| FieldError::invalid(path.field(key).shown(), value, problem)));
                }
            }
        }
        check_word(port, "protocol", &PROTOCOLS, true, &path, errors);
    }
}

fn check_host_ports(containers: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (number_of, port) in list(container, "ports").iter().enumerate() {
            let host = number(port, "hostPort");
            if host == 0 {
                continue;
            }
            let taken = format!("{}/{}/{host}", text(port, "protocol"), text(port, "hostIP"));
            if !seen.insert(taken.clone()) {
                let path = path.index(index).field("ports").index(number_of).field("hostPort");
                errors.push(FieldError::duplicate(path.shown(), taken));
            }
        }
    }
}

fn check_environment(variables: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    for (index, variable) in variables.iter().enumerate() {
        let path = path.index(index);
        let name = text(variable, "name");
        if name.is_empty() {
            errors.push(FieldError::required(path.field("name").shown(), ""));
        } else if name.chars().any(|character| !(' '..='~').contains(&character) || character == '=') {
            let detail =
                "a valid environment variable name must consist only of printable ASCII characters other than '='";
            errors.push(FieldError::invalid(path.field("name").shown(), name, detail));
        }
        let Some(source) = variable["valueFrom"].as_object() else { continue };
        let path = path.field("valueFrom");
        match source.len() {
            0 => {
                let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
                errors.push(FieldError::invalid(path.shown(), "", detail));
            }
            _ if !text(variable, "value").is_empty() => {
                let detail = "may not be specified when `value` is not empty";
                errors.push(FieldError::invalid(path.shown(), "", detail));
            }
            1 => {}
            _ => {
                let detail = "may not have more than one field specified at a time";
                errors.push(FieldError::invalid(path.shown(), "", detail));
            }
        }
    }
}

fn check_mounts(mounts: &[Value], volumes: &BTreeSet<&str>, path: &Path, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let path = path.index(index);
        let (name, mount_path) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(path.field("name").shown(), ""));
        }
        if !volumes.contains(name) {
            errors.push(FieldError::not_found(path.field("name").shown(), name));
        }
        if mount_path.is_empty() {
            errors.push(FieldError::required(path.field("mountPath").shown(), ""));
        }
        if !seen.insert(mount_path) {
            errors.push(FieldError::invalid(path.field("mountPath").shown(), mount_path, "must be unique"));
        }
    }
}

fn check_probes(container: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    const HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
    for kind in PROBES {
        let Some(probe) = container.get(kind) else { continue };
        let path = path.field(kind);
        let mut handlers = HANDLERS.into_iter().filter(|handler| probe.get(handler).is_some());
        if handlers.next().is_none() {
            errors.push(FieldError::required(path.shown(), "must specify a handler type"));
        }
        for handler in handlers {
            let detail = "may not specify more than 1 handler type";
            errors.push(FieldError::forbidden(path.field(handler).shown(), detail));
        }
        for key in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
            check_not_negative(probe, key, &path, errors);
        }
        if kind != "readinessProbe" && number(probe, "successThreshold") != 1 {
            let value = number(probe, "successThreshold");
            errors.push(FieldError::invalid(path.field("successThreshold").shown(), value, "must be 1"));
        }
    }
}
