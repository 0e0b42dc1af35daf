//! Good plans, and what the auditor says when they are spoilt.

use expect_test::{Expect, expect};
use referee::audit;

use crate::plans;
use crate::scenario::Scenario;

fn judge(cluster: &str, plan: &str, expected: Expect) {
    let scenario = Scenario::parse(cluster);
    let plan = plans::read(&scenario.snapshot, plan);
    let lines: Vec<String> = audit(&scenario.snapshot, &plan).iter().map(ToString::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

/// One pool with a small and a large type, two nodes, a daemon of one core; `web` wants zone a, `any` nothing.
const CLUSTER: &str = "type small cpu=4 mem=8Gi a:0.2 b:0.1
    type large cpu=8 mem=8Gi a:0.4 b:0.3
    type gone  cpu=8 mem=8Gi !a:0.1
    pool default limit.cpu=20 used.cpu=10
    node there   cpu=2 used.cpu=1 label=zone=b
    node tainted cpu=2 used.cpu=1 label=zone=b taint=x:NoSchedule
    daemon agent cpu=1
    pod  web  cpu=2 select=zone=a
    pod  any  cpu=1
    pod  huge cpu=50";

const PLAN: &str = "claim default small|large zone=a: web
    place node/there: any
    nowhere: huge
    bound 0.15";

fn spoilt(from: &str, to: &str, expected: Expect) {
    assert!(PLAN.contains(from), "`{from}` is part of the plan");
    judge(CLUSTER, &PLAN.replace(from, to), expected);
}

#[test]
fn a_good_plan_has_nothing_against_it() {
    judge(CLUSTER, PLAN, expect![[""]]);
    let scenario = Scenario::parse(CLUSTER);
    let plan = plans::read(&scenario.snapshot, PLAN);
    assert_eq!(referee::reckoned_price(&scenario.snapshot, &plan).dollars(), 0.2);
}

#[test]
fn every_pod_appears_once_and_has_its_turn_once() {
    spoilt("place node/there: any", "", expect!["default/any appears 0 times"]);
    spoilt(
        "nowhere: huge",
        "nowhere: huge any ghost",
        expect![[r#"
        default/any appears 2 times
        default/ghost is not pending"#]],
    );
    spoilt(
        "bound 0.15",
        "sequence web web",
        expect![[r#"
        default/any has its turn 0 times
        default/web has its turn 2 times"#]],
    );
    spoilt("bound 0.15", "sequence web any huge", expect!["default/huge has its turn 1 times"]);
}

#[test]
fn pods_fit_the_places_they_are_put_on() {
    spoilt(
        "node/there",
        "node/tainted",
        expect![[r#"
        default/any does not tolerate x:NoSchedule of node/tainted
        default/any is rejected by node/tainted in the cheapest replay: node(s) had untolerated taint(s)"#]],
    );
    spoilt(
        "node/there",
        "node/nowhere",
        expect![[r#"
        node/nowhere does not exist
        default/any is rejected by node/nowhere in the cheapest replay: node(s) didn't satisfy plugin(s) [NodeAffinity]"#]],
    );
    judge(
        CLUSTER,
        "place node/there: web any\nnowhere: huge",
        expect![[r#"
        default/web may not match the labels of node/there
        node/there is too small, cpu: 3 wanted, 1 there
        default/web is rejected by node/there in the cheapest replay: node(s) didn't match Pod's node affinity/selector
        default/any is rejected by node/there in the cheapest replay: Insufficient cpu"#]],
    );
}

#[test]
fn pods_fit_every_node_that_a_claim_may_turn_into() {
    spoilt(
        "zone=a",
        "",
        expect![[r#"
        default/web may not match the labels of claim 0 as large
        default/web may not match the labels of claim 0 as small
        the bound $0.1500/h is above the price $0.1000/h
        default/web is rejected by claim 0 as small in the cheapest replay: node(s) didn't match Pod's node affinity/selector"#]],
    );
    spoilt("large", "gone", expect!["claim 0: gone cannot be bought"]);
    spoilt("large", "unheard-of", expect!["claim 0: its pool has no type unheard-of"]);
    spoilt(
        "claim default",
        "claim other",
        expect![[r#"
        pool other does not exist
        the bound $0.1500/h is above the price $0.0000/h"#]],
    );
    judge(
        CLUSTER,
        "claim default small|large zone=a: web huge\nplace node/there: any",
        expect![[r#"
        claim 0 as large is too small, cpu: 53 wanted, 8 there
        claim 0 as small is too small, cpu: 53 wanted, 4 there
        default/huge is rejected by claim 0 as small in the cheapest replay: Insufficient cpu"#]],
    );
}

#[test]
fn prices_are_those_of_the_offerings() {
    spoilt("zone=a", "zone=a price=0.1", expect!["claim 0 costs $0.2000/h, not $0.1000/h"]);
    spoilt("small|large", "large|small", expect!["claim 0: types do not come cheapest first"]);
    spoilt("bound 0.15", "bound 0.21", expect!["the bound $0.2100/h is above the price $0.2000/h"]);
}

#[test]
fn limits_hold_for_the_largest_type() {
    spoilt("place node/there", "claim default small|large", expect!["pool default may come to use 26 of 20 cpu"]);
}

#[test]
fn refusals_are_told_for_every_pool_and_are_true() {
    spoilt("nowhere:", "nowhere reasonless:", expect!["default/huge: no proper reason of pool default"]);
    let unlimited = CLUSTER.replace("limit.cpu=20", "");
    judge(
        &unlimited,
        "claim default small zone=a: web\nnowhere: huge\nnowhere: any",
        expect!["default/any would have fit a node of pool default"],
    );
    // Who has neighbours to think of may have been refused for their sake.
    let spread = unlimited.replace("any  cpu=1", "any cpu=1 spread=zone/1");
    judge(&spread, "claim default small zone=a: web\nnowhere: huge\nnowhere: any", expect![[""]]);
}

#[test]
fn ports_belong_to_one_pod_of_a_node() {
    let cluster = "type m cpu=4 mem=8Gi a:0.1
        pool default
        node n1 cpu=4 port=90
        daemon agent cpu=100m port=100
        pod one cpu=1 port=80
        pod two cpu=1 port=80
        pod three cpu=1 port=90
        pod four cpu=1 port=100";
    judge(
        cluster,
        "claim default m: one two\nplace node/n1: three\nclaim default m: four",
        expect![[r#"
        default/three wants the taken host port 90 on node/n1
        default/two wants the taken host port 80 on claim 0 as m
        default/four wants the taken host port 100 on claim 1 as m
        default/two is rejected by claim 0 as m in the cheapest replay: node(s) didn't have free ports for the requested pod ports
        default/three is rejected by node/n1 in the cheapest replay: node(s) didn't have free ports for the requested pod ports
        default/four is rejected by claim 1 as m in the cheapest replay: node(s) didn't have free ports for the requested pod ports"#]],
    );
    judge(cluster, "claim default m: one three\nplace node/n1: two four", expect![[""]]);
}

#[test]
fn volumes_are_within_reach_and_not_too_many() {
    let cluster = "type m cpu=4 mem=8Gi attach=ebs:2 a:0.1 b:0.1
        pool default
        node n1 cpu=4 label=zone=a attach=ebs:1 attached=ebs:shared
        pod one cpu=1 volume=zone:a attach=ebs:v1
        pod two cpu=1 attach=ebs:v2 attach=ebs:shared
        pod three cpu=1 attach=ebs:shared";
    judge(
        cluster,
        "claim default m zone=a: one three\nplace node/n1: two",
        expect![[r#"
        node/n1 would attach 2 of 1 volumes of ebs
        default/two is rejected by node/n1 in the cheapest replay: node(s) exceed max volume count"#]],
    );
    judge(
        cluster,
        "claim default m: one two\nplace node/n1: three",
        expect![[r#"
        default/one may not reach its volumes from claim 0 as m
        claim 0 as m would attach 3 of 2 volumes of ebs
        default/two is rejected by claim 0 as m in the cheapest replay: node(s) exceed max volume count"#]],
    );
}

#[test]
fn as_many_values_are_left_as_the_pool_demands() {
    let cluster = "type m cpu=4 mem=8Gi a:0.1 b:0.1
        type n cpu=4 mem=8Gi a:0.1
        pool default require=type:Exists:min=2 require=zone:In:a|b|min=2
        pod one cpu=1";
    judge(cluster, "claim default m|n: one", expect![[""]]);
    judge(
        cluster,
        "claim default m: one",
        expect!["claim 0 leaves 1 of 2 values for node.kubernetes.io/instance-type"],
    );
    judge(
        cluster,
        "claim default m|n zone=a: one",
        expect!["claim 0 leaves 1 of 2 values for topology.kubernetes.io/zone"],
    );
}

#[test]
fn reservations_are_promised_no_more_often_than_they_can_be_kept() {
    let cluster = "type m cpu=4 mem=8Gi a:0.1 reserved:a:0.01:cr-1*1
        pool default
        pod one cpu=3
        pod two cpu=3";
    let plan = "claim default m capacity=reserved: one\nclaim default m capacity=reserved: two";
    judge(cluster, plan, expect!["reservation cr-1 is promised 2 times with 1 left"]);
    judge(cluster, &plan.replacen("reserved", "on-demand", 1), expect![[""]]);
}

/// Rules between pods: the whole plan is carried out, in its order, with whatever the nodes may turn into.
#[test]
fn spread_holds_at_every_turn() {
    let cluster = "type m cpu=4 mem=8Gi a:0.1 b:0.1
        pool default
        node n1 cpu=4 label=zone=a
        on   n1: web*1
        pod  web*2 cpu=1 spread=zone/1";
    judge(cluster, "claim default m zone=b: web-0 web-1", expect![[""]]);
    judge(cluster, "claim default m zone=b: web-1\nplace node/n1: web-0", expect![[""]]);
    judge(
        cluster,
        "claim default m zone=b: web-1\nplace node/n1: web-0\nsequence web-0 web-1",
        expect![
            "default/web-0 is rejected by node/n1 in the cheapest replay: node(s) didn't match pod topology spread constraints"
        ],
    );
    judge(
        cluster,
        "claim default m: web-0 web-1",
        expect![[r#"
        default/web-0 is rejected by claim 0 as m in the every-domain replay: node(s) didn't match pod topology spread constraints
        default/web-1 is rejected by claim 0 as m in the every-domain replay: node(s) didn't match pod topology spread constraints"#]],
    );
}

/// A zone without any node counts as soon as a pool could make a node there.
#[test]
fn pods_are_spread_over_domains_without_nodes() {
    let cluster = "type m cpu=4 mem=8Gi a:0.1 b:0.1
        pool default
        pod  web*2 cpu=1 spread=zone/1";
    judge(
        cluster,
        "claim default m zone=a: web-0 web-1",
        expect![
            "default/web-1 is rejected by claim 0 as m in the every-domain replay: node(s) didn't match pod topology spread constraints"
        ],
    );
    judge(&cluster.replace("b:0.1", "!b:0.1"), "claim default m zone=a: web-0 web-1", expect![[""]]);
}

#[test]
fn hosts_are_told_apart() {
    let cluster = "type m cpu=4 mem=8Gi a:0.1
        pool default
        pod  web*3 cpu=1 spread=host/1
        pod  db*2  cpu=1 away=host";
    judge(cluster, "claim default m: web-0 db-0\nclaim default m: web-1 db-1\nclaim default m: web-2", expect![[""]]);
    judge(
        cluster,
        "claim default m: web-0 web-1 db-0 db-1\nclaim default m: web-2",
        expect![[r#"
        default/web-1 is rejected by claim 0 as m in the cheapest replay: node(s) didn't match pod topology spread constraints
        default/db-1 is rejected by claim 0 as m in the cheapest replay: node(s) didn't match pod anti-affinity rules"#]],
    );
}

#[test]
fn affinity_needs_somebody_to_join() {
    let cluster = "type m cpu=4 mem=8Gi a:0.1 b:0.1
        pool default
        pod  db  cpu=1
        pod  web cpu=1 near=zone:app=db";
    judge(cluster, "claim default m zone=a: db\nclaim default m zone=a: web", expect![[""]]);
    judge(
        cluster,
        "claim default m zone=a: web\nclaim default m zone=a: db",
        expect![
            "default/web is rejected by claim 0 as m in the cheapest replay: node(s) didn't match pod affinity rules"
        ],
    );
    judge(
        cluster,
        "claim default m: db\nclaim default m: web",
        expect!["default/web is rejected by claim 1 as m in the mixed replay: node(s) didn't match pod affinity rules"],
    );
    judge(cluster, "claim default m: db web", expect![[""]]);
}

/// Those who run have a say, and namespaces are told apart by name and by label.
#[test]
fn running_pods_keep_others_away() {
    let cluster = "type m cpu=4 mem=8Gi a:0.1 b:0.1
        pool default
        namespace other team=x
        node n1 cpu=4 label=zone=a
        on   n1: lone*1 ns=other away=zone:app=web@?team=x
        pod  web  cpu=1 ns=other
        pod  same cpu=1 app=web";
    judge(cluster, "place node/n1: same\nclaim default m zone=b: web", expect![[""]]);
    judge(
        cluster,
        "place node/n1: web\nclaim default m zone=b: same",
        expect![
            "other/web is rejected by node/n1 in the cheapest replay: node(s) didn't satisfy existing pods anti-affinity rules"
        ],
    );
    judge(
        cluster,
        "place node/n1: same\nclaim default m: web",
        expect![
            "other/web is rejected by claim 0 as m in the cheapest replay: node(s) didn't satisfy existing pods anti-affinity rules"
        ],
    );
}

/// A promised node turns into one that all of its pods can live on, or the promise is worth nothing.
#[test]
fn promised_nodes_suit_all_of_their_pods() {
    let cluster = "claim c1 cpu=4 require=zone:In:a|b
        pod one cpu=1 select=zone=a
        pod two cpu=1 affinity=zone:In:b or=zone:In:a";
    judge(cluster, "place nodeclaim/c1: one two", expect![[""]]);
    judge(
        &cluster.replace("or=zone:In:a", ""),
        "place nodeclaim/c1: one two",
        expect![[r#"
        nodeclaim/c1 cannot turn into a node for all of its pods
        default/two is rejected by nodeclaim/c1 in the cheapest replay: node(s) didn't match Pod's node affinity/selector"#]],
    );
}
