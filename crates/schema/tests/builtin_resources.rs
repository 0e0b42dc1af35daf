//! Objects of built-in kinds, and a few custom ones, are read, completed and judged as the real API server did it; see `builtin/cases.yaml`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;

use schema::{FieldValidation, ResourceInfo, Schemas, Scope};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Case {
    name: String,
    path: String,
    object: Value,
    before: Option<Value>,
    subresource: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Accepted(Value),
    Refused(Vec<String>),
}

/// The resource and namespace that a collection's path names.
fn resource<'a>(schemas: &'a Schemas, path: &str) -> (&'a ResourceInfo, Option<String>) {
    let segments: Vec<_> = path.split('/').skip(1).collect();
    let (group, version, rest) = match segments[..] {
        ["api", version, ref rest @ ..] => ("", version, rest),
        ["apis", group, version, ref rest @ ..] => (group, version, rest),
        _ => panic!("{path}"),
    };
    let (namespace, plural) = match rest {
        ["namespaces", namespace, plural] => (Some((*namespace).to_owned()), *plural),
        [plural] => (None, *plural),
        _ => panic!("{path}"),
    };
    (schemas.resource(group, version, plural).unwrap(), namespace)
}

/// The object without what the real server's admission adds and what it prepares when an object is created or
/// updated, which is not this crate's business.
fn without_admission(mut object: Value) -> Value {
    match object["kind"].as_str() {
        Some("Pod") if object["status"]["phase"] != "Running" => drop(object.as_object_mut().unwrap().remove("status")),
        Some("DaemonSet") => drop(object["metadata"].as_object_mut().unwrap().remove("annotations")),
        Some("Job") => {
            object["spec"].as_object_mut().unwrap().remove("selector");
            for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
                if let Some(labels) = object.pointer_mut(labels).and_then(Value::as_object_mut) {
                    labels.retain(|key, _| !key.ends_with("job-name") && !key.ends_with("controller-uid"));
                }
            }
        }
        _ => {}
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        let protects = |finalizer: &Value| finalizer.as_str().is_some_and(|name| name.ends_with("-protection"));
        metadata.retain(|key, value| key != "finalizers" || !value.as_array().unwrap().iter().all(protects));
    }
    if let Some(taints) = object.pointer_mut("/spec/taints").and_then(Value::as_array_mut) {
        taints.retain(|taint| taint["key"] != "node.kubernetes.io/not-ready");
        if taints.is_empty() {
            object["spec"].as_object_mut().unwrap().remove("taints");
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
    }
    if object["kind"] == "Pod" {
        let spec = object["spec"].as_object_mut().unwrap();
        spec.remove("priority");
        spec.remove("preemptionPolicy");
        if let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
            tolerations.retain(|toleration| toleration["effect"] != "NoExecute");
            if tolerations.is_empty() {
                spec.remove("tolerations");
            }
        }
    }
    object
}

/// What an update of the status makes of an object.
fn write_status(info: &ResourceInfo, object: &Value, old: &Value) -> Answer {
    let decoded = info.schema().decode(object.to_string().as_bytes(), FieldValidation::Strict).unwrap();
    let mut object = old.clone();
    object["status"] = decoded.object["status"].clone();
    info.schema().default(&mut object);
    judged(info, object, Some(old), Scope::Status)
}

fn judged(info: &ResourceInfo, object: Value, old: Option<&Value>, scope: Scope) -> Answer {
    let errors = info.schema().validate(&object, old, scope);
    if errors.is_empty() {
        Answer::Accepted(object)
    } else {
        Answer::Refused(errors.iter().map(|error| error.to_string().lines().next().unwrap().to_owned()).collect())
    }
}

fn write(info: &ResourceInfo, namespace: Option<&String>, object: &Value, old: Option<&Value>) -> Answer {
    let decoded = match info.schema().decode(object.to_string().as_bytes(), FieldValidation::Strict) {
        Ok(decoded) => decoded,
        Err(error) => return Answer::Refused(vec![error.to_string()]),
    };
    let mut object = decoded.object;
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object["metadata"]["uid"] = json!("fixed");
    if info.has_status()
        && info.kind != "Node"
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    info.schema().default(&mut object);
    judged(info, object, old, Scope::Main)
}

fn outcome(schemas: &Schemas, case: &Case) -> Answer {
    let (info, namespace) = resource(schemas, &case.path);
    let old = case.before.as_ref().map(|before| match write(info, namespace.as_ref(), before, None) {
        Answer::Accepted(object) => object,
        Answer::Refused(problems) => panic!("{}: {problems:?}", case.name),
    });
    let mut object = case.object.clone();
    if let Some(old) = &old {
        // Admission put these into the old one; without them an update would change them.
        if info.kind == "Pod" {
            let status = object.get("status").cloned();
            object = without_admission(object);
            object["status"] = status.unwrap_or_default();
        }
        assert!(old["spec"].get("priority").is_none());
    }
    match (&old, &case.subresource) {
        (Some(old), Some(_)) => {
            // The server computed it when the pod was made.
            let mut old = old.clone();
            if info.kind == "Pod" {
                old["status"]["qosClass"] = json!("BestEffort");
            }
            write_status(info, &object, &old)
        }
        (old, _) => write(info, namespace.as_ref(), &object, old.as_ref()),
    }
}

/// What is different every time.
const FLEETING: [&str; 3] = ["uid", "generation", "resourceVersion"];

/// An answer as text, with complaints in order: the real server's order is that of a hash map.
fn shown(answer: Answer) -> String {
    match answer {
        Answer::Accepted(object) => {
            let mut object = without_admission(object);
            object["metadata"].as_object_mut().unwrap().retain(|key, _| !FLEETING.contains(&key.as_str()));
            serde_json::to_string_pretty(&object).unwrap()
        }
        Answer::Refused(mut problems) => {
            problems.sort();
            problems.dedup();
            problems.join("\n")
        }
    }
}

fn schemas() -> Schemas {
    let mut schemas = Schemas::bundled();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/karpenter-kwok/crds");
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        schemas.add_definition(&serde_yaml_ng::from_str(&text).unwrap()).unwrap();
    }
    schemas
}

#[test]
fn built_in_resources_are_judged_as_by_the_real_server() {
    let schemas = schemas();
    let cases: Vec<Case> = serde_yaml_ng::from_str(include_str!("builtin/cases.yaml")).unwrap();
    let mut answers: BTreeMap<String, Answer> = serde_json::from_str(include_str!("builtin/answers.json")).unwrap();
    let mut differences = Vec::new();
    for case in &cases {
        let wanted = shown(answers.remove(&case.name).unwrap());
        let found = shown(outcome(&schemas, case));
        if wanted != found {
            differences.push(format!("## {}\n--- wanted\n{wanted}\n--- found\n{found}\n", case.name));
        }
    }
    assert!(answers.is_empty(), "answers without a case: {:?}", answers.keys());
    let count = differences.len();
    assert!(differences.is_empty(), "{count} of {} differ\n{}", cases.len(), differences.join("\n"));
}
