//! Seats that the kube-scheduler would give to others.

use std::fmt::Write;
use std::sync::Arc;

use expect_test::{Expect, expect};
use model::{PendingPod, Pool, Purpose, ResourceName, Resources};
use planner::PlaceConfig;

use crate::language::Scenario;
use crate::scenario::plan;

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
             pod two cpu=2 created=30
             pod large cpu=3 created={large}"
        ))
    };
    check(
        &pods(10, 20, 40),
        expect![[r#"
        large on node/n1
        one on node/n2
        two on node/n2"#]],
    );
    check(&pods(40, 20, 10), expect![""]);
}

/// Nothing is kept where everybody fits whatever the order: alone, with room to spare, or among equals.
#[test]
fn no_seat_is_kept_without_need() {
    check(
        "joining n1 cpu=4 mem=8Gi
         seat n1: large small
         pod  small cpu=1 created=10
         pod  large cpu=3 created=20",
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
             pod  small cpu=1 created=10
             pod  one cpu=1 created=20
             pod  large cpu=3 created=30",
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
             pod small cpu=1 created=10 tolerate=gpu {select}
             pod one cpu=2 created=20
             pod two cpu=2 created=30
             pod large cpu=3 created=40 tolerate=gpu"
        )
    };
    check(
        &case("", ""),
        expect![[r#"
        large on node/n1
        one on node/n2
        two on node/n2"#]],
    );
    check(&case("taint=gpu=yes:NoSchedule", "select=zone=a"), expect![""]);
}

/// A pod with rules about others is taken for seated where it was put, and its room is nobody else's: that others came first
/// does not move it.
#[test]
fn pods_with_rules_have_their_seats() {
    check(
        &two_full_nodes(
            "seat n1: large small
             seat n2: one two
             pod  small cpu=1 created=10
             pod  one cpu=2 created=20
             pod  two cpu=2 created=30
             pod  large cpu=3 created=40 spread=zone/1",
        ),
        expect![[r#"
            one on node/n2
            two on node/n2
            small on node/n1"#]],
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
         pod  small cpu=1 created=10
         pod  one cpu=2 created=20
         pod  two cpu=2 created=30
         pod  large cpu=3 created=40",
        expect![[r#"
            large on nodeclaim/c1
            one on nodeclaim/c2
            two on nodeclaim/c2"#]],
    );
}

/// The last of the large ones, and not more than thirty-two.
#[test]
fn few_seats_are_kept() {
    let mut lines = String::new();
    for node in 0..75 {
        let (one, two) = (2 * node, 2 * node + 1);
        writeln!(lines, "joining a{node} cpu=4 mem=8Gi\nseat a{node}: large-{node} small-{node}").unwrap();
        writeln!(lines, "joining b{node} cpu=4 mem=8Gi\nseat b{node}: medium-{one} medium-{two}").unwrap();
    }
    lines.push_str("pod small*75 cpu=1 created=10\npod medium*150 cpu=2 created=20\npod large*75 cpu=3 created=30");
    let kept = planner::seats_to_keep(&Scenario::parse(&lines).snapshot);
    assert_eq!(kept.len(), 32);
    assert!(kept.iter().all(|(pod, _)| pod.name.starts_with("large-")));
}

/// Thirty workloads of sizes as they are in a cluster, on nodes that are sold in many sizes, large ones a
/// little cheaper.
fn workloads(pool: &str, replicas: u32) -> Scenario {
    const MILLICPU: [u32; 6] = [100, 250, 250, 500, 1000, 2000];
    const MEBIBYTES: [u32; 5] = [128, 256, 512, 1024, 4096];
    let mut lines = format!("{pool}\n");
    for cpu in [4, 8, 16, 32, 64, 128, 256] {
        for (family, gibibytes) in [("c", 2), ("m", 4), ("r", 8)] {
            let (memory, mills) = (cpu * gibibytes, 20 + cpu * (25 + gibibytes));
            writeln!(lines, "type {family}.{cpu} cpu={cpu} mem={memory}Gi pods=1000 a:{}", f64::from(mills) / 1000.0)
                .unwrap();
        }
    }
    for (number, (cpu, memory)) in MILLICPU.iter().cycle().zip(MEBIBYTES.iter().cycle()).take(30).enumerate() {
        writeln!(lines, "pod w{number}*{replicas} cpu={cpu}m mem={memory}Mi label=app=w{number}").unwrap();
    }
    Scenario::parse(&lines)
}

/// Large plans that are too tight get room to spare, on nodes of their own: enough for one more pod in four hundred, and
/// for those who would be left over. It costs little, and is soon enough.
#[test]
fn large_plans_get_room_to_spare() {
    let mut rounds = String::new();
    for replicas in [15, 20, 33, 40, 60, 80, 100] {
        let scenario = workloads("pool default", replicas);
        let mut plan = plan(&scenario);
        let mut snapshot = scenario.snapshot;
        let price = plan.price().dollars();
        write!(rounds, "{replicas} replicas:").unwrap();
        while let Some(room) = planner::room_to_spare(&snapshot, &plan) {
            let is_room = |pod: &PendingPod| pod.purpose == Purpose::Headroom && pod.class.priority == i32::MIN;
            assert!(room.pending.iter().all(is_room));
            let more = planner::place(&room, &PlaceConfig::default());
            assert!(!more.claims.is_empty() && more.unplaced.is_empty());
            write!(rounds, " {} pods", room.pending.len()).unwrap();
            snapshot.pending.extend(room.pending);
            plan.claims.extend(more.claims);
        }
        writeln!(rounds, ", {:.1} %", 100.0 * (plan.price().dollars() / price - 1.0)).unwrap();
    }
    expect![[r#"
        15 replicas: 1 pods, 1.5 %
        20 replicas: 1 pods, 1.1 %
        33 replicas:, 0.0 %
        40 replicas: 3 pods, 1.1 %
        60 replicas: 1 pods, 0.4 %
        80 replicas: 4 pods, 0.5 %
        100 replicas: 3 pods, 0.4 %
    "#]]
    .assert_eq(&rounds);
}

/// Room to spare is within the pool's limits, which the plan has used up, or there is none.
#[test]
fn room_to_spare_overshoots_no_limit() {
    let Scenario { mut snapshot, .. } = workloads("pool default", 80);
    let plan = planner::place(&snapshot, &PlaceConfig::default());
    let nodes = i64::try_from(plan.claims.len()).unwrap();
    for (limit, expected) in [(nodes, 0), (nodes + 1, 1)] {
        let limits = Resources::none().with(ResourceName::nodes(), limit);
        snapshot.pools =
            snapshot.pools.iter().map(|pool| Arc::new(Pool { limits: limits.clone(), ..Pool::clone(pool) })).collect();
        let room = planner::room_to_spare(&snapshot, &plan).expect("no room is wanted");
        assert_eq!(planner::place(&room, &PlaceConfig::default()).claims.len(), expected, "{limit} nodes allowed");
    }
}

/// For fewer than a hundred pods no room is bought, whatever becomes of seats; nor where nothing is bought at all.
#[test]
fn small_plans_get_no_room_to_spare() {
    let table = [
        (
            "two full nodes",
            "type m cpu=4 mem=8Gi a:1
             pool default
             pod  small cpu=1 created=10
             pod  one cpu=2 created=20
             pod  two cpu=2 created=30
             pod  large cpu=3 created=40",
        ),
        (
            "one node",
            "type m cpu=4 mem=8Gi a:1
             pool default
             pod  small cpu=1 created=10
             pod  large cpu=3 created=20",
        ),
        (
            "nothing is bought",
            "type m cpu=4 mem=8Gi a:1
             pool default
             joining n1 cpu=4 mem=8Gi
             joining n2 cpu=4 mem=8Gi
             pod  small cpu=1 created=10
             pod  large cpu=3 created=20",
        ),
    ];
    for (title, lines) in table {
        let scenario = Scenario::parse(lines);
        let plan = plan(&scenario);
        assert!(planner::room_to_spare(&scenario.snapshot, &plan).is_none(), "{title}");
    }
}
