//! Scenarios made of formulas: nothing is drawn, so that every machine measures the same.

use std::collections::BTreeMap;

use measure::{InstanceType, Node, NodePool, Offering, Options, Pod, Requirement, Scenario};

/// Families with their gibibytes of memory for each CPU, and what a CPU and a gibibyte cost in them.
const FAMILIES: [(&str, u32, f64, f64); 6] = [
    ("c", 2, 0.0350, 0.0036),
    ("ca", 2, 0.0320, 0.0035),
    ("m", 4, 0.0330, 0.0037),
    ("ma", 4, 0.0300, 0.0036),
    ("r", 8, 0.0320, 0.0039),
    ("ra", 8, 0.0295, 0.0037),
];
const GENERATIONS: std::ops::RangeInclusive<u32> = 5..=8;
const CPUS: [u32; 9] = [2, 4, 8, 16, 32, 48, 64, 96, 128];
const ZONES: [&str; 3] = ["a", "b", "c"];
/// Thousandths of a CPU and mebibytes.
const SIZES: [(u32, u32); 12] = [
    (100, 128),
    (250, 256),
    (250, 1024),
    (500, 512),
    (500, 2048),
    (1000, 1024),
    (1000, 4096),
    (1500, 3072),
    (2000, 8192),
    (3000, 6144),
    (4000, 16384),
    (7000, 12288),
];

/// Whether equal pods are written as one with replicas or each for itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Large groups of pods under one name.
    Replicas,
    /// Every pod has an entry of its own.
    Each,
}

/// Types in the shape of a cloud's: families, generations and sizes, six ways to buy each.
pub(crate) fn catalogue() -> Vec<InstanceType> {
    let mut types = Vec::new();
    for (family, ratio, cpu_price, memory_price) in FAMILIES {
        for generation in GENERATIONS {
            for cpus in CPUS {
                // Newer is a little cheaper for what it gives.
                let age = 1.0 + 0.02 * f64::from(8 - generation);
                let price = age * f64::from(cpus) * (cpu_price + f64::from(ratio) * memory_price);
                types.push(instance_type(&format!("{family}{generation}"), cpus, ratio, price));
            }
        }
    }
    types
}

/// A single type, so large that no other work is left than to find out what fills it.
pub(crate) fn one_type() -> Vec<InstanceType> {
    let mut huge = instance_type("huge", 65_536, 4, 3_000.0);
    huge.capacity.extend(quantities([("pods", "1000000".to_owned())]));
    vec![huge]
}

fn instance_type(family: &str, cpus: u32, ratio: u32, price: f64) -> InstanceType {
    let offering = |zone: usize, capacity_type: &str, price: f64| Offering {
        zone: ZONES[zone].to_owned(),
        capacity_type: capacity_type.to_owned(),
        price,
        available: true,
    };
    let mut offerings = Vec::new();
    for zone in 0..ZONES.len() {
        // Between 30% and 60% of the price, without any pattern that a search could lean on.
        let part = 0.3 + 0.3 * f64::from((cpus * 7 + ratio * 13 + zone as u32 * 29) % 31) / 31.0;
        offerings.push(offering(zone, "on-demand", price));
        offerings.push(offering(zone, "spot", price * part));
    }
    InstanceType {
        name: format!("{family}.{cpus}"),
        capacity: quantities([("cpu", cpus.to_string()), ("memory", format!("{}Gi", cpus * ratio)), pods_of(cpus)]),
        overhead: quantities([("cpu", "100m".to_owned()), ("memory", "500Mi".to_owned())]),
        labels: strings([("example.com/family", family), ("example.com/cpu", &cpus.to_string())]),
        requirements: Vec::new(),
        offerings,
    }
}

fn pods_of(cpus: u32) -> (&'static str, String) {
    ("pods", (cpus * 15).min(250).to_string())
}

/// Pods of twelve sizes.
pub(crate) fn mixed(types: Vec<InstanceType>, pods: u32, naming: Naming) -> Scenario {
    let each = pods / SIZES.len() as u32;
    let sized = |index: u32| pod(&format!("pod{index}"), SIZES[index as usize % SIZES.len()]);
    let written = match naming {
        Naming::Replicas => (0..SIZES.len() as u32).map(|index| Pod { replicas: each, ..sized(index) }).collect(),
        Naming::Each => (0..pods).map(sized).collect(),
    };
    scenario(types, written)
}

/// Pods that each want another family, size or zone.
pub(crate) fn demanding(pods: u32) -> Scenario {
    let demand = |index: u32| {
        let (family, ..) = FAMILIES[index as usize % FAMILIES.len()];
        let wanted = strings([("example.com/family", format!("{family}{}", 5 + index % 4).as_str())]);
        let zone = strings([("topology.kubernetes.io/zone", ZONES[index as usize % ZONES.len()])]);
        let node_selector = wanted.into_iter().chain(zone).collect();
        Pod { node_selector, ..pod(&format!("pod{index}"), SIZES[index as usize % SIZES.len()]) }
    };
    scenario(catalogue(), (0..pods).map(demand).collect())
}

/// Nodes with thirty pods each and little room, and half as many pending pods, some of them spread over zones.
pub(crate) fn existing(nodes: u32) -> Scenario {
    let node = |index: u32| Node {
        name: format!("node{index}"),
        node_pool: "general".to_owned(),
        instance_type: "m8.16".to_owned(),
        zone: ZONES[index as usize % ZONES.len()].to_owned(),
        capacity_type: "spot".to_owned(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        capacity: BTreeMap::new(),
        allocatable: BTreeMap::new(),
        pods: vec![Pod {
            replicas: 30,
            labels: strings([("app", format!("app{}", index % 20).as_str())]),
            ..pod(&format!("old{index}"), (480 + index % 40, 1024))
        }],
    };
    let pending = |index: u32| {
        let app = format!("app{}", index % 20);
        let mut pod =
            Pod { labels: strings([("app", &*app)]), ..pod(&format!("new{index}"), SIZES[index as usize % 5]) };
        if index.is_multiple_of(3) {
            pod.topology_spread_constraints = vec![spread(&app)];
        }
        pod
    };
    let mut scenario = scenario(catalogue(), (0..nodes / 2).map(pending).collect());
    scenario.nodes = (0..nodes).map(node).collect();
    scenario
}

fn spread(app: &str) -> k8s_openapi::api::core::v1::TopologySpreadConstraint {
    k8s_openapi::api::core::v1::TopologySpreadConstraint {
        max_skew: 1,
        topology_key: "topology.kubernetes.io/zone".to_owned(),
        when_unsatisfiable: "DoNotSchedule".to_owned(),
        label_selector: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
            match_labels: Some(strings([("app", app)])),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn scenario(instance_types: Vec<InstanceType>, pods: Vec<Pod>) -> Scenario {
    let zones = Requirement {
        key: "topology.kubernetes.io/zone".to_owned(),
        operator: "In".to_owned(),
        values: ZONES.map(str::to_owned).to_vec(),
        min_values: None,
    };
    Scenario {
        version: 1,
        name: "made".to_owned(),
        description: String::new(),
        seed: 0,
        options: Options::default(),
        well_known_labels: vec!["example.com/family".to_owned(), "example.com/cpu".to_owned()],
        instance_types,
        node_pools: vec![NodePool {
            name: "general".to_owned(),
            weight: 0,
            requirements: vec![zones],
            labels: BTreeMap::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            limits: BTreeMap::new(),
            instance_types: Vec::new(),
            disruption: serde_json::Value::Null,
        }],
        daemon_sets: Vec::new(),
        nodes: Vec::new(),
        pods,
    }
}

fn pod(name: &str, (millicpu, mebibytes): (u32, u32)) -> Pod {
    Pod {
        name: name.to_owned(),
        namespace: "default".to_owned(),
        replicas: 1,
        owner: String::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        requests: quantities([("cpu", format!("{millicpu}m")), ("memory", format!("{mebibytes}Mi"))]),
        node_selector: BTreeMap::new(),
        affinity: None,
        tolerations: Vec::new(),
        topology_spread_constraints: Vec::new(),
        host_ports: Vec::new(),
        priority: None,
    }
}

fn quantities<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect()
}

fn strings<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
