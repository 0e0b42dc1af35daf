//! The objects that the end-to-end tests send to a real API server are judged here as they are there.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use schema::{FieldValidation, ResourceInfo, Schemas, Scope, aggregate};
use serde::Deserialize;
use serde_json::{Value, json};

/// One object, and what must come of it; the file says more.
#[derive(Deserialize)]
struct Case {
    name: String,
    flavour: String,
    expect: Value,
    object: Value,
    before: Option<Value>,
    subresource: Option<String>,
    #[serde(default)]
    defaults: BTreeMap<String, Value>,
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let read = |document| {
        let value = serde_yaml_ng::Value::deserialize(document).unwrap();
        serde_json::to_value(value).unwrap()
    };
    serde_yaml_ng::Deserializer::from_str(&text).map(read).filter(|value| !value.is_null()).collect()
}

/// The kinds that a flavour's chart installs.
fn schemas(chart: &str) -> Schemas {
    let mut schemas = Schemas::bundled();
    for file in files(&repository(&format!("charts/{chart}/crds"))) {
        for definition in documents(&file) {
            let info = schemas.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions").unwrap().clone();
            let read = info.schema().decode(definition.to_string().as_bytes(), FieldValidation::Strict).unwrap();
            let mut definition = read.object;
            info.schema().default(&mut definition);
            assert_eq!(info.schema().validate(&definition, None, Scope::Main), []);
            schemas.add_definition(&definition).unwrap();
        }
    }
    schemas
}

fn resource<'a>(schemas: &'a Schemas, object: &Value) -> &'a ResourceInfo {
    let of_kind = |info: &&ResourceInfo| object["apiVersion"] == info.api_version() && object["kind"] == info.kind;
    schemas.resources().find(of_kind).unwrap()
}

/// What the API server would store, or why it would not.
fn write(info: &ResourceInfo, object: &Value, old: Option<&Value>, scope: Scope) -> Result<Value, String> {
    let body = object.to_string();
    let decoded = info.schema().decode(body.as_bytes(), FieldValidation::Strict);
    let mut object = decoded.map_err(|error| error.to_string())?.object;
    match (old, scope) {
        (Some(old), Scope::Status) => {
            let status = object["status"].take();
            object = old.clone();
            object["status"] = status;
        }
        (Some(old), Scope::Main | Scope::Scale) => {
            object["metadata"]["uid"] = old["metadata"]["uid"].clone();
            if info.has_status() {
                if let Some(fields) = object.as_object_mut() {
                    fields.remove("status");
                }
                if let Some(status) = old.get("status") {
                    object["status"] = status.clone();
                }
            }
        }
        (None, _) => {
            object["metadata"]["uid"] = json!("1");
            if let Some(fields) = object.as_object_mut().filter(|_| info.has_status()) {
                fields.remove("status");
            }
        }
    }
    info.schema().default(&mut object);
    let errors = info.schema().validate(&object, old, scope);
    if errors.is_empty() { Ok(object) } else { Err(aggregate(&errors)) }
}

/// A scale changes one number of the object.
fn scaled(info: &ResourceInfo, old: &Value, scale: &Value) -> Result<Value, String> {
    let mut object = old.clone();
    let paths = info.scale().unwrap();
    let pointer = paths.spec_replicas.replace('.', "/");
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = scale["spec"]["replicas"].clone();
    let written = write(info, &object, Some(old), Scope::Scale)?;
    let status = written.pointer(&paths.status_replicas.replace('.', "/")).cloned().unwrap_or_else(|| 0.into());
    Ok(json!({"spec": {"replicas": written.pointer(&pointer)}, "status": {"replicas": status}}))
}

fn outcome(schemas: &Schemas, case: &Case) -> Result<Value, String> {
    let Some(before) = &case.before else {
        return write(resource(schemas, &case.object), &case.object, None, Scope::Main);
    };
    let info = resource(schemas, before);
    let old = write(info, before, None, Scope::Main).map_err(|error| format!("before: {error}"))?;
    match case.subresource.as_deref() {
        None => write(info, &case.object, Some(&old), Scope::Main),
        Some("status") => write(info, &case.object, Some(&old), Scope::Status),
        Some(_) => scaled(info, &old, &case.object),
    }
}

fn differences(flavour: &str, chart: &str) -> Vec<String> {
    let schemas = schemas(chart);
    let mut differences = Vec::new();
    let mut cases = 0;
    for file in files(&repository("e2e/fixtures/resources")) {
        for document in documents(&file) {
            let case: Case = serde_json::from_value(document).unwrap();
            if case.flavour != flavour {
                continue;
            }
            cases += 1;
            let wanted = case.expect["rejected"].as_str();
            match (wanted, outcome(&schemas, &case)) {
                (Some(text), Err(message)) if message.contains(text) => {}
                (Some(text), Err(message)) => {
                    differences.push(format!("{}: wanted {text}, found {message}", case.name));
                }
                (Some(text), Ok(_)) => differences.push(format!("{}: wanted {text}, found accepted", case.name)),
                (None, Err(message)) => differences.push(format!("{}: wanted accepted, found {message}", case.name)),
                (None, Ok(object)) => {
                    for (pointer, value) in &case.defaults {
                        if object.pointer(pointer) != Some(value) {
                            let found = object.pointer(pointer);
                            differences.push(format!("{}: wanted {value} at {pointer}, found {found:?}", case.name));
                        }
                    }
                }
            }
        }
    }
    assert!(cases > 100, "only {cases} cases");
    differences
}

#[test]
fn kwok_resources_are_judged_as_by_the_real_server() {
    let differences = differences("kwok", "karpenter-kwok");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn eks_resources_are_judged_as_by_the_real_server() {
    let differences = differences("eks", "karpenter");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
