//! `cargo xtask openapi`: takes from the real API server what the embedded one knows about built-in kinds.
//!
//! Written are, compressed, the OpenAPI v3 document of every group that the embedded API serves, cut down to the
//! resources it serves, and the discovery of those resources. Equal servers give equal files. The same server is then
//! asked what the tests of the schemas expect of it.

mod answers;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use control_plane::{ControlPlane, Options, Toolbox};
use flate2::{Compression, GzBuilder};
use serde_json::{Map, Value};

/// Where the files go.
const FOLDER: &str = "crates/schema/openapi";
/// The prefix of references to other schemas of the same document.
const REFERENCE_PREFIX: &str = "#/components/schemas/";

/// What the embedded API serves, by group and version. Left out is what would be stored without the effect it must
/// have (quotas, autoscalers, admission), and what is only kept for old clients.
const SERVED: [(&str, &[&str]); 12] = [
    (
        "api/v1",
        &[
            "configmaps",
            "events",
            "namespaces",
            "namespaces/finalize",
            "namespaces/status",
            "nodes",
            "nodes/status",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "persistentvolumes",
            "persistentvolumes/status",
            "pods",
            "pods/binding",
            "pods/eviction",
            "pods/log",
            "pods/status",
            "podtemplates",
            "secrets",
            "serviceaccounts",
            "services",
            "services/status",
        ],
    ),
    ("apis/apiextensions.k8s.io/v1", &["customresourcedefinitions", "customresourcedefinitions/status"]),
    (
        "apis/apps/v1",
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "statefulsets",
            "statefulsets/scale",
            "statefulsets/status",
        ],
    ),
    ("apis/batch/v1", &["cronjobs", "cronjobs/status", "jobs", "jobs/status"]),
    ("apis/coordination.k8s.io/v1", &["leases"]),
    ("apis/discovery.k8s.io/v1", &["endpointslices"]),
    ("apis/node.k8s.io/v1", &["runtimeclasses"]),
    ("apis/policy/v1", &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
    ("apis/rbac.authorization.k8s.io/v1", &["clusterrolebindings", "clusterroles", "rolebindings", "roles"]),
    (
        "apis/resource.k8s.io/v1",
        &["deviceclasses", "resourceclaims", "resourceclaims/status", "resourceclaimtemplates", "resourceslices"],
    ),
    ("apis/scheduling.k8s.io/v1", &["priorityclasses"]),
    (
        "apis/storage.k8s.io/v1",
        &[
            "csidrivers",
            "csinodes",
            "csistoragecapacities",
            "storageclasses",
            "volumeattachments",
            "volumeattachments/status",
        ],
    ),
];

/// Starts a control plane, asks it, writes the files.
pub(crate) fn run(root: &Path) -> Result<()> {
    let control_plane = ControlPlane::start(&Toolbox::ensure()?, &Options::api_only())?;
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("make `{}`", folder.display()))?;
    let mut discovery = Map::new();
    discovery.insert("version".to_owned(), version(&control_plane)?);
    let mut total_bytes = 0;
    for (group_version, served) in SERVED {
        let mut list = get(&control_plane, &format!("/{group_version}"))?;
        keep_served(&mut list, served).with_context(|| format!("discovery of `{group_version}`"))?;
        discovery.insert(group_version.to_owned(), list);
        let mut document = get(&control_plane, &format!("/openapi/v3/{group_version}"))?;
        trim(&mut document, group_version, served)?;
        let name = format!("{}.json.gz", group_version.replace('/', "_"));
        total_bytes += write(&folder.join(name), &document)?;
    }
    total_bytes += write(&folder.join("discovery.json.gz"), &Value::Object(discovery))?;
    println!("{total_bytes} bytes in `{FOLDER}`");
    answers::record(root, &control_plane)?;
    control_plane.stop()
}

fn get(control_plane: &ControlPlane, path: &str) -> Result<Value> {
    let text = control_plane.run_kubectl(["get", "--raw", path])?;
    serde_json::from_str(&text).with_context(|| format!("read what the API server says at `{path}`"))
}

/// The parts of the version that do not depend on who built the server.
fn version(control_plane: &ControlPlane) -> Result<Value> {
    let mut version = get(control_plane, "/version")?;
    let of_the_build = ["gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"];
    version.as_object_mut().context("the version is an object")?.retain(|key, _| !of_the_build.contains(&key.as_str()));
    Ok(version)
}

/// Leaves the served resources in a list of discovery.
fn keep_served(list: &mut Value, served: &[&str]) -> Result<()> {
    let resources = list["resources"].as_array_mut().context("there are resources")?;
    resources.retain(|resource| resource["name"].as_str().is_some_and(|name| served.contains(&name)));
    ensure!(resources.len() == served.len(), "some of {served:?} are not served: {resources:?}");
    Ok(())
}

/// Leaves the paths of served resources, without answers in formats that are not spoken, and the schemas that those
/// paths or the served kinds need.
fn trim(document: &mut Value, group_version: &str, served: &[&str]) -> Result<()> {
    let paths = document["paths"].as_object_mut().context("there are paths")?;
    let prefix = format!("/{group_version}/");
    paths.retain(|path, _| path.strip_prefix(&prefix).is_some_and(|rest| served.contains(&resource_of(rest).as_str())));
    for path in paths.values_mut() {
        keep_json(path);
    }
    let paths = Value::Object(paths.clone());
    let schemas = document["components"]["schemas"].as_object_mut().context("there are schemas")?;
    let needed = needed_schemas(&paths, schemas);
    schemas.retain(|name, _| needed.contains(name));
    Ok(())
}

/// The resource, with its subresource if there is one, that a path below a group version is about; empty for others.
fn resource_of(rest: &str) -> String {
    let mut segments: Vec<_> = rest.split('/').collect();
    if segments.first() == Some(&"watch") {
        return String::new();
    }
    let namespaced = segments.len() > 2 && segments[0] == "namespaces" && segments[1] == "{namespace}";
    if namespaced {
        segments.drain(..2);
    }
    segments.retain(|segment| !segment.starts_with('{'));
    segments.join("/")
}

/// Removes every content type but JSON and the patches, and the answer "unauthorised", which nobody gets here.
fn keep_json(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(content)) = fields.get_mut("content") {
                let spoken = |kind: &str| kind.contains("json") && !kind.contains("stream");
                content.retain(|kind, _| kind == "*/*" || spoken(kind));
            }
            if let Some(Value::Object(responses)) = fields.get_mut("responses") {
                responses.remove("401");
            }
            fields.values_mut().for_each(keep_json);
        }
        Value::Array(items) => items.iter_mut().for_each(keep_json),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The names of all schemas that are reachable from the paths.
fn needed_schemas(paths: &Value, schemas: &Map<String, Value>) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    let mut waiting: Vec<String> = references(paths).into_iter().collect();
    while let Some(name) = waiting.pop() {
        if let Some(schema) = schemas.get(&name)
            && needed.insert(name)
        {
            waiting.extend(references(schema));
        }
    }
    needed
}

fn references(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect_references(value, &mut found);
    found
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let target =
                fields.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix(REFERENCE_PREFIX));
            found.extend(target.map(str::to_owned));
            fields.values().for_each(|field| collect_references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Writes a document with its keys in order, compressed without a time, and says how large it became.
fn write(path: &Path, document: &Value) -> Result<u64> {
    let ordered: BTreeMap<String, Value> = serde_json::from_value(document.clone()).context("order the document")?;
    let text = serde_json::to_vec(&ordered).context("write the document")?;
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(&text).context("compress the document")?;
    let bytes = encoder.finish().context("compress the document")?;
    std::fs::write(path, &bytes).with_context(|| format!("write `{}`", path.display()))?;
    Ok(u64::try_from(bytes.len())?)
}

#[cfg(test)]
mod tests {
    use super::resource_of;

    #[test]
    fn a_path_is_about_its_resource() {
        for (path, resource) in [
            ("nodes", "nodes"),
            ("nodes/{name}", "nodes"),
            ("nodes/{name}/status", "nodes/status"),
            ("namespaces/{name}", "namespaces"),
            ("namespaces/{name}/finalize", "namespaces/finalize"),
            ("namespaces/{namespace}/pods", "pods"),
            ("namespaces/{namespace}/pods/{name}/log", "pods/log"),
            ("watch/nodes", ""),
        ] {
            assert_eq!(resource_of(path), resource, "{path}");
        }
    }
}
