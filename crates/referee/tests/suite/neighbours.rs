//! Pod affinity and anti-affinity.

use expect_test::expect;

use crate::check;

#[test]
fn affinity_joins_a_domain_with_a_matching_pod() {
    let cluster = "
        node a1 zone=a
        node a2 zone=a
        node b zone=b
        node bare
        pod db @a1 label:app=db";
    check(
        &format!("{cluster}\ntry p with=zone/app=db"),
        expect![[r#"
        a1: ok
        a2: ok
        b: node(s) didn't match pod affinity rules
        bare: node(s) didn't match pod affinity rules
    "#]],
    );
    check(
        &format!("{cluster}\ntry p with=host/app=db"),
        expect![[r#"
        a1: ok
        a2: node(s) didn't match pod affinity rules
        b: node(s) didn't match pod affinity rules
        bare: node(s) didn't match pod affinity rules
    "#]],
    );
    check(
        &format!("{cluster}\ntry p with=zone/app=cache"),
        expect![[r#"
        a1: node(s) didn't match pod affinity rules
        a2: node(s) didn't match pod affinity rules
        b: node(s) didn't match pod affinity rules
        bare: node(s) didn't match pod affinity rules
    "#]],
    );
}

#[test]
fn the_first_of_a_group_may_begin_anywhere_with_the_label() {
    check(
        "node a zone=a
         node bare
         try p label:app=web with=zone/app=web",
        expect![[r#"
            a: ok
            bare: node(s) didn't match pod affinity rules
        "#]],
    );
    check(
        "node a zone=a
         node b zone=b
         pod one @a label:app=web
         try p label:app=web with=zone/app=web",
        expect![[r#"
            a: ok
            b: node(s) didn't match pod affinity rules
        "#]],
    );
}

#[test]
fn one_pod_must_match_all_terms_of_an_affinity() {
    check(
        "node a zone=a
         node b zone=b
         pod one @a label:app=db
         pod two @a label:tier=gold
         pod three @b label:app=db label:tier=gold
         try p with=zone/app=db with=zone/tier=gold",
        expect![[r#"
            a: node(s) didn't match pod affinity rules
            b: ok
        "#]],
    );
}

#[test]
fn anti_affinity_keeps_both_sides_apart() {
    let cluster = "
        node a1 zone=a
        node a2 zone=a
        node b zone=b";
    check(
        &format!("{cluster}\npod one @a1 label:app=web\ntry p without=zone/app=web"),
        expect![[r#"
        a1: node(s) didn't match pod anti-affinity rules
        a2: node(s) didn't match pod anti-affinity rules
        b: ok
    "#]],
    );
    check(
        &format!("{cluster}\npod one @a1 label:app=web\ntry p without=host/app=web"),
        expect![[r#"
        a1: node(s) didn't match pod anti-affinity rules
        a2: ok
        b: ok
    "#]],
    );
    check(
        &format!("{cluster}\npod one @a1 without=zone/app=web\ntry p label:app=web"),
        expect![[r#"
        a1: node(s) didn't satisfy existing pods anti-affinity rules
        a2: node(s) didn't satisfy existing pods anti-affinity rules
        b: ok
    "#]],
    );
    check(
        &format!("{cluster}\npod one @a1 without=zone/app=web\ntry p label:app=db"),
        expect![[r#"
        a1: ok
        a2: ok
        b: ok
    "#]],
    );
}

#[test]
fn namespaces_limit_whom_a_term_speaks_of() {
    let cluster = "
        node a
        node b
        pod one @a label:app=web ns=other";
    check(
        &format!("{cluster}\ntry p without=host/app=web"),
        expect![[r#"
        a: ok
        b: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p without=host/app=web/other"),
        expect![[r#"
        a: node(s) didn't match pod anti-affinity rules
        b: ok
    "#]],
    );
    check(
        &format!("{cluster}\ntry p without=host/app=web/*"),
        expect![[r#"
        a: node(s) didn't match pod anti-affinity rules
        b: ok
    "#]],
    );
}

#[test]
fn terminating_pods_are_still_neighbours() {
    check(
        "node a
         node b
         pod one @a label:app=web terminating
         try p without=host/app=web",
        expect![[r#"
            a: node(s) didn't match pod anti-affinity rules
            b: ok
        "#]],
    );
}

#[test]
fn a_node_without_the_label_is_no_domain() {
    check(
        "node bare
         pod one @bare label:app=web without=zone/app=web
         try p label:app=web without=zone/app=web",
        expect![[r#"
            bare: ok
        "#]],
    );
}
