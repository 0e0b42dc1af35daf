//! Limits of pools, and what they do to the choice of nodes.

use expect_test::expect;

use crate::scenario::check;

/// PROV-42: types that a limit does not leave room for are out, and every claim counts as its largest type.
#[test]
fn limits_hold_for_the_largest_listed_type() {
    check(
        "type m.large   cpu=2 mem=8Gi  a:0.10
         type m.xlarge  cpu=4 mem=16Gi a:0.21
         type m.2xlarge cpu=8 mem=32Gi a:0.42
         pool default limit.cpu=9 used.cpu=2
         pod  web cpu=2
         pod  api cpu=1900m select=zone=a
         pod  job cpu=1800m select=capacity=on-demand",
        expect![[r#"
            default m.large a $0.1: job
            default m.large a $0.1: web
            default m.large a $0.1: api"#]],
    );
    check(
        "type m.large   cpu=2 mem=8Gi  a:0.10
         type m.xlarge  cpu=4 mem=16Gi a:0.21
         type m.2xlarge cpu=8 mem=32Gi a:0.42
         pool default limit.cpu=9 used.cpu=2
         pod  web cpu=2
         pod  api cpu=1900m",
        expect![[r#"
            default m.large|m.xlarge a $0.1: api
            default m.large a $0.1: web"#]],
    );
    check(
        "type g.large cpu=2 mem=8Gi gpu=1 a:0.50
         pool default limit.gpu=1
         pod  train*2 cpu=2 gpu=1",
        expect![[r#"
            default g.large a $0.5: train-0
            nowhere: train-1
              nodepool "default": all available instance types exceed limits for nodepool, nvidia.com/gpu: 1 wanted, 0 there; raise spec.limits or free capacity"#]],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default limit.mem=4Gi
         pod  web cpu=1",
        expect![[r#"
            nowhere: web
              nodepool "default": all available instance types exceed limits for nodepool, memory: 8Gi wanted, 4Gi there; raise spec.limits or free capacity"#]],
    );
}

/// PROV-43. DIFFERS: a claim is not made when it would go past a limit, be it that the limit is not reached yet. Two CPUs
/// are left here, and every node has four.
#[test]
fn a_claim_that_would_go_past_a_limit_is_not_made() {
    check(
        "type m.xlarge cpu=4 mem=16Gi a:0.20
         pool default limit.cpu=10 used.cpu=8
         pod  web cpu=1",
        expect![[r#"
            nowhere: web
              nodepool "default": all available instance types exceed limits for nodepool, cpu: 4 wanted, 2 there; raise spec.limits or free capacity"#]],
    );
    check(
        "type m.xlarge cpu=4 mem=16Gi a:0.20
         pool default limit.cpu=8
         pod  web*3 cpu=4",
        expect![[r#"
            default m.xlarge a $0.2: web-0
            default m.xlarge a $0.2: web-1
            nowhere: web-2
              nodepool "default": all available instance types exceed limits for nodepool, cpu: 4 wanted, 0 there; raise spec.limits or free capacity"#]],
    );
}

/// PROV-44. DIFFERS: every claim of one plan counts against `limits.nodes`, so that no plan goes past it.
#[test]
fn the_limit_on_nodes_holds_within_one_plan() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default limit.nodes=3 used.nodes=1
         pod  web*5 cpu=1500m",
        expect![[r#"
            default m.large a $0.1: web-0
            default m.large a $0.1: web-1
            nowhere: web-2 web-3 web-4
              nodepool "default": all available instance types exceed limits for nodepool, nodes: 1 wanted, 0 there; raise spec.limits or free capacity"#]],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default limit.nodes=1 used.nodes=1
         pod  web cpu=1",
        expect![[r#"
            nowhere: web
              nodepool "default": all available instance types exceed limits for nodepool, nodes: 1 wanted, 0 there; raise spec.limits or free capacity"#]],
    );
}

/// When only so many nodes are allowed, a larger one that holds all pods beats a cheaper one that does not.
#[test]
fn a_limit_on_nodes_makes_nodes_larger() {
    check(
        "type m.large   cpu=2 mem=8Gi  a:0.05
         type m.2xlarge cpu=8 mem=32Gi a:0.40
         pool default limit.nodes=1
         pod  web*6 cpu=1
         pod  late  cpu=500m",
        expect!["default m.2xlarge a $0.4: web-0 web-1 web-2 web-3 web-4 web-5 late"],
    );
    check(
        "type m.large   cpu=2 mem=8Gi  a:0.05
         type m.2xlarge cpu=8 mem=32Gi a:0.40
         pool default limit.nodes=1
         pod  early cpu=2
         pod  late*4 cpu=1",
        expect!["default m.2xlarge a $0.4: early late-0 late-1 late-2 late-3"],
    );
}

/// When limits end the opening of claims early, those that are planned take the rest at any price.
#[test]
fn claims_grow_for_pods_that_limits_leave_out() {
    check(
        "type m.large   cpu=2 mem=8Gi  a:0.05
         type m.2xlarge cpu=8 mem=32Gi a:1
         pool soft limit.nodes=2 taint=soft=yes:PreferNoSchedule
         pod  early cpu=2
         pod  late*10 cpu=1",
        expect![[r#"
            soft m.2xlarge a $1: early late-0 late-1 late-2 late-3 late-4 late-5
            soft m.2xlarge a $1: late-6 late-7 late-8 late-9"#]],
    );
}

/// Where a limit binds, what takes little of it comes before what costs little: nobody waits who could have a node.
#[test]
fn limits_are_used_sparingly_when_they_bind() {
    check(
        "type r.xlarge cpu=4 mem=32Gi a:0.03
         type c.xlarge cpu=4 mem=8Gi  a:0.05
         pool default limit.mem=50Gi
         pod  web*20 cpu=1",
        expect![[r#"
            default c.xlarge a $0.05: web-0 web-1 web-10 web-11
            default c.xlarge a $0.05: web-12 web-13 web-14 web-15
            default c.xlarge a $0.05: web-16 web-17 web-18 web-19
            default c.xlarge a $0.05: web-2 web-3 web-4 web-5
            default c.xlarge a $0.05: web-6 web-7 web-8 web-9"#]],
    );
}
