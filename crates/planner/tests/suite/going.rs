//! Nodes on their way out: nobody is put there, but rules between pods see them until they are gone.

use expect_test::expect;

use crate::scenario::{check, planned};

const TWO_ZONES: &str = "type m.large cpu=2 mem=8Gi a:0.10 b:0.11
                         pool default\n";

fn in_two_zones(lines: &str) -> String {
    format!("{TWO_ZONES}{lines}")
}

/// Free room there is no room.
#[test]
fn nobody_is_put_on_a_node_that_is_going() {
    check(
        &in_two_zones(
            "going n1 cpu=4 label=zone=a
             pod   web cpu=1",
        ),
        expect!["default m.large a|b $0.1: web"],
    );
    let refused = planned(&in_two_zones(
        "going n1 cpu=64 label=zone=a
         show  places
         pod   web cpu=4",
    ));
    assert!(refused.contains("nowhere: web") && !refused.contains("node(s)"), "no reason of its own: {refused}");
}

/// TOPO-12: pods that stay until the end count for spreading.
#[test]
fn pods_that_stay_are_spread_against() {
    check(
        &in_two_zones(
            "going n1 cpu=4 label=zone=a
             on    n1: web
             pod   web*2 cpu=1 spread=zone/1",
        ),
        expect!["default m.large b $0.11: web-0 web-1"],
    );
}

/// The kube-scheduler sees the zone of such a node as long as it is there, be it empty; unless its taint says otherwise
/// and the constraint heeds taints.
#[test]
fn its_zone_counts_while_it_is_there() {
    let going = |spread: &str| {
        in_two_zones(&format!(
            "going n1 cpu=4 label=zone=c taint=karpenter.sh/disrupted=:NoSchedule
             pod   web*4 cpu=500m {spread}"
        ))
    };
    check(
        &going("spread=zone/1"),
        expect![[r#"
        default m.large a $0.1: web-0
        default m.large b $0.11: web-1
        nowhere: web-2 web-3
          nodepool "default": unsatisfiable topology constraint for topology spread, key=topology.kubernetes.io/zone, maxSkew=1 (counts = a: 1, b: 1, c: 0); raise maxSkew or allow more domains"#]],
    );
    check(
        &going("spread=zone/1/taints"),
        expect![[r#"
            default m.large b $0.11: web-1 web-3
            default m.large a $0.1: web-0 web-2"#]],
    );
}

/// Anti-affinity works both ways, and affinity finds somebody to join.
#[test]
fn affinity_sees_who_stays() {
    check(
        &in_two_zones(
            "going n1 cpu=4 label=zone=a
             on    n1: web
             on    n1: db away=zone:app=cache
             pod   shy cpu=1 away=zone:app=web
             pod   cache cpu=1
             pod   fan cpu=1 near=zone:app=web",
        ),
        expect![[r#"
            default m.large b $0.11: shy cache
            default m.large a $0.1: fan"#]],
    );
}
