//! What seeds found, kept by name.

use world::seeds::{RunSettings, run};

fn holds(seed: u64, plan: &str) {
    let report = run(seed, &RunSettings { plan: Some(plan.parse().unwrap()), ..RunSettings::default() }).unwrap();
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}

/// PROV-43: a claim that a dead process had asked for appears after its successor has filled the pool's limits.
#[test]
fn a_late_claim_of_a_dead_process_does_not_break_the_limits() {
    holds(5623, "create nodeclaims #1 late, cloud launch #1 kill-before");
}

/// A person deletes a node that was made but not written down yet; its launch makes it again, once.
#[test]
fn a_node_that_is_deleted_before_it_is_known_is_made_again() {
    let plan = "patch nodes #8 throttled, cloud types #1 kill-before, cloud launch #5 kill-after, \
                cloud types #2 answer-lost";
    holds(5497, plan);
}
