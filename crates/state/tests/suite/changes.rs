//! Who is woken, and which news are none.

use expect_test::expect;
use state::Kind;

use crate::script::{KINDS, Script, check};

#[test]
fn changes_wake_those_they_concern() {
    check(
        "pool default
         ? wakes
         claim c1 pool=default
         ? wakes
         claim c1 pool=default provider=i-1
         ? wakes
         node n1 provider=i-1
         ? wakes
         claim c1 pool=default provider=i-1 cpu=4
         ? wakes
         class default
         ? wakes
         class unused
         ? wakes
         pool default weight=5
         ? wakes
         gone node n1
         ? wakes
         gone claim c1
         ? wakes
         gone pool default
         ? wakes",
        expect![[r#"
            pool default
            claim c1, pool default
            claim c1, pool default
            claim c1, node n1
            claim c1, node n1, pool default
            pool default
            nothing
            claim c1, pool default
            claim c1
            claim c1, pool default
            pool default
        "#]],
    );
}

/// LIFE-29: a pod that binds, ends or begins to terminate restarts the quiet time of its node; daemons do not, and neither
/// does what was so already when we first saw it.
#[test]
fn pods_wake_their_node() {
    check(
        "pod web cpu=1
         ? wakes
         pod web cpu=1 on=n1
         ? wakes
         pod web cpu=1 on=n1 ready
         ? wakes
         pod web cpu=1 on=n1 going
         ? wakes
         gone pod web
         ? wakes
         pod old cpu=1 on=n1
         ? wakes
         pod old cpu=1 on=n1 done
         ? wakes
         pod killed cpu=1 on=n1
         gone pod killed
         ? wakes
         pod logs cpu=1 owner=DaemonSet
         pod logs cpu=1 on=n1 owner=DaemonSet
         ? wakes
         gone pod logs
         ? wakes
         gone pod unknown
         ? wakes",
        expect![[r#"
            waiting web
            moved n1, node n1
            node n1
            moved n1, node n1
            left n1, node n1
            node n1
            moved n1, node n1
            left n1, moved n1, node n1
            node n1
            left n1, node n1
            nothing
        "#]],
    );
}

/// The scheduler tries again with every node that comes. That a pod still waits is news only if it asks for something else,
/// or once the machine that was chosen for it could have taken it, or is not coming.
#[test]
fn pods_wait_for_the_machine_that_was_chosen() {
    check(
        "pool default
         claim c1 pool=default provider=i-1
         claim c2 pool=default provider=i-2
         pod web cpu=1
         pod new cpu=1
         seat claim/c1 web
         pod web cpu=1
         ? wakes
         pod new cpu=1
         ? wakes
         pod web cpu=2
         ? wakes
         node n1 provider=i-1 taint=karpenter.sh/unregistered:NoExecute
         pod web cpu=2
         ? wakes
         node n1 provider=i-1
         pod web cpu=2
         ? wakes
         seat claim/c2 web
         pod web cpu=2
         ? wakes
         claim c2 pool=default provider=i-2 going
         ? wakes
         pod web cpu=2
         ? wakes
         seat claim/c1 web
         gone claim c1
         ? wakes",
        expect![[r#"
            nothing
            waiting new
            waiting web
            nothing
            waiting web
            nothing
            claim c2, pool default, waiting web
            waiting web
            claim c1, node n1, pool default, waiting web
        "#]],
    );
}

/// Answers to our own writes may come late.
#[test]
fn old_answers_change_nothing() {
    check(
        "type m cpu=4
         pool default weight=5
         claim c1 provider=i-1 cpu=4
         node n1 provider=i-1 cpu=4
         late 2 pool default weight=7
         ? wakes
         late 2 claim c1 going
         ? wakes
         late 2 node n1 going
         ? wakes
         ? places
         ? pools",
        expect![[r#"
            nothing
            nothing
            nothing
            node/n1 Joining has(cpu=4)
            default weight 5 requires(karpenter.kwok.sh/kwoknodeclass In [default], karpenter.sh/nodepool In [default]) uses(nodes=0) types(m)
        "#]],
    );
}

/// An answer about something gone must not bring it back to life, and not stand in for its successor either.
#[test]
fn the_dead_stay_dead() {
    let gone = "pool default
                claim c1 pool=default
                node n1 cpu=4
                gone pool default
                gone claim c1
                gone node n1\n";
    let ghosts = "ghost pool default weight=7
                  ghost claim c1 pool=default
                  ghost node n1 cpu=8
                  ? tracked
                  ? places
                  ? pools\n";
    let successors = "pool default
                      claim c1 provider=i-1 cpu=1
                      node n1 cpu=2\n";
    check(
        &format!("type m cpu=4\n{gone}{ghosts}{successors}{ghosts}"),
        expect![[r#"
        nothing
        nothing
        nothing
        claimed c1
        foreign n1
        nodeclaim/c1 Joining has(cpu=1)
        node/n1 Ready has(cpu=2)
        default weight 0 requires(karpenter.kwok.sh/kwoknodeclass In [default], karpenter.sh/nodepool In [default]) uses(nodes=0) types(m)
    "#]],
    );
}

/// The going of an object may be missed; its successor tells.
#[test]
fn a_successor_ends_its_predecessor() {
    let mut script = Script::run("node n1 provider=i-1 cpu=4\nclaim c1 provider=i-1 cpu=4");
    script.reincarnate("node", "n1");
    script.reincarnate("claim", "c1");
    for line in [
        "node n1 cpu=2",
        "claim c1 cpu=1",
        "ghost node n1 provider=i-1 cpu=4",
        "ghost claim c1 provider=i-1 cpu=4",
        "? places",
    ] {
        script.step(line);
    }
    expect![[r#"
        nodeclaim/c1 Promised
        node/n1 Ready has(cpu=2)
    "#]]
    .assert_eq(&script.answers);
}

/// A list tells what there is: the rest is gone, and those it concerned are woken.
#[test]
fn a_list_forgets_what_is_missing() {
    check(
        "type m cpu=4
         pool default
         pool other
         claim c1 pool=default provider=i-1
         claim c2 pool=default
         node n1 provider=i-1
         node n2
         pod web cpu=1
         pod bound cpu=1 on=n2
         pod db cpu=2
         listed pod db
         ? wakes
         ? pending
         listed node n1
         ? wakes
         listed claim c2
         ? wakes
         ? tracked
         listed pool other
         ? wakes
         ? pools",
        expect![[r#"
            left n2, moved n2, node n2
            db: asks(cpu=2 pods=1)
            nothing
            claim c1, node n1, pool default
            claimed c2
            foreign n1
            pool default
            other weight 0 requires(karpenter.kwok.sh/kwoknodeclass In [default], karpenter.sh/nodepool In [other]) uses(nodes=0) types(m)
        "#]],
    );
}

#[test]
fn the_state_is_complete_when_every_kind_was_listed() {
    let mut script = Script::new();
    for kind in Kind::ALWAYS {
        let (word, _) = KINDS.into_iter().find(|(_, own)| *own == kind).unwrap();
        script.step("? complete");
        script.step(&format!("listed {word}"));
    }
    script.step("? complete");
    assert_eq!(script.answers, format!("{}true\n", "false\n".repeat(Kind::ALWAYS.len())));
}

/// Pods that were planned for a place keep it from being taken away, for a while, and for its next stage too.
#[test]
fn nominations_end_with_time_or_place() {
    check(
        "nominate claim/c1 20
         nominate node/n1 30
         claim c1
         node n1
         at 19
         ? nominated c1 other
         at 20
         ? nominated c1 other
         ? nominated c1 n1
         gone node n1
         ? nominated c1 n1",
        expect![[r#"
            true
            false
            true
            false
        "#]],
    );
}
