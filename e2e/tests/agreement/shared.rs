//! What all clusters share.

use anyhow::Result;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use crate::draw::{PRIORITIES, RUNTIME_CLASS, priority_class, read};

/// Makes a class for every priority, and a runtime class with overhead. No priority preempts, nor does having none: a pod
/// that is pushed out would only blur who was pending.
pub(crate) async fn create(client: &Client) -> Result<()> {
    for value in PRIORITIES.into_iter().chain([0]) {
        let class: PriorityClass = read(json!({
            "metadata": {"name": priority_class(value)},
            "value": value,
            "globalDefault": value == 0,
            "preemptionPolicy": "Never",
        }));
        Api::all(client.clone()).create(&PostParams::default(), &class).await?;
    }
    let overhead = json!({"podFixed": {"cpu": "200m", "memory": "100Mi"}});
    let class: RuntimeClass =
        read(json!({"metadata": {"name": RUNTIME_CLASS}, "handler": RUNTIME_CLASS, "overhead": overhead}));
    Api::all(client.clone()).create(&PostParams::default(), &class).await?;
    Ok(())
}
