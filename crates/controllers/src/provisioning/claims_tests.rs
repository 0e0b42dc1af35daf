//! From plan and pool to the claim as it is sent.

use model::{
    BoundPods, Daemon, Offering, PendingPod, PodClass, PodKey, PodVolumes, Pool, PoolName, Price, Purpose,
    ResourceName, Revision, Snapshot,
};
use model::{Text, TypeName};
use planner::{PlaceConfig, place};
use serde_json::{Value, json};

use super::*;

fn pool() -> NodePool {
    serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default", "uid": "u-pool"},
        "spec": {"template": {
            "metadata": {"labels": {"team": "web"}, "annotations": {"note": "kept"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "small"},
                "requirements": [],
                "taints": [{"key": "gpu", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "slow", "effect": "NoExecute"}],
                "expireAfter": "48h",
                "terminationGracePeriod": "5m",
            },
        }},
    }))
    .unwrap()
}

/// A type with offerings written as `spot:a`, if not for sale `!spot:a`, and with two instances left `reserved:a*2`.
fn kind(name: &str, offerings: &[&str]) -> Arc<InstanceType> {
    let offering = |text: &&str| {
        let (capacity_type, zone) = text.trim_start_matches('!').split_once(':').unwrap();
        let (zone, left) = zone.split_once('*').map_or((zone, None), |(zone, left)| (zone, left.parse().ok()));
        Offering {
            requirements: Requirements::none()
                .with(labels::CAPACITY_TYPE, Requirement::is(capacity_type))
                .with(labels::ZONE, Requirement::is(zone)),
            price: Price::from_dollars(0.1),
            available: !text.starts_with('!'),
            reservation_capacity: left,
        }
    };
    let capacity = Resources::none().with(ResourceName::cpu(), 8000).with(ResourceName::pods(), 10);
    let requirements = Requirements::none().with(labels::INSTANCE_TYPE, Requirement::is(name));
    InstanceType::new(
        TypeName::new(name),
        requirements,
        capacity,
        Resources::none(),
        offerings.iter().map(offering).collect(),
    )
}

fn types() -> Vec<Arc<InstanceType>> {
    vec![kind("m", &["spot:a", "on-demand:a", "spot:b"]), kind("x", &["reserved:c"])]
}

fn planned(requirements: Requirements) -> PlannedClaim {
    PlannedClaim {
        pool: PoolName::new("default"),
        requirements: Arc::new(requirements),
        types: Arc::from([TypeName::new("m")]),
        requests: Resources::none().with(ResourceName::cpu(), 1500).with(ResourceName::memory(), 3 << 29),
        price: Price::ZERO,
        min_values_relaxed: false,
        pods: vec![PodKey::new("shop", "web-1")],
    }
}

/// What is for sale where no overlay changes anything.
fn market(types: &[Arc<InstanceType>]) -> Sold<'_> {
    Sold { types, marks: OverlayMarks::default() }
}

fn drafted(planned: &PlannedClaim) -> NodeClaim {
    draft(planned, &pool(), market(&types()), &Vocabulary::core(), defaults("launch-1"))
}

fn defaults(launch_id: &str) -> Defaults {
    Defaults { launch_id: launch_id.to_owned(), grace: None }
}

fn requirement(operator: Operator, values: &[&str]) -> Requirement {
    Requirement::new(operator, values.iter().copied()).unwrap()
}

/// Requirements of a claim as `key operator values`.
fn written(claim: &NodeClaim) -> Vec<String> {
    let text = |one: &api::Requirement| format!("{} {} {}", one.key, one.operator.as_str(), one.values().join("|"));
    claim.spec.requirements.iter().map(text).collect()
}

/// PROV-56, API-60: all that a claim carries from its first moment, its finalizer included.
#[test]
fn a_claim_in_full() {
    let plan = planned(Requirements::none().with(labels::ZONE, Requirement::is("a")));
    let hash = hash::node_pool_hash(&pool().spec.template);
    let expected = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "generateName": "default-",
            "labels": {"team": "web", "karpenter.sh/nodepool": "default", "karpenter.kwok.sh/kwoknodeclass": "small"},
            "annotations": {
                "note": "kept",
                "karpenter.sh/nodepool-hash": hash,
                "karpenter.sh/nodepool-hash-version": hash::HASH_VERSION,
                "karpenter.sh/nodeclaim-min-values-relaxed": "false",
                LAUNCH_ID: "launch-1",
            },
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default",
                "uid": "u-pool", "blockOwnerDeletion": true}],
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "small"},
            "requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand", "spot"]},
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
            ],
            "resources": {"requests": {"cpu": "1500m", "memory": "1536Mi"}},
            "taints": [{"key": "gpu", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "slow", "effect": "NoExecute"}],
            "expireAfter": "48h",
            "terminationGracePeriod": "5m",
        },
    });
    assert_eq!(serde_json::to_value(drafted(&plan)).unwrap(), expected);
}

/// PROV-58: the hash is that of the pool the plan was made from, whatever the pool is by now.
#[test]
fn the_hash_is_that_of_the_pool_handed_in() {
    let plan = planned(Requirements::none());
    let mut edited = pool();
    edited.spec.template.spec.expire_after = serde_json::from_value(json!("Never")).unwrap();
    let hash_of = |pool: &NodePool| {
        let claim = draft(&plan, pool, market(&types()), &Vocabulary::core(), defaults(""));
        claim.metadata.annotations.unwrap().remove(labels::NODE_POOL_HASH).unwrap()
    };
    assert_eq!(hash_of(&pool()), hash::node_pool_hash(&pool().spec.template));
    assert_eq!(hash_of(&edited), hash::node_pool_hash(&edited.spec.template));
    assert_ne!(hash_of(&pool()), hash_of(&edited));
}

/// PROV-46: only capacity types that a launch could get for the types, zones and capacity types of the plan.
#[test]
fn capacity_types_are_those_for_sale() {
    let any = Requirements::none();
    let zone = |name: &str| Requirements::none().with(labels::ZONE, Requirement::is(name));
    let spot = Requirements::none().with(labels::CAPACITY_TYPE, Requirement::is("spot"));
    let table = [
        (kind("m", &["spot:a", "on-demand:a"]), &any, "on-demand|spot"),
        (kind("m", &["!spot:a", "on-demand:a"]), &any, "on-demand"),
        (kind("m", &["spot:b", "on-demand:a"]), &zone("a"), "on-demand"),
        (kind("m", &["spot:a", "on-demand:a"]), &spot, "spot"),
    ];
    for (sold, requirements, expected) in table {
        // A type that the plan does not list has no say.
        let types = [Arc::clone(&sold), kind("x", &["reserved:a"])];
        let claim = draft(&planned(requirements.clone()), &pool(), market(&types), &Vocabulary::core(), defaults(""));
        let expected = format!("karpenter.sh/capacity-type In {expected}");
        assert!(written(&claim).contains(&expected), "{:?} lacks {expected}", written(&claim));
    }
}

/// RSV-12: `reserved` is for launches that can get it, and a full reservation gives nothing.
#[test]
fn full_reservations_are_not_asked_for() {
    let table = [
        (&["reserved:a*0", "on-demand:a"][..], "on-demand"),
        (&["reserved:a*0", "reserved:b*1", "on-demand:a"], "on-demand|reserved"),
        (&["!reserved:a*5", "on-demand:a"], "on-demand"),
        (&["reserved:a*2"], "reserved"),
    ];
    for (offerings, expected) in table {
        let plan = planned(Requirements::none());
        let claim = draft(&plan, &pool(), market(&[kind("m", offerings)]), &Vocabulary::core(), defaults(""));
        let expected = format!("karpenter.sh/capacity-type In {expected}");
        assert!(written(&claim).contains(&expected), "{:?} lacks {expected}", written(&claim));
    }
}

/// PROV-59: what the provider sets for all nodes holds for pools that say nothing.
#[test]
fn the_default_grace_period_is_for_pools_without_one() {
    let text = |text: &str| DurationText::parse(text).unwrap();
    let mut silent = pool();
    silent.spec.template.spec.termination_grace_period = None;
    let table = [
        (pool(), Some("1h"), Some("5m")),
        (silent.clone(), Some("1h"), Some("1h")),
        (silent, None, None),
        (pool(), None, Some("5m")),
    ];
    for (pool, default, expected) in table {
        let defaults = Defaults { launch_id: String::new(), grace: default.map(text) };
        let claim = draft(&planned(Requirements::none()), &pool, market(&types()), &Vocabulary::core(), defaults);
        assert_eq!(claim.spec.termination_grace_period, expected.map(text), "{default:?}");
    }
}

fn label(operator: Operator, values: &[&str]) -> Option<String> {
    let plan = planned(Requirements::none().with("rank", requirement(operator, values)));
    drafted(&plan).metadata.labels.unwrap().remove("rank")
}

/// REQ-18: one member of a listed set becomes the node's label; the template's own labels stay.
#[test]
fn a_listed_label_gets_one_of_its_values() {
    assert_eq!(label(Operator::In, &["b", "c"]).as_deref(), Some("b"));
    assert_eq!(label(Operator::DoesNotExist, &[]), None);
    let plan = planned(Requirements::none().with("team", requirement(Operator::In, &["db", "web"])));
    assert_eq!(drafted(&plan).metadata.labels.unwrap()["team"], "web");
    // Labels that the provider knows are its to give.
    let plan = planned(Requirements::none().with(labels::ZONE, Requirement::is("a")));
    assert!(!drafted(&plan).metadata.labels.unwrap().contains_key(labels::ZONE));
}

/// REQ-17
///
/// DIFFERS: the integer follows from the pool and the pods, not from chance, so that equal plans give equal claims
/// and a run can be repeated.
#[test]
fn an_open_label_gets_an_integer_that_follows_from_the_plan() {
    let table = [
        (Operator::Exists, &[][..]),
        (Operator::NotIn, &["1", "2"]),
        (Operator::Gt, &["7"]),
        (Operator::Gte, &["-5"]),
        (Operator::Gt, &["9000000000"]),
        (Operator::Lt, &["2"]),
        (Operator::Lte, &["9223372036854775807"]),
    ];
    for (operator, values) in table {
        let found = label(operator, values).unwrap();
        assert!(requirement(operator, values).admits(&found), "{operator:?} {values:?} admits {found}");
        assert!(found.parse::<u64>().is_ok(), "{found} is an integer and can be a label");
        assert_eq!(label(operator, values).unwrap(), found);
    }
    assert_eq!(label(Operator::Lt, &["0"]), None, "no label can be negative");
    let mut other = planned(Requirements::none().with("rank", Requirement::exists()));
    let first = drafted(&other).metadata.labels;
    other.pods = vec![PodKey::new("shop", "web-2")];
    assert_ne!(drafted(&other).metadata.labels, first, "other pods give another value");
}

/// Of a few values that are left, one is found.
#[test]
fn an_integer_between_bounds_avoids_what_is_excluded() {
    let narrow = requirement(Operator::Gte, &["3"]).intersection(&requirement(Operator::Lte, &["6"]));
    let open = narrow.intersection(&requirement(Operator::NotIn, &["3", "4", "6"]));
    let plan = planned(Requirements::none().with("rank", open));
    assert_eq!(drafted(&plan).metadata.labels.unwrap()["rank"], "5");
}

/// PROV-57: labels that a node gets when it has joined are known to the plan, so that daemons that wait for them
/// count; claims do not mention them.
#[test]
fn labels_of_the_simulation_stay_out_of_claims() {
    let class = |requirements: Requirements| {
        let requests = Resources::none().with(ResourceName::cpu(), 1000).with(ResourceName::pods(), 1);
        Arc::new(PodClass { alternatives: vec![requirements], ..PodClass::plain(requests) })
    };
    let late = Requirements::none()
        .with(labels::REGISTERED, Requirement::is("true"))
        .with(labels::INITIALIZED, Requirement::is("true"));
    let pod = PendingPod {
        key: PodKey::new("shop", "web-1"),
        created: 0,
        class: class(Requirements::none()),
        labels: Arc::default(),
        volumes: Arc::new(PodVolumes::none()),
        purpose: Purpose::Work,
    };
    let snapshot = Snapshot {
        revision: Revision(1),
        vocabulary: Arc::new(Vocabulary::core()),
        pools: vec![Arc::new(Pool {
            name: PoolName::new("default"),
            weight: 0,
            requirements: Requirements::none(),
            taints: Vec::new(),
            limits: Resources::none(),
            in_use: Resources::none(),
            types: types().into(),
        })],
        places: Vec::new(),
        pending: vec![pod],
        seats: std::collections::BTreeMap::new(),
        bound: BoundPods::default(),
        namespaces: Arc::default(),
        daemons: vec![Arc::new(Daemon { name: Text::from("system/late"), class: class(late) })],
    };
    let plan = place(&snapshot, &PlaceConfig::default());
    let claim = drafted(&plan.claims[0]);
    let requests = claim.spec.resources.clone().unwrap().requests.unwrap();
    assert_eq!(requests["cpu"].0, "2", "the daemon counts");
    let keys: Vec<String> = written(&claim).iter().map(|text| text.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(keys, [labels::CAPACITY_TYPE, labels::INSTANCE_TYPE]);
    let found: Value = serde_json::to_value(claim.metadata.labels).unwrap();
    for key in [labels::REGISTERED, labels::INITIALIZED, labels::HOSTNAME] {
        assert_eq!(found.get(key), None);
    }
}

/// The claim says whether the pool's wish for variety had to be lowered.
#[test]
fn relaxed_min_values_are_annotated() {
    for relaxed in [false, true] {
        let plan = PlannedClaim { min_values_relaxed: relaxed, ..planned(Requirements::none()) };
        let annotations = drafted(&plan).metadata.annotations.unwrap();
        assert_eq!(annotations[labels::MIN_VALUES_RELAXED], relaxed.to_string());
    }
}

/// A host name is made up for planning; no claim asks for one.
#[test]
fn host_names_stay_out_of_claims() {
    let claim = drafted(&planned(Requirements::none().with(labels::HOSTNAME, Requirement::is("made-up"))));
    assert!(written(&claim).iter().all(|text| !text.contains("hostname")));
    assert!(!claim.metadata.labels.unwrap().contains_key(labels::HOSTNAME));
}

/// OVL-09: a claim that was chosen by what overlays say tells so.
#[test]
fn claims_tell_that_overlays_were_applied() {
    for (price, capacity) in [(false, false), (true, false), (false, true), (true, true)] {
        let marks = OverlayMarks { price, capacity };
        let market = Sold { types: &types(), marks };
        let claim = draft(&planned(Requirements::none()), &pool(), market, &Vocabulary::core(), defaults("launch-1"));
        let annotations = claim.metadata.annotations.unwrap();
        let told = ["karpenter.sh/price-overlay-applied", "karpenter.sh/capacity-overlay-applied"]
            .map(|key| annotations.get(key).map(String::as_str));
        assert_eq!(told, [price, capacity].map(|applied| applied.then_some("true")), "{marks:?}");
    }
}
