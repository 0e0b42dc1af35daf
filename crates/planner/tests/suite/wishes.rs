//! Wishes are rules until they cannot be kept, and are given up one by one.

use expect_test::expect;

use crate::scenario::check;

/// PROV-22, step 1: another required term is tried before any wish is given up; spot is dearer here, and wished for.
#[test]
fn another_required_term_comes_before_any_wish_is_given_up() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 spot:a:0.20
         pool default
         pod  web cpu=1 affinity=zone:In:c or=zone:In:a prefer=10:capacity:In:spot",
        expect!["default m.large a $0.2: web"],
    );
}

/// PROV-22, step 2: there is nobody to be near, but the pod stays away from whom it wants to.
#[test]
fn company_is_given_up_before_distance() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         node n1 cpu=2 label=zone=a
         on   n1: loud app=loud
         pod  web cpu=1 near=50:zone:app=nobody away=10:host:app=loud",
        expect!["default m.large a $0.1: web"],
    );
}

/// PROV-22, step 3: every zone has a pod to stay away from, but the wished zone is kept.
#[test]
fn distance_is_given_up_before_labels() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 b:0.20
         pool default
         node n1 label=zone=a
         on   n1: loud app=loud
         node n2 label=zone=b
         on   n2: loud app=loud
         pod  web cpu=1 away=50:zone:app=loud prefer=10:zone:In:b",
        expect!["default m.large b $0.2: web"],
    );
}

/// PROV-22, steps 4 and 5, REQ-13: heavier wishes about labels go first, and all of them before spreading.
#[test]
fn labels_are_given_up_before_spreading() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 b:0.20
         pool default
         pod  web*2 cpu=100m prefer=90:zone:In:nowhere prefer=10:arch:In:arm64 spread=zone/1?",
        expect![[r#"
            default m.large a $0.1: web-0
            default m.large b $0.2: web-1"#]],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 b:0.20
         pool default
         pod  web*2 cpu=100m prefer=90:zone:In:nowhere prefer=10:zone:In:b",
        expect!["default m.large b $0.2: web-0 web-1"],
    );
}

/// PROV-22, step 6, PROV-23: a taint that only asks to stay away is minded to the end, and then not.
#[test]
fn soft_taints_are_minded_longest() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool soft weight=10 taint=soft=yes:PreferNoSchedule
         pool plain
         pod  web*2 cpu=1 spread=rack/1?",
        expect!["plain m.large a $0.1: web-0 web-1"],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool soft taint=soft=yes:PreferNoSchedule
         pod  web cpu=1",
        expect!["soft m.large a $0.1: web"],
    );
}

/// PROV-24: with preferences ignored, wishes and soft spreading mean nothing.
#[test]
fn ignored_wishes_mean_nothing() {
    check(
        "options preferences=ignore
         type m.large cpu=2 mem=8Gi a:0.10 b:0.20
         pool soft weight=10 taint=soft=yes:PreferNoSchedule
         pool plain
         pod  web*2 cpu=100m prefer=90:zone:In:b spread=zone/1? away=10:host",
        expect!["plain m.large a|b $0.1: web-0 web-1"],
    );
}

/// REQ-14: a wish for one zone does not shrink the zones over which a constraint spreads.
#[test]
fn wishes_do_not_shrink_the_domains_of_a_constraint() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 b:0.10
         pool default
         pod  web*3 cpu=100m prefer=50:zone:In:a spread=zone/1",
        expect![[r#"
            default m.large b $0.1: web-1
            default m.large a $0.1: web-2 web-0"#]],
    );
}

/// PROV-32: a node takes so many pods, however small they are.
#[test]
fn a_node_takes_so_many_pods() {
    check(
        "type m.large cpu=2 mem=8Gi pods=2 a:0.10
         pool default
         pod  web*5 cpu=1m",
        expect![[r#"
            default m.large a $0.1: web-0 web-1
            default m.large a $0.1: web-2 web-3
            default m.large a $0.1: web-4"#]],
    );
}

/// PROV-63: what is missing, by how much, and the usual slip of the pen.
#[test]
fn sizes_that_nobody_sells_are_told() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         type m.small cpu=1 mem=2Gi a:0.05
         pool default
         pod  large cpu=3
         pod  typo cpu=2M
         pod  gpu cpu=1 gpu=1
         pod  far cpu=1 select=zone=b",
        expect![[r#"
            nowhere: typo
              nodepool "default": no instance type has enough resources, cpu: 2M wanted, 2 there, requirements=karpenter.sh/nodepool In [default], resources={"cpu":"2M","pods":"1"} (CPU request >= 1 Million, m vs M typo?)
            nowhere: large
              nodepool "default": no instance type has enough resources, cpu: 3 wanted, 2 there, requirements=karpenter.sh/nodepool In [default], resources={"cpu":"3","pods":"1"}
            nowhere: gpu
              nodepool "default": no instance type has enough resources, nvidia.com/gpu: 1 wanted, 0 there, requirements=karpenter.sh/nodepool In [default], resources={"cpu":"1","nvidia.com/gpu":"1","pods":"1"}
            nowhere: far
              nodepool "default": no instance type met the scheduling requirements or had a required offering, key topology.kubernetes.io/zone, topology.kubernetes.io/zone In [b] not in topology.kubernetes.io/zone In [a], requirements=karpenter.sh/nodepool In [default], topology.kubernetes.io/zone In [b], resources={"cpu":"1","pods":"1"}"#]],
    );
}

/// RSV-04, RSV-05: who waits for reserved capacity gives up no wish and goes to no lighter pool.
#[test]
fn waiting_for_a_reservation_gives_nothing_up() {
    check(
        "type m.large cpu=2 mem=8Gi reserved:a:0.0001:cr-1*1
         type n.large cpu=2 mem=8Gi a:0.10
         pool heavy weight=10 require=type:In:m.large
         pool light require=type:In:n.large
         pod  web*2 cpu=1500m prefer=10:type:In:m.large",
        expect![[r#"
            heavy m.large a $0.0001: web-0
            nowhere: web-1
              nodepool "heavy": compatible reserved offerings are all taken by other nodes of this round"#]],
    );
}

/// RSV-07: without the gate a reservation is an offering like others.
#[test]
fn ignored_reservations_are_offerings() {
    check(
        "options reservations=ignored
         type m.large cpu=2 mem=8Gi a:0.10 reserved:a:0.0001:cr-1*1
         pool default
         pod  web*2 cpu=1500m",
        expect![[r#"
            default m.large a $0.0001: web-0
            default m.large a $0.0001: web-1"#]],
    );
}

/// BUF-15, BUF-16: room that is kept free obeys limits, selectors, affinity and anti-affinity like pods do.
#[test]
fn headroom_obeys_limits_and_rules() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 b:0.10
         pool default limit.nodes=2
         pod  web cpu=2
         pod  spare*3 cpu=2 headroom priority=-2147483648 select=zone=b",
        expect![[r#"
            default m.large a|b $0.1: web
            default m.large b $0.1: spare-0
            nowhere: spare-1 spare-2
              nodepool "default": all available instance types exceed limits for nodepool, nodes: 1 wanted, 0 there; raise spec.limits or free capacity"#]],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         node n1 cpu=4
         on   n1: loud app=loud
         pod  spare*2 cpu=100m headroom priority=-2147483648 away=host
         pod  calm    cpu=100m headroom priority=-2147483648 away=host:app=loud",
        expect![[r#"
            default m.large a $0.1: calm spare-1
            node/n1: spare-0"#]],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 b:0.10
         pool default
         node n1 cpu=4 label=zone=b
         pod  spare cpu=100m headroom priority=-2147483648 affinity=zone:In:a",
        expect!["default m.large a $0.1: spare"],
    );
}
