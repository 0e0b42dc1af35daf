//! Pools as they are offered, and what is held against their limits.

use expect_test::expect;

use crate::script::check;

/// PROV-19, CP-05: and pools of another provider are none of our business.
#[test]
fn pools_that_cannot_be_used_are_not_offered() {
    check(
        "type m cpu=4
         pool good weight=5 label=team=web require=zone:In:a taint=gpu:NoSchedule limit.cpu=8
         pool sick unready
         pool leaving going
         pool fixed replicas=2
         pool theirs kind=Other
         pool namesake group=example.com
         ? pools",
        expect![[r#"
            good weight 5 requires(karpenter.kwok.sh/kwoknodeclass In [default], karpenter.sh/nodepool In [good], team In [web], topology.kubernetes.io/zone In [a]) taints(gpu:NoSchedule) limits(cpu=8) uses(nodes=0) types(m)
        "#]],
    );
}

#[test]
fn a_pool_without_anything_for_sale_is_not_offered() {
    check(
        "pool default
         ? pools",
        expect![["nothing\n"]],
    );
}

/// CP-02: a type that is sold out is listed like any other, and a claim that may still become it counts as large as it.
#[test]
fn what_is_sold_out_is_listed_and_counts() {
    check(
        "type m cpu=4 offer=a:0.10
         type x cpu=64 offer=!a:0.80
         pool default
         claim c1 pool=default require=type:In:m|x
         ? pools
         ? capacity default",
        expect![[r#"
            default weight 0 requires(karpenter.kwok.sh/kwoknodeclass In [default], karpenter.sh/nodepool In [default]) uses(cpu=64 nodes=1) types(m x)
            claimed: cpu=64 nodes=1
            running: nothing
        "#]],
    );
}

/// PROV-43
///
/// DIFFERS: limits are never overshot. A claim that is not launched yet counts as the largest type it may become, and
/// one that is going counts until it is gone, so that a check against what is held can never pass too early.
#[test]
fn limits_count_what_may_come_and_what_is_not_gone() {
    check(
        "type m cpu=4 mem=8Gi
         type g cpu=2 gpu=1
         type x cpu=64
         pool default
         ? capacity default
         claim c1 pool=default require=type:In:m|g
         ? capacity default
         claim c1 pool=default require=type:In:m|g provider=i-1 cpu=3 capacity.cpu=4
         ? capacity default
         claim c1 pool=default require=type:In:m|g provider=i-1 cpu=3 capacity.cpu=4 going
         claim other pool=other provider=i-2 cpu=64
         claim own provider=i-3 cpu=64
         ? capacity default
         ? pools
         gone claim c1
         ? capacity default
         # A claim that may become anything counts as the largest there is.
         claim c2 pool=default
         ? capacity default",
        expect![[r#"
            claimed: nodes=0
            running: nothing
            claimed: cpu=4 memory=8Gi nodes=1 nvidia.com/gpu=1
            running: nothing
            claimed: cpu=4 nodes=1
            running: cpu=4 nodes=1
            claimed: cpu=4 nodes=1
            running: nothing
            default weight 0 requires(karpenter.kwok.sh/kwoknodeclass In [default], karpenter.sh/nodepool In [default]) uses(cpu=4 nodes=1) types(m g x)
            claimed: nodes=0
            running: nothing
            claimed: cpu=64 memory=8Gi nodes=1 nvidia.com/gpu=1
            running: nothing
        "#]],
    );
}

/// OBS-06: a pool costs what its machines cost where they are and as they are paid for, overlays included, until their
/// claims are gone; claims without a machine, and machines that nobody sells, cost nothing.
#[test]
fn pools_cost_what_their_machines_cost() {
    check(
        "overlays
         type m cpu=4 offer=a:0.10 offer=b:0.25
         type x cpu=8 offer=a:1.50
         pool web
         pool idle
         ? costs
         claim c1 pool=web
         ? costs
         claim c1 pool=web label=type=m label=zone=a label=karpenter.sh/capacity-type=on-demand
         claim c2 pool=web label=type=m label=zone=b label=karpenter.sh/capacity-type=on-demand
         claim c3 pool=web label=type=x label=zone=a label=karpenter.sh/capacity-type=on-demand
         ? costs
         claim c4 pool=web label=type=x label=zone=a label=karpenter.sh/capacity-type=on-demand going
         # Nobody sells any of these.
         claim d1 pool=web label=type=x label=zone=b label=karpenter.sh/capacity-type=on-demand
         claim d2 pool=web label=type=x label=zone=a label=karpenter.sh/capacity-type=spot
         claim d3 pool=web label=type=y label=zone=a label=karpenter.sh/capacity-type=on-demand
         claim d4 pool=web label=type=x label=zone=a
         claim d5 label=type=x label=zone=a label=karpenter.sh/capacity-type=on-demand
         ? costs
         overlay cheap require=type:In:x price=0.50
         ? costs
         gone claim c4
         gone claim c2
         ? costs",
        expect![[r#"
            idle $0
            web $0
            idle $0
            web $0
            idle $0
            web $1.85
            idle $0
            web $3.35
            idle $0
            web $1.35
            idle $0
            web $0.6
        "#]],
    );
}
