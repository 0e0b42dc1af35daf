//! How much is written for one node.

use std::collections::BTreeMap;

use serde_json::json;

use super::stage::{fillers, play, pool};

const NODES: u32 = 60;
/// Over a node's life from its creation until it is initialized, pools included; events are told by all and for all.
const WRITES_PER_NODE_MAX: usize = 10;

/// From a pod that waits to an initialized node, few writes per node are made.
#[test]
fn a_node_costs_few_writes() {
    play(async |stage| {
        stage.apply(pool(json!({}))).await;
        stage.apply(fillers(NODES)).await;
        stage.until_all_running(NODES as usize).await;
        stage.wait(30).await;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (write, _) in stage.writes().into_iter().filter(|(write, _)| write != "create events") {
            *counts.entry(write).or_default() += 1;
        }
        let all: usize = counts.values().sum();
        println!("{:.1} writes per node: {counts:#?}", all as f64 / f64::from(NODES));
        assert!(all <= WRITES_PER_NODE_MAX * NODES as usize, "{all} writes for {NODES} nodes: {counts:#?}");
    });
}
