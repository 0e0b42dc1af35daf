//! Which groups, versions and resources there are.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::bundled;
use crate::resource::{ResourceInfo, Subresource};
use crate::schemas::Schemas;

/// The order in which the API server lists built-in groups; clients take the first that knows a name.
const GROUP_ORDER: [&str; 11] = [
    "apps",
    "batch",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
];

/// All groups but the core one with their versions, best first.
fn groups(schemas: &Schemas) -> Vec<(String, Vec<String>)> {
    // Custom groups come last, in the reverse order of their names.
    let mut found: BTreeMap<(usize, Reverse<String>), Vec<String>> = BTreeMap::new();
    for resource in schemas.resources().filter(|resource| !resource.group.is_empty()) {
        let rank = GROUP_ORDER.iter().position(|group| *group == resource.group).unwrap_or(GROUP_ORDER.len());
        let versions = found.entry((rank, Reverse(resource.group.clone()))).or_default();
        if !versions.contains(&resource.version) {
            versions.push(resource.version.clone());
        }
    }
    found
        .into_iter()
        .map(|((_, Reverse(group)), mut versions)| {
            versions.sort_by_key(|version| Reverse(priority(version)));
            (group, versions)
        })
        .collect()
}

/// Stable versions come before beta ones, those before alpha ones, higher before lower.
fn priority(version: &str) -> (u32, u32, u32) {
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    if let Some((major, minor)) = rest.split_once("beta") {
        (2, number(major), number(minor))
    } else if let Some((major, minor)) = rest.split_once("alpha") {
        (1, number(major), number(minor))
    } else {
        (3, number(rest), 0)
    }
}

/// `/api`
pub(super) fn core_versions() -> Value {
    let address = json!({"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"});
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]})
}

/// `/apis`
pub(super) fn group_list(schemas: &Schemas) -> Value {
    let groups: Vec<_> = groups(schemas).iter().map(|(group, versions)| group_value(group, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/{group}`
pub(super) fn group(schemas: &Schemas, name: &str) -> Option<Value> {
    let (group, versions) = groups(schemas).into_iter().find(|(group, _)| group == name)?;
    let mut value = group_value(&group, &versions);
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Some(value)
}

fn group_value(group: &str, versions: &[String]) -> Value {
    let version = |version: &String| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    let versions: Vec<_> = versions.iter().map(version).collect();
    json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
}

/// `/api/v1` and `/apis/{group}/{version}`
pub(super) fn resource_list(schemas: &Schemas, group: &str, version: &str) -> Option<Value> {
    let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
    if let Some(list) = bundled::discovery().get(&path) {
        return Some(list.clone());
    }
    let mut resources = Vec::new();
    for resource in schemas.resources().filter(|resource| resource.group == group && resource.version == version) {
        resources.push(resource_value(resource));
        resources.extend(resource.subresources.iter().map(|part| subresource_value(resource, part)));
    }
    if resources.is_empty() {
        return None;
    }
    let group_version = format!("{group}/{version}");
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

fn resource_value(resource: &ResourceInfo) -> Value {
    let mut value = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    insert_names(&mut value, resource);
    if let Some(hash) = &resource.storage_version_hash {
        value["storageVersionHash"] = hash.clone().into();
    }
    value
}

fn insert_names(value: &mut Value, resource: &ResourceInfo) {
    if !resource.short_names.is_empty() {
        value["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        value["categories"] = resource.categories.clone().into();
    }
}

fn subresource_value(resource: &ResourceInfo, part: &Subresource) -> Value {
    let mut value = json!({
        "name": format!("{}/{}", resource.plural, part.segment()),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["get", "patch", "update"],
    });
    if matches!(part, Subresource::Scale(_)) {
        value["group"] = "autoscaling".into();
        value["version"] = "v1".into();
        value["kind"] = "Scale".into();
    }
    value
}

/// `/api`, aggregated
pub(super) fn aggregated_core(schemas: &Schemas) -> Value {
    let versions = [aggregated_version(schemas, "", "v1")];
    aggregated_list(vec![json!({"metadata": {}, "versions": versions})])
}

/// `/apis`, aggregated
pub(super) fn aggregated_groups(schemas: &Schemas) -> Value {
    let item = |(group, versions): (String, Vec<String>)| {
        let versions: Vec<_> = versions.iter().map(|version| aggregated_version(schemas, &group, version)).collect();
        json!({"metadata": {"name": group}, "versions": versions})
    };
    aggregated_list(groups(schemas).into_iter().map(item).collect())
}

fn aggregated_list(items: Vec<Value>) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_version(schemas: &Schemas, group: &str, version: &str) -> Value {
    let list = resource_list(schemas, group, version).unwrap_or_default();
    let entries = list["resources"].as_array().cloned().unwrap_or_default();
    let mut resources: Vec<Value> = Vec::new();
    for entry in &entries {
        let name = entry["name"].as_str().unwrap_or_default();
        match name.split_once('/') {
            None => resources.push(aggregated_resource(entry, group, version)),
            Some((plural, part)) => {
                let owner = resources.iter_mut().find(|resource| resource["resource"] == plural);
                if let Some(Value::Object(owner)) = owner {
                    let parts = owner.entry("subresources").or_insert_with(|| json!([]));
                    if let Value::Array(parts) = parts {
                        parts.push(aggregated_subresource(entry, part, group, version));
                    }
                }
            }
        }
    }
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn aggregated_resource(entry: &Value, group: &str, version: &str) -> Value {
    let mut resource = Map::new();
    let scope = if entry["namespaced"] == true { "Namespaced" } else { "Cluster" };
    resource.insert("resource".to_owned(), entry["name"].clone());
    resource.insert("responseKind".to_owned(), response_kind(entry, group, version));
    resource.insert("scope".to_owned(), scope.into());
    resource.insert("singularResource".to_owned(), entry["singularName"].clone());
    for key in ["verbs", "shortNames", "categories"] {
        if let Some(value) = entry.get(key) {
            resource.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(resource)
}

fn aggregated_subresource(entry: &Value, name: &str, group: &str, version: &str) -> Value {
    json!({
        "subresource": name,
        "responseKind": response_kind(entry, group, version),
        "verbs": entry["verbs"],
    })
}

/// The kind of an answer. Custom kinds always say their group; built-in ones only where it is another one.
fn response_kind(entry: &Value, group: &str, version: &str) -> Value {
    let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
    let is_custom = !bundled::discovery().contains_key(&path);
    let named = |key: &str, own: &str| entry[key].as_str().unwrap_or(if is_custom { own } else { "" }).to_owned();
    json!({"group": named("group", group), "version": named("version", version), "kind": entry["kind"]})
}
