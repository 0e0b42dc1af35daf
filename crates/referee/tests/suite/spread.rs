//! Topology spread.

use expect_test::expect;

use crate::check;

const THREE_ZONES: &str = "
    node a zone=a
    node b zone=b
    node c zone=c
    node bare";

#[test]
fn a_domain_may_lead_by_the_maximal_skew() {
    let pods = "
        pod one @a label:app=web
        pod two @b label:app=web";
    check(
        &format!("{THREE_ZONES}{pods}\ntry p label:app=web spread=zone/1/app=web"),
        expect![[r#"
        a: node(s) didn't match pod topology spread constraints
        b: node(s) didn't match pod topology spread constraints
        bare: node(s) didn't match pod topology spread constraints (missing required label)
        c: ok
    "#]],
    );
    check(
        &format!("{THREE_ZONES}{pods}\ntry p label:app=web spread=zone/2/app=web"),
        expect![[r#"
        a: ok
        b: ok
        bare: node(s) didn't match pod topology spread constraints (missing required label)
        c: ok
    "#]],
    );
    // A pod that its own selector does not match adds nothing.
    check(
        &format!("{THREE_ZONES}{pods}\ntry p spread=zone/1/app=web"),
        expect![[r#"
        a: ok
        b: ok
        bare: node(s) didn't match pod topology spread constraints (missing required label)
        c: ok
    "#]],
    );
}

#[test]
fn only_living_pods_of_the_same_namespace_count() {
    let pods = "
        pod one @a label:app=web ns=other
        pod two @b label:app=web terminating
        pod three @c label:app=web";
    check(
        &format!("{THREE_ZONES}{pods}\ntry p label:app=web spread=zone/1/app=web"),
        expect![[r#"
        a: ok
        b: ok
        bare: node(s) didn't match pod topology spread constraints (missing required label)
        c: node(s) didn't match pod topology spread constraints
    "#]],
    );
}

#[test]
fn too_few_domains_count_as_an_empty_one() {
    let pods = "
        pod one @a label:app=web
        pod two @b label:app=web
        pod three @c label:app=web";
    check(
        &format!("{THREE_ZONES}{pods}\ntry p label:app=web spread=zone/1/app=web/min=3"),
        expect![[r#"
        a: ok
        b: ok
        bare: node(s) didn't match pod topology spread constraints (missing required label)
        c: ok
    "#]],
    );
    check(
        &format!("{THREE_ZONES}{pods}\ntry p label:app=web spread=zone/1/app=web/min=4"),
        expect![[r#"
        a: node(s) didn't match pod topology spread constraints
        b: node(s) didn't match pod topology spread constraints
        bare: node(s) didn't match pod topology spread constraints (missing required label)
        c: node(s) didn't match pod topology spread constraints
    "#]],
    );
}

#[test]
fn nodes_that_the_pod_cannot_use_are_domains_only_on_request() {
    let cluster = "
        node a zone=a label:pool=x
        node b zone=b
        pod one @a label:app=web";
    check(
        &format!("{cluster}\ntry p label:app=web select:pool=x spread=zone/1/app=web"),
        expect![[r#"
        a: ok
        b: node(s) didn't match Pod's node affinity/selector
    "#]],
    );
    check(
        &format!("{cluster}\ntry p label:app=web select:pool=x spread=zone/1/app=web/anywhere"),
        expect![[r#"
        a: node(s) didn't match pod topology spread constraints
        b: node(s) didn't match Pod's node affinity/selector
    "#]],
    );
    let tainted = "
        node a zone=a
        node b zone=b taint=x:NoSchedule
        pod one @a label:app=web";
    check(
        &format!("{tainted}\ntry p label:app=web spread=zone/1/app=web"),
        expect![[r#"
        a: node(s) didn't match pod topology spread constraints
        b: node(s) had untolerated taint(s)
    "#]],
    );
    check(
        &format!("{tainted}\ntry p label:app=web spread=zone/1/app=web/taints"),
        expect![[r#"
        a: ok
        b: node(s) had untolerated taint(s)
    "#]],
    );
}

#[test]
fn nodes_without_one_of_the_keys_count_for_no_constraint() {
    check(
        "node a zone=a label:rack=1
         node b zone=b label:rack=1
         node c zone=c
         pod one @a label:app=web
         pod two @b label:app=web
         try p label:app=web spread=zone/1/app=web spread=rack/5/app=web",
        expect![[r#"
            a: ok
            b: ok
            c: node(s) didn't match pod topology spread constraints (missing required label)
        "#]],
    );
}

#[test]
fn selectors_of_everything_and_nothing_count_nobody() {
    let pods = "
        pod one @a
        pod two @a";
    check(
        &format!("{THREE_ZONES}{pods}\ntry p spread=zone/1/*"),
        expect![[r#"
        a: ok
        b: ok
        bare: node(s) didn't match pod topology spread constraints (missing required label)
        c: ok
    "#]],
    );
    check(
        &format!("{THREE_ZONES}{pods}\ntry p spread=zone/1/-"),
        expect![[r#"
        a: ok
        b: ok
        bare: node(s) didn't match pod topology spread constraints (missing required label)
        c: ok
    "#]],
    );
}
