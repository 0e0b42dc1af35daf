//! Seats that the kube-scheduler would give to others.

use std::fmt::Write;

use expect_test::{Expect, expect};

use crate::language::Scenario;

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "expect![..] reads better at the call sites without a reference")]
fn check(scenario: &str, expected: Expect) {
    let kept = planner::seats_to_keep(&Scenario::parse(scenario).snapshot);
    let mut lines = String::new();
    for (pod, place) in kept {
        writeln!(lines, "{} on {place}", pod.name).unwrap();
    }
    expected.assert_eq(lines.trim_end());
}

const TWO_FULL_NODES: &str = "joining n1 cpu=4 mem=8Gi
                              joining n2 cpu=4 mem=8Gi\n";

fn two_full_nodes(lines: &str) -> String {
    format!("{TWO_FULL_NODES}{lines}")
}

/// Small pods that come first take a little of every node; the large one that comes last needs its seat kept, and with it
/// those that are not much smaller.
#[test]
fn the_last_and_largest_keeps_its_seat() {
    let seats = "seat n1: large small\nseat n2: one two\n";
    let pods = |small: u32, one: u32, large: u32| {
        two_full_nodes(&format!(
            "{seats}
             pod small cpu=1 created={small}
             pod one cpu=2 created={one}
             pod two cpu=2 created=3
             pod large cpu=3 created={large}"
        ))
    };
    check(
        &pods(1, 2, 4),
        expect![[r#"
        one on node/n2
        two on node/n2
        large on node/n1"#]],
    );
    check(&pods(4, 2, 1), expect![""]);
}

/// Nothing is kept where everybody fits whatever the order: alone, with room to spare, or among equals.
#[test]
fn no_seat_is_kept_without_need() {
    check(
        "joining n1 cpu=4 mem=8Gi
         seat n1: large small
         pod  small cpu=1 created=1
         pod  large cpu=3 created=2",
        expect![""],
    );
    check(
        &two_full_nodes(
            "seat n1: web-0 web-1
             seat n2: web-2 web-3
             pod  web*4 cpu=2",
        ),
        expect![""],
    );
    check(
        &two_full_nodes(
            "seat n1: large small
             seat n2: one
             pod  small cpu=1 created=1
             pod  one cpu=1 created=2
             pod  large cpu=3 created=3",
        ),
        expect![""],
    );
}

/// Who selects a node, or is kept away from one by a taint, takes nobody's seat there.
#[test]
fn pods_come_only_where_they_may() {
    let case = |taint: &str, select: &str| {
        format!(
            "joining n1 cpu=4 mem=8Gi label=zone=a {taint}
             joining n2 cpu=4 mem=8Gi label=zone=b
             seat n1: large small
             seat n2: one two
             pod small cpu=1 created=1 tolerate=gpu {select}
             pod one cpu=2 created=2
             pod two cpu=2 created=3
             pod large cpu=3 created=4 tolerate=gpu"
        )
    };
    check(&case("", ""), expect!["large on node/n1"]);
    check(&case("taint=gpu=yes:NoSchedule", "select=zone=a"), expect![""]);
}

/// A pod with rules about others is taken for seated where it was put, and its room is nobody else's.
#[test]
fn pods_with_rules_have_their_seats() {
    check(
        &two_full_nodes(
            "seat n1: large small
             seat n2: one two
             pod  small cpu=1 created=1
             pod  one cpu=2 created=2
             pod  two cpu=2 created=3
             pod  large cpu=3 created=4 spread=zone/1",
        ),
        expect![""],
    );
}

/// A seat on a claim whose node has not joined is told too: whoever keeps seats knows when it has.
#[test]
fn claims_have_seats() {
    check(
        "claim c1 cpu=4 mem=8Gi
         claim c2 cpu=4 mem=8Gi
         seat c1: large small
         seat c2: one two
         pod  small cpu=1 created=1
         pod  one cpu=2 created=2
         pod  two cpu=2 created=3
         pod  large cpu=3 created=4",
        expect!["large on nodeclaim/c1"],
    );
}

/// The last of the large ones, and not more than thirty-two.
#[test]
fn few_seats_are_kept() {
    let mut lines = String::new();
    for node in 0..150 {
        writeln!(lines, "joining n{node} cpu=4 mem=8Gi\nseat n{node}: large-{node} small-{node}").unwrap();
    }
    let scenario = format!("{lines}pod small*150 cpu=1 created=1\npod large*150 cpu=3 created=9");
    let kept = planner::seats_to_keep(&Scenario::parse(&scenario).snapshot);
    assert_eq!(kept.len(), 32);
    assert!(kept.iter().all(|(pod, _)| pod.name.starts_with("large-")));
}
