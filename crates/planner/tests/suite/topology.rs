//! Rules between pods: spreading, affinity, anti-affinity.

use expect_test::expect;

use crate::scenario::check;

const TWO_ZONES: &str = "type m.large cpu=2 mem=8Gi a:0.10 b:0.10
                         pool default\n";
const THREE_ZONES: &str = "type m.xlarge cpu=4 mem=16Gi a:0.20 b:0.21 c:0.22
                           pool default\n";

fn in_two_zones(lines: &str) -> String {
    format!("{TWO_ZONES}{lines}")
}

fn in_three_zones(lines: &str) -> String {
    format!("{THREE_ZONES}{lines}")
}

/// TOPO-01: a domain gets no more than the skew more than the emptiest.
#[test]
fn spread_uses_both_zones() {
    check(
        &in_two_zones("pod web*3 cpu=1 spread=zone/1"),
        expect![[r#"
        default m.large a $0.1: web-0 web-2
        default m.large b $0.1: web-1"#]],
    );
}

/// TOPO-01, TOPO-04: zones, capacity types and custom labels make domains alike.
#[test]
fn pods_spread_over_whatever_label_is_named() {
    check(
        &in_three_zones("pod web*6 cpu=500m spread=zone/1"),
        expect![[r#"
            default m.xlarge c $0.22: web-2 web-5
            default m.xlarge b $0.21: web-1 web-4
            default m.xlarge a $0.2: web-0 web-3"#]],
    );
    check(
        "type m.large cpu=4 mem=8Gi a:0.10 spot:a:0.04
         pool default
         pod  web*4 cpu=500m spread=capacity/1",
        expect![[r#"
            default m.large a $0.1: web-1 web-3
            default m.large a $0.04: web-0 web-2"#]],
    );
    check(
        "type m.large cpu=4 mem=8Gi a:0.10
         pool default require=rack:In:r1|r2|r3
         pod  web*3 cpu=500m spread=rack/1",
        expect![[r#"
            default m.large a $0.1: web-0
            default m.large a $0.1: web-1
            default m.large a $0.1: web-2"#]],
    );
}

/// TOPO-02: with too few domains the emptiest counts as having none.
#[test]
fn min_domains_hold_pods_back() {
    check(
        &in_two_zones("pod web*4 cpu=500m spread=zone/1/min=3"),
        expect![[r#"
        default m.large a $0.1: web-0
        default m.large b $0.1: web-1
        nowhere: web-2 web-3
          nodepool "default": unsatisfiable topology constraint for topology spread, key=topology.kubernetes.io/zone, maxSkew=1 (counts = a: 1, b: 1); raise maxSkew or allow more domains"#]],
    );
    check(
        &in_three_zones("pod web*4 cpu=500m spread=zone/1/min=3"),
        expect![[r#"
        default m.xlarge a $0.2: web-0 web-3
        default m.xlarge b $0.21: web-1
        default m.xlarge c $0.22: web-2"#]],
    );
}

/// TOPO-03: hosts can always be added, so that the emptiest has none.
#[test]
fn hosts_take_no_more_than_the_skew() {
    check(
        &in_two_zones("pod web*5 cpu=200m spread=host/2"),
        expect![[r#"
        default m.large a|b $0.1: web-0 web-1
        default m.large a|b $0.1: web-2 web-3
        default m.large a|b $0.1: web-4"#]],
    );
}

/// TOPO-05: only domains that the pool or the pod allows count.
#[test]
fn domains_are_those_that_pool_and_pod_allow() {
    check(
        "type m.xlarge cpu=4 mem=16Gi a:0.20 b:0.21 c:0.22
         pool default require=zone:In:a|b
         pod  web*4 cpu=500m spread=zone/1",
        expect![[r#"
            default m.xlarge b $0.21: web-1 web-3
            default m.xlarge a $0.2: web-0 web-2"#]],
    );
    check(
        &in_three_zones("pod web*4 cpu=500m spread=zone/1 affinity=zone:In:b|c"),
        expect![[r#"
            default m.xlarge c $0.22: web-1 web-3
            default m.xlarge b $0.21: web-0 web-2"#]],
    );
}

/// TOPO-06: a zone that only an empty node is in counts as well, and holds others back once the node is full.
#[test]
fn nodes_without_pods_make_domains() {
    check(
        &in_two_zones("node n1 cpu=1 label=zone=x\npod web*5 cpu=500m spread=zone/1"),
        expect![[r#"
        default m.large a $0.1: web-1 web-4
        default m.large b $0.1: web-2
        node/n1: web-0 web-3"#]],
    );
    check(
        &in_two_zones("node n1 cpu=500m label=zone=x\npod web*7 cpu=500m spread=zone/1"),
        expect![[r#"
        default m.large a $0.1: web-1 web-3
        default m.large b $0.1: web-2 web-4
        node/n1: web-0
        nowhere: web-5 web-6
          nodepool "default": unsatisfiable topology constraint for topology spread, key=topology.kubernetes.io/zone, maxSkew=1 (counts = a: 2, b: 2, x: 1); raise maxSkew or allow more domains"#]],
    );
}

/// TOPO-07: the pod's own node affinity tells which nodes count, unless the constraint says otherwise.
#[test]
fn node_affinity_tells_which_nodes_count() {
    let cluster = |policy: &str| {
        in_two_zones(&format!(
            "node n1 cpu=4 label=zone=c
             pod  web*4 cpu=500m select=arch=amd64 spread=zone/1{policy}"
        ))
    };
    check(
        &cluster(""),
        expect![[r#"
        default m.large a $0.1: web-0 web-2
        default m.large b $0.1: web-1 web-3"#]],
    );
    check(
        &cluster("/anywhere"),
        expect![[r#"
        default m.large a $0.1: web-0
        default m.large b $0.1: web-1
        nowhere: web-2 web-3
          nodepool "default": unsatisfiable topology constraint for topology spread, key=topology.kubernetes.io/zone, maxSkew=1 (counts = a: 1, b: 1, c: 0); raise maxSkew or allow more domains"#]],
    );
}

/// TOPO-08: taints count only when the constraint says so.
#[test]
fn taints_tell_which_nodes_count_when_asked() {
    let cluster = |policy: &str| {
        in_two_zones(&format!(
            "node n1 cpu=4 label=zone=c taint=hard=1:NoSchedule
             pod  web*3 cpu=500m spread=zone/1{policy}"
        ))
    };
    check(
        &cluster(""),
        expect![[r#"
        default m.large a $0.1: web-0
        default m.large b $0.1: web-1
        nowhere: web-2
          nodepool "default": unsatisfiable topology constraint for topology spread, key=topology.kubernetes.io/zone, maxSkew=1 (counts = a: 1, b: 1, c: 0); raise maxSkew or allow more domains"#]],
    );
    check(
        &cluster("/taints"),
        expect![[r#"
        default m.large a $0.1: web-0 web-2
        default m.large b $0.1: web-1"#]],
    );
}

/// TOPO-10: without a selector nobody counts, not even the pod itself; with an empty one only the pod itself does.
#[test]
fn a_constraint_without_selector_counts_nobody() {
    check(
        &in_two_zones("pod web*4 cpu=500m spread=zone/1/of=-"),
        expect!["default m.large a $0.1: web-0 web-1 web-2 web-3"],
    );
    check(
        &in_two_zones("pod web*4 cpu=500m spread=zone/1/of=*"),
        expect!["default m.large a $0.1: web-0 web-1 web-2 web-3"],
    );
}

/// TOPO-11: a label that nothing has makes no domain.
#[test]
fn an_unknown_topology_key_cannot_be_met() {
    check(
        &in_two_zones("pod web cpu=500m spread=rack/1"),
        expect![[r#"
        nowhere: web
          nodepool "default": unsatisfiable topology constraint for topology spread, key=rack, maxSkew=1 (counts = ); raise maxSkew or allow more domains"#]],
    );
}

/// TOPO-12, TOPO-13: pods that run count where they run.
#[test]
fn running_pods_count() {
    check(
        &in_two_zones(
            "node n1 cpu=1 used.cpu=1 label=zone=a
             on   n1: web*2
             pod  web*3 cpu=500m spread=zone/1",
        ),
        expect!["default m.large b $0.1: web-0 web-1 web-2"],
    );
}

/// TOPO-14: a fuller domain will do if it is the only one and the skew allows it.
#[test]
fn a_fuller_domain_is_used_if_it_must_be() {
    check(
        &in_two_zones("pod web*2 cpu=500m spread=zone/2 select=zone=b"),
        expect!["default m.large b $0.1: web-0 web-1"],
    );
}

/// TOPO-15, PROV-24: a wish for evenness is granted where it can be, and not at all when wishes are ignored.
#[test]
fn soft_spread_gives_way() {
    check(
        &in_two_zones("pod web*2 cpu=500m spread=zone/1?"),
        expect![[r#"
        default m.large a $0.1: web-0
        default m.large b $0.1: web-1"#]],
    );
    check(
        &in_two_zones("pod web*2 cpu=500m spread=zone/1? select=zone=b"),
        expect!["default m.large b $0.1: web-0 web-1"],
    );
    check(
        &in_two_zones("options preferences=ignore\npod web*2 cpu=500m spread=zone/1?"),
        expect!["default m.large a|b $0.1: web-0 web-1"],
    );
}

/// TOPO-16
#[test]
fn constraints_hold_together() {
    check(
        &in_two_zones("pod web*4 cpu=200m spread=zone/1 spread=host/1"),
        expect![[r#"
        default m.large a $0.1: web-0
        default m.large a $0.1: web-2
        default m.large b $0.1: web-1
        default m.large b $0.1: web-3"#]],
    );
}

/// TOPO-17: where volumes are narrows the node, not the domains that count.
#[test]
fn volumes_do_not_narrow_the_domains() {
    check(
        &in_two_zones("pod web*2 cpu=500m spread=zone/1 volume=zone:a"),
        expect![[r#"
        default m.large a $0.1: web-0
        nowhere: web-1
          nodepool "default": unsatisfiable topology constraint for topology spread, key=topology.kubernetes.io/zone, maxSkew=1 (counts = a: 1, b: 0); raise maxSkew or allow more domains"#]],
    );
}

/// TOPO-18: a group that wants to be together begins somewhere and stays there.
#[test]
fn a_group_begins_in_one_domain() {
    check(
        &in_two_zones("pod web*4 cpu=1 near=zone"),
        expect![[r#"
        default m.large a $0.1: web-0 web-1
        default m.large a $0.1: web-2 web-3"#]],
    );
    check(&in_two_zones("pod web*4 cpu=500m near=host"), expect!["default m.large a|b $0.1: web-0 web-1 web-2 web-3"]);
    check(
        &in_two_zones("pod web*5 cpu=500m near=host"),
        expect![[r#"
        default m.large a|b $0.1: web-0 web-1 web-2 web-3
        nowhere: web-4
          nodepool "default": unsatisfiable topology constraint for pod affinity, key=kubernetes.io/hostname; no reachable domain has a pod that the affinity selects"#]],
    );
}

/// TOPO-19, PROV-14: whoever is to be joined may come later in the list.
#[test]
fn pods_join_those_that_are_planned() {
    check(
        &in_two_zones("pod web*2 cpu=1500m near=zone:app=db\npod db cpu=500m select=zone=b"),
        expect![[r#"
        default m.large b $0.1: web-0 db
        default m.large b $0.1: web-1"#]],
    );
}

/// TOPO-20
#[test]
fn nobody_joins_who_is_not_there() {
    check(
        &in_two_zones("pod web cpu=1 near=zone:app=db"),
        expect![[r#"
        nowhere: web
          nodepool "default": unsatisfiable topology constraint for pod affinity, key=topology.kubernetes.io/zone; no reachable domain has a pod that the affinity selects"#]],
    );
}

/// TOPO-21, TOPO-22: hosts apart are nodes apart; zones apart are as many as there are zones.
#[test]
fn anti_affinity_keeps_pods_apart() {
    check(
        &in_two_zones("pod web*3 cpu=200m away=host"),
        expect![[r#"
        default m.large a|b $0.1: web-0
        default m.large a|b $0.1: web-1
        default m.large a|b $0.1: web-2"#]],
    );
    check(
        &in_two_zones("pod web*3 cpu=200m away=zone"),
        expect![[r#"
        default m.large a $0.1: web-0
        default m.large b $0.1: web-1
        nowhere: web-2
          nodepool "default": unsatisfiable topology constraint for pod anti-affinity, key=topology.kubernetes.io/zone; every reachable domain has a pod that excludes this one"#]],
    );
}

/// TOPO-23, TOPO-24: whom a pod keeps away, stays away, whoever came first.
#[test]
fn anti_affinity_works_both_ways() {
    check(
        &in_two_zones(
            "node n1 cpu=2 label=zone=a
             on   n1: db*1 away=zone:app=web
             pod  web cpu=500m
             pod  api cpu=500m",
        ),
        expect![[r#"
            default m.large b $0.1: web
            node/n1: api"#]],
    );
    check(
        &in_two_zones("pod db cpu=500m away=host:app=web\npod web*2 cpu=500m"),
        expect![[r#"
        default m.large a|b $0.1: db
        default m.large a|b $0.1: web-0 web-1"#]],
    );
}

/// TOPO-25: a wish of others binds nobody.
#[test]
fn wishes_of_others_bind_nobody() {
    check(
        &in_two_zones("pod db cpu=1 away=10:host:app=web select=zone=a\npod web cpu=1 select=zone=a"),
        expect!["default m.large a $0.1: web db"],
    );
}

/// TOPO-26: namespaces by name, by label, or all.
#[test]
fn rules_look_into_the_namespaces_they_name() {
    let cluster = |scope: &str| {
        in_two_zones(&format!(
            "namespace blue team=x
             node n1 cpu=2 label=zone=a
             on   n1: db*1 ns=blue
             pod  web cpu=500m select=zone=a near=host:app=db{scope}"
        ))
    };
    check(
        &cluster(""),
        expect![[r#"
        nowhere: web
          nodepool "default": unsatisfiable topology constraint for pod affinity, key=kubernetes.io/hostname; no reachable domain has a pod that the affinity selects"#]],
    );
    check(&cluster("@blue"), expect!["node/n1: web"]);
    check(&cluster("@?team=x"), expect!["node/n1: web"]);
    check(&cluster("@*"), expect!["node/n1: web"]);
}
