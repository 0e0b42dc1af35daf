//! What the server does with objects of each kind before it checks and keeps them: who may write what, and how changes
//! are counted.

use crate::names;
use crate::store::Store;
use crate::write::set_or_remove;
use schema::ResourceInfo;
use serde_json::{Map, Value, json};

/// Kinds whose changes are counted in `metadata.generation`, as group and resource; custom kinds all are.
const COUNTED: [(&str, &str); 17] = [
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("discovery.k8s.io", "endpointslices"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("scheduling.k8s.io", "priorityclasses"),
];

/// Kinds that cannot be replaced without saying which state is replaced; custom kinds cannot either.
const VERSIONED: [(&str, &str); 9] = [
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("coordination.k8s.io", "leases"),
    ("node.k8s.io", "runtimeclasses"),
    ("policy", "poddisruptionbudgets"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "volumeattachments"),
];

/// Kinds that a replacement may create.
const CREATED_ON_UPDATE: [(&str, &str); 10] = [
    ("", "endpoints"),
    ("", "events"),
    ("", "limitranges"),
    ("", "services"),
    ("coordination.k8s.io", "leases"),
    ("node.k8s.io", "runtimeclasses"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
];

/// The annotation in which a DaemonSet counts changes of its template.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn is_one_of(list: &[(&str, &str)], info: &ResourceInfo) -> bool {
    list.contains(&(info.group.as_str(), info.plural.as_str()))
}

fn is_counted(info: &ResourceInfo) -> bool {
    info.is_custom || is_one_of(&COUNTED, info)
}

pub(crate) fn needs_version_on_update(info: &ResourceInfo) -> bool {
    info.is_custom || is_one_of(&VERSIONED, info)
}

pub(crate) fn creates_on_update(info: &ResourceInfo) -> bool {
    is_one_of(&CREATED_ON_UPDATE, info)
}

/// What a new object begins with.
pub(crate) fn prepare_creation(info: &ResourceInfo, store: &mut Store, object: &mut Value) {
    if is_counted(info) {
        object["metadata"]["generation"] = json!(1);
    }
    // A kubelet registers its node with a status.
    let keeps_status = info.group.is_empty() && info.plural == "nodes";
    if info.has_status() && !keeps_status {
        remove(object, "status");
    }
    match (info.group.as_str(), info.plural.as_str()) {
        ("", "pods") => prepare_pod(object),
        ("", "namespaces") => prepare_namespace(object),
        ("", "services") => allocate_address(store, object),
        ("", "persistentvolumeclaims" | "persistentvolumes") => object["status"] = json!({ "phase": "Pending" }),
        ("batch", "jobs") => select_by_uid(object),
        ("apps", "daemonsets") => object["metadata"]["annotations"][TEMPLATE_GENERATION] = json!("1"),
        _ => {}
    }
}

fn prepare_pod(object: &mut Value) {
    let mut status = json!({ "phase": "Pending", "qosClass": quality_of_service(&object["spec"]) });
    if object["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null,
            "lastTransitionTime": null,
        }]);
    }
    object["status"] = status;
    fold_label_keys(object);
}

/// Turns `matchLabelKeys` of the spread and affinity rules into terms of their selectors.
fn fold_label_keys(object: &mut Value) {
    let labels = object["metadata"]["labels"].clone();
    let Some(spec) = object["spec"].as_object_mut() else { return };
    for rule in spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut).into_iter().flatten() {
        fold_keys(rule, "matchLabelKeys", "In", &labels);
    }
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.get_mut("affinity").and_then(|affinity| affinity.get_mut(side)) else { continue };
        let required = affinity.get_mut("requiredDuringSchedulingIgnoredDuringExecution").and_then(Value::as_array_mut);
        for term in required.into_iter().flatten() {
            fold_keys(term, "matchLabelKeys", "In", &labels);
            fold_keys(term, "mismatchLabelKeys", "NotIn", &labels);
        }
        let preferred =
            affinity.get_mut("preferredDuringSchedulingIgnoredDuringExecution").and_then(Value::as_array_mut);
        for weighted in preferred.into_iter().flatten() {
            if let Some(term) = weighted.get_mut("podAffinityTerm") {
                fold_keys(term, "matchLabelKeys", "In", &labels);
                fold_keys(term, "mismatchLabelKeys", "NotIn", &labels);
            }
        }
    }
}

fn fold_keys(rule: &mut Value, field: &str, operator: &str, labels: &Value) {
    let keys: Vec<String> =
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if rule.get("labelSelector").is_none_or(Value::is_null) {
        return;
    }
    let terms = keys.iter().filter_map(|key| {
        let value = labels.get(key)?.as_str()?;
        Some(json!({ "key": key, "operator": operator, "values": [value] }))
    });
    let terms: Vec<Value> = terms.collect();
    if terms.is_empty() {
        return;
    }
    match rule["labelSelector"]["matchExpressions"].as_array_mut() {
        Some(expressions) => expressions.extend(terms),
        None => rule["labelSelector"]["matchExpressions"] = Value::Array(terms),
    }
}

/// How a pod fares when its node runs short, by its requests and limits of CPU and memory.
fn quality_of_service(spec: &Value) -> &'static str {
    let containers: Vec<&Value> =
        ["containers", "initContainers"].iter().flat_map(|list| spec[*list].as_array().into_iter().flatten()).collect();
    let amount = |container: &Value, list: &str, resource: &str| -> Option<String> {
        let value = &container["resources"][list][resource];
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (!value.is_null() && text != "0").then_some(text)
    };
    let both = ["cpu", "memory"];
    let has_any = containers.iter().any(|container| {
        both.iter().any(|resource| {
            amount(container, "requests", resource).is_some() || amount(container, "limits", resource).is_some()
        })
    });
    let is_guaranteed = containers.iter().all(|container| {
        both.iter().all(|resource| {
            let limit = amount(container, "limits", resource);
            let request = amount(container, "requests", resource).or_else(|| limit.clone());
            limit.is_some() && limit == request
        })
    });
    match (has_any, is_guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn prepare_namespace(object: &mut Value) {
    object["status"] = json!({ "phase": "Active" });
    let finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        let all: Vec<Value> = finalizers.into_iter().chain([json!("kubernetes")]).collect();
        object["spec"]["finalizers"] = Value::Array(all);
    }
    let name = object["metadata"]["name"].clone();
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
}

/// Gives a service an address of the service network.
fn allocate_address(store: &mut Store, object: &mut Value) {
    let spec = &mut object["spec"];
    if spec["type"] == "ExternalName" {
        return;
    }
    if spec["clusterIP"].as_str().is_none_or(str::is_empty) {
        let (third, fourth) = (store.rng.u8(0..16), store.rng.u8(2..255));
        spec["clusterIP"] = json!(format!("10.96.{third}.{fourth}"));
    }
    spec["clusterIPs"] = json!([spec["clusterIP"].clone()]);
    object["status"] = json!({ "loadBalancer": {} });
}

/// A job finds its pods by its own identity, unless it says how.
fn select_by_uid(object: &mut Value) {
    if object["spec"]["manualSelector"].as_bool() == Some(true) {
        return;
    }
    let (uid, name) = (object["metadata"]["uid"].clone(), object["metadata"]["name"].clone());
    let labels = &mut object["spec"]["template"]["metadata"]["labels"];
    for prefix in ["", "batch.kubernetes.io/"] {
        labels[format!("{prefix}controller-uid")] = uid.clone();
        labels[format!("{prefix}job-name")] = name.clone();
    }
    if object["spec"].get("selector").is_none_or(Value::is_null) {
        object["spec"]["selector"] = json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
    }
}

/// What an update of the object itself may not touch, and whether it counts.
pub(crate) fn prepare_update(info: &ResourceInfo, before: &Value, object: &mut Value) {
    if info.has_status() {
        carry(before, object, "status");
    }
    match (info.group.as_str(), info.plural.as_str()) {
        ("", "namespaces") => {
            if let Some(spec) = member_mut(object, "spec") {
                set_or_remove(spec, "finalizers", before["spec"].get("finalizers"));
            }
        }
        ("", "services") => carry_address(before, object),
        ("apps", "daemonsets") => count_template(before, object),
        _ => {}
    }
    if is_counted(info) && counts(info, before, object) {
        let generation = before["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        object["metadata"]["generation"] = json!(generation);
    }
}

fn carry_address(before: &Value, object: &mut Value) {
    if let Some(spec) = member_mut(object, "spec") {
        for field in ["clusterIP", "clusterIPs"] {
            if spec.get(field).is_none_or(|value| value.is_null() || value == "") {
                set_or_remove(spec, field, before["spec"].get(field));
            }
        }
    }
}

fn count_template(before: &Value, object: &mut Value) {
    let old: i64 = before["metadata"]["annotations"][TEMPLATE_GENERATION]
        .as_str()
        .and_then(|number| number.parse().ok())
        .unwrap_or(1);
    let is_changed = before["spec"]["template"] != object["spec"]["template"];
    object["metadata"]["annotations"][TEMPLATE_GENERATION] = json!((old + i64::from(is_changed)).to_string());
}

/// Whether an update changes what the object wants.
fn counts(info: &ResourceInfo, before: &Value, object: &Value) -> bool {
    // The real server gives priority classes a first generation and forgets about it.
    if info.group == "scheduling.k8s.io" {
        return false;
    }
    let leaves_out: &[&str] =
        if info.has_status() { &["apiVersion", "metadata", "status"] } else { &["apiVersion", "metadata"] };
    let wish = |object: &Value| -> Map<String, Value> {
        let members = object.as_object().into_iter().flatten();
        let kept = members.filter(|(name, _)| !leaves_out.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let annotations_count = info.group == "apps" && info.plural == "deployments";
    wish(before) != wish(object)
        || (annotations_count && before["metadata"]["annotations"] != object["metadata"]["annotations"])
}

/// What an update of the status may not touch.
pub(crate) fn prepare_status_update(info: &ResourceInfo, before: &Value, object: &mut Value) {
    if info.is_custom {
        let status = object.get("status").cloned();
        *object = before.clone();
        if let Some(members) = object.as_object_mut() {
            set_or_remove(members, "status", status.as_ref());
        }
        return;
    }
    carry(before, object, "spec");
    if info.group == "apps" && info.plural == "daemonsets" {
        count_template(before, object);
    }
    let kept: &[&str] = match (info.group.as_str(), info.plural.as_str()) {
        ("", "pods") => &["ownerReferences"],
        ("apps", "deployments") => &["labels"],
        _ => &[],
    };
    if let Some(metadata) = member_mut(object, "metadata") {
        for field in kept {
            set_or_remove(metadata, field, before["metadata"].get(*field));
        }
    }
    if info.plural == "pods" && object["status"]["qosClass"].as_str().is_none_or(str::is_empty) {
        object["status"]["qosClass"] = before["status"]["qosClass"].clone();
    }
}

fn carry(before: &Value, object: &mut Value, field: &str) {
    if let Some(members) = object.as_object_mut() {
        set_or_remove(members, field, before.get(field));
    }
}

fn remove(object: &mut Value, field: &str) {
    if let Some(members) = object.as_object_mut() {
        members.remove(field);
    }
}

fn member_mut<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(field)?.as_object_mut()
}

/// A name for the volume that gives a pod its token.
pub(crate) fn token_volume_name(store: &mut Store) -> String {
    format!("kube-api-access-{}", names::suffix(&mut store.rng))
}
