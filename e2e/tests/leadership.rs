//! Two controllers, one leader.

use anyhow::{Context, Result};
use e2e::leading::{leader, started, started_with};
use e2e::seen::{is_ready, is_running};
use e2e::{Bed, Controller, ControllerSettings, inflate, kwok_node_class, node_pool, wait_for, wait_until};

e2e::cluster_tests! {
    a_standby_takes_over,
    a_warm_standby_knows_the_cluster_and_keeps_still,
    a_killed_leader_is_replaced,
}

/// The pod gets a node from whoever leads, and only one.
async fn one_pod_gets_one_node(bed: &impl Bed) -> Result<()> {
    bed.apply(&[kwok_node_class("default"), node_pool("default", ""), inflate(1)].join("---\n")).await?;
    wait_for(bed.pods(), "a running pod", |pods| pods.len() == 1 && pods.values().all(is_running)).await?;
    wait_for(bed.claims(), "one claim", |claims| claims.len() == 1 && claims.values().all(is_ready)).await?;
    Ok(())
}

/// OBS-15: one leads, the other stands by; a leader that is told to stop gives the lease back at once.
async fn a_standby_takes_over(bed: &impl Bed) -> Result<()> {
    let first = started(bed, "first").await?;
    leader(bed, "first").await?;
    let second = started(bed, "second").await?;
    one_pod_gets_one_node(bed).await?;
    leader(bed, "first").await?;
    assert!(!second.metrics().await?.contains("karpenter_cluster_state_synced 1"), "a standby looks at nothing");
    first.stop().await?;
    let identity = leader(bed, "second").await?;
    let (_, id) = identity.split_once('_').context("host and id")?;
    assert!(!id.is_empty());
    second.stop().await
}

/// A leader that is killed gives nothing back; its lease runs out, and the other goes on with the work.
async fn a_killed_leader_is_replaced(bed: &impl Bed) -> Result<()> {
    let first = started(bed, "first").await?;
    leader(bed, "first").await?;
    let second = started(bed, "second").await?;
    first.kill().await?;
    leader(bed, "second").await?;
    one_pod_gets_one_node(bed).await?;
    second.stop().await
}

/// A standby that is told to warm up sees everything before it leads, tells nothing of it and does nothing; once it
/// leads, it makes what is missing and nothing that is there.
async fn a_warm_standby_knows_the_cluster_and_keeps_still(bed: &impl Bed) -> Result<()> {
    let first = started(bed, "first").await?;
    leader(bed, "first").await?;
    let warm = ControllerSettings::default().with("DISABLE_CONTROLLER_WARMUP", "false");
    let second = started_with(bed, "second", warm).await?;
    one_pod_gets_one_node(bed).await?;
    let told = wait_until("a standby that knows the node", async || {
        let told = second.metrics().await.ok()?;
        told.contains("karpenter_cluster_state_node_count 1").then_some(told)
    })
    .await?;
    assert!(told.contains("karpenter_cluster_state_synced 1"), "the standby has listed everything");
    assert!(!told.contains("karpenter_nodes_allocatable"), "the leader tells of the node, and nobody else");
    assert!(!told.contains("controller_runtime_reconcile_total{"), "the standby does nothing");
    leader(bed, "first").await?;

    first.kill().await?;
    leader(bed, "second").await?;
    bed.scale("inflate", 2).await?;
    wait_for(bed.pods(), "two running pods", |pods| pods.len() == 2 && pods.values().all(is_running)).await?;
    let told = second.metrics().await?;
    assert!(told.contains("karpenter_nodes_allocatable"), "whoever leads tells of the nodes");
    second.stop().await
}
