//! Overlays: what is offered to the planner follows them.

use std::sync::Arc;

use expect_test::expect;
use model::{OverlayMarks, PoolName, TypeName};

use crate::script::{Script, check};

/// OVL-01: the heaviest overlay decides, and of equal ones that do not meet each does its part; who goes takes the
/// change along.
#[test]
fn the_snapshot_follows_overlays() {
    check(
        "overlays
         type m cpu=4 offer=a:0.10 offer=b:0.20
         pool default
         ? types
         overlay heavy weight=5 require=zone:In:a price=0.05
         overlay light weight=1 require=type:In:m adjust=+100% gpu=1
         ? types
         gone overlay heavy
         ? types
         overlay light weight=1 require=type:In:x adjust=+100%
         ? types
         ? overlays",
        expect![[r#"
            default m has(cpu=4) a:0.1 b:0.2
            default m has(cpu=4 nvidia.com/gpu=1) a:0.05 b:0.4
            default m has(cpu=4 nvidia.com/gpu=1) a:0.2 b:0.4
            default m has(cpu=4) a:0.1 b:0.2
            light: applied
        "#]],
    );
}

/// OVL-02, OVL-03: an overlay that meets another of its weight, or that makes no sense, is applied nowhere; the reasons
/// are those of its condition.
#[test]
fn overlays_that_are_not_applied_say_why() {
    check(
        "overlays
         type m cpu=4 offer=a:0.10
         type x cpu=8 offer=a:0.40
         pool default
         overlay one weight=5 require=type:In:m price=0.05
         overlay any weight=5 require=zone:In:a price=0.01
         overlay odd require=zone:In:a cpu=9
         ? types
         ? overlays
         gone overlay one
         ? types
         ? overlays",
        expect![[r#"
            default m has(cpu=4) a:0.05
            default x has(cpu=8) a:0.4
            any: Conflict says(conflict with another overlay)
            odd: RuntimeValidation says(invalid capacity: cpu in resource, restricted)
            one: applied
            default m has(cpu=4) a:0.01
            default x has(cpu=8) a:0.01
            any: applied
            odd: RuntimeValidation says(invalid capacity: cpu in resource, restricted)
        "#]],
    );
}

/// OVL-06: an overlay can speak of one pool, or of a label that only a pool's template defines; when the template
/// changes, so does what the overlay selects.
#[test]
fn overlays_select_pools_by_their_labels() {
    check(
        "overlays
         type m cpu=4 offer=a:0.10
         pool first label=team=web
         pool second
         overlay pool require=pool:In:second price=0.01
         overlay team require=team:In:web price=0.02
         ? types
         pool second label=team=web
         ? types
         ? overlays
         pool first
         ? types",
        expect![[r#"
            first m has(cpu=4) a:0.02
            second m has(cpu=4) a:0.01
            first m has(cpu=4) a:0.02
            second m has(cpu=4) a:0.02
            pool: Conflict says(conflict with another overlay)
            team: applied
            first m has(cpu=4) a:0.1
            second m has(cpu=4) a:0.02
        "#]],
    );
}

/// Where overlays are not in use nobody waits for them, and nothing changes if one comes.
#[test]
fn overlays_that_are_not_in_use_change_nothing() {
    check(
        "type m cpu=4 offer=a:0.10
         pool default
         overlay free require=zone:In:a price=0
         ? types
         ? overlays",
        expect![[r#"
            default m has(cpu=4) a:0.1
            nothing
        "#]],
    );
    for (line, wanted) in [("at 0", false), ("overlays", true)] {
        let script = Script::run(line);
        assert_eq!(script.cluster.wanted().contains(&state::Kind::Overlay), wanted);
    }
}

/// Nothing is reckoned anew as long as neither overlays nor what is for sale change: the very same list comes out.
#[test]
fn overlays_are_evaluated_on_change_only() {
    let mut script = Script::run(
        "overlays\ntype m cpu=4 offer=a:0.10\npool default\noverlay o require=zone:In:a price=1\npod web cpu=1",
    );
    let name = PoolName::new("default");
    let types = |script: &Script| Arc::clone(script.cluster.types(&name).unwrap());
    let before = types(&script);
    script.step("pool default limit.cpu=9");
    script.step("pod api cpu=1");
    script.step("overlay o require=zone:In:a price=1");
    assert!(Arc::ptr_eq(&before, &types(&script)));
    script.step("overlay o require=zone:In:a price=2");
    assert!(!Arc::ptr_eq(&before, &types(&script)));
    script.step("? wakes");
    assert_eq!(script.answers, "overlays, waiting api, waiting web\n", "who found nothing may find something now");
}

/// OVL-09: which types of a pool overlays touch, and how; a mark goes with its overlay.
#[test]
fn overlays_leave_marks() {
    let mut script = Script::run(
        "overlays
         type m cpu=4 offer=a:0.10
         type x cpu=8 offer=b:0.40
         pool default
         overlay price require=zone:In:a price=0.10
         overlay more require=type:In:x gpu=1",
    );
    let marks = |script: &Script, types: &[&str]| {
        let types: Vec<TypeName> = types.iter().copied().map(TypeName::new).collect();
        let OverlayMarks { price, capacity } = script.cluster.overlay_marks(&PoolName::new("default"), &types);
        (price, capacity)
    };
    assert_eq!(marks(&script, &["m"]), (true, false), "a price that is the same is stated all the same");
    assert_eq!(marks(&script, &["x"]), (false, true));
    assert_eq!(marks(&script, &["m", "x"]), (true, true));
    assert_eq!(marks(&script, &[]), (false, false));
    script.step("gone overlay price");
    assert_eq!(marks(&script, &["m", "x"]), (false, true));
    script.step("gone overlay more");
    assert_eq!(marks(&script, &["m", "x"]), (false, false));
}

/// Whoever judges overlays is woken by what they depend on, and not by what is written about them.
#[test]
fn what_wakes_those_who_judge_overlays() {
    check(
        "overlays
         pool early
         ? wakes
         overlay o require=zone:In:a price=1
         ? wakes
         overlay o require=zone:In:a price=1
         ? wakes
         pool late
         ? wakes
         pool late
         ? wakes
         pool late weight=3
         ? wakes
         class default
         ? wakes
         class default
         ? wakes
         gone pool late
         ? wakes
         gone overlay o
         ? wakes",
        expect![[r#"
            pool early
            overlays
            nothing
            overlays, pool late
            pool late
            overlays, pool late
            overlays, pool early, pool late
            pool early, pool late
            overlays, pool late
            overlays
        "#]],
    );
}
