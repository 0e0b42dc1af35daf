//! Fills a server with 1,000 nodes and 30,000 running pods and says what that took, for the budget of memory:
//!
//! ```text
//! cargo run -p sim --example measure
//! ```

#![allow(clippy::print_stdout)]

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use sim::{ApiServer, ServerSettings};
use std::sync::Arc;
use std::time::Instant;

const NODES: usize = 1_000;
const PODS: usize = 30_000;

fn main() -> Result<(), sim::Status> {
    let server = ApiServer::new(ServerSettings::default(), Arc::new(|| jiff::Timestamp::UNIX_EPOCH));
    let hands = server.act("measurer");
    let start = Instant::now();
    for node in 0..NODES {
        let conditions = json!([{ "type": "Ready", "status": "True", "reason": "KubeletReady" }]);
        let object = json!({
            "metadata": { "name": format!("node-{node}"), "labels": { "topology.kubernetes.io/zone": "a" } },
            "status": { "capacity": { "cpu": "32", "memory": "64Gi", "pods": "110" }, "conditions": conditions },
        });
        hands.create_object("", "nodes", &object)?;
    }
    for pod in 0..PODS {
        let name = format!("inflate-{pod}");
        let resources = json!({ "requests": { "cpu": "1", "memory": "256Mi" } });
        let object = json!({
            "metadata": { "name": name, "namespace": "default", "labels": { "app": "inflate" } },
            "spec": { "containers": [{ "name": "inflate", "image": "pause", "resources": resources }] },
        });
        hands.create_object("", "pods", &object)?;
        hands.bind("default", &name, &format!("node-{}", pod % NODES))?;
        let conditions = json!([{ "type": "Ready", "status": "True" }, { "type": "PodScheduled", "status": "True" }]);
        let status = json!({ "status": { "phase": "Running", "podIP": "10.0.0.1", "conditions": conditions } });
        hands.patch_merge::<Pod>(Some("default"), &name, Some("status"), &status)?;
    }
    println!("filled in {:?}, {}", start.elapsed(), memory());
    let start = Instant::now();
    println!("{} pods listed in {:?}", hands.list::<Pod>(Some("default"))?.len(), start.elapsed());
    println!("{}", memory());
    Ok(())
}

/// What this process holds now, and held at most.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
    lines.collect::<Vec<_>>().join(" ")
}
