//! Nodes, storage, roles and other kinds around the workloads.

use serde_json::Value;

use crate::builtin::common::{
    check_immutable, check_label_selector, check_not_negative, check_word, entries, list, number, text,
};
use crate::builtin::{resources, scheduling};
use crate::errors::{FieldError, shown_fields};
use crate::metadata::push_invalid;
use crate::names;
use crate::path::Path;

/// The highest value of a priority class that is not the system's.
const PRIORITY_MAX: i64 = 1_000_000_000;
/// All data of a config map or secret together.
const DATA_BYTES_MAX: usize = 1024 * 1024;
const RBAC: &str = "rbac.authorization.k8s.io";

/// Checks a Node.
pub(super) fn check_node(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    for list in ["capacity", "allocatable"] {
        for (name, amount) in entries(&new["status"], list) {
            resources::check_amount(name, amount, &Path::of("status").field(list).field(name), errors);
        }
    }
    if let Some(old) = old {
        let field = |object: &'_ Value| text(&object["spec"], "providerID").to_owned();
        if !field(old).is_empty() && field(old) != field(new) {
            let detail = "node updates may not change providerID except from \"\" to valid";
            errors.push(FieldError::forbidden("spec.providerID", detail));
        }
        let ranges = list(&old["spec"], "podCIDRs");
        if !ranges.is_empty() && ranges != list(&new["spec"], "podCIDRs") {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            errors.push(FieldError::forbidden("spec.podCIDRs", detail));
        }
    }
    // The API server says `metadata` here, though taints are in the spec.
    scheduling::check_taints(list(&new["spec"], "taints"), &Path::of("metadata").field("taints"), errors);
}

/// Checks a Lease.
pub(super) fn check_lease(new: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        let field = path.field("leaseDurationSeconds");
        let seconds = number(spec, "leaseDurationSeconds");
        errors.push(FieldError::invalid(field.shown(), seconds, "must be greater than 0"));
    }
    check_not_negative(spec, "leaseTransitions", &path, errors);
}

/// Checks a PriorityClass.
pub(super) fn check_priority_class(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if let Some(old) = old {
        if number(new, "value") != number(old, "value") {
            errors.push(FieldError::forbidden("value", "may not be changed in an update."));
        }
        check_immutable(new, old, "preemptionPolicy", &Path::root(), errors);
        return;
    }
    let name = text(&new["metadata"], "name");
    let is_known = matches!(
        (name, number(new, "value")),
        ("system-node-critical", 2_000_001_000) | ("system-cluster-critical", 2_000_000_000)
    );
    if name.starts_with("system-") {
        if !is_known {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
            );
            errors.push(FieldError::forbidden("metadata.name", detail));
        }
    } else if number(new, "value") > PRIORITY_MAX {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        errors.push(FieldError::forbidden("value", detail));
    }
    check_word(new, "preemptionPolicy", &["Never", "PreemptLowerPriority"], false, &Path::root(), errors);
}

/// Checks a StorageClass.
pub(super) fn check_storage_class(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = Path::root();
    if let Some(old) = old {
        for key in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            check_immutable(new, old, key, &root, errors);
        }
        return;
    }
    let provisioner = text(new, "provisioner");
    if provisioner.is_empty() {
        errors.push(FieldError::required("provisioner", ""));
    } else {
        push_invalid(&Path::of("provisioner"), provisioner, names::qualified_name(&provisioner.to_lowercase()), errors);
    }
    check_word(new, "reclaimPolicy", &["Delete", "Retain"], false, &root, errors);
    check_word(new, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], true, &root, errors);
}

/// Checks a PersistentVolumeClaim.
pub(super) fn check_claim(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let (spec, path) = (&new["spec"], Path::of("spec"));
    let modes = list(spec, "accessModes");
    if modes.is_empty() {
        let detail = "at least 1 access mode is required";
        errors.push(FieldError::required(path.field("accessModes").shown(), detail));
    }
    check_label_selector(&spec["selector"], &path.field("selector"), errors);
    for mode in modes.iter().filter_map(Value::as_str).filter(|mode| !MODES.contains(mode)) {
        errors.push(FieldError::not_supported(path.field("accessModes").shown(), mode, &MODES));
    }
    let field = path.field("resources").key("storage");
    match spec["resources"]["requests"].get("storage") {
        None => errors.push(FieldError::required(field.shown(), "")),
        Some(amount) => resources::check_amount("storage", amount, &field, errors),
    }
    check_word(spec, "volumeMode", &["Block", "Filesystem"], false, &path, errors);
    if let Some(old) = old
        && frozen_claim(new, old) != frozen_claim(old, old)
    {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                      bound claims\n";
        errors.push(FieldError::forbidden("spec", detail));
    }
}

fn frozen_claim(claim: &Value, old: &Value) -> Value {
    let mut spec = claim["spec"].clone();
    let is_bound = text(&old["status"], "phase") == "Bound";
    if let Value::Object(fields) = &mut spec {
        if text(&old["spec"], "volumeName").is_empty() {
            fields.remove("volumeName");
        }
        if old["spec"].get("storageClassName").is_none() {
            fields.remove("storageClassName");
        }
        if is_bound {
            fields.remove("resources");
            fields.remove("volumeAttributesClassName");
        }
    }
    spec
}

/// Checks a PersistentVolume.
pub(super) fn check_volume(new: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(path.field("accessModes").shown(), ""));
    }
    if entries(spec, "capacity").next().is_none() {
        errors.push(FieldError::required(path.field("capacity").shown(), ""));
    }
    let policies = ["Delete", "Recycle", "Retain"];
    check_word(spec, "persistentVolumeReclaimPolicy", &policies, false, &path, errors);
    if let Some(required) = spec["nodeAffinity"].get("required") {
        scheduling::check_node_selector(required, &path.field("nodeAffinity").field("required"), errors);
    }
}

/// Checks a ConfigMap.
pub(super) fn check_config_map(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    check_unchanged_if_immutable(new, old, &["data", "binaryData"], errors);
    let mut bytes = 0;
    for map in ["data", "binaryData"] {
        for (key, value) in entries(new, map) {
            push_invalid(&Path::of(map).key(key), key, names::config_key(key), errors);
            if map == "data" && new["binaryData"].get(key).is_some() {
                let detail = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(Path::of(map).key(key).shown(), key.as_str(), detail));
            }
            bytes += value.as_str().map(str::len).unwrap_or_default();
        }
    }
    if bytes > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("", DATA_BYTES_MAX));
    }
}

/// Checks a Secret.
pub(super) fn check_secret(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if let Some(old) = old {
        check_immutable(new, old, "type", &Path::root(), errors);
    }
    check_unchanged_if_immutable(new, old, &["data"], errors);
    let path = Path::of("data");
    let mut bytes = 0;
    for (key, value) in entries(new, "data") {
        push_invalid(&path.key(key), key, names::config_key(key), errors);
        bytes += value.as_str().map(|text| text.len() / 4 * 3).unwrap_or_default();
    }
    if bytes > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("data", DATA_BYTES_MAX));
    }
    let required: &[&str] = match text(new, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        _ => &[],
    };
    for key in required.iter().filter(|key| new["data"].get(**key).is_none()) {
        errors.push(FieldError::required(path.key(key).shown(), ""));
    }
}

fn check_unchanged_if_immutable(new: &Value, old: Option<&Value>, keys: &[&str], errors: &mut Vec<FieldError>) {
    let Some(old) = old.filter(|old| old["immutable"] == true) else { return };
    let detail = "field is immutable when `immutable` is set";
    if new["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", detail));
    }
    for key in keys.iter().filter(|key| new.get(**key) != old.get(**key)) {
        errors.push(FieldError::forbidden(key, detail));
    }
}

/// Checks an Event.
pub(super) fn check_event(new: &Value, errors: &mut Vec<FieldError>) {
    let (namespace, involved) = (text(&new["metadata"], "namespace"), text(&new["involvedObject"], "namespace"));
    let is_new_style = !new["eventTime"].is_null();
    let fits = match (involved, is_new_style) {
        ("", false) => matches!(namespace, "" | "default"),
        ("", true) => matches!(namespace, "default" | "kube-system"),
        (involved, false) => involved == namespace,
        (_, true) => true,
    };
    if !fits {
        errors.push(FieldError::invalid("involvedObject.namespace", involved, "does not match event.namespace"));
    }
    if is_new_style {
        for key in ["reportingComponent", "reportingInstance", "action", "reason"] {
            if text(new, key).is_empty() {
                errors.push(FieldError::required(key, ""));
            }
        }
    }
}

/// Checks a Role or ClusterRole.
pub(super) fn check_role(new: &Value, namespaced: bool, errors: &mut Vec<FieldError>) {
    for (index, rule) in list(new, "rules").iter().enumerate() {
        let path = Path::of("rules").index(index);
        if list(rule, "verbs").is_empty() {
            let detail = "verbs must contain at least one value";
            errors.push(FieldError::required(path.field("verbs").shown(), detail));
        }
        if !list(rule, "nonResourceURLs").is_empty() {
            let field = path.field("nonResourceURLs");
            let value = rule["nonResourceURLs"].clone();
            if namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(field.shown(), value.clone(), detail));
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|key| !list(rule, key).is_empty()) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(field.shown(), value, detail));
            }
            continue;
        }
        if list(rule, "apiGroups").is_empty() {
            let detail = "resource rules must supply at least one api group";
            errors.push(FieldError::required(path.field("apiGroups").shown(), detail));
        }
        if list(rule, "resources").is_empty() {
            let detail = "resource rules must supply at least one resource";
            errors.push(FieldError::required(path.field("resources").shown(), detail));
        }
    }
}

/// Checks a RoleBinding or ClusterRoleBinding.
pub(super) fn check_role_binding(new: &Value, old: Option<&Value>, namespaced: bool, errors: &mut Vec<FieldError>) {
    let (role, path) = (&new["roleRef"], Path::of("roleRef"));
    check_word(role, "apiGroup", &[RBAC], false, &path, errors);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(role, "kind")) {
        errors.push(FieldError::not_supported("roleRef.kind", text(role, "kind"), kinds));
    }
    if text(role, "name").is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for (index, subject) in list(new, "subjects").iter().enumerate() {
        let path = Path::of("subjects").index(index);
        if text(subject, "name").is_empty() {
            errors.push(FieldError::required(path.field("name").shown(), ""));
        }
        match text(subject, "kind") {
            "ServiceAccount" => {
                check_word(subject, "apiGroup", &[""], false, &path, errors);
                if !namespaced && text(subject, "namespace").is_empty() {
                    errors.push(FieldError::required(path.field("namespace").shown(), ""));
                }
            }
            "User" | "Group" => check_word(subject, "apiGroup", &[RBAC], false, &path, errors),
            other => {
                let kinds = ["ServiceAccount", "User", "Group"];
                errors.push(FieldError::not_supported(path.field("kind").shown(), other, &kinds));
            }
        }
    }
    if old.is_some_and(|old| old["roleRef"] != *role) {
        let shown = shown_fields(&[
            ("APIGroup", role["apiGroup"].clone()),
            ("Kind", role["kind"].clone()),
            ("Name", role["name"].clone()),
        ]);
        errors.push(FieldError::invalid_as("roleRef", shown, "cannot change roleRef"));
    }
}

/// Checks a Service.
pub(super) fn check_service(new: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    let ports = list(spec, "ports");
    let headless = text(spec, "clusterIP") == "None";
    if ports.is_empty() && !headless && text(spec, "type") != "ExternalName" {
        errors.push(FieldError::required(path.field("ports").shown(), ""));
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    check_word(spec, "type", &kinds, true, &path, errors);
    check_word(spec, "sessionAffinity", &["ClientIP", "None"], true, &path, errors);
    crate::metadata::check_labels(&spec["selector"], &path.field("selector"), errors);
    for (index, port) in ports.iter().enumerate() {
        let path = path.field("ports").index(index);
        let name = text(port, "name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(path.field("name").shown(), ""));
        } else if !name.is_empty() {
            push_invalid(&path.field("name"), name, names::label(name), errors);
            if ports[..index].iter().any(|other| other["name"] == port["name"]) {
                errors.push(FieldError::duplicate(path.field("name").shown(), name));
            }
        }
        let value = number(port, "port");
        let problems = names::range(value, 1, 65535).into_iter();
        errors.extend(problems.map(|problem| FieldError::invalid(path.field("port").shown(), value, problem)));
        check_word(port, "protocol", &["SCTP", "TCP", "UDP"], true, &path, errors);
        match &port["targetPort"] {
            Value::String(name) => push_invalid(&path.field("targetPort"), name, names::port_name(name), errors),
            other => {
                let value = other.as_i64().unwrap_or_default();
                let problems = names::range(value, 1, 65535).into_iter();
                let field = path.field("targetPort");
                errors.extend(problems.map(|problem| FieldError::invalid(field.shown(), value, problem)));
            }
        }
    }
}

/// Checks a Binding.
pub(super) fn check_binding(new: &Value, errors: &mut Vec<FieldError>) {
    let target = &new["target"];
    let kind = text(target, "kind");
    if !kind.is_empty() && kind != "Node" {
        errors.push(FieldError::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if text(target, "name").is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
}

/// Checks a Scale.
pub(super) fn check_scale(new: &Value, errors: &mut Vec<FieldError>) {
    check_not_negative(&new["spec"], "replicas", &Path::of("spec"), errors);
}

/// Checks a CustomResourceDefinition.
pub(super) fn check_definition(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    let wanted = format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group"));
    if text(&new["metadata"], "name") != wanted {
        let detail = "must be spec.names.plural+\".\"+spec.group".to_owned();
        errors.push(FieldError::invalid("metadata.name", text(&new["metadata"], "name"), detail));
    }
    if text(spec, "group").is_empty() {
        errors.push(FieldError::required(path.field("group").shown(), ""));
    }
    check_word(spec, "scope", &["Cluster", "Namespaced"], true, &path, errors);
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(&spec["names"], key).is_empty() {
            errors.push(FieldError::required(path.field("names").field(key).shown(), ""));
        }
    }
    let versions = list(spec, "versions");
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(path.field("versions").shown(), spec["versions"].clone(), detail));
    }
    for (index, version) in versions.iter().enumerate() {
        if version["schema"].get("openAPIV3Schema").is_none() {
            let field = path.field("versions").index(index).field("schema").field("openAPIV3Schema");
            errors.push(FieldError::required(field.shown(), "schemas are required"));
        }
    }
    if let Some(old) = old {
        for key in ["group", "scope"] {
            check_immutable(spec, &old["spec"], key, &path, errors);
        }
        check_immutable(&spec["names"], &old["spec"]["names"], "kind", &path.field("names"), errors);
    }
}
