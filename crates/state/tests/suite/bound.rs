//! Pods that run, as the rules of other pods see them.

use std::sync::Arc;

use expect_test::expect;

use crate::script::{Script, check};

/// TOPO-12, TOPO-13: who has ended, is going, waits, or is bound to a node that is not there, does not count.
#[test]
fn running_pods_are_counted_by_what_others_see() {
    check(
        "node n1 cpu=8
         node n2 cpu=8
         pod a cpu=1 on=n1 label=app=web
         pod b cpu=2 on=n1 label=app=web
         pod c cpu=1 on=n2 label=app=web
         pod d cpu=1 on=n2 label=app=db apart=db
         pod ended cpu=1 on=n1 label=app=web done
         pod leaving cpu=1 on=n1 label=app=web going
         pod waiting cpu=1 label=app=web
         pod lost cpu=1 on=n3 label=app=web
         ? bound",
        expect![[r#"
            shop/app=db apart: 1 on n2
            shop/app=web: 2 on n1, 1 on n2
        "#]],
    );
}

/// The count follows the pods and the nodes.
#[test]
fn counts_follow_the_news() {
    check(
        "pod a cpu=1 on=n1 label=app=web
         pod b cpu=1 on=n1 label=app=web
         ? bound
         node n1 cpu=8
         ? bound
         pod a cpu=1 on=n1 label=app=web going
         ? bound
         pod b cpu=1 on=n1 label=app=db
         ? bound
         node n1 cpu=9
         ? bound
         gone node n1
         ? bound
         node n1 cpu=9
         gone pod b
         ? bound",
        expect![[r#"
            nothing
            shop/app=web: 2 on n1
            shop/app=web: 1 on n1
            shop/app=db: 1 on n1
            shop/app=db: 1 on n1
            nothing
            nothing
        "#]],
    );
}

/// A pod that has to move is planned, so it does not count where it still is; one that cannot move does.
#[test]
fn pods_that_move_are_not_counted_twice() {
    check(
        "claim c1 provider=i-1 going
         node n1 provider=i-1
         pod moves cpu=1 on=n1 label=app=web
         pod stays cpu=1 on=n1 label=app=web protect=true
         pod pinned cpu=1 on=n1 label=app=web select=hostname=n1
         ? pending
         ? bound",
        expect![[r#"
            moves: asks(cpu=1 pods=1)
            shop/app=web: 2 on n1
        "#]],
    );
}

/// Nothing is made anew for a snapshot that has not changed since the last.
#[test]
fn snapshots_share_what_did_not_change() {
    let mut script = Script::run(
        "node n1 cpu=8
         node n2 cpu=8
         pod a cpu=1 on=n1 label=app=web",
    );
    let before = script.snapshot();
    script.step("pod b cpu=1 on=n2 label=app=db");
    let after = script.snapshot();
    assert!(Arc::ptr_eq(&before.places[0], &after.places[0]), "nothing about n1 changed");
    assert!(!Arc::ptr_eq(&before.places[1], &after.places[1]), "n2 has a pod more");
    assert!(Arc::ptr_eq(&before.namespaces, &after.namespaces));
}
