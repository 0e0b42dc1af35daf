//! OpenAPI v3 documents. Those of custom groups are made after the pattern of a built-in one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::bundled::{BUNDLES, Bundle, fingerprint};
use crate::resource::{ResourceInfo, Subresource};
use crate::schemas::Schemas;

const REFERENCE_PREFIX: &str = "#/components/schemas/";
/// The schema of a scale, and the group whose document has it.
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
const SCALE_BUNDLE: &str = "apis/apps/v1";

/// A built-in kind whose paths are the pattern for custom ones.
struct Pattern {
    bundle: &'static str,
    group: &'static str,
    component: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// As it stands in the names of operations.
    operation: &'static str,
    /// As it stands in the tags of operations.
    tag: &'static str,
}

const NAMESPACED: Pattern = Pattern {
    bundle: "apis/coordination.k8s.io/v1",
    group: "coordination.k8s.io",
    component: "io.k8s.api.coordination.v1.Lease",
    kind: "Lease",
    plural: "leases",
    operation: "CoordinationV1",
    tag: "coordination_v1",
};
const CLUSTER: Pattern = Pattern {
    bundle: "apis/scheduling.k8s.io/v1",
    group: "scheduling.k8s.io",
    component: "io.k8s.api.scheduling.v1.PriorityClass",
    kind: "PriorityClass",
    plural: "priorityclasses",
    operation: "SchedulingV1",
    tag: "scheduling_v1",
};

/// `/openapi/v3`
pub(super) fn index(schemas: &Schemas) -> Value {
    let mut paths = BTreeMap::new();
    for bundle in &BUNDLES {
        paths.insert(bundle.path.to_owned(), bundle.fingerprint());
    }
    for (path, resources) in custom_groups(schemas) {
        let names: BTreeSet<_> = resources.iter().map(|resource| definition_name(resource)).collect();
        let specs: String =
            names.iter().filter_map(|name| schemas.definitions.get(name)).map(|one| one["spec"].to_string()).collect();
        paths.insert(path, fingerprint(specs.as_bytes()));
    }
    let entry = |(path, hash): (String, u64)| {
        let url = format!("/openapi/v3/{path}?hash={hash:016X}");
        (path, json!({"serverRelativeURL": url}))
    };
    json!({"paths": paths.into_iter().map(entry).collect::<Map<_, _>>()})
}

/// The document of a group version, by its path without the slash before it.
pub(super) fn document(schemas: &Schemas, path: &str) -> Option<Vec<u8>> {
    if let Some(bundle) = Bundle::at(path) {
        return Some(bundle.text());
    }
    let groups = custom_groups(schemas);
    Some(custom_document(schemas, groups.get(path)?).to_string().into_bytes())
}

/// Custom resources by the path of their group version.
fn custom_groups(schemas: &Schemas) -> BTreeMap<String, Vec<&ResourceInfo>> {
    let mut groups: BTreeMap<String, Vec<&ResourceInfo>> = BTreeMap::new();
    for resource in schemas.resources().filter(|resource| resource.is_custom) {
        groups.entry(format!("apis/{}/{}", resource.group, resource.version)).or_default().push(resource);
    }
    groups
}

fn definition_name(resource: &ResourceInfo) -> String {
    format!("{}.{}", resource.plural, resource.group)
}

fn custom_document(schemas: &Schemas, resources: &[&ResourceInfo]) -> Value {
    let mut paths = Map::new();
    let mut components = Map::new();
    for resource in resources {
        let pattern = if resource.namespaced { &NAMESPACED } else { &CLUSTER };
        let document = bundled_document(pattern.bundle);
        add_paths(&document, pattern, resource, &mut paths);
        copy_components(&document, "io.k8s.apimachinery.", &mut components);
        if resource.scale().is_some() {
            copy_components(&bundled_document(SCALE_BUNDLE), SCALE, &mut components);
        }
        let list = &document["components"]["schemas"][format!("{}List", pattern.component)];
        components.insert(format!("{}List", component(resource)), list_schema(list, pattern, resource));
        components.insert(component(resource), published_schema(schemas, resource));
    }
    let info = json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"});
    json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": components}})
}

fn bundled_document(path: &str) -> Value {
    let text = Bundle::at(path).map(Bundle::text).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn copy_components(document: &Value, prefix: &str, components: &mut Map<String, Value>) {
    let schemas = document["components"]["schemas"].as_object().into_iter().flatten();
    for (name, schema) in schemas.filter(|(name, _)| name.starts_with(prefix)) {
        components.insert(name.clone(), schema.clone());
    }
}

/// The name of a custom kind's schema: its group backwards, its version, its kind.
fn component(resource: &ResourceInfo) -> String {
    let group: Vec<_> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

fn add_paths(document: &Value, pattern: &Pattern, resource: &ResourceInfo, paths: &mut Map<String, Value>) {
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        let path = path
            .replace(
                &format!("/apis/{}/v1/", pattern.group),
                &format!("/apis/{}/{}/", resource.group, resource.version),
            )
            .replace(pattern.plural, &resource.plural);
        let mut operations = operations.clone();
        rename(&mut operations, pattern, resource);
        restrict_content(&mut operations);
        if path.ends_with("/{name}") {
            for part in &resource.subresources {
                let operations = part_operations(&operations, part, resource);
                paths.insert(format!("{path}/{}", part.segment()), operations);
            }
        }
        paths.insert(path, operations);
    }
}

/// The operations on a part of an object: those on the object but create and delete.
fn part_operations(operations: &Value, part: &Subresource, resource: &ResourceInfo) -> Value {
    let mut operations = operations.clone();
    if let Value::Object(fields) = &mut operations {
        fields.remove("delete");
        for (verb, operation) in fields.iter_mut().filter(|(verb, _)| *verb != "parameters") {
            if let Some(name) = operation["operationId"].as_str() {
                let suffix = if matches!(part, Subresource::Scale(_)) { "Scale" } else { "Status" };
                operation["operationId"] = format!("{name}{suffix}").into();
            }
            debug_assert!(matches!(verb.as_str(), "get" | "put" | "patch"), "{verb}");
        }
    }
    if matches!(part, Subresource::Scale(_)) {
        refer_to_scale(&mut operations, &format!("{REFERENCE_PREFIX}{}", component(resource)));
    }
    operations
}

/// A scale is of another kind than what is scaled.
fn refer_to_scale(value: &mut Value, own: &str) {
    match value {
        Value::Object(fields) => {
            if let Some(kind) = fields.get_mut("x-kubernetes-group-version-kind") {
                *kind = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
            }
            fields.values_mut().for_each(|field| refer_to_scale(field, own));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer_to_scale(item, own)),
        Value::String(text) if text == own => *text = format!("{REFERENCE_PREFIX}{SCALE}"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Custom kinds know no strategic merge.
fn restrict_content(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(content)) = fields.get_mut("content") {
                content.remove("application/strategic-merge-patch+json");
                if let Some(any) = content.remove("*/*") {
                    content.insert("application/json".to_owned(), any);
                }
            }
            fields.values_mut().for_each(restrict_content);
        }
        Value::Array(items) => items.iter_mut().for_each(restrict_content),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Puts the names of a custom kind where those of the pattern stand.
fn rename(value: &mut Value, pattern: &Pattern, resource: &ResourceInfo) {
    match value {
        Value::Object(fields) => {
            if fields.get("group").is_some_and(|group| *group == pattern.group) {
                fields.insert("group".to_owned(), resource.group.clone().into());
                fields.insert("version".to_owned(), resource.version.clone().into());
                fields.insert("kind".to_owned(), resource.kind.clone().into());
            }
            fields.values_mut().for_each(|field| rename(field, pattern, resource));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, pattern, resource)),
        Value::String(text) => {
            if let Some(name) = text.strip_prefix(REFERENCE_PREFIX) {
                if let Some(rest) = name.strip_prefix(pattern.component) {
                    *text = format!("{REFERENCE_PREFIX}{}{rest}", component(resource));
                }
            } else if text == pattern.tag {
                let (first, rest) = resource.group.split_once('.').unwrap_or((&resource.group, ""));
                let rest: String = rest.split('.').map(capitalised).collect();
                *text = format!("{first}{rest}_{}", resource.version);
            } else if text.contains(pattern.operation) {
                let group: String = resource.group.split('.').map(capitalised).collect();
                let operation = format!("{group}{}", capitalised(&resource.version));
                *text = text.replace(pattern.operation, &operation).replace(pattern.kind, &resource.kind);
            } else if text.len() < 100 && text.contains(pattern.kind) {
                *text = text.replace(pattern.kind, &resource.kind);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn list_schema(list: &Value, pattern: &Pattern, resource: &ResourceInfo) -> Value {
    let mut list = list.clone();
    rename(&mut list, pattern, resource);
    list["description"] = format!("{} is a list of {}", resource.list_kind, resource.kind).into();
    list["x-kubernetes-group-version-kind"] =
        json!([{"group": resource.group, "version": resource.version, "kind": resource.list_kind}]);
    list
}

/// The schema of a definition with the fields that all objects have.
fn published_schema(schemas: &Schemas, resource: &ResourceInfo) -> Value {
    let definition = schemas.definitions.get(&definition_name(resource));
    let versions = definition.and_then(|definition| definition["spec"]["versions"].as_array());
    let version = versions.into_iter().flatten().find(|version| version["name"] == resource.version.as_str());
    let mut schema = version.map(|version| version["schema"]["openAPIV3Schema"].clone()).unwrap_or_default();
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    name_both_types(&mut schema);
    let describe = |text: &str| json!({"description": text, "type": "string"});
    schema["properties"]["apiVersion"] = describe(API_VERSION_DESCRIPTION);
    schema["properties"]["kind"] = describe(KIND_DESCRIPTION);
    schema["properties"]["metadata"] = json!({
        "description": "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
        "allOf": [{"$ref": format!("{REFERENCE_PREFIX}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")}],
    });
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": resource.group, "version": resource.version, "kind": resource.kind}]);
    schema
}

/// What may be a number or a text says so in plain OpenAPI too.
fn name_both_types(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) && !fields.contains_key("anyOf") {
                fields.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
            }
            fields.values_mut().for_each(name_both_types);
        }
        Value::Array(items) => items.iter_mut().for_each(name_both_types),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

const API_VERSION_DESCRIPTION: &str = "APIVersion defines the versioned schema of this representation of an object. \
     Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More \
     info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND_DESCRIPTION: &str = "Kind is a string value representing the REST resource this object represents. Servers \
     may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
