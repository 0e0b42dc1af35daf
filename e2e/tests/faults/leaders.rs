//! Leaders that die in the middle of their work.

use anyhow::{Result, ensure};
use e2e::leading::{leader, started};
use e2e::{Bed, Controller, Target, Wait, kwok_node_class, wait_for};
use kube::api::ListParams;

use crate::scene::{all_run, ask_for_pods, check_claims, is_draining, node_is_gone, node_of_any, set, set_with};

e2e::cluster_tests! {
    a_leader_dies_in_the_middle_of_a_launch,
    a_leader_dies_in_the_middle_of_a_drain,
}

/// The claims are there, their nodes are still to come. Whoever leads next makes each of them, once.
async fn a_leader_dies_in_the_middle_of_a_launch(bed: &impl Bed) -> Result<()> {
    let slow = format!("{}spec:\n  nodeRegistrationDelay: 20s\n", kwok_node_class("default"));
    let outside = set_with(bed, &slow).await?;
    ask_for_pods(bed, 5).await?;
    let first = started(bed, "first").await?;
    leader(bed, "first").await?;
    let second = started(bed, "second").await?;
    wait_for(bed.claims(), "two claims", |claims| claims.len() == 2).await?;
    first.kill().await?;
    let nodes = bed.nodes().list(&ListParams::default()).await?.items;
    ensure!(nodes.is_empty(), "the leader lived too long for this story: {nodes:?}");
    leader(bed, "second").await?;
    all_run(bed, 5).await?;
    check_claims(&outside, 2).await?;
    second.stop().await
}

/// One pod has left the node, the others are still there. Whoever leads next lets them go one at a time.
async fn a_leader_dies_in_the_middle_of_a_drain(bed: &impl Bed) -> Result<()> {
    let outside = set(bed).await?;
    ask_for_pods(bed, 5).await?;
    let first = started(bed, "first").await?;
    leader(bed, "first").await?;
    let second = started(bed, "second").await?;
    let pods = all_run(bed, 5).await?;
    let node = node_of_any(&pods)?;
    bed.delete(Target::Node(&node), Wait::No).await?;
    is_draining(bed, &pods).await?;
    first.kill().await?;
    leader(bed, "second").await?;
    node_is_gone(bed, &node).await?;
    all_run(bed, 5).await?;
    check_claims(&outside, 3).await?;
    second.stop().await
}
