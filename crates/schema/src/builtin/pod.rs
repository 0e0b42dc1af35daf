//! Pods, and the templates they are made from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::builtin::common::{check_immutable, check_word, list, number, text};
use crate::builtin::{container, scheduling};
use crate::errors::FieldError;
use crate::metadata::{check_annotations, check_labels, push_invalid};
use crate::names;
use crate::path::Path;

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
/// What may be changed of a running pod, in the words of the complaint about the rest.
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks a pod.
pub(super) fn check(pod: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let path = Path::of("spec");
    check_spec(&pod["spec"], &path, errors);
    check_images(&pod["spec"], &path, errors);
    if let Some(old) = old {
        check_update(&pod["spec"], &old["spec"], &path, errors);
    }
}

/// Checks the status of a pod.
pub(super) fn check_status(pod: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let path = Path::of("status");
    let name = text(&pod["status"], "nominatedNodeName");
    if !name.is_empty() {
        push_invalid(&path.field("nominatedNodeName"), name, names::subdomain(name), errors);
    }
    check_immutable(&pod["status"], &old["status"], "qosClass", &path, errors);
}

/// Checks a template.
pub(super) fn check_template(template: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let metadata = &template["metadata"];
    check_labels(&metadata["labels"], &path.field("labels"), errors);
    check_annotations(&metadata["annotations"], &path.field("annotations"), errors);
    check_spec(&template["spec"], &path.field("spec"), errors);
    if !list(&template["spec"], "ephemeralContainers").is_empty() {
        let path = path.field("spec").field("ephemeralContainers");
        errors.push(FieldError::forbidden(path.shown(), "ephemeral containers not allowed in pod template"));
    }
}

fn check_spec(spec: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let volumes = check_volumes(list(spec, "volumes"), &path.field("volumes"), errors);
    let containers = list(spec, "containers");
    container::check_containers(containers, &volumes, &path.field("containers"), errors);
    let init_path = path.field("initContainers");
    container::check_init_containers(list(spec, "initContainers"), containers, &volumes, &init_path, errors);
    check_word(spec, "restartPolicy", &RESTART_POLICIES, true, path, errors);
    check_word(spec, "dnsPolicy", &DNS_POLICIES, true, path, errors);
    check_labels(&spec["nodeSelector"], &path.field("nodeSelector"), errors);
    check_host_network(spec, path, errors);
    scheduling::check_affinity(&spec["affinity"], &path.field("affinity"), errors);
    check_gates(list(spec, "schedulingGates"), &path.field("schedulingGates"), errors);
    let spread = list(spec, "topologySpreadConstraints");
    scheduling::check_spread(spread, &path.field("topologySpreadConstraints"), errors);
    check_names(spec, path, errors);
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64() {
        let problems = names::range(seconds, 1, i64::from(i32::MAX)).into_iter();
        let field = path.field("activeDeadlineSeconds");
        errors.extend(problems.map(|problem| FieldError::invalid(field.shown(), seconds, problem)));
    }
    scheduling::check_tolerations(list(spec, "tolerations"), &path.field("tolerations"), errors);
    check_word(spec, "preemptionPolicy", &["Never", "PreemptLowerPriority"], false, path, errors);
}

/// Fields that name something else.
fn check_names(spec: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for key in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            push_invalid(&path.field(key), name, names::subdomain(name), errors);
        }
    }
    for key in ["hostname", "subdomain"] {
        let name = text(spec, key);
        if !name.is_empty() {
            push_invalid(&path.field(key), name, names::label(name), errors);
        }
    }
}

/// On the network of the host, ports are those of the host.
fn check_host_network(spec: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    if spec["hostNetwork"] != true {
        return;
    }
    for key in ["containers", "initContainers"] {
        for (index, container) in list(spec, key).iter().enumerate() {
            for (position, port) in list(container, "ports").iter().enumerate() {
                let (inside, outside) = (number(port, "containerPort"), number(port, "hostPort"));
                if outside != 0 && outside != inside {
                    let path = path.field(key).index(index).field("ports").index(position);
                    let detail = "must match `hostPort` when `hostNetwork` is true";
                    errors.push(FieldError::invalid(path.field("containerPort").shown(), inside, detail));
                }
            }
        }
    }
}

/// The names of the volumes that are as they should be.
fn check_volumes<'a>(volumes: &'a [Value], path: &Path, errors: &mut Vec<FieldError>) -> BTreeSet<&'a str> {
    let mut good = BTreeSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        let mut found = Vec::new();
        let name = text(volume, "name");
        let sources: Vec<_> = volume.as_object().into_iter().flatten().filter(|(key, _)| *key != "name").collect();
        for (key, _) in sources.iter().skip(1) {
            let detail = "may not specify more than 1 volume type";
            found.push(FieldError::forbidden(path.field(key).shown(), detail));
        }
        if sources.is_empty() {
            found.push(FieldError::required(path.shown(), "must specify a volume type"));
        }
        if let [(key, source)] = sources[..] {
            check_volume_source(key, source, &path.field(key), &mut found);
        }
        if name.is_empty() {
            found.push(FieldError::required(path.field("name").shown(), ""));
        } else {
            push_invalid(&path.field("name"), name, names::label(name), &mut found);
        }
        if good.contains(name) {
            found.push(FieldError::duplicate(path.field("name").shown(), name));
        }
        if found.is_empty() {
            good.insert(name);
        }
        errors.append(&mut found);
    }
    good
}

fn check_volume_source(kind: &str, source: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let required = match kind {
        "secret" => "secretName",
        "configMap" => "name",
        "persistentVolumeClaim" => "claimName",
        "hostPath" => "path",
        "csi" => "driver",
        _ => return,
    };
    if text(source, required).is_empty() {
        errors.push(FieldError::required(path.field(required).shown(), ""));
    }
}

fn check_gates(gates: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    for (index, gate) in gates.iter().enumerate() {
        let name = text(gate, "name");
        push_invalid(&path.index(index), name, names::qualified_name(name), errors);
        if gates[..index].iter().any(|other| other["name"] == gate["name"]) {
            errors.push(FieldError::duplicate(path.index(index).shown(), name));
        }
    }
}

fn check_images(spec: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for key in ["containers", "initContainers"] {
        for (index, container) in list(spec, key).iter().enumerate() {
            let image = text(container, "image");
            if image.trim() != image {
                let field = path.field(key).index(index).field("image");
                let detail = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(field.shown(), image, detail));
            }
        }
    }
}

/// A pod is what it was made, but for a few fields.
fn check_update(new: &Value, old: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for key in ["containers", "initContainers"] {
        if list(new, key).len() != list(old, key).len() {
            let detail = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(path.field(key).shown(), detail));
            return;
        }
    }
    let deadline_path = path.field("activeDeadlineSeconds");
    match (new["activeDeadlineSeconds"].as_i64(), old["activeDeadlineSeconds"].as_i64()) {
        (Some(new), Some(old)) if old < new => {
            let detail = "must be less than or equal to previous value";
            errors.push(FieldError::invalid(deadline_path.shown(), new, detail));
            return;
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(deadline_path.shown(), Value::Null, detail));
        }
        _ => {}
    }
    check_only_added_tolerations(new, old, &path.field("tolerations"), errors);
    check_only_removed_gates(new, old, &path.field("schedulingGates"), errors);
    if frozen(new, old) != frozen(old, old) {
        let detail = format!("pod updates may not change fields other than {UPDATABLE}\n");
        errors.push(FieldError::forbidden(path.shown(), detail));
    }
}

/// The parts of a spec that an update may not change.
fn frozen(spec: &Value, old: &Value) -> Value {
    let mut spec = spec.clone();
    for key in ["containers", "initContainers"] {
        for container in spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            container["image"] = Value::Null;
        }
    }
    let grace = "terminationGracePeriodSeconds";
    let shortened = number(old, grace) < 0 && number(&spec, grace) == 1;
    let is_gated = !list(old, "schedulingGates").is_empty();
    if let Value::Object(fields) = &mut spec {
        fields.retain(|key, _| match key.as_str() {
            "activeDeadlineSeconds" | "tolerations" | "schedulingGates" => false,
            "terminationGracePeriodSeconds" => !(shortened || number(old, grace) < 0),
            "nodeSelector" => !is_gated,
            _ => true,
        });
        if let Some(affinity) = fields.get_mut("affinity").and_then(Value::as_object_mut).filter(|_| is_gated) {
            affinity.remove("nodeAffinity");
        }
        fields.retain(|key, value| !(is_gated && key == "affinity" && value.as_object().is_some_and(|f| f.is_empty())));
    }
    spec
}

fn check_only_added_tolerations(new: &Value, old: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let without_time = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Value::Object(fields) = &mut toleration {
            fields.remove("tolerationSeconds");
        }
        toleration
    };
    let kept: Vec<_> = list(new, "tolerations").iter().map(without_time).collect();
    if list(old, "tolerations").iter().any(|toleration| !kept.contains(&without_time(toleration))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(path.shown(), detail));
    }
}

fn check_only_removed_gates(new: &Value, old: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let old: BTreeSet<_> = list(old, "schedulingGates").iter().map(|gate| text(gate, "name")).collect();
    let gates = list(new, "schedulingGates").iter().enumerate();
    let added: BTreeMap<_, _> = gates.map(|(index, gate)| (text(gate, "name"), index)).collect();
    for (name, index) in added.into_iter().filter(|(name, _)| !old.contains(name)) {
        let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
        errors.push(FieldError::forbidden(path.index(index).field("name").shown(), detail));
    }
}
