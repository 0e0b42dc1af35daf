//! A good plan, and what the auditor says when it is spoilt.

use std::collections::BTreeSet;
use std::sync::Arc;

use expect_test::{Expect, expect};
use model::{
    Daemon, Effect, InstanceType, NodeName, Nomination, Offering, PendingGroup, Place, PlaceId, Plan, PlannedClaim,
    PodClass, PodKey, Pool, PoolName, PoolRefusal, Price, Refusal, Requirement, Requirements, ResourceName, Resources,
    Revision, Snapshot, Stage, Taint, TypeName, Unplaced, Vocabulary, labels,
};
use referee::{audit, reckoned_price};

fn cpu(cores: i64) -> Resources {
    Resources::none().with(ResourceName::cpu(), cores * 1000)
}

fn offering(zone: &str, dollars: f64) -> Offering {
    let requirements = Requirements::none()
        .with(labels::ZONE, Requirement::is(zone))
        .with(labels::CAPACITY_TYPE, Requirement::is("on-demand"));
    Offering { requirements, price: Price::from_dollars(dollars), available: true, reservation_capacity: None }
}

fn kind(name: &str, cores: i64, offerings: Vec<Offering>) -> Arc<InstanceType> {
    let requirements = Requirements::none().with(labels::INSTANCE_TYPE, Requirement::is(name));
    InstanceType::new(TypeName::new(name), requirements, cpu(cores), Resources::none(), offerings)
}

fn class(cores: i64, wanted: Requirements) -> Arc<PodClass> {
    Arc::new(PodClass {
        priority: 0,
        requests: cpu(cores),
        alternatives: vec![wanted],
        preferences: Vec::new(),
        tolerations: Vec::new(),
        unplanned_rules: BTreeSet::new(),
    })
}

fn pod(name: &str) -> PodKey {
    PodKey::new("default", name)
}

fn place(name: &str, taints: Vec<Taint>) -> Arc<Place> {
    Arc::new(Place {
        id: PlaceId::Node(NodeName::new(name)),
        pool: None,
        stage: Stage::Ready,
        requirements: Requirements::none().with(labels::ZONE, Requirement::is("b")),
        taints,
        allocatable: cpu(2),
        used: cpu(1),
        used_by_daemons: Resources::none(),
    })
}

/// One pool with a small and a large type, one node, a daemon of one core; `web` wants zone a, `any` nothing.
fn snapshot() -> Snapshot {
    let in_a = Requirements::none().with(labels::ZONE, Requirement::is("a"));
    let types = [
        kind("small", 4, vec![offering("a", 0.2), offering("b", 0.1)]),
        kind("large", 8, vec![offering("a", 0.4), offering("b", 0.3)]),
        kind("gone", 8, Vec::new()),
    ];
    let pool = Pool {
        name: PoolName::new("default"),
        weight: 0,
        requirements: Requirements::none(),
        taints: Vec::new(),
        limits: cpu(20),
        in_use: cpu(10),
        types: Arc::from(types),
    };
    Snapshot {
        revision: Revision(1),
        vocabulary: Arc::new(Vocabulary::core()),
        pools: vec![Arc::new(pool)],
        places: vec![place("there", Vec::new()), place("tainted", vec![Taint::new("x", "", Effect::NoSchedule)])],
        pending: vec![
            PendingGroup { class: class(2, in_a), pods: vec![pod("web")] },
            PendingGroup { class: class(1, Requirements::none()), pods: vec![pod("any")] },
            PendingGroup { class: class(50, Requirements::none()), pods: vec![pod("huge")] },
        ],
        daemons: vec![Arc::new(Daemon { name: "kube-system/agent".into(), class: class(1, Requirements::none()) })],
    }
}

fn plan(snapshot: &Snapshot) -> Plan {
    let claim = PlannedClaim {
        pool: PoolName::new("default"),
        requirements: Requirements::none().with(labels::ZONE, Requirement::is("a")),
        types: vec![TypeName::new("small"), TypeName::new("large")],
        requests: cpu(3),
        price: Price::from_dollars(0.2),
        pods: vec![pod("web")],
    };
    let shortfall = model::Shortfall { resource: ResourceName::cpu(), wanted: 51_000, available: 8000 };
    Plan {
        revision: snapshot.revision,
        claims: vec![claim],
        nominations: vec![Nomination { place: PlaceId::Node(NodeName::new("there")), pods: vec![pod("any")] }],
        unplaced: vec![Unplaced {
            class: Arc::clone(&snapshot.pending[2].class),
            pods: vec![pod("huge")],
            refusals: vec![PoolRefusal {
                pool: PoolName::new("default"),
                refusal: Refusal::NoTypeLargeEnough { shortfall },
            }],
        }],
        barren_pools: Vec::new(),
    }
}

fn spoilt(spoil: impl FnOnce(&mut Plan), expected: Expect) {
    let snapshot = snapshot();
    let mut plan = plan(&snapshot);
    spoil(&mut plan);
    let lines: Vec<String> = audit(&snapshot, &plan).iter().map(ToString::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_good_plan_has_nothing_against_it() {
    spoilt(|_| {}, expect![[""]]);
    let snapshot = snapshot();
    assert_eq!(reckoned_price(&snapshot, &plan(&snapshot)), Price::from_dollars(0.2));
}

#[test]
fn every_pod_appears_once() {
    spoilt(|plan| plan.nominations.clear(), expect!["default/any appears 0 times"]);
    spoilt(
        |plan| plan.unplaced[0].pods.extend([pod("any"), pod("ghost")]),
        expect![[r#"
        default/any appears 2 times
        default/ghost is not pending"#]],
    );
}

#[test]
fn pods_fit_the_places_they_are_put_on() {
    spoilt(
        |plan| plan.nominations[0].place = PlaceId::Node(NodeName::new("tainted")),
        expect!["default/any does not tolerate x:NoSchedule of node/tainted"],
    );
    spoilt(
        |plan| plan.nominations[0].place = PlaceId::Node(NodeName::new("nowhere")),
        expect!["node/nowhere does not exist"],
    );
    spoilt(
        |plan| {
            plan.claims.clear();
            plan.nominations[0].pods.push(pod("web"));
        },
        expect![[r#"
            default/web may not match the labels of node/there
            node/there is too small, cpu: 3 wanted, 1 there"#]],
    );
}

#[test]
fn pods_fit_every_node_that_a_claim_may_turn_into() {
    spoilt(
        |plan| plan.claims[0].requirements = Requirements::none(),
        expect![[r#"
        default/web may not match the labels of claim 0 as large
        default/web may not match the labels of claim 0 as small
        claim 0 costs $0.1000/h, not $0.2000/h"#]],
    );
    spoilt(|plan| plan.claims[0].types.push(TypeName::new("gone")), expect!["claim 0: gone cannot be bought"]);
    spoilt(
        |plan| plan.claims[0].types.push(TypeName::new("unheard-of")),
        expect!["claim 0: its pool has no type unheard-of"],
    );
    spoilt(|plan| plan.claims[0].pool = PoolName::new("other"), expect!["pool other does not exist"]);
    spoilt(
        |plan| {
            plan.unplaced.clear();
            plan.claims[0].pods.push(pod("huge"));
        },
        expect![[r#"
            claim 0 as large is too small, cpu: 53 wanted, 8 there
            claim 0 as small is too small, cpu: 53 wanted, 4 there
            claim 0 asks for less than its pods, cpu: 52 wanted, 3 there"#]],
    );
}

#[test]
fn prices_are_those_of_the_offerings() {
    spoilt(|plan| plan.claims[0].price = Price::from_dollars(0.1), expect!["claim 0 costs $0.2000/h, not $0.1000/h"]);
    spoilt(|plan| plan.claims[0].types.reverse(), expect!["claim 0: types do not come cheapest first"]);
}

#[test]
fn limits_hold_for_the_largest_type() {
    spoilt(
        |plan| {
            let mut second = plan.claims[0].clone();
            second.pods = std::mem::take(&mut plan.nominations[0].pods);
            plan.claims.push(second);
        },
        expect!["pool default may come to use 26 of 20 cpu"],
    );
}

#[test]
fn refusals_are_told_for_every_pool_and_are_true() {
    spoilt(|plan| plan.unplaced[0].refusals.clear(), expect!["default/huge: no proper reason of pool default"]);
    let mut unlimited = snapshot();
    let mut pool = (*unlimited.pools[0]).clone();
    pool.limits = Resources::none();
    unlimited.pools = vec![Arc::new(pool)];
    let mut plan = plan(&unlimited);
    let mut needless = plan.unplaced[0].clone();
    needless.class = Arc::clone(&unlimited.pending[1].class);
    needless.pods = std::mem::take(&mut plan.nominations[0].pods);
    plan.unplaced.push(needless);
    let lines: Vec<String> = audit(&unlimited, &plan).iter().map(ToString::to_string).collect();
    expect!["default/any would have fit a node of pool default"].assert_eq(&lines.join("\n"));
}
