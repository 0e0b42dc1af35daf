//! What the API server fills in for built-in kinds.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::quantity;
use crate::typed::{Arena, NodeKind};

/// A line of `defaults.txt`.
struct Line {
    field: String,
    value: Value,
    condition: Condition,
}

enum Condition {
    Always,
    Has(String, Value),
    Lacks(String),
}

impl Condition {
    fn holds(&self, object: &Map<String, Value>) -> bool {
        match self {
            Self::Always => true,
            Self::Has(field, value) => object.get(field) == Some(value),
            Self::Lacks(field) => !object.contains_key(field),
        }
    }
}

/// The lines by type.
fn table() -> &'static BTreeMap<String, Vec<Line>> {
    static TABLE: OnceLock<BTreeMap<String, Vec<Line>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        let lines = include_str!("defaults.txt").lines();
        for line in lines.filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let parsed = parse(line);
            debug_assert!(parsed.is_some(), "`{line}` is no default");
            if let Some((owner, line)) = parsed {
                table.entry(owner).or_default().push(line);
            }
        }
        table
    })
}

fn parse(line: &str) -> Option<(String, Line)> {
    let mut words = line.splitn(3, ' ');
    let (owner, field, rest) = (words.next()?, words.next()?, words.next()?);
    let (value, condition) = if let Some((value, other)) = rest.split_once(" if ") {
        let (other, wanted) = other.split_once('=')?;
        (value, Condition::Has(other.to_owned(), serde_json::from_str(wanted).ok()?))
    } else if let Some((value, other)) = rest.split_once(" unless ") {
        (value, Condition::Lacks(other.to_owned()))
    } else {
        (rest, Condition::Always)
    };
    let value = serde_json::from_str(value).ok()?;
    Some((owner.to_owned(), Line { field: field.to_owned(), value, condition }))
}

/// Fills in defaults from the outside inwards.
pub(super) fn fill(arena: &Arena, node: usize, value: &mut Value) {
    fill_in(arena, node, "", value);
}

fn fill_in(arena: &Arena, node: usize, owner: &str, value: &mut Value) {
    let node = arena.node(node);
    match (&node.kind, value) {
        (NodeKind::Struct(fields), Value::Object(object)) => {
            before_table(&node.name, object);
            // A job gets its defaults when it is made, not while it is the template of one.
            let is_template = owner == "batch.v1.JobTemplateSpec" && node.name == "batch.v1.JobSpec";
            for line in table().get(&node.name).into_iter().flatten().filter(|_| !is_template) {
                let zero = fields.get(&line.field).and_then(|field| field.zero.as_ref());
                let is_absent = object.get(&line.field).is_none_or(|value| *value == "" && Some(value) == zero);
                if is_absent && line.condition.holds(object) {
                    object.insert(line.field.clone(), line.value.clone());
                }
            }
            for (key, value) in object.iter_mut() {
                if let Some(field) = fields.get(key) {
                    fill_in(arena, field.node, &node.name, value);
                }
            }
        }
        (NodeKind::Map(item), Value::Object(object)) if matches!(arena.node(*item).kind, NodeKind::Quantity) => {
            object.values_mut().for_each(round_up);
        }
        (NodeKind::Map(item), Value::Object(object)) => {
            object.values_mut().for_each(|value| fill_in(arena, *item, owner, value));
        }
        (NodeKind::List(item), Value::Array(items)) => {
            items.iter_mut().for_each(|value| fill_in(arena, *item, owner, value));
        }
        _ => {}
    }
}

/// Amounts of resources are counted in thousandths.
fn round_up(amount: &mut Value) {
    if let Some(rounded) = amount.as_str().and_then(quantity::rounded_to_milli) {
        *amount = rounded.into();
    }
}

/// What needs more than a line of the table says, for types that stand inside of others.
fn before_table(owner: &str, object: &mut Map<String, Value>) {
    match owner {
        "core.v1.Container" | "core.v1.EphemeralContainer" => fill_pull_policy(object, "image", "imagePullPolicy"),
        "core.v1.ImageVolumeSource" => fill_pull_policy(object, "reference", "pullPolicy"),
        "core.v1.Volume" if object.keys().all(|key| key == "name") => {
            object.insert("emptyDir".to_owned(), json!({}));
        }
        "core.v1.ServicePort" if object.get("targetPort").is_none_or(|port| *port == 0 || *port == "") => {
            let port = object.get("port").cloned().unwrap_or_else(|| 0.into());
            object.insert("targetPort".to_owned(), port);
        }
        "core.v1.NodeStatus" if !object.contains_key("allocatable") => {
            if let Some(capacity) = object.get("capacity").cloned() {
                object.insert("allocatable".to_owned(), capacity);
            }
        }
        "core.v1.PodSpec" => {
            let name = object.get("serviceAccountName").or_else(|| object.get("serviceAccount")).cloned();
            if let Some(name) = name {
                object.insert("serviceAccountName".to_owned(), name.clone());
                object.insert("serviceAccount".to_owned(), name);
            }
        }
        "core.v1.ServiceSpec" if object.get("sessionAffinity").is_none_or(|affinity| affinity == "None") => {
            object.remove("sessionAffinityConfig");
        }
        "apps.v1.StatefulSetSpec" => {
            for claim in object.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
                claim["apiVersion"] = "v1".into();
                claim["kind"] = "PersistentVolumeClaim".into();
            }
        }
        "apiextensions.v1.CustomResourceDefinitionNames" => fill_definition_names(object),
        _ => {}
    }
}

/// An image without a fixed tag is pulled always.
fn fill_pull_policy(object: &mut Map<String, Value>, image: &str, policy: &str) {
    if object.contains_key(policy) {
        return;
    }
    let image = object.get(image).and_then(Value::as_str).unwrap_or_default();
    let pulled = if is_latest(image) { "Always" } else { "IfNotPresent" };
    object.insert(policy.to_owned(), pulled.into());
}

fn is_latest(image: &str) -> bool {
    if image.is_empty() || image.contains('@') {
        return image.split('@').next().is_some_and(|name| name.ends_with(":latest"));
    }
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn fill_definition_names(names: &mut Map<String, Value>) {
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !names.contains_key("singular") {
        names.insert("singular".to_owned(), kind.to_lowercase().into());
    }
    if !names.contains_key("listKind") && !kind.is_empty() {
        names.insert("listKind".to_owned(), format!("{kind}List").into());
    }
}

/// What whole kinds get.
pub(super) fn fill_kind(kind: &str, object: &mut Value) {
    match kind {
        "Pod" => fill_pod(object),
        "Namespace" => fill_namespace(object),
        "Job" => fill_job(object),
        "Secret" => encode_string_data(object),
        "CustomResourceDefinition" => fill_stored_versions(object),
        _ => {}
    }
}

fn fill_pod(pod: &mut Value) {
    let on_host = pod["spec"]["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
            for (name, amount) in limits {
                let requests = &mut container["resources"]["requests"];
                if requests.get(&name).is_none() {
                    requests[name] = amount;
                }
            }
            for port in container["ports"].as_array_mut().into_iter().flatten().filter(|_| on_host) {
                if port.get("hostPort").is_none() {
                    port["hostPort"] = port["containerPort"].clone();
                }
            }
        }
    }
    if pod["spec"].get("enableServiceLinks").is_none() {
        pod["spec"]["enableServiceLinks"] = true.into();
    }
}

/// A job is labelled as its pods are.
fn fill_job(job: &mut Value) {
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    if job["metadata"].get("labels").is_none() && labels.is_object() {
        job["metadata"]["labels"] = labels.clone();
    }
}

/// A namespace carries its name as a label, and goes only when what is in it is gone.
fn fill_namespace(namespace: &mut Value) {
    if let Some(name) = namespace["metadata"]["name"].as_str().filter(|name| !name.is_empty()) {
        namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.to_owned().into();
    }
    let going = !namespace["metadata"]["deletionTimestamp"].is_null();
    if !going && namespace["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
        namespace["spec"]["finalizers"] = json!(["kubernetes"]);
    }
}

/// Plain texts of a secret are written into its data and forgotten.
fn encode_string_data(secret: &mut Value) {
    let Some(plain) = secret.as_object_mut().and_then(|fields| fields.remove("stringData")) else { return };
    for (key, text) in plain.as_object().into_iter().flatten() {
        secret["data"][key] = encode_base64(text.as_str().unwrap_or_default().as_bytes()).into();
    }
}

fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| usize::from(chunk.get(index).copied().unwrap_or_default());
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let is_padding = digit > chunk.len();
            text.push(if is_padding { '=' } else { char::from(DIGITS[group >> (18 - 6 * digit) & 63]) });
        }
    }
    text
}

fn fill_stored_versions(definition: &mut Value) {
    if definition["status"]["storedVersions"].as_array().is_some_and(|versions| !versions.is_empty()) {
        return;
    }
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let stored = versions.into_iter().find(|version| version["storage"] == true).map(|version| version["name"].clone());
    if let Some(name) = stored {
        definition["status"]["storedVersions"] = json!([name]);
    }
}

#[cfg(test)]
mod tests {
    use super::{encode_base64, is_latest};

    #[test]
    fn only_a_fixed_tag_is_kept() {
        for (image, latest) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.2", false),
            ("host:5000/nginx", true),
            ("host:5000/nginx:1", false),
            ("nginx@sha256:00", false),
            ("", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }

    #[test]
    fn texts_are_encoded() {
        for (text, encoded) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("abcd", "YWJjZA==")] {
            assert_eq!(encode_base64(text.as_bytes()), encoded);
        }
    }
}
