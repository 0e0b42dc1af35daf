//! Machines as places: whose values count at which stage of their life.

use expect_test::expect;

use crate::script::check;

/// CP-05: nodes without a claim of ours are places and nothing else.
#[test]
fn foreign_nodes_are_places_and_never_ours() {
    check(
        "node bare cpu=4
         node other provider=i-9 cpu=4 label=team=web
         node going cpu=4 going
         # The label alone makes no node ours, and neither does a claim for another provider's class.
         node posing provider=i-8 label=karpenter.sh/nodepool=default label=initialized=true
         claim theirs provider=i-8 kind=Other
         ? tracked
         ? places",
        expect![[r#"
            foreign bare
            foreign going
            foreign other
            foreign posing
            node/bare Ready has(cpu=4)
            node/going Going has(cpu=4)
            node/other Ready labels(team In [web]) has(cpu=4)
            node/posing Ready labels(karpenter.sh/initialized In [true], karpenter.sh/nodepool In [default])
        "#]],
    );
}

/// A claim is a place from the moment it is known: first as what it may become, then as what was launched.
#[test]
fn claims_on_their_way_are_places() {
    check(
        "daemon logs cpu=1
         claim c1 pool=default request.cpu=3 require=zone:In:a|b require=type:In:m taint=gpu:NoSchedule startup=slow:NoSchedule
         ? places
         claim c1 pool=default request.cpu=3 require=zone:In:a|b require=type:In:m taint=gpu:NoSchedule startup=slow:NoSchedule provider=i-1 cpu=4 label=zone=a
         ? places
         ? tracked",
        expect![[r#"
            nodeclaim/c1 Promised of default labels(node.kubernetes.io/instance-type In [m], topology.kubernetes.io/zone In [a b]) taints(gpu:NoSchedule) has(cpu=3) daemons(cpu=1 pods=1)
            nodeclaim/c1 Joining of default labels(karpenter.sh/nodepool In [default], topology.kubernetes.io/zone In [a]) taints(gpu:NoSchedule) has(cpu=4)
            claimed c1
        "#]],
    );
}

/// PROV-26, PROV-27, PROV-28: startup and ephemeral taints of a young node of ours will be gone when pods arrive. On
/// usable nodes, and on nodes that are not ours, they count.
#[test]
fn passing_taints_of_young_nodes_do_not_count() {
    let taints = "taint=gpu:NoSchedule taint=slow:NoSchedule taint=not-ready:NoExecute taint=readiness:NoSchedule";
    let claim = "claim c1 pool=default provider=i-1 taint=gpu:NoSchedule startup=slow:NoSchedule";
    let with = |label: &str| format!("{claim}\nnode n1 provider=i-1 {label} {taints}\n? places");
    check(
        &with(""),
        expect![[r#"
        node/n1 Joining of default labels(karpenter.sh/nodepool In [default]) taints(gpu:NoSchedule)
    "#]],
    );
    check(
        &with("label=registered=true"),
        expect![[r#"
        node/n1 Joining of default labels(karpenter.sh/registered In [true]) taints(gpu:NoSchedule)
    "#]],
    );
    check(
        &with("label=registered=true label=initialized=true"),
        expect![[r#"
        node/n1 Ready of default labels(karpenter.sh/initialized In [true], karpenter.sh/registered In [true]) taints(gpu:NoSchedule slow:NoSchedule node.kubernetes.io/not-ready:NoExecute readiness.k8s.io/network:NoSchedule)
    "#]],
    );
    check(
        &format!("node n1 provider=i-2 {taints}\n? places"),
        expect![[r#"
        node/n1 Ready taints(gpu:NoSchedule slow:NoSchedule node.kubernetes.io/not-ready:NoExecute readiness.k8s.io/network:NoSchedule)
    "#]],
    );
}

/// Until a node is registered its claim says which labels and taints it will have.
#[test]
fn the_claim_speaks_for_a_node_that_is_not_registered() {
    let claim = "claim c1 pool=default provider=i-1 label=zone=a label=team=web taint=gpu:NoSchedule";
    let with = |label: &str| format!("{claim}\nnode n1 provider=i-1 label=zone=b {label}\n? places");
    check(
        &with(""),
        expect![[r#"
        node/n1 Joining of default labels(karpenter.sh/nodepool In [default], team In [web], topology.kubernetes.io/zone In [a]) taints(gpu:NoSchedule)
    "#]],
    );
    check(
        &with("label=registered=true"),
        expect![[r#"
        node/n1 Joining of default labels(karpenter.sh/registered In [true], topology.kubernetes.io/zone In [b])
    "#]],
    );
}

/// PROV-29: a device plugin reports late; until the node is usable its claim knows better. Afterwards the node does.
#[test]
fn zeros_of_young_nodes_are_filled_from_the_claim() {
    let claim = "claim c1 pool=default provider=i-1 cpu=4 mem=8Gi gpu=2";
    let with = |label: &str| format!("{claim}\nnode n1 provider=i-1 cpu=3 gpu=0 {label}\n? places");
    check(
        &with("label=registered=true"),
        expect![[r#"
        node/n1 Joining of default labels(karpenter.sh/registered In [true]) has(cpu=3 memory=8Gi nvidia.com/gpu=2)
    "#]],
    );
    check(
        &with("label=registered=true label=initialized=true"),
        expect![[r#"
        node/n1 Ready of default labels(karpenter.sh/initialized In [true], karpenter.sh/registered In [true]) has(cpu=3 nvidia.com/gpu=0)
    "#]],
    );
}

/// Machines that are going take no pods, whoever asked for it. Their nodes are seen until they are gone, because pods that
/// stay there still count.
#[test]
fn machines_that_are_going_take_nobody() {
    check(
        "claim promised request.cpu=1 going
         claim launched provider=i-1 cpu=1 going
         claim joined provider=i-2 cpu=1 going
         node n2 provider=i-2 cpu=1
         claim orphaned provider=i-3 cpu=1
         node n3 provider=i-3 cpu=1 going
         ? places
         ? tracked",
        expect![[r#"
            node/n2 Going has(cpu=1)
            node/n3 Going has(cpu=1)
            joined joined n2
            claimed launched
            joined orphaned n3
            claimed promised
        "#]],
    );
}

/// Pods use what they ask for until they have ended; daemons count on both sides.
#[test]
fn usage_follows_the_pods() {
    check(
        "node n1 cpu=8
         pod web cpu=1 on=n1
         pod logs cpu=500m on=n1 owner=DaemonSet
         pod train cpu=2 gpu=1 on=n1
         ? places
         pod train cpu=2 gpu=1 on=n1 done
         pod web cpu=3 on=n1
         ? places
         gone pod web
         gone pod logs
         ? places
         gone pod train
         ? places",
        expect![[r#"
            node/n1 Ready has(cpu=8) used(cpu=3500m nvidia.com/gpu=1 pods=3) daemons(cpu=500m pods=1)
            node/n1 Ready has(cpu=8) used(cpu=3500m pods=2) daemons(cpu=500m pods=1)
            node/n1 Ready has(cpu=8)
            node/n1 Ready has(cpu=8)
        "#]],
    );
}

/// Pods may be seen before their node.
#[test]
fn usage_does_not_depend_on_the_order_of_news() {
    check(
        "pod web cpu=1 on=n1
         node n1 cpu=8
         ? places
         gone node n1
         ? places
         node n1 cpu=4
         ? places",
        expect![[r#"
            node/n1 Ready has(cpu=8) used(cpu=1 pods=1)
            nothing
            node/n1 Ready has(cpu=4) used(cpu=1 pods=1)
        "#]],
    );
}

/// Two claims or two nodes for one instance are somebody's mistake: nobody can say whose the machine is, and counted
/// twice it would promise room that is not there.
#[test]
fn disputed_machines_are_no_places() {
    check(
        "claim c1 provider=i-1 cpu=4
         claim c2 provider=i-1 cpu=4
         node n1 provider=i-1 cpu=4
         ? tracked
         gone claim c2
         ? tracked
         node n2 provider=i-1 cpu=4
         ? tracked
         gone node n1
         ? tracked",
        expect![[r#"
            nothing
            joined c1 n1
            nothing
            joined c1 n2
        "#]],
    );
}
