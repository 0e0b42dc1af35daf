//! What large plans cost.

use std::fmt::Write;

use expect_test::expect;

use crate::scenario::{Scenario, check, plan};

/// Services as clusters have them: millicpu, mebibytes, and how many of a hundred are of that size.
const SERVICES: [(u32, u32, u32); 12] = [
    (50, 128, 14),
    (100, 256, 18),
    (250, 512, 16),
    (500, 512, 8),
    (500, 1024, 12),
    (500, 4096, 5),
    (1000, 2048, 10),
    (1000, 8192, 4),
    (2000, 4096, 6),
    (2000, 16384, 2),
    (4000, 8192, 3),
    (7500, 30720, 2),
];

/// Machines of which a large and a small one are cheap, as on a market of spare capacity.
const MACHINES: &str = "type large  cpu=128 mem=500Gi pods=700 a:1.6844
     type medium cpu=32  mem=124Gi pods=230 a:0.5460
     type roomy  cpu=16  mem=124Gi pods=230 a:0.3196
     type lean   cpu=8   mem=15Gi  pods=58  a:0.0988
     type small  cpu=4   mem=15Gi  pods=58  a:0.0551
     type tiny   cpu=2   mem=3Gi   pods=29  a:0.0253
     pool default\n";

fn price_of(lines: &str) -> String {
    let plan = plan(&Scenario::parse(lines));
    let (price, bound) = (plan.price().dollars(), plan.bound.dollars());
    let over = 100.0 * (price / bound - 1.0);
    format!("{} nodes, ${price:.3}, {over:.1} % over the bound", plan.claims.len())
}

/// What whole nodes of the ideal fleet leave over is packed once more by itself, so that it does not cost much more than
/// its part of the bound.
#[test]
fn what_is_left_over_is_packed_well() {
    let mut told = String::new();
    for hundreds in [1, 2, 3, 5, 8, 13] {
        let mut lines = MACHINES.to_owned();
        for (number, (cpu, memory, pods)) in SERVICES.iter().enumerate() {
            writeln!(lines, "pod w{number}*{} cpu={cpu}m mem={memory}Mi", pods * hundreds).unwrap();
        }
        writeln!(told, "{hundreds}00 pods: {}", price_of(&lines)).unwrap();
    }
    expect![[r#"
        100 pods: 9 nodes, $1.200, 7.5 % over the bound
        200 pods: 4 nodes, $1.981, 0.0 % over the bound
        300 pods: 13 nodes, $3.091, 5.3 % over the bound
        500 pods: 20 nodes, $4.927, 0.7 % over the bound
        800 pods: 31 nodes, $7.967, 1.8 % over the bound
        1300 pods: 48 nodes, $12.891, 1.4 % over the bound
    "#]]
    .assert_eq(&told);
}

/// Where limits leave room for some pods only, those are packed well too, and nodes that are packed once more keep their pods.
#[test]
fn what_limits_leave_room_for_is_packed_well() {
    let mut told = String::new();
    for hundreds in [2, 3, 5, 8, 13] {
        let mut lines = MACHINES.replace("pool default", &format!("pool default limit.cpu={}", hundreds * 48));
        for (number, (cpu, memory, pods)) in SERVICES.iter().enumerate() {
            writeln!(lines, "pod w{number}*{} cpu={cpu}m mem={memory}Mi", pods * hundreds).unwrap();
        }
        let plan = plan(&Scenario::parse(&lines));
        let (price, bound) = (plan.price().dollars(), plan.bound.dollars());
        let over = 100.0 * (price / bound - 1.0);
        let placed: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
        writeln!(told, "{placed} of {hundreds}00 pods: ${price:.3}, {over:.1} % over the bound").unwrap();
    }
    expect![[r#"
        188 of 200 pods: $1.323, 4.9 % over the bound
        282 of 300 pods: $1.859, 1.2 % over the bound
        471 of 500 pods: $3.183, 4.7 % over the bound
        754 of 800 pods: $5.188, 6.4 % over the bound
        1225 of 1300 pods: $8.389, 6.0 % over the bound
    "#]]
    .assert_eq(&told);
}

/// Machines of two makers in three zones, of which each has its own bargains.
const MAKERS: &str = "type a.large  cpu=32 mem=124Gi pods=230 arch=arm a:0.4164 b:0.6325 c:0.5148
     type a.medium cpu=8  mem=31Gi  pods=58  arch=arm a:0.1688 b:0.1271 c:0.1396
     type a.small  cpu=2  mem=3Gi   pods=17  arch=arm a:0.0336 b:0.0307 c:0.0342
     type b.large  cpu=16 mem=62Gi  pods=230 arch=amd a:0.2435 b:0.2688 c:0.3034
     type b.medium cpu=8  mem=31Gi  pods=58  arch=amd a:0.1201 b:0.0987 c:0.0887
     type b.small  cpu=2  mem=7Gi   pods=17  arch=amd a:0.0262 b:0.0372 c:0.0259
     pool default\n";

const CHOICES: [&str; 6] =
    ["", " select=arch=arm", " select=arch=amd", " select=zone=a", " select=zone=b", " select=zone=c"];

/// Pods that choose among machines leave many nodes over that hold too little. Their pods are shared out again.
#[test]
fn what_choosy_pods_leave_over_is_shared_out_again() {
    let mut told = String::new();
    for hundreds in [2, 5, 8, 13, 21] {
        let mut lines = MAKERS.to_owned();
        for (number, (cpu, memory, pods)) in SERVICES.iter().enumerate() {
            for (part, choice) in CHOICES.iter().enumerate() {
                let count = pods * hundreds / 6 + u32::from(number % 6 == part);
                writeln!(lines, "pod w{number}.{part}*{count} cpu={cpu}m mem={memory}Mi{choice}").unwrap();
            }
        }
        writeln!(told, "{hundreds}00 pods: {}", price_of(&lines)).unwrap();
    }
    expect![[r#"
        200 pods: 15 nodes, $1.534, 3.3 % over the bound
        500 pods: 41 nodes, $4.178, 2.4 % over the bound
        800 pods: 58 nodes, $7.068, 2.0 % over the bound
        1300 pods: 95 nodes, $11.789, 2.5 % over the bound
        2100 pods: 165 nodes, $19.580, 2.4 % over the bound
    "#]]
    .assert_eq(&told);
}

/// Many pods that want to be together go where the nodes that they share are cheap, and not where one of them would be.
#[test]
fn groups_go_where_shared_nodes_are_cheap() {
    check(
        "type small cpu=2  mem=8Gi   a:0.09 b:0.10
         type large cpu=32 mem=128Gi a:1.40 b:1.20
         pool default
         pod web*32 cpu=1 near=zone",
        expect![
            "default large b $1.2: web-0 web-1 web-10 web-11 web-12 web-13 web-14 web-15 web-16 web-17 web-18 web-19 web-2 web-20 web-21 web-22 web-23 web-24 web-25 web-26 web-27 web-28 web-29 web-3 web-30 web-31 web-4 web-5 web-6 web-7 web-8 web-9"
        ],
    );
}
