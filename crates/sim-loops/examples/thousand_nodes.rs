//! A thousand nodes and thirty thousand pods in one process: how long, and how much memory.
//!
//! `cargo run --release -p sim-loops --example thousand_nodes -- [nodes] [pods]`
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sim::{Answer, ApiServer, ServerSettings};
use sim_loops::{LoopSettings, run};

const DEPLOYMENTS: usize = 100;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let nodes = numbers.first().copied().unwrap_or(1_000);
    let pods = numbers.get(1).copied().unwrap_or(30_000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(story(nodes, pods)),
        Err(error) => println!("no runtime: {error}"),
    }
}

async fn story(nodes: usize, pods: usize) {
    let real = Instant::now();
    let virtual_start = tokio::time::Instant::now();
    let clock = Arc::new(move || {
        let passed = SignedDuration::try_from(virtual_start.elapsed()).unwrap_or(SignedDuration::ZERO);
        Timestamp::UNIX_EPOCH.checked_add(passed).unwrap_or(Timestamp::MAX)
    });
    let server = ApiServer::new(ServerSettings::default(), clock.clone());
    let (_orders, receiver) = tokio::sync::mpsc::unbounded_channel();
    let loops = tokio::spawn(run(server.clone(), LoopSettings::default(), clock, receiver));
    for index in 0..nodes {
        post(&server, "/api/v1/nodes", &node(index));
    }
    for index in 0..DEPLOYMENTS {
        post(&server, "/apis/apps/v1/namespaces/default/deployments", &deployment(index, pods / DEPLOYMENTS));
    }
    loop {
        tokio::time::sleep(Duration::from_secs(30)).await;
        let ready = ready_replicas(&server);
        println!(
            "virtual {:>5} s  real {:>6.1} s  resident {:>5} MiB  ready pods {ready}",
            virtual_start.elapsed().as_secs(),
            real.elapsed().as_secs_f64(),
            resident_mebibytes(),
        );
        if ready >= pods / DEPLOYMENTS * DEPLOYMENTS || virtual_start.elapsed() > Duration::from_secs(7_200) {
            break;
        }
    }
    println!("revision {}", server.revision());
    loops.abort();
}

fn node(index: usize) -> Value {
    let name = format!("node-{index:04}");
    let room = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("zone-{}", index % 3)},
        },
        "status": {"capacity": room, "allocatable": room},
    })
}

fn deployment(index: usize, replicas: usize) -> Value {
    let labels = json!({"app": format!("app-{index}")});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": format!("app-{index}"), "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": "main",
                    "image": "pause:1",
                    "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}},
                }]},
            },
        },
    })
}

fn post(server: &ApiServer, path: &str, object: &Value) {
    let request = http::Request::post(path).header("content-type", "application/json");
    let Ok(request) = request.body(Bytes::from(object.to_string())) else { return };
    let answer = server.handle("example", request);
    if answer.code() >= 300 {
        println!("{path}: {}", answer.code());
    }
}

fn ready_replicas(server: &ApiServer) -> usize {
    let request = http::Request::get("/apis/apps/v1/namespaces/default/deployments").body(Bytes::new());
    let Ok(Answer::Document(response)) = request.map(|request| server.handle("example", request)) else { return 0 };
    let list: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let ready: u64 = items.iter().filter_map(|item| item["status"]["readyReplicas"].as_u64()).sum();
    usize::try_from(ready).unwrap_or(usize::MAX)
}

/// Memory that the process holds, where the system tells.
fn resident_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|kibibytes| kibibytes.parse::<u64>().ok()).unwrap_or(0) / 1024
}
