//! Two controllers, one leader.

use anyhow::{Context, Result};
use e2e::leading::{leader, started};
use e2e::seen::{is_ready, is_running};
use e2e::{Bed, Controller, inflate, kwok_node_class, node_pool, wait_for};

e2e::cluster_tests! {
    a_standby_takes_over,
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
