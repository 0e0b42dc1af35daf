//! What people see of the custom resources through `kubectl`: names, scope, subresources and columns.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::server::{Answer, Server, Write};

/// How often and in what steps a list of resources is asked for until it names the newest ones.
const QUESTIONS_MAX: usize = 200;
const QUESTION_INTERVAL: Duration = Duration::from_millis(50);

/// A kind as the API server describes it, in the words of [`names`] and [`columns`].
pub(crate) struct Kind {
    /// Group and version.
    pub(crate) api_version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) names: &'static str,
    pub(crate) columns: &'static [&'static str],
}

/// Every kind that either controller installs.
pub(crate) const KINDS: [Kind; 6] = [
    Kind {
        api_version: "karpenter.sh/v1",
        plural: "nodepools",
        names: "nodepool NodePool cluster short[] categories[karpenter] parts[scale status]",
        columns: &[
            "Name string",
            "NodeClass string",
            "Nodes string",
            "Ready string",
            "Age date",
            "Weight integer wide",
            "CPU string wide",
            "Memory string wide",
        ],
    },
    Kind {
        api_version: "karpenter.sh/v1",
        plural: "nodeclaims",
        names: "nodeclaim NodeClaim cluster short[] categories[karpenter] parts[status]",
        columns: &[
            "Name string",
            "Type string",
            "Capacity string",
            "Zone string",
            "Node string",
            "Ready string",
            "Age date",
            "ImageID string wide",
            "ID string wide",
            "NodePool string wide",
            "NodeClass string wide",
            "Drifted string wide",
        ],
    },
    Kind {
        api_version: "karpenter.sh/v1alpha1",
        plural: "nodeoverlays",
        names: "nodeoverlay NodeOverlay cluster short[overlays] categories[karpenter] parts[status]",
        columns: &["Name string", "Ready string", "Age date", "Weight integer wide"],
    },
    Kind {
        api_version: "autoscaling.x-k8s.io/v1beta1",
        plural: "capacitybuffers",
        names: "capacitybuffer CapacityBuffer namespaced short[cb] categories[autoscaling] parts[status]",
        columns: &[
            "Name string",
            "Strategy string",
            "PodTemplate string",
            "Replicas integer",
            "ConditionsType string",
            "ConditionsStatus string",
            "ConditionsReason string",
            "Age date",
        ],
    },
    Kind {
        api_version: "karpenter.kwok.sh/v1alpha1",
        plural: "kwoknodeclasses",
        names: "kwoknodeclass KWOKNodeClass cluster short[kwoknc kwokncs] categories[karpenter] parts[status]",
        columns: &["Name string", "Age date"],
    },
    Kind {
        api_version: "karpenter.k8s.aws/v1",
        plural: "ec2nodeclasses",
        names: "ec2nodeclass EC2NodeClass cluster short[ec2nc ec2ncs] categories[karpenter] parts[status]",
        columns: &["Name string", "Ready string", "Age date", "Role string wide"],
    },
];

/// Every difference between a kind and what the API server says of it.
pub(crate) async fn differences(server: &Server, kind: &Kind) -> Result<Vec<String>> {
    let Kind { api_version, plural, names: wanted_names, columns: wanted_columns } = kind;
    let mut found = Vec::new();
    let names = names_in_time(server, kind).await?;
    if names != *wanted_names {
        found.push(format!("- the names of {plural}\n    wanted: {wanted_names}\n    found:  {names}"));
    }
    let columns = columns(&server.table(&format!("/apis/{api_version}/{plural}")).await?);
    if columns != *wanted_columns {
        let (wanted, columns) = (wanted_columns.join(", "), columns.join(", "));
        found.push(format!("- the columns of {plural}\n    wanted: {wanted}\n    found:  {columns}"));
    }
    Ok(found)
}

/// The names of a kind, asked for until they are there: the API server lists a new kind shortly after it serves it.
async fn names_in_time(server: &Server, kind: &Kind) -> Result<String> {
    let path = format!("/apis/{}", kind.api_version);
    for _ in 0..QUESTIONS_MAX {
        // Until the first kind of a version is listed the version itself is not found.
        if let Some(found) = server.get(&path).await.ok().and_then(|list| names(&list, kind.plural)) {
            return Ok(found);
        }
        tokio::time::sleep(QUESTION_INTERVAL).await;
    }
    names(&server.get(&path).await?, kind.plural).with_context(|| format!("`{path}` does not list `{}`", kind.plural))
}

/// Singular, kind, scope, short names, categories and subresources of one resource in a list of them.
fn names(list: &Value, plural: &str) -> Option<String> {
    let resources = list["resources"].as_array()?;
    let resource = resources.iter().find(|resource| resource["name"] == plural)?;
    let text = |key: &str| resource[key].as_str().unwrap_or("?").to_owned();
    let words = |key: &str| {
        let words: Vec<_> = resource[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        words.join(" ")
    };
    let prefix = format!("{plural}/");
    let mut parts: Vec<_> = resources.iter().filter_map(|part| part["name"].as_str()?.strip_prefix(&prefix)).collect();
    parts.sort_unstable();
    Some(format!(
        "{} {} {} short[{}] categories[{}] parts[{}]",
        text("singularName"),
        text("kind"),
        if resource["namespaced"] == true { "namespaced" } else { "cluster" },
        words("shortNames"),
        words("categories"),
        parts.join(" "),
    ))
}

/// Name and type of each column, and whether only `-o wide` shows it.
fn columns(table: &Value) -> Vec<String> {
    let column = |definition: &Value| {
        let text = |key: &str| definition[key].as_str().unwrap_or("?").to_owned();
        let width = match definition["priority"].as_i64() {
            Some(0) => String::new(),
            Some(1) => " wide".to_owned(),
            other => format!(" priority {other:?}"),
        };
        format!("{} {}{width}", text("name"), text("type"))
    };
    table["columnDefinitions"].as_array().into_iter().flatten().map(column).collect()
}

/// Every difference between what is wanted in the columns of an object and what the API server prints there.
///
/// The object is created with its status and left behind. The age is not compared.
pub(crate) async fn cell_differences(server: &Server, object: &Value, wanted: &[(&str, Value)]) -> Result<Vec<String>> {
    let path = server.path(object)?;
    let mut full = object.clone();
    full["metadata"]["resourceVersion"] =
        accepted(server.create(object, Write::Real).await?)?["metadata"]["resourceVersion"].clone();
    accepted(server.replace(&format!("{path}/status"), &full, Write::Real).await?)?;
    let table = server.table(&server.collection(object)?).await?;
    let headings = table["columnDefinitions"].as_array().context("a table has columns")?;
    let rows = table["rows"].as_array().context("a table has rows")?;
    ensure!(rows.len() == 1, "wanted one row, found {}", rows.len());
    let cells = rows[0]["cells"].as_array().context("a row has cells")?;
    let found: Vec<_> = headings
        .iter()
        .map(|heading| heading["name"].as_str().unwrap_or("?"))
        .zip(cells.iter().cloned())
        .filter(|(heading, _)| *heading != "Age")
        .collect();
    Ok(if found == wanted {
        Vec::new()
    } else {
        vec![format!("- {path}\n    wanted: {wanted:?}\n    found:  {found:?}")]
    })
}

fn accepted(answer: Answer) -> Result<Value> {
    match answer {
        Answer::Accepted(object) => Ok(object),
        Answer::Rejected(problem) | Answer::Failed(problem) => Err(anyhow::anyhow!(problem)),
    }
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": "2024-01-01T01:01:01Z"})
}

/// A pool with something in every column, and what must be printed there.
pub(crate) fn printed_pool() -> (Value, Vec<(&'static str, Value)>) {
    let pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "general"},
        "spec": {
            "weight": 7,
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "small"},
                "requirements": [],
            }},
        },
        "status": {
            "nodes": 3,
            "resources": {"cpu": "12", "memory": "48Gi"},
            "conditions": [condition("NodeClassReady", "False"), condition("Ready", "True")],
        },
    });
    let printed = vec![
        ("Name", json!("general")),
        ("NodeClass", json!("small")),
        ("Nodes", json!("3")),
        ("Ready", json!("True")),
        ("Weight", json!(7)),
        ("CPU", json!("12")),
        ("Memory", json!("48Gi")),
    ];
    (pool, printed)
}

/// A claim with something in every column, and what must be printed there.
pub(crate) fn printed_claim() -> (Value, Vec<(&'static str, Value)>) {
    let claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "general-x7", "labels": {
            "node.kubernetes.io/instance-type": "c-4x-amd64-linux",
            "karpenter.sh/capacity-type": "spot",
            "topology.kubernetes.io/zone": "zone-b",
            "karpenter.sh/nodepool": "general",
        }},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "small"},
            "requirements": [],
        },
        "status": {
            "nodeName": "node-9",
            "imageID": "image-5",
            "providerID": "kwok://node-9",
            "conditions": [condition("Drifted", "True"), condition("Ready", "Unknown")],
        },
    });
    let printed = vec![
        ("Name", json!("general-x7")),
        ("Type", json!("c-4x-amd64-linux")),
        ("Capacity", json!("spot")),
        ("Zone", json!("zone-b")),
        ("Node", json!("node-9")),
        ("Ready", json!("Unknown")),
        ("ImageID", json!("image-5")),
        ("ID", json!("kwok://node-9")),
        ("NodePool", json!("general")),
        ("NodeClass", json!("small")),
        ("Drifted", json!("True")),
    ];
    (claim, printed)
}
