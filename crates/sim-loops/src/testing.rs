//! Caches from JSON, and decisions as text, for the tables of the loops.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use sim::{Change, ObjectKey, StoreEvent};

use crate::caches::Caches;
use crate::write::{Decision, Part, Write};

/// A second of the test's clock.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Takes an object into the caches as seen at a second.
pub(crate) fn see(caches: &mut Caches, second: i64, object: &Value) {
    let (group, resource) = match object["kind"].as_str().unwrap() {
        "Pod" => ("", "pods"),
        "Node" => ("", "nodes"),
        "ReplicaSet" => ("apps", "replicasets"),
        "DaemonSet" => ("apps", "daemonsets"),
        "StatefulSet" => ("apps", "statefulsets"),
        "Job" => ("batch", "jobs"),
        other => panic!("{other}"),
    };
    let key = ObjectKey::new(
        group,
        resource,
        object["metadata"]["namespace"].as_str(),
        object["metadata"]["name"].as_str().unwrap(),
    );
    let event = StoreEvent { revision: 1, change: Change::Modified, key, object: Bytes::from(object.to_string()) };
    caches.apply(&event, at(second)).unwrap();
}

/// Tells the caches that an object is gone.
pub(crate) fn lose_node(caches: &mut Caches, second: i64, name: &str) {
    let key = ObjectKey::new("", "nodes", None, name);
    let event = StoreEvent { revision: 1, change: Change::Deleted, key, object: Bytes::from_static(b"{}") };
    caches.apply(&event, at(second)).unwrap();
}

/// A decision in a line: what is written in the order of writing, then when it looks again.
pub(crate) fn text(decision: &Decision) -> String {
    let mut words: Vec<String> = decision.writes.iter().filter_map(write_text).collect();
    words.extend(decision.look_again.map(|at| format!("again@{}", at.as_second())));
    words.join(" ")
}

fn write_text(write: &Write) -> Option<String> {
    match write {
        Write::Create { resource, object, .. } => {
            let metadata = &object["metadata"];
            let name = metadata["name"].as_str().or(metadata["generateName"].as_str()).unwrap();
            Some(format!("create:{}/{name}", resource.kind))
        }
        Write::Patch { key, part: Part::Status, patch, .. } => {
            Some(format!("status:{}={}", key.name, patch["status"]["phase"].as_str().unwrap_or("conditions")))
        }
        Write::Patch { key, .. } => Some(format!("patch:{}", key.name)),
        Write::ReplaceStatus { key, .. } => Some(format!("status:{}", key.name)),
        Write::Delete { key, grace_seconds, .. } => {
            Some(format!("delete:{}{}", key.name, if *grace_seconds == Some(0) { "!" } else { "" }))
        }
        Write::Bind { key, node, .. } => Some(format!("bind:{}={node}", key.name)),
        Write::Tell(_) | Write::Log { .. } => None,
    }
}
