//! Tables of clusters, pods, and what the nodes say.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod audit;
mod language;
mod messages;
mod neighbours;
mod nodes;
mod plans;
mod recorded;
mod room;
#[allow(dead_code, reason = "other tests use other parts of the language")]
#[path = "../../../planner/tests/language/mod.rs"]
mod scenario;
mod spread;

use expect_test::Expect;

/// One line per node: `ok`, or every objection in the kube-scheduler's words.
fn check(cluster: &str, expected: Expect) {
    let (situation, pod) = language::read(cluster);
    let mut answer = String::new();
    for (node, objections) in &referee::survey(&situation, &pod).objections {
        assert_eq!(*objections, referee::check(&situation, &pod, node), "both doors lead to the same answer");
        let words: Vec<String> = objections.iter().map(ToString::to_string).collect();
        let words = if words.is_empty() { "ok".to_owned() } else { words.join(", ") };
        answer.push_str(&format!("{node}: {words}\n"));
    }
    expected.assert_eq(&answer);
}

/// The sentence of the event.
fn says(cluster: &str, expected: Expect) {
    let (situation, pod) = language::read(cluster);
    expected.assert_eq(&referee::unschedulable_message(&situation, &pod, None));
}
