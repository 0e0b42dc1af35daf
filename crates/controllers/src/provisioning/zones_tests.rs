//! What zone a pod counts for, in tables.

use model::{
    BoundKind, BoundPods, Inclusion, InstanceType, LabelRequirement, Place, PodClass, PodKey, Pool, PoolName, Purpose,
    Requirements, Resources, Revision, Stage, TypeName, Vocabulary,
};

use super::*;

/// Zones a, b and c are for sale; two pods `app=web` run in a and one in b.
fn snapshot() -> Snapshot {
    let kind = InstanceType::new(
        TypeName::new("m"),
        Requirements::none().with(labels::ZONE, Requirement::any_of(["a", "b", "c", "d"])),
        Resources::none(),
        Resources::none(),
        Vec::new(),
    );
    let pool = Pool {
        name: PoolName::new("default"),
        weight: 0,
        requirements: Requirements::none().with(labels::ZONE, Requirement::any_of(["a", "b", "c"])),
        taints: Vec::new(),
        limits: Resources::none(),
        in_use: Resources::none(),
        types: Arc::from([kind]),
    };
    let mut bound = BoundPods::default();
    let web = Arc::new(BoundKind { namespace: "shop".into(), labels: app("web"), anti_affinity: Vec::new() });
    bound.add_times(&web, &NodeName::new("n-a"), 2);
    bound.add_times(&web, &NodeName::new("n-b"), 1);
    Snapshot {
        revision: Revision(1),
        vocabulary: Arc::new(Vocabulary::core()),
        pools: vec![Arc::new(pool)],
        places: ["a", "b"].map(node).to_vec(),
        pending: Vec::new(),
        seats: std::collections::BTreeMap::new(),
        bound,
        namespaces: Arc::default(),
        daemons: Vec::new(),
    }
}

fn node(zone: &str) -> Arc<Place> {
    Arc::new(Place {
        id: PlaceId::Node(NodeName::new(format!("n-{zone}"))),
        pool: None,
        stage: Stage::Ready,
        requirements: Requirements::none().with(labels::ZONE, Requirement::is(zone)),
        taints: Vec::new(),
        allocatable: Resources::none(),
        used: Resources::none(),
        used_by_daemons: Resources::none(),
        host_ports: Vec::new(),
        attached: BTreeSet::new(),
        attach_limits: BTreeMap::new(),
    })
}

fn app(name: &str) -> Arc<Labels> {
    Arc::new(Labels::from([(Text::from("app"), Text::from(name))]))
}

fn web() -> Selector {
    Selector::All(vec![LabelRequirement::is("app", "web")])
}

fn term() -> PodTerm {
    PodTerm { topology_key: Text::from(labels::ZONE), selector: web(), namespaces: NamespaceScope::only("shop") }
}

fn spread(max_skew: u32) -> SpreadConstraint {
    SpreadConstraint {
        topology_key: Text::from(labels::ZONE),
        max_skew,
        min_domains: 1,
        selector: web(),
        node_affinity_policy: Inclusion::Honor,
        node_taints_policy: Inclusion::Ignore,
    }
}

/// A pod of the words `in=a|b`, `not=a`, `volume=a|b` (each an alternative), `spread=1`, `spread?=1`, `near`, `away`.
fn pod(words: &str) -> PendingPod {
    let mut class = PodClass::plain(Resources::none());
    let mut volumes = PodVolumes::none();
    let mut reach = Vec::new();
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "in" => class.alternatives[0].add(labels::ZONE, Requirement::any_of(value.split('|'))),
            "not" => class.alternatives[0].add(labels::ZONE, Requirement::new(Operator::NotIn, [value]).unwrap()),
            "volume" => reach.push(Requirements::none().with(labels::ZONE, Requirement::any_of(value.split('|')))),
            "anywhere" => reach.push(Requirements::none()),
            "spread" => class.spread.push(spread(value.parse().unwrap())),
            "spread?" => class.soft_spread.push(spread(value.parse().unwrap())),
            "near" => class.affinity.push(term()),
            "away" => class.anti_affinity.push(term()),
            _ => panic!("unknown word {word}"),
        }
    }
    if !reach.is_empty() {
        volumes.alternatives = reach;
    }
    PendingPod {
        key: PodKey::new("shop", "web"),
        created: 0,
        class: Arc::new(class),
        labels: app("web"),
        volumes: Arc::new(volumes),
        purpose: Purpose::Work,
    }
}

/// PROV-64: the zone if there is one, `flexible` if there are several or nothing is said, `none` if there is none.
#[test]
fn pods_count_for_the_zone_they_can_be_in() {
    let table = [
        ("", "flexible"),
        ("in=a", "a"),
        ("in=a|b", "flexible"),
        ("not=a", "flexible"),
        ("volume=b", "b"),
        ("volume=a volume=b", "flexible"),
        ("volume=a anywhere", "flexible"),
        ("in=a volume=b", "none"),
        ("in=a|b volume=b", "b"),
        ("not=b volume=b", "none"),
        ("spread=1", "c"),
        ("spread=2", "flexible"),
        ("spread=1 in=a|b", "b"),
        ("spread=1 in=a", "a"),
        ("spread=1 volume=a", "none"),
        ("near", "flexible"),
        ("near in=c", "c"),
        ("away", "c"),
        ("away in=a", "none"),
        ("away near", "none"),
    ];
    let snapshot = snapshot();
    for (words, expected) in table {
        let found = Zones::of(&snapshot, PreferencePolicy::Respect).zone_of(&pod(words));
        assert_eq!(found.to_string(), expected, "{words}");
    }
}

/// PROV-64: wishes count as long as they are respected, and equal pods are added up.
#[test]
fn pods_are_counted_by_zone() {
    let snapshot = snapshot();
    let pods = [pod("in=a"), pod("spread?=1"), pod("in=a"), pod("")];
    let told = |preferences| {
        let counts = by_zone(&snapshot, preferences, &pods);
        counts.iter().map(|(zone, count)| format!("{zone}={count}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(told(PreferencePolicy::Respect), "a=2 c=1 flexible=1");
    assert_eq!(told(PreferencePolicy::Ignore), "a=2 flexible=2");
}
