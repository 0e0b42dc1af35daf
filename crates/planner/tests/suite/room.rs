//! Ports, volumes, variety and reservations: what else decides whether a node will do.

use expect_test::expect;

use crate::scenario::check;

/// PROV-51: a port of the host is for one pod, whatever the address, unless addresses differ.
#[test]
fn ports_are_for_one_pod_each() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         node n1 cpu=2 port=80
         pod  web*2 cpu=100m port=80
         pod  api cpu=100m port=UDP//80
         pod  one cpu=100m port=TCP/10.0.0.1/90
         pod  two cpu=100m port=TCP/10.0.0.2/90",
        expect![[r#"
            default m.large a $0.1: web-0
            default m.large a $0.1: web-1
            node/n1: api one two"#]],
    );
}

/// PROV-39: a daemon's port keeps pods from the types it runs on, and from no others.
#[test]
fn ports_of_daemons_exclude_only_their_types() {
    check(
        "type a.large cpu=2 mem=8Gi arch=arm64 a:0.08
         type m.large cpu=2 mem=8Gi a:0.10
         pool default
         daemon d cpu=100m port=80 select=arch=arm64
         pod  web cpu=100m port=80
         pod  api cpu=1500m",
        expect!["default m.large a $0.1: web api"],
    );
}

/// VOL-07, VOL-08, VOL-09, VOL-13: volumes pin the zone, any of their alternatives will do, and none is given up.
#[test]
fn volumes_say_where_a_pod_can_be() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 b:0.12
         pool default
         pod  web cpu=1 volume=zone:b
         pod  api cpu=2 volume=zone:b volume=zone:a
         pod  far cpu=1 volume=zone:c",
        expect![[r#"
            default m.large b $0.12: web
            default m.large b $0.12: api
            nowhere: far
              nodepool "default": no instance type met the scheduling requirements or had a required offering, key topology.kubernetes.io/zone, topology.kubernetes.io/zone In [c] not in topology.kubernetes.io/zone In [a b], requirements=karpenter.sh/nodepool In [default], topology.kubernetes.io/zone In [c], resources={"cpu":"1","pods":"1"}"#]],
    );
}

/// VOL-15, VLIM-01, VLIM-02: a node attaches so many volumes, and one that is shared once.
#[test]
fn attach_limits_split_pods_over_nodes() {
    check(
        "type m.large cpu=2 mem=8Gi attach=ebs:2 a:0.10
         pool default
         node n1 cpu=2 attach=ebs:1 attached=ebs:shared
         pod  one   cpu=100m attach=ebs:v1
         pod  two   cpu=100m attach=ebs:v2
         pod  three cpu=100m attach=ebs:v3
         pod  four  cpu=100m attach=ebs:shared
         pod  many  cpu=100m attach=ebs:w1 attach=ebs:w2 attach=ebs:w3",
        expect![[r#"
            default m.large a $0.1: one three
            default m.large a $0.1: two
            node/n1: four
            nowhere: many
              nodepool "default": would exceed volume limit for all instance type options, provisioner=ebs, volume-count=3, volume-limit=2"#]],
    );
}

/// PROV-47, PROV-48, MINV-01: as many different values as the pool wants, or as many as there are.
#[test]
fn pools_may_ask_for_variety() {
    let cluster = |options: &str, pod: &str| {
        format!(
            "{options}
             show requirements
             type m.large cpu=2 mem=8Gi a:0.10 b:0.10
             type c.large cpu=2 mem=4Gi a:0.09 b:0.10
             type r.large cpu=2 mem=16Gi a:0.30
             pool default require=type:Exists:min=3 require=zone:Exists:min=2
             pod  web {pod}"
        )
    };
    check(
        &cluster("", "cpu=1"),
        expect![[r#"
        default c.large|m.large|r.large a|b $0.09: web
          requirements karpenter.sh/nodepool In [default], node.kubernetes.io/instance-type Exists minValues 3, topology.kubernetes.io/zone Exists minValues 2"#]],
    );
    check(
        &cluster("", "cpu=1 mem=5Gi"),
        expect![[r#"
            nowhere: web
              nodepool "default": minValues requirement is not met for label(s) node.kubernetes.io/instance-type (2 of 3); lower minValues or allow more types"#]],
    );
    check(
        &cluster("options min-values=best-effort", "cpu=1 mem=5Gi"),
        expect![[r#"
            default m.large|r.large a|b $0.1: web
              requirements karpenter.sh/nodepool In [default], node.kubernetes.io/instance-type Exists minValues 2, topology.kubernetes.io/zone Exists minValues 2 (minValues relaxed)"#]],
    );
    check(
        &cluster("", "cpu=1 select=zone=a"),
        expect![[r#"
            nowhere: web
              nodepool "default": minValues requirement is not met for label(s) topology.kubernetes.io/zone (1 of 2); lower minValues or allow more types"#]],
    );
    check(
        &cluster("options min-values=best-effort", "cpu=1 select=zone=a"),
        expect![[r#"
            default c.large|m.large|r.large a $0.09: web
              requirements karpenter.sh/nodepool In [default], node.kubernetes.io/instance-type Exists minValues 3, topology.kubernetes.io/zone In [a] minValues 1 (minValues relaxed)"#]],
    );
}

/// PROV-49: a pool's wish for variety is lowered before the next pool is asked, over the values that the pods leave.
#[test]
fn variety_is_lowered_before_the_next_pool_is_tried() {
    let cluster = |options: &str, pod: &str| {
        format!(
            "{options}
             show requirements
             type m.large cpu=2 mem=8Gi a:0.10 b:0.10
             type c.large cpu=2 mem=4Gi a:0.09
             pool heavy weight=10 require=type:Exists:min=3
             pool light
             pod  web cpu=1 {pod}"
        )
    };
    check(
        &cluster("", ""),
        expect![[r#"
        light c.large|m.large a|b $0.09: web
          requirements karpenter.sh/nodepool In [light]
        barren nodepool "heavy": minValues requirement is not met for label(s) node.kubernetes.io/instance-type (2 of 3); lower minValues or allow more types"#]],
    );
    check(
        &cluster("options min-values=best-effort", ""),
        expect![[r#"
        heavy c.large|m.large a|b $0.09: web
          requirements karpenter.sh/nodepool In [heavy], node.kubernetes.io/instance-type Exists minValues 2 (minValues relaxed)"#]],
    );
    check(
        &cluster("options min-values=best-effort", "select=zone=b"),
        expect![[r#"
        heavy m.large b $0.1: web
          requirements karpenter.sh/nodepool In [heavy], node.kubernetes.io/instance-type Exists minValues 1, topology.kubernetes.io/zone In [b] (minValues relaxed)"#]],
    );
}

/// PROV-50: what is left of the list of types after it was cut still has to be various enough; here a claim lists at
/// most two types, the cheapest two are of one family, and the pool wants two families.
#[test]
fn variety_is_looked_at_again_after_the_list_is_cut() {
    let cluster = |options: &str| {
        format!(
            "options types=2 {options}
             type m.large  cpu=2 mem=8Gi label=family=m a:0.10
             type m.xlarge cpu=4 mem=8Gi label=family=m a:0.11
             type c.large  cpu=2 mem=8Gi label=family=c a:0.20
             pool default require=family:Exists:min=2
             pod  web cpu=1"
        )
    };
    check(
        &cluster(""),
        expect![[r#"
        nowhere: web
          nodepool "default": minValues requirement is not met for label(s) family (1 of 2); lower minValues or allow more types"#]],
    );
    check(&cluster("min-values=best-effort"), expect!["default m.large|m.xlarge a $0.1: web"]);
}

/// VOL-12: a volume that is tied to a host, and not because it lies on its disk, is reached from there only.
#[test]
fn volumes_of_one_host_are_reached_from_there() {
    check(
        "show places
         type m.large cpu=2 mem=8Gi a:0.10
         pool default
         node n1 cpu=1
         node n2 cpu=4
         pod  web  cpu=1 volume=host:n1
         pod  late cpu=1 volume=host:n1",
        expect![[r#"
            node/n1: late
            nowhere: web
              nodepool "default": a volume of the pod cannot be reached, label "kubernetes.io/hostname" does not have known values; allow its zone or move the volume
              1 ready node(s) of no pool: too little room, cpu: 1 wanted, 0 there
              1 ready node(s) of no pool: incompatible requirements, key kubernetes.io/hostname, kubernetes.io/hostname In [n1] not in kubernetes.io/hostname In [n2]"#]],
    );
}

/// RSV-01, RSV-02, RSV-03: what is paid for already comes first; who finds none left waits for the next round.
#[test]
fn reservations_come_first_and_run_out() {
    check(
        "show requirements
         type m.large cpu=2 mem=8Gi a:0.10 reserved:a:0.0001:cr-1*1
         pool default
         pod  web*2 cpu=1500m",
        expect![[r#"
            default m.large a $0.0001: web-0
              requirements example.com/reservation-id In [cr-1], karpenter.sh/capacity-type In [reserved], karpenter.sh/nodepool In [default]
            nowhere: web-1
              nodepool "default": compatible reserved offerings are all taken by other nodes of this round"#]],
    );
}

/// RSV-06: a question of the kind "what if" may go elsewhere.
#[test]
fn what_if_falls_back_from_reservations() {
    check(
        "options reservations=fallback
         type m.large cpu=2 mem=8Gi a:0.10 reserved:a:0.0001:cr-1*1
         pool default
         pod  web*2 cpu=1500m",
        expect![[r#"
            default m.large a $0.0001: web-0
            default m.large a $0.1: web-1"#]],
    );
}

/// RSV-09, RSV-10, RSV-11: a full reservation is no reason to wait where the pool has something else to buy; a pool that
/// has nothing else is waited for.
#[test]
fn full_reservations_fall_back_within_the_pool() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 reserved:a:0.0001:cr-1*0
         pool default
         pod  web cpu=1500m",
        expect!["default m.large a $0.1: web"],
    );
    check(
        "type m.large cpu=2 mem=8Gi reserved:a:0.0001:cr-1*0
         type n.large cpu=2 mem=8Gi a:0.10
         pool heavy weight=10 require=type:In:m.large
         pool light require=type:In:n.large
         pod  web cpu=1500m",
        expect![[r#"
            nowhere: web
              nodepool "heavy": all compatible reserved offerings are full and no on-demand or spot fallback is available"#]],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 !reserved:a:0.0001:cr-1*5
         pool default
         pod  web cpu=1500m",
        expect!["default m.large a $0.1: web"],
    );
}

/// BUF-05: room that is kept free is planned like pods are.
#[test]
fn headroom_is_planned_like_pods() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         pod  web cpu=1
         pod  spare cpu=1 headroom priority=-2147483648",
        expect!["default m.large a $0.1: web spare"],
    );
}

/// BUF-11: a pod takes the room that was kept free, and the room is made anew.
#[test]
fn pods_take_the_room_that_was_kept_free() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         node n1 cpu=2
         pod  spare cpu=2 headroom priority=-2147483648",
        expect!["node/n1: spare"],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         node n1 cpu=2
         pod  web   cpu=1
         pod  spare cpu=2 headroom priority=-2147483648",
        expect![[r#"
            default m.large a $0.1: spare
            node/n1: web"#]],
    );
}

/// CP-03: a type that comes with more room in one offering than in another is weighed offering by offering, and named
/// once.
#[test]
fn offerings_may_come_with_room_of_their_own() {
    let cluster = |pods: &str| {
        format!(
            "type m.large cpu=2 mem=8Gi a:0.10 b:0.10
             type m.large cpu=4 mem=8Gi c:0.15
             type m.large cpu=2 mem=8Gi overhead.cpu=500m spot:a:0.05
             type x.large cpu=4 mem=8Gi a:0.30
             pool default
             {pods}"
        )
    };
    check(&cluster("pod web cpu=1500m"), expect!["default m.large|x.large a|b|c $0.05: web"]);
    check(&cluster("pod web cpu=2"), expect!["default m.large|x.large a|b|c $0.1: web"]);
    check(&cluster("pod web cpu=4"), expect!["default m.large|x.large a|b|c $0.15: web"]);
    check(&cluster("pod web cpu=3 select=zone=a"), expect!["default x.large a $0.3: web"]);
}
