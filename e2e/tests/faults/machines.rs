//! Machines that do not come.

use anyhow::Result;
use e2e::seen::condition;
use e2e::{Bed, Controller, Seen, Target, Wait, kwok_node_class, node_pool, wait_for};
use k8s_openapi::api::core::v1::Pod;

use crate::scene::{alone, check_claims, set};

e2e::cluster_tests! {
    a_machine_that_does_not_come_holds_nobody_up,
}

/// Pods that will only go to the slow pool, and pods that will go anywhere.
fn deployment(name: &str, selector: &str) -> String {
    let own = e2e::inflate(2).replace("inflate", name);
    own.replace("      containers:", &format!("{selector}      containers:"))
}

/// The machine of one pool is launched and stays away. The pods of another pool get theirs all the same, and the claim
/// that waits can be ended.
async fn a_machine_that_does_not_come_holds_nobody_up(bed: &impl Bed) -> Result<()> {
    let outside = set(bed).await?;
    let slow = format!("{}spec:\n  nodeRegistrationDelay: 10h\n", kwok_node_class("slow"));
    let slow_pool = node_pool("slow", "  weight: 1\n").replace("name: default", "name: slow");
    let patient = deployment("patient", "      nodeSelector:\n        karpenter.sh/nodepool: slow\n");
    bed.apply(&[slow, slow_pool, patient].join("---\n")).await?;
    let controller = bed.start_controller("controller", &alone()).await?;
    let is_launched = |claims: &Seen<_>| {
        claims.len() == 1
            && claims.values().all(|claim| condition(claim, "Launched").is_some_and(|is| is.starts_with("True")))
    };
    let claims = wait_for(bed.claims(), "a claim that was launched", is_launched).await?;

    let hurried = deployment("hurried", "      nodeSelector:\n        karpenter.sh/nodepool: default\n");
    bed.apply(&hurried).await?;
    let runs = |(name, pod): (&String, &Pod)| name.starts_with("hurried") && e2e::seen::is_running(pod);
    wait_for(bed.pods(), "the others' pods", |pods| pods.iter().filter(|pod| runs(*pod)).count() == 2).await?;
    check_claims(&outside, 2).await?;

    bed.scale("patient", 0).await?;
    for claim in claims.keys() {
        bed.delete(Target::Claim(claim), Wait::UntilGone).await?;
    }
    check_claims(&outside, 2).await?;
    controller.stop().await
}
