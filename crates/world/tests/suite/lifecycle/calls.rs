//! What is told of the calls of a provider.

use cloud::LaunchError;
use serde_json::json;

use super::stage::{Stage, fillers, play_with, pool};
use crate::scrape::sum;

const ERRORS: &str = "karpenter_cloudprovider_errors_total";
const SECONDS: &str = "karpenter_cloudprovider_duration_seconds_count";

/// Method, error and pool of each kind of failure that is told, and which controller has called. A question about one
/// instance is of no pool.
const FAILURES: [[&str; 4]; 9] = [
    ["Create", "InsufficientCapacityError", "default", "nodeclaim.lifecycle"],
    ["Create", "NodeClassNotReadyError", "default", "nodeclaim.lifecycle"],
    ["Create", "unknown", "default", "nodeclaim.lifecycle"],
    ["Delete", "NodeClaimNotFoundError", "default", "node.termination"],
    ["Delete", "NodeClaimNotFoundError", "default", "nodeclaim.lifecycle"],
    ["Delete", "unknown", "default", "node.termination"],
    ["FindLaunched", "unknown", "default", "nodeclaim.lifecycle"],
    ["Get", "NodeClaimNotFoundError", "", "node.termination"],
    ["GetInstanceTypes", "unknown", "default", "state.pricing"],
];

async fn until_told(stage: &Stage, error: &str) {
    let is_told = async || stage.metric(ERRORS, &format!("error=\"{error}\"")) >= 1.0;
    stage.until(error, is_told).await;
}

/// CP-07, MET-01: calls are measured by who makes them; those that fail are counted by how, and by whose pool.
#[test]
fn failed_calls_are_told_by_how_and_for_whom() {
    play_with("cloud find #1 fails, cloud types #2 fails", async |stage| {
        let message = || "m".to_owned();
        stage.order(|orders| orders.refusal = Some(LaunchError::InsufficientCapacity { message: message() }));
        stage.apply(pool(json!({}))).await;
        stage.apply(fillers(1)).await;
        until_told(stage, "InsufficientCapacityError").await;
        stage.order(|orders| orders.refusal = Some(LaunchError::NodeClassNotReady { message: message() }));
        until_told(stage, "NodeClassNotReadyError").await;
        stage.order(|orders| orders.refusal = Some(LaunchError::Failed { message: message() }));
        stage.until("a look that failed", async || stage.metric(ERRORS, "method=\"FindLaunched\"") >= 1.0).await;
        let failed = "method=\"Create\",provider=\"kwok\",error=\"unknown\"";
        stage.until("a launch that failed", async || stage.metric(ERRORS, failed) >= 1.0).await;
        stage.order(|orders| {
            orders.refusal = None;
            orders.failed_ends = 1;
        });
        stage.until_all_running(1).await;
        let (claim, _) = stage.claims().await.pop_first().unwrap();
        stage.delete_claim(&claim).await;
        stage.until_claim_gone(&claim).await;
        stage.until_all_running(1).await;
        let (node, _) = stage.nodes().await.pop_first().unwrap();
        stage.silence(&node).await;
        stage.order(|orders| orders.knows_nothing = true);
        stage.delete_node(&node).await;
        stage.until("the node's end", async || stage.node(&node).await.is_none()).await;
        let scrape = stage.scrape();
        let told: Vec<&str> = scrape.lines().filter(|line| line.starts_with(ERRORS)).collect();
        for [method, error, pool, controller] in FAILURES {
            let who = [("method", method), ("controller", controller), ("provider", "kwok")];
            let how = [who[0], who[1], who[2], ("error", error), ("nodepool", pool)];
            assert!(sum(&scrape, ERRORS, &how) >= 1.0, "{how:?}\n{}", told.join("\n"));
            assert!(sum(&scrape, SECONDS, &who) >= sum(&scrape, ERRORS, &who), "{who:?}");
        }
        assert_eq!(told.len(), FAILURES.len(), "{}", told.join("\n"));
    });
}
