//! Placement, one rule per scenario.

use expect_test::expect;
use model::TypeName;
use planner::{PlaceConfig, place};

use crate::scenario::{Scenario, check, planned};

/// The cheapest node for all pods, listed with every dearer type that would hold them as well.
#[test]
fn equal_pods_share_the_cheapest_node_that_holds_them() {
    check(
        "type m.large  cpu=2 mem=8Gi  a:0.10 b:0.10
         type m.xlarge cpu=4 mem=16Gi a:0.20 b:0.20
         pool default
         pod  web*3 cpu=1",
        expect!["default m.xlarge a|b $0.2: web-0 web-1 web-2"],
    );
}

/// Price decides the size: three small nodes and one large one cost the same, so fewer nodes win; a discount on small
/// nodes turns that round.
#[test]
fn size_follows_price_and_equal_prices_prefer_fewer_nodes() {
    check(
        "type m.large   cpu=2 mem=8Gi  a:0.10
         type m.2xlarge cpu=8 mem=32Gi a:0.40
         pool default
         pod  web*8 cpu=1",
        expect!["default m.2xlarge a $0.4: web-0 web-1 web-2 web-3 web-4 web-5 web-6 web-7"],
    );
    check(
        "type m.large   cpu=2 mem=8Gi  a:0.08
         type m.2xlarge cpu=8 mem=32Gi a:0.40
         pool default
         pod  web*8 cpu=1",
        expect![[r#"
            default m.large|m.2xlarge a $0.08: web-0 web-1
            default m.large|m.2xlarge a $0.08: web-2 web-3
            default m.large|m.2xlarge a $0.08: web-4 web-5
            default m.large|m.2xlarge a $0.08: web-6 web-7"#]],
    );
}

/// Full nodes of the best size, and a smaller one for the rest.
#[test]
fn the_rest_gets_a_node_of_its_own_size() {
    check(
        "type m.large   cpu=2 mem=8Gi  a:0.10
         type m.2xlarge cpu=8 mem=32Gi a:0.40
         pool default
         pod  web*10 cpu=1",
        expect![[r#"
            default m.2xlarge a $0.4: web-0 web-1 web-2 web-3 web-4 web-5 web-6 web-7
            default m.large|m.2xlarge a $0.1: web-8 web-9"#]],
    );
}

/// PROV-13. DIFFERS: priority comes before size, so that when a limit binds it is the unimportant pods that wait.
#[test]
fn important_pods_come_first_then_large_ones() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default limit.cpu=2
         pod  big   cpu=2
         pod  vital cpu=1 priority=1000",
        expect![[r#"
            default m.large a $0.1: vital
            nowhere: big
              nodepool "default": all available instance types exceed limits for nodepool, cpu: 2 wanted, 0 there; raise spec.limits or free capacity"#]],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default limit.cpu=2
         pod  small  cpu=1500m mem=1Gi
         pod  hungry cpu=1500m mem=4Gi
         pod  tiny   cpu=1 mem=8Gi",
        expect![[r#"
            default m.large a $0.1: tiny
            nowhere: hungry
              nodepool "default": all available instance types exceed limits for nodepool, cpu: 2 wanted, 0 there; raise spec.limits or free capacity
            nowhere: small
              nodepool "default": all available instance types exceed limits for nodepool, cpu: 2 wanted, 0 there; raise spec.limits or free capacity"#]],
    );
}

/// PROV-15: what is there, then what this plan makes anyway, then something new.
#[test]
fn existing_nodes_come_before_planned_ones_and_those_before_new_ones() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         node n1 cpu=2 used.cpu=1500m
         pod  web*2 cpu=1500m
         pod  tiny*3 cpu=500m",
        expect![[r#"
            default m.large a $0.1: web-0 tiny-1
            default m.large a $0.1: web-1 tiny-2
            node/n1: tiny-0"#]],
    );
}

/// PROV-15: room on a planned claim costs nothing, even when a heavier pool would make a new one.
#[test]
fn free_room_on_planned_claims_is_used_whatever_their_pool() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool heavy weight=10
         pool light
         pod  first  cpu=1 select=pool=light
         pod  second cpu=500m",
        expect!["light m.large a $0.1: first second"],
    );
}

/// PROV-16: usable nodes before joining ones before promised ones, each by name.
#[test]
fn places_are_filled_by_stage_and_name() {
    check(
        "claim   a cpu=1
         joining b cpu=1
         node    d cpu=1
         node    c cpu=1
         pod     web*5 cpu=1",
        expect![[r#"
            node/c: web-0
            node/d: web-1
            node/b: web-2
            nodeclaim/a: web-3
            nowhere: web-4"#]],
    );
}

/// PROV-17: a node without a pool is as good as any.
#[test]
fn foreign_nodes_take_pods() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         node foreign cpu=2
         pod  web*3 cpu=1",
        expect![[r#"
            default m.large a $0.1: web-2
            node/foreign: web-0 web-1"#]],
    );
}

/// PROV-18: weight, then the alphabetically last name.
#[test]
fn heavier_pools_win_and_equal_weights_go_by_name_backwards() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool alpha
         pool omega
         pod  web cpu=1",
        expect!["omega m.large a $0.1: web"],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool alpha weight=10
         pool omega
         pod  web cpu=1",
        expect!["alpha m.large a $0.1: web"],
    );
}

/// A pool that is full hands the rest to the next one.
#[test]
fn what_a_heavier_pool_cannot_take_goes_to_the_next() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool first weight=10 limit.cpu=2
         pool second
         pod  web*3 cpu=1",
        expect![[r#"
            first m.large a $0.1: web-0 web-1
            second m.large a $0.1: web-2"#]],
    );
}

/// Taints of pools and nodes keep pods away that do not tolerate them.
#[test]
fn taints_need_tolerations() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool gpu taint=gpu=yes:NoSchedule
         node n1 cpu=2 taint=gpu=yes:NoExecute
         pod  plain cpu=1
         pod  trained*3 cpu=1 tolerate=gpu",
        expect![[r#"
            gpu m.large a $0.1: trained-2
            node/n1: trained-0 trained-1
            nowhere: plain
              nodepool "gpu": did not tolerate taint gpu=yes:NoSchedule; add a toleration to the pod or use another NodePool"#]],
    );
}

/// A `PreferNoSchedule` taint is respected as long as there is another way, and no longer.
#[test]
fn soft_taints_give_way_last() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool soft weight=10 taint=soft=yes:PreferNoSchedule
         pool plain limit.cpu=2
         pod  web*3 cpu=1",
        expect![[r#"
            plain m.large a $0.1: web-0 web-1
            soft m.large a $0.1: web-2"#]],
    );
}

/// PROV-61: pods that cannot share a node do not.
#[test]
fn architectures_systems_and_zones_split() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 b:0.10
         type a.large cpu=2 mem=8Gi arch=arm64 a:0.08 b:0.08
         type w.large cpu=2 mem=8Gi os=windows a:0.20
         pool default
         pod  amd cpu=500m select=arch=amd64 select=os=linux
         pod  arm cpu=500m select=arch=arm64
         pod  win cpu=500m select=os=windows
         pod  amd-a cpu=400m select=arch=amd64 select=os=linux select=zone=a
         pod  amd-b cpu=400m select=arch=amd64 select=os=linux select=zone=b",
        expect![[r#"
            default w.large a $0.2: win
            default m.large a $0.1: amd amd-a
            default a.large a|b $0.08: arm
            default m.large b $0.1: amd-b"#]],
    );
}

/// REQ-12: the first alternative that can be had.
#[test]
fn alternatives_are_tried_in_order() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.20 b:0.10
         pool default
         pod  web cpu=1 affinity=zone:In:a or=zone:In:b
         pod  api cpu=2 affinity=zone:In:c or=zone:In:b",
        expect![[r#"
            default m.large a $0.2: web
            default m.large b $0.1: api"#]],
    );
}

/// REQ-13: the heaviest wish first, then the next, then none.
#[test]
fn wishes_are_granted_by_weight() {
    let table = [
        ("prefer=1:zone:In:b prefer=50:zone:In:c", "default m.large c $0.3: web"),
        ("prefer=1:zone:In:b prefer=50:zone:In:x", "default m.large b $0.2: web"),
        ("prefer=1:zone:In:y prefer=50:zone:In:x", "default m.large a|b|c $0.1: web"),
    ];
    for (wishes, expected) in table {
        let text = format!("type m.large cpu=2 mem=8Gi a:0.10 b:0.20 c:0.30\npool default\npod web cpu=1 {wishes}");
        assert_eq!(planned(&text), expected, "{wishes}");
    }
}

/// A wish against the pod's own requirement is dropped, not taken for "no such label".
#[test]
fn a_wish_that_contradicts_a_requirement_is_dropped() {
    check(
        "show requirements
         type m.large cpu=2 mem=8Gi a:0.10
         pool plain weight=10
         pool web label=team=web
         pod  web cpu=1 select=team=web prefer=50:team:In:db",
        expect![[r#"
            web m.large a $0.1: web
              requirements karpenter.sh/nodepool In [web], team In [web]"#]],
    );
}

/// A promised node is not pinned yet: the first pod that needs a zone decides it for the others.
#[test]
fn pods_narrow_a_promised_place() {
    check(
        "claim c1 cpu=4 require=zone:In:a|b
         pod   first  cpu=2 select=zone=b
         pod   second cpu=1 select=zone=a
         pod   third  cpu=1 select=zone=b",
        expect![[r#"
            nodeclaim/c1: first third
            nowhere: second"#]],
    );
}

/// Claims carry what pool and pods demand together; pods that share a claim narrow it.
#[test]
fn claims_carry_the_demands_of_their_pods() {
    check(
        "show requirements
         type m.large cpu=2 mem=8Gi a:0.10 b:0.10
         pool default require=zone:In:a|b label=team=web
         pod  web cpu=1 affinity=zone:NotIn:a
         pod  api cpu=500m select=karpenter.sh/initialized=true",
        expect![[r#"
            default m.large b $0.1: web api
              requirements karpenter.sh/nodepool In [default], team In [web], topology.kubernetes.io/zone In [b]"#]],
    );
}

/// Claims of this plan grow when that costs no more than another node.
#[test]
fn planned_claims_grow_when_that_is_not_dearer() {
    check(
        "type m.large  cpu=2 mem=8Gi  a:0.10
         type m.xlarge cpu=4 mem=16Gi a:0.20
         pool default
         pod  web cpu=2
         pod  api cpu=1",
        expect!["default m.xlarge a $0.2: api web"],
    );
    check(
        "type m.large  cpu=2 mem=8Gi  a:0.10
         type m.xlarge cpu=4 mem=16Gi a:0.30
         pool default
         pod  web cpu=2
         pod  api cpu=1",
        expect![[r#"
            default m.large|m.xlarge a $0.1: api
            default m.large|m.xlarge a $0.1: web"#]],
    );
}

/// Weights come before prices, for claims that grow as for new ones.
#[test]
fn claims_of_heavier_pools_grow_first_and_of_lighter_ones_never() {
    check(
        "type m.large  cpu=2 mem=8Gi  a:0.10
         type m.xlarge cpu=4 mem=16Gi a:0.11
         pool heavy weight=10
         pool light
         pod  first  cpu=2 select=pool=light
         pod  second cpu=1",
        expect![[r#"
            heavy m.large|m.xlarge a $0.1: second
            light m.large|m.xlarge a $0.1: first"#]],
    );
    check(
        "type m.large  cpu=2 mem=8Gi  a:0.10
         type m.xlarge cpu=4 mem=16Gi a:0.50
         pool heavy weight=10 limit.nodes=1
         pool light
         pod  first  cpu=2
         pod  second cpu=1",
        expect![[r#"
            heavy m.large|m.xlarge a $0.1: second
            light m.large|m.xlarge a $0.1: first"#]],
    );
}

/// Spot and on-demand offerings of one type are told apart by their capacity type.
#[test]
fn spot_is_used_where_it_is_allowed() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 spot:a:0.03 !spot:b:0.01
         pool default
         pod  web  cpu=2
         pod  safe cpu=2 select=capacity=on-demand",
        expect![[r#"
            default m.large a $0.1: safe
            default m.large a $0.03: web"#]],
    );
}

/// PROV-62: every reason of every pool, in the order in which pools are tried.
#[test]
fn refusals_name_the_first_reason_of_each_pool() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 !b:0.10
         type m.xlarge cpu=4 mem=16Gi a:0.20 !b:0.20
         pool g-tainted taint=gpu=yes:NoSchedule
         pool f-plain
         pool e-zone require=zone:In:a
         pool d-limited limit.cpu=1
         pool c-arm require=arch:In:arm64
         pod  huge cpu=5
         pod  there cpu=1 select=zone=b
         pod  arm cpu=1 select=arch=arm64
         pod  custom cpu=1 select=team=web
         pod  limited cpu=1 select=pool=d-limited",
        expect![[r#"
            nowhere: huge
              nodepool "g-tainted": did not tolerate taint gpu=yes:NoSchedule; add a toleration to the pod or use another NodePool
              nodepool "f-plain": no instance type has enough resources, cpu: 5 wanted, 4 there, requirements=karpenter.sh/nodepool In [f-plain], resources={"cpu":"5","pods":"1"}
              nodepool "e-zone": no instance type has enough resources, cpu: 5 wanted, 4 there, requirements=karpenter.sh/nodepool In [e-zone], topology.kubernetes.io/zone In [a], resources={"cpu":"5","pods":"1"}
              nodepool "d-limited": no instance type has enough resources, cpu: 5 wanted, 4 there, requirements=karpenter.sh/nodepool In [d-limited], resources={"cpu":"5","pods":"1"}
              nodepool "c-arm": no instance type met all requirements, key kubernetes.io/arch, kubernetes.io/arch In [arm64] not in kubernetes.io/arch In [amd64], requirements=karpenter.sh/nodepool In [c-arm], kubernetes.io/arch In [arm64], resources={"cpu":"5","pods":"1"}
            nowhere: limited
              nodepool "g-tainted": did not tolerate taint gpu=yes:NoSchedule; add a toleration to the pod or use another NodePool
              nodepool "f-plain": incompatible requirements, key karpenter.sh/nodepool, karpenter.sh/nodepool In [d-limited] not in karpenter.sh/nodepool In [f-plain]
              nodepool "e-zone": incompatible requirements, key karpenter.sh/nodepool, karpenter.sh/nodepool In [d-limited] not in karpenter.sh/nodepool In [e-zone]
              nodepool "d-limited": all available instance types exceed limits for nodepool, cpu: 2 wanted, 1 there; raise spec.limits or free capacity
              nodepool "c-arm": incompatible requirements, key karpenter.sh/nodepool, karpenter.sh/nodepool In [d-limited] not in karpenter.sh/nodepool In [c-arm]
            nowhere: arm
              nodepool "g-tainted": did not tolerate taint gpu=yes:NoSchedule; add a toleration to the pod or use another NodePool
              nodepool "f-plain": no instance type met all requirements, key kubernetes.io/arch, kubernetes.io/arch In [arm64] not in kubernetes.io/arch In [amd64], requirements=karpenter.sh/nodepool In [f-plain], kubernetes.io/arch In [arm64], resources={"cpu":"1","pods":"1"}
              nodepool "e-zone": no instance type met all requirements, key kubernetes.io/arch, kubernetes.io/arch In [arm64] not in kubernetes.io/arch In [amd64], requirements=karpenter.sh/nodepool In [e-zone], kubernetes.io/arch In [arm64], topology.kubernetes.io/zone In [a], resources={"cpu":"1","pods":"1"}
              nodepool "d-limited": no instance type met all requirements, key kubernetes.io/arch, kubernetes.io/arch In [arm64] not in kubernetes.io/arch In [amd64], requirements=karpenter.sh/nodepool In [d-limited], kubernetes.io/arch In [arm64], resources={"cpu":"1","pods":"1"}
              nodepool "c-arm": no instance type met all requirements, key kubernetes.io/arch, kubernetes.io/arch In [arm64] not in kubernetes.io/arch In [amd64], requirements=karpenter.sh/nodepool In [c-arm], kubernetes.io/arch In [arm64], resources={"cpu":"1","pods":"1"}
            nowhere: custom
              nodepool "g-tainted": did not tolerate taint gpu=yes:NoSchedule; add a toleration to the pod or use another NodePool
              nodepool "f-plain": incompatible requirements, label "team" does not have known values
              nodepool "e-zone": incompatible requirements, label "team" does not have known values
              nodepool "d-limited": incompatible requirements, label "team" does not have known values
              nodepool "c-arm": incompatible requirements, label "team" does not have known values
            nowhere: there
              nodepool "g-tainted": did not tolerate taint gpu=yes:NoSchedule; add a toleration to the pod or use another NodePool
              nodepool "f-plain": no instance type has the required offering, zone In [b] was wanted, for sale are a, requirements=karpenter.sh/nodepool In [f-plain], topology.kubernetes.io/zone In [b], resources={"cpu":"1","pods":"1"}
              nodepool "e-zone": incompatible requirements, key topology.kubernetes.io/zone, topology.kubernetes.io/zone In [b] not in topology.kubernetes.io/zone In [a]
              nodepool "d-limited": no instance type has the required offering, zone In [b] was wanted, for sale are a, requirements=karpenter.sh/nodepool In [d-limited], topology.kubernetes.io/zone In [b], resources={"cpu":"1","pods":"1"}
              nodepool "c-arm": no instance type met all requirements, key kubernetes.io/arch, kubernetes.io/arch In [arm64] not in kubernetes.io/arch In [amd64], requirements=karpenter.sh/nodepool In [c-arm], kubernetes.io/arch In [arm64], resources={"cpu":"1","pods":"1"}
            barren nodepool "c-arm": no instance type met all requirements, key kubernetes.io/arch, kubernetes.io/arch In [arm64] not in kubernetes.io/arch In [amd64], requirements=karpenter.sh/nodepool In [c-arm], kubernetes.io/arch In [arm64], resources={}"#]],
    );
}

/// DRA-01: rules that are not planned are refused by every pool, not ignored.
#[test]
fn unplanned_rules_are_refused() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         pool other
         node n1 cpu=4
         pod  web cpu=1 rule=claim",
        expect![[r#"
            nowhere: web
              nodepool "other": pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter (a dynamic resource claim)
              nodepool "default": pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter (a dynamic resource claim)"#]],
    );
    check("pod web cpu=1 rule=claim", expect!["nowhere: web"]);
}

/// DRA-03: nor does a pod with such a rule have anywhere else to go, so that nobody can take its node away: asked to
/// move it, the planner finds no place among nodes with room, nor a new node.
#[test]
fn pods_with_unplanned_rules_cannot_be_moved() {
    check(
        "show places
         type m.large cpu=2 mem=8Gi a:0.10
         pool default
         node n2 cpu=8
         node n3 cpu=8
         pod  moving cpu=1 rule=claim
         pod  other  cpu=1",
        expect![[r#"
            node/n2: other
            nowhere: moving
              nodepool "default": pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter (a dynamic resource claim)"#]],
    );
}

/// CP-02: a type that is sold out is known, and its offerings are told of, but not chosen, however cheap.
#[test]
fn what_is_sold_out_is_not_chosen() {
    check(
        "type t.large cpu=2 mem=8Gi !a:0.01 !b:0.01
         type m.large cpu=2 mem=8Gi a:0.10 !b:0.05
         pool default
         pod  web cpu=1",
        expect!["default m.large a $0.1: web"],
    );
}

/// PROV-21: a pool whose demands no type meets says so, whether by labels, by what is for sale or by variety; pods go to
/// places and to other pools.
#[test]
fn pools_without_any_type_say_so() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 !b:0.10
         pool arm weight=9 require=arch:In:arm64
         pool sold-out weight=8 require=zone:In:b
         pool various weight=7 require=type:Exists:min=2
         pool good
         node n1 cpu=1
         pod  web*2 cpu=1",
        expect![[r#"
            good m.large a $0.1: web-1
            node/n1: web-0
            barren nodepool "arm": no instance type met all requirements, key kubernetes.io/arch, kubernetes.io/arch In [arm64] not in kubernetes.io/arch In [amd64], requirements=karpenter.sh/nodepool In [arm], kubernetes.io/arch In [arm64], resources={}
            barren nodepool "sold-out": no instance type has the required offering, zone In [b] was wanted, for sale are a, requirements=karpenter.sh/nodepool In [sold-out], topology.kubernetes.io/zone In [b], resources={}
            barren nodepool "various": minValues requirement is not met for label(s) node.kubernetes.io/instance-type (1 of 2); lower minValues or allow more types"#]],
    );
    check(
        "options min-values=best-effort
         type m.large cpu=2 mem=8Gi a:0.10
         pool various require=type:Exists:min=2
         pod  web cpu=1",
        expect!["various m.large a $0.1: web"],
    );
}

/// PROV-20: without pools there is nobody to refuse, but existing places still serve.
#[test]
fn a_cluster_without_pools_uses_what_is_there() {
    check(
        "node n1 cpu=1
         pod  web*2 cpu=1",
        expect![[r#"
            node/n1: web-0
            nowhere: web-1"#]],
    );
}

/// PROV-45: types by price, then by name, and no more than the bound.
#[test]
fn types_are_listed_by_price_up_to_the_bound() {
    check(
        "type d cpu=2 mem=8Gi a:0.10
         type c cpu=2 mem=8Gi a:0.30 spot:a:0.10
         type b cpu=2 mem=8Gi a:0.20
         type a cpu=2 mem=8Gi a:0.40
         pool default
         pod  web cpu=1",
        expect!["default c|d|b|a a $0.1: web"],
    );
    let types = (0..700).map(|index| format!("type t{index:03} cpu=2 mem=8Gi a:{}\n", 1000 - index));
    let text = format!("{}pool default\npod web cpu=1", types.collect::<String>());
    let scenario = Scenario::parse(&text);
    let plan = place(&scenario.snapshot, &PlaceConfig::default());
    let listed: Vec<&str> = plan.claims[0].types.iter().map(TypeName::as_str).collect();
    assert_eq!((listed.len(), listed.first(), listed.last()), (600, Some(&"t699"), Some(&"t100")));
}

/// PROV-52. DIFFERS: the search is bounded by counted steps, and not by a minute. Cut short, it says so, has counted no
/// further, and what it has is a whole plan; the same number of steps gives the same plan again.
#[test]
fn the_search_ends_after_counted_steps() {
    let pods = (1..=40).map(|number| {
        format!("pod p{number}*{} cpu={}m mem={}Mi", 1 + number % 4, 150 + 37 * number, 300 + 211 * (number * 7 % 40))
    });
    let pods = pods.collect::<Vec<_>>().join("\n");
    let solve = |steps: &str| {
        let types = "type m.large cpu=2 mem=8Gi a:0.10\ntype m.xlarge cpu=4 mem=16Gi a:0.19\n\
            type c.2xlarge cpu=8 mem=16Gi a:0.33\ntype r.xlarge cpu=4 mem=32Gi a:0.25";
        crate::scenario::plan(&Scenario::parse(&format!("{steps}\n{types}\npool default\n{pods}")))
    };
    let (free, cut) = (solve(""), solve("options steps=100"));
    assert!(!free.interrupted && cut.interrupted);
    assert!(cut.steps < free.steps, "{} {}", free.steps, cut.steps);
    assert!(cut.unplaced.is_empty() && cut.price() >= free.price());
    assert_eq!(cut, solve("options steps=100"));
}

/// Pods keep the place that an earlier plan found for them: each claim was made for one large pod and two small ones.
/// Dealt out anew by their size they would need another node.
#[test]
fn pods_keep_their_promised_places() {
    let claims = |seat: &dyn Fn(usize) -> String| -> String {
        (0..6).map(|c| format!("claim c{c} pool=default cpu=4 mem=6Gi require=zone:In:a\n{}\n", seat(c))).collect()
    };
    let pods = "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         pod large*6 cpu=2 mem=1Gi
         pod small*12 cpu=1 mem=2Gi";
    let seat = |c: usize| format!("seat c{c}: large-{} small-{c} small-{}", 5 - c, c + 6);
    check(
        &format!("{}{pods}", claims(&|_| String::new())),
        expect![[r#"
            default m.large a $0.1: small-7 small-8
            default m.large a $0.1: small-9
            nodeclaim/c0: large-0 large-1
            nodeclaim/c1: large-2 large-3
            nodeclaim/c2: large-4 large-5
            nodeclaim/c3: small-0 small-1 small-10
            nodeclaim/c4: small-11 small-2 small-3
            nodeclaim/c5: small-4 small-5 small-6"#]],
    );
    check(
        &format!("{}{pods}", claims(&seat)),
        expect![[r#"
            nodeclaim/c0: large-5 small-0 small-6
            nodeclaim/c1: large-4 small-1 small-7
            nodeclaim/c2: large-3 small-2 small-8
            nodeclaim/c3: large-2 small-3 small-9
            nodeclaim/c4: large-1 small-10 small-4
            nodeclaim/c5: large-0 small-11 small-5"#]],
    );
}

/// Who was promised a place gives it up to pods of a higher priority, and leaves one that will not do any more.
#[test]
fn a_promise_is_no_right() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default limit.nodes=1 used.nodes=1
         claim c1 pool=default cpu=2 mem=8Gi
         seat c1: low
         pod low cpu=2
         pod high cpu=2 priority=10",
        expect![[r#"
            nodeclaim/c1: high
            nowhere: low
              nodepool "default": all available instance types exceed limits for nodepool, nodes: 1 wanted, 0 there; raise spec.limits or free capacity"#]],
    );
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 b:0.10
         pool default
         node n1 pool=default cpu=2 label=zone=a
         seat n1: web
         pod web cpu=1 select=zone=b
         pod api cpu=1",
        expect![[r#"
            default m.large b $0.1: web
            node/n1: api"#]],
    );
}

/// Rules between pods hold for places that were promised, too.
#[test]
fn promised_places_are_spread() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10 b:0.10
         pool default
         node n1 pool=default cpu=4 label=zone=a
         node n2 pool=default cpu=4 label=zone=b
         seat n1: web-0 web-1 web-2
         pod web*3 cpu=1 spread=zone/1",
        expect![[r#"
            node/n1: web-0 web-2
            node/n2: web-1"#]],
    );
}

/// A pod that came back under its old name with a rule that cannot be planned for is refused, and not lost.
#[test]
fn a_promise_to_a_pod_that_cannot_be_planned_is_void() {
    check(
        "type m.large cpu=2 mem=8Gi a:0.10
         pool default
         node n1 pool=default cpu=4 label=zone=a
         seat n1: web
         pod web cpu=1 rule=claim
         pod api cpu=1",
        expect![[r#"
            node/n1: api
            nowhere: web
              nodepool "default": pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter (a dynamic resource claim)"#]],
    );
}
