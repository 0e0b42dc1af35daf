//! Filters that look at a node's own properties.

use expect_test::expect;
use referee::Objection;

use crate::{check, language};

#[test]
fn cordoned_nodes_take_only_pods_that_tolerate_it() {
    check(
        "node a cordoned
         node b
         try p",
        expect![[r#"
            a: node(s) were unschedulable
            b: ok
        "#]],
    );
    check(
        "node a cordoned
         try p tolerate=node.kubernetes.io/unschedulable:NoSchedule",
        expect![[r#"
            a: ok
        "#]],
    );
}

#[test]
fn a_named_node_is_the_only_one() {
    check(
        "node a
         node b
         try p at=b",
        expect![[r#"
            a: node(s) didn't match the requested node name
            b: ok
        "#]],
    );
}

#[test]
fn taints_keep_away_by_effect_key_and_value() {
    let cluster = "
        node hard taint=gpu=yes:NoSchedule
        node leave taint=gpu=yes:NoExecute
        node other taint=gpu=no:NoSchedule
        node soft taint=gpu=yes:PreferNoSchedule";
    check(
        &format!("{cluster}\ntry p"),
        expect![[r#"
        hard: node(s) had untolerated taint(s)
        leave: node(s) had untolerated taint(s)
        other: node(s) had untolerated taint(s)
        soft: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p tolerate=gpu=yes:NoSchedule"),
        expect![[r#"
        hard: ok
        leave: node(s) had untolerated taint(s)
        other: node(s) had untolerated taint(s)
        soft: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p tolerate=gpu:"),
        expect![[r#"
        hard: ok
        leave: ok
        other: ok
        soft: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p tolerate=:NoExecute"),
        expect![[r#"
        hard: node(s) had untolerated taint(s)
        leave: ok
        other: node(s) had untolerated taint(s)
        soft: ok
    "#]],
    );
}

#[test]
fn comparing_tolerations_count_only_behind_their_gate() {
    let cluster = "
        node high taint=level=9:NoSchedule
        node low taint=level=3:NoSchedule
        node words taint=level=x:NoSchedule
        try p tolerate=level>5:NoSchedule";
    check(
        cluster,
        expect![[r#"
        high: node(s) had untolerated taint(s)
        low: node(s) had untolerated taint(s)
        words: node(s) had untolerated taint(s)
    "#]],
    );
    check(
        &format!("gates comparison\n{cluster}"),
        expect![[r#"
        high: ok
        low: node(s) had untolerated taint(s)
        words: node(s) had untolerated taint(s)
    "#]],
    );
}

#[test]
fn node_selector_and_affinity_must_both_hold() {
    let cluster = "
        node a zone=a label:tier=1
        node b zone=b label:tier=5
        node bare";
    for (words, taken_by) in [
        ("select:tier=1", "a"),
        ("term=tier,In,1,5", "a b"),
        ("term=tier,NotIn,1", "b bare"),
        ("term=tier,Exists", "a b"),
        ("term=tier,DoesNotExist", "bare"),
        ("term=tier,Gt,3", "b"),
        ("term=tier,Lt,3", "a"),
        ("term=tier,Gt,three", ""),
        ("term=tier,In,1 term=tier,In,5", "a b"),
        ("term=tier,Exists+tier,NotIn,1", "b"),
        ("select:tier=1 term=tier,In,5", ""),
        ("term=", ""),
        ("field=NotIn,a", "b bare"),
        ("field=Exists", ""),
    ] {
        let (situation, pod) = language::read(&format!("{cluster}\ntry p {words}"));
        let survey = referee::survey(&situation, &pod);
        let taking: Vec<&str> = survey.feasible().map(|node| node.as_str()).collect();
        assert_eq!(taking.join(" "), taken_by, "{words}");
        let refused = survey.objections.values().filter(|objections| !objections.is_empty());
        refused.for_each(|objections| assert_eq!(*objections, [Objection::NodeAffinity], "{words}"));
    }
}

#[test]
fn names_in_match_fields_are_looked_at_first() {
    let cluster = "
        node a cordoned
        node b taint=x:NoSchedule
        node c";
    check(
        &format!("{cluster}\ntry p field=In,b"),
        expect![[r#"
        a: node(s) didn't satisfy plugin(s) [NodeAffinity], node(s) were unschedulable, node(s) didn't match Pod's node affinity/selector
        b: node(s) had untolerated taint(s)
        c: node(s) didn't satisfy plugin(s) [NodeAffinity], node(s) didn't match Pod's node affinity/selector
    "#]],
    );
    check(
        &format!("{cluster}\ntry p field=In,b term=kubernetes.io/hostname,Exists"),
        expect![[r#"
        a: node(s) were unschedulable
        b: node(s) had untolerated taint(s)
        c: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p field=In,b+In,c"),
        expect![[r#"
        a: node(s) didn't satisfy plugin(s) [NodeAffinity], node(s) were unschedulable, node(s) didn't match Pod's node affinity/selector
        b: node(s) didn't satisfy plugin(s) [NodeAffinity], node(s) had untolerated taint(s), node(s) didn't match Pod's node affinity/selector
        c: node(s) didn't satisfy plugin(s) [NodeAffinity], node(s) didn't match Pod's node affinity/selector
    "#]],
    );
}
