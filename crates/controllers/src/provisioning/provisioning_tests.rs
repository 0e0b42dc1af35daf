//! From what the provider answers to what is planned, and what is made of a plan.

use api::NodeOverlay;
use api::lower::{OverlayFacts, PodFacts};
use jiff::Timestamp;
use model::{
    InstanceType, NodeName, Nomination, Offering, Price, Requirement, Requirements, ResourceName, Resources, Revision,
    TypeName, Vocabulary, labels,
};
use planner::{PlaceConfig, place};
use serde_json::{Value, json};
use state::ManagedKind;

use super::*;

fn cluster() -> Cluster {
    let managed = ManagedKind { group: "karpenter.kwok.sh".to_owned(), kind: "KWOKNodeClass".to_owned() };
    Cluster::new(Arc::new(Vocabulary::core()), managed)
}

fn pool(name: &str) -> Object {
    let ready = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, "uid": name},
        "spec": {"template": {"spec": {"requirements": [],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}}},
        "status": {"conditions": [ready]}});
    Object::Pool(Arc::new(serde_json::from_value(pool).unwrap()))
}

fn pod(name: &str, requests: &Value) -> Object {
    let pod = json!({
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests, "limits": {}}}]},
        "status": {"phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    });
    Object::Pod(Arc::new(PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core()).unwrap()))
}

fn overlay(spec: &Value) -> Object {
    let overlay: NodeOverlay = serde_json::from_value(json!({"apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay", "metadata": {"name": "o"}, "spec": spec}))
    .unwrap();
    Object::Overlay(Arc::new(OverlayFacts::lower(&overlay, &Vocabulary::core()).unwrap()))
}

/// Two types of four CPUs: `cheap` at ten cents and `dear` at twenty.
fn types() -> InstanceTypes {
    let kind = |name: &str, dollars: f64| {
        let offered = Requirements::none().with(labels::ZONE, Requirement::is("a"));
        let offering = Offering {
            requirements: offered.clone(),
            price: Price::from_dollars(dollars),
            available: true,
            reservation_capacity: None,
        };
        let requirements = offered.with(labels::INSTANCE_TYPE, Requirement::is(name));
        let capacity = Resources::none().with(ResourceName::cpu(), 4000).with(ResourceName::pods(), 10);
        InstanceType::new(TypeName::new(name), requirements, capacity, Resources::none(), vec![offering])
    };
    Arc::from([kind("cheap", 0.10), kind("dear", 0.20)])
}

/// The plan for the cluster as it is: pool, types and price of each claim, and the pods that get none.
fn planned(cluster: &mut Cluster) -> Vec<String> {
    let plan = place(&cluster.snapshot(Timestamp::UNIX_EPOCH), &PlaceConfig::default());
    let claims = plan.claims.iter().map(|claim| {
        let types: Vec<&str> = claim.types.iter().map(TypeName::as_str).collect();
        format!("{} {} ${}", claim.pool, types.join("|"), claim.price.dollars())
    });
    let unplaced = plan.unplaced.iter().flat_map(|unplaced| &unplaced.pods).map(|pod| format!("nowhere {}", pod.name));
    claims.chain(unplaced).collect()
}

/// PROV-65, PROV-66, CP-01: a pool that the provider has no answer for is left out without more ado, and others are
/// planned with; once there was an answer, it is good until there is another.
#[test]
fn pools_without_an_answer_do_not_stop_others() {
    let failed = || Err(CloudError { attempt: "list types", message: "down".to_owned() });
    let mut cluster = cluster();
    for object in [pool("alpha"), pool("omega"), pod("web", &json!({"cpu": "1"}))] {
        cluster.apply(object);
    }
    let (alpha, omega) = (PoolName::new("alpha"), PoolName::new("omega"));
    assert_eq!(planned(&mut cluster), ["nowhere web"], "nobody has answered yet");
    hear_types(&mut cluster, omega.clone(), failed());
    hear_types(&mut cluster, alpha, Ok(types()));
    assert_eq!(planned(&mut cluster), ["alpha cheap|dear $0.1"]);
    hear_types(&mut cluster, omega.clone(), Ok(types()));
    assert_eq!(planned(&mut cluster), ["omega cheap|dear $0.1"]);
    hear_types(&mut cluster, omega.clone(), failed());
    assert_eq!(planned(&mut cluster), ["omega cheap|dear $0.1"], "the last answer is good");
    hear_types(&mut cluster, omega, Ok(Arc::from([])));
    assert_eq!(planned(&mut cluster), ["alpha cheap|dear $0.1"], "nothing is for sale");
}

/// OVL-04, OVL-05: the planner buys at the prices and with the resources that overlays state.
#[test]
fn the_planner_follows_overlays() {
    let mut cluster = cluster().with_overlays();
    for object in [pool("default"), pod("web", &json!({"cpu": "1"}))] {
        cluster.apply(object);
    }
    hear_types(&mut cluster, PoolName::new("default"), Ok(types()));
    assert_eq!(planned(&mut cluster), ["default cheap|dear $0.1"]);
    let dear = json!([{"key": labels::INSTANCE_TYPE, "operator": "In", "values": ["dear"]}]);
    cluster.apply(overlay(&json!({"requirements": dear, "priceAdjustment": "-75%"})));
    assert_eq!(planned(&mut cluster), ["default dear|cheap $0.05"]);
    cluster.apply(pod("slotted", &json!({"cpu": "1", "example.com/slots": "2"})));
    assert_eq!(planned(&mut cluster), ["default dear|cheap $0.05", "nowhere slotted"]);
    cluster.apply(overlay(&json!({"requirements": dear, "capacity": {"example.com/slots": "2"}})));
    assert_eq!(planned(&mut cluster), ["default dear $0.2"]);
    cluster.remove(&state::Key::Overlay("o".into()));
    assert_eq!(planned(&mut cluster), ["default cheap|dear $0.1", "nowhere slotted"]);
}

/// OVL-07, OVL-08: a pool is planned with as overlays have it or not at all, and one whose types cannot be had keeps
/// neither another pool nor an overlay waiting.
#[test]
fn pools_are_never_planned_with_without_their_overlays() {
    let mut cluster = cluster().with_overlays();
    let cheap = json!([{"key": labels::INSTANCE_TYPE, "operator": "In", "values": ["cheap"]}]);
    let half = overlay(&json!({"requirements": cheap, "priceAdjustment": "-50%"}));
    for object in [pool("alpha"), pool("omega"), pod("web", &json!({"cpu": "1"})), half] {
        cluster.apply(object);
    }
    for kind in cluster.wanted().into_iter().filter(|kind| *kind != state::Kind::Overlay) {
        cluster.begin_list(kind);
        let known: BTreeSet<state::Key> = match kind {
            state::Kind::Pool => ["alpha", "omega"].map(|name| state::Key::Pool(PoolName::new(name))).into(),
            state::Kind::Pod => BTreeSet::from([state::Key::Pod(PodKey::new("shop", "web"))]),
            _ => BTreeSet::new(),
        };
        cluster.finish_list(kind, &known);
    }
    assert!(!cluster.is_complete(), "nothing is done before overlays were listed");
    cluster.begin_list(state::Kind::Overlay);
    cluster.finish_list(state::Kind::Overlay, &BTreeSet::from([state::Key::Overlay("o".into())]));
    assert!(cluster.is_complete());
    assert_eq!(planned(&mut cluster), ["nowhere web"], "nobody said what is for sale");
    hear_types(
        &mut cluster,
        PoolName::new("omega"),
        Err(CloudError { attempt: "list types", message: "down".to_owned() }),
    );
    hear_types(&mut cluster, PoolName::new("alpha"), Ok(types()));
    assert_eq!(planned(&mut cluster), ["alpha cheap|dear $0.05"]);
    let verdicts: Vec<state::OverlayVerdict> = cluster.overlay_verdicts().map(|(_, verdict)| verdict).collect();
    assert_eq!(verdicts, [state::OverlayVerdict::Applied]);
    hear_types(&mut cluster, PoolName::new("omega"), Ok(types()));
    assert_eq!(planned(&mut cluster), ["omega cheap|dear $0.05"]);
}

/// PROV-03. DIFFERS: a claim that is stuck in its launch stalls nothing: pods that it was made for wait for it, and for
/// others new nodes are planned.
#[test]
fn a_stuck_claim_stalls_nobody_else() {
    let mut cluster = cluster();
    let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "stuck", "uid": "stuck", "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {"requirements": [], "resources": {"requests": {"cpu": "1", "pods": "1"}},
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}});
    let claim = Object::Claim(Arc::new(serde_json::from_value(claim).unwrap()));
    for object in [pool("default"), claim, pod("first", &json!({"cpu": "1"})), pod("second", &json!({"cpu": "1"}))] {
        cluster.apply(object);
    }
    for kind in cluster.wanted() {
        cluster.begin_list(kind);
        let known = match kind {
            state::Kind::Claim => BTreeSet::from([state::Key::Claim(ClaimName::new("stuck"))]),
            state::Kind::Pool => BTreeSet::from([state::Key::Pool(PoolName::new("default"))]),
            state::Kind::Pod => ["first", "second"].map(|name| state::Key::Pod(PodKey::new("shop", name))).into(),
            _ => BTreeSet::new(),
        };
        cluster.finish_list(kind, &known);
    }
    hear_types(&mut cluster, PoolName::new("default"), Ok(types()));
    assert!(cluster.is_complete(), "a claim without an instance is no reason to wait");
    let plan = place(&cluster.snapshot(Timestamp::UNIX_EPOCH), &PlaceConfig::default());
    let expected: Vec<String> =
        plan.nominations.iter().map(|found| format!("{} {}", found.place, found.pods[0])).collect();
    assert_eq!(expected, ["nodeclaim/stuck shop/first"]);
    assert_eq!(
        plan.claims.iter().flat_map(|claim| &claim.pods).map(ToString::to_string).collect::<Vec<_>>(),
        ["shop/second"]
    );
}

/// PROV-53: two windows, twenty seconds by default, and at least ten.
#[test]
fn nominations_last_two_windows() {
    for (window, length) in [(10, 20), (30, 60), (1, 10), (0, 10)] {
        assert_eq!(nomination_length(Duration::from_secs(window)), SignedDuration::from_secs(length), "{window}");
    }
}

/// BUF-18: places are kept for pods, and not for room that is only kept free.
#[test]
fn headroom_nominates_nothing() {
    let mut cluster = cluster();
    for name in ["web", "spare-1", "spare-2"] {
        cluster.apply(pod(name, &json!({"cpu": "1"})));
    }
    let mut snapshot = Snapshot::clone(&cluster.snapshot(Timestamp::UNIX_EPOCH));
    for pod in snapshot.pending.iter_mut().filter(|pod| pod.key.name.starts_with("spare")) {
        pod.purpose = Purpose::Headroom;
    }
    let nomination = |node: &str, pods: &[&str]| Nomination {
        place: PlaceId::Node(NodeName::new(node)),
        pods: pods.iter().map(|name| PodKey::new("shop", *name)).collect(),
    };
    let nominations = vec![nomination("kept", &["spare-1", "web"]), nomination("free", &["spare-2"])];
    let plan = Plan { revision: Revision(1), nominations, ..Plan::default() };
    let real = RealPods::of(&snapshot);
    assert_eq!(real.expected_on(&plan).map(ToString::to_string).collect::<Vec<_>>(), ["node/kept"]);
    let told: Vec<String> = real.among(&plan.nominations[0].pods).map(ToString::to_string).collect();
    assert_eq!(told, ["shop/web"], "no event names a pod that does not exist");
}
