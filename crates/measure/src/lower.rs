//! Scenarios as snapshots.
//!
//! Pods go through the same lowering as those of a real cluster. What comes out is not shared or sorted in any way: the
//! planner has to find out by itself which pods are equal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::lower::{PodFacts, lower_taints};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use model::{
    AttachLimits, BoundPods, Daemon, InstanceType, NodeName, Offering, Operator, PendingPod, Place, PlaceId,
    PodVolumes, Pool, PoolName, Price, Purpose, Requirement, Requirements, ResourceName, Resources, Revision, Snapshot,
    Stage, Text, TypeName, Vocabulary, labels, parse_quantity,
};
use planner::{MinValuesPolicy, PlaceConfig, PreferencePolicy};

use crate::scenario::{self, Scenario, ScenarioError};

/// What a cluster's state would hold for a scenario, ready to be asked for a snapshot.
pub struct Cluster {
    vocabulary: Arc<Vocabulary>,
    pools: Vec<Arc<Pool>>,
    places: Vec<Arc<Place>>,
    pending: Vec<PendingPod>,
    bound: BoundPods,
    daemons: Vec<Arc<Daemon>>,
    /// Settings of the scenario.
    pub config: PlaceConfig,
}

impl Cluster {
    /// The pods that wait: a copy for one snapshot.
    pub fn pending(&self) -> Vec<PendingPod> {
        self.pending.clone()
    }

    /// The snapshot, as a running controller takes it, with these pods waiting.
    pub fn snapshot(&self, pending: Vec<PendingPod>) -> Snapshot {
        Snapshot {
            revision: Revision(1),
            vocabulary: Arc::clone(&self.vocabulary),
            pools: self.pools.clone(),
            places: self.places.clone(),
            pending,
            seats: BTreeMap::new(),
            bound: self.bound.clone(),
            namespaces: Arc::new(BTreeMap::new()),
            daemons: self.daemons.clone(),
        }
    }

    /// Lowers a scenario.
    pub fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let vocabulary =
            Arc::new(Vocabulary::core().with_well_known(scenario.well_known_labels.iter().map(String::as_str)));
        let types = scenario.instance_types.iter().map(instance_type).collect::<Result<Vec<_>, _>>()?;
        let mut in_use: BTreeMap<&str, Resources> = BTreeMap::new();
        let (mut bound, mut places) = (BoundPods::default(), Vec::new());
        for node in &scenario.nodes {
            let kind = types.iter().find(|kind| kind.name.as_str() == node.instance_type);
            let capacity = if node.capacity.is_empty() {
                kind.map(|kind| kind.capacity.clone()).unwrap_or_default()
            } else {
                resources(&node.capacity, &node.name)?
            };
            let used = in_use.entry(&node.node_pool).or_default();
            used.add(&capacity);
            used.add(&Resources::none().with(ResourceName::nodes(), 1));
            places.push(Arc::new(place(node, kind, &vocabulary, &mut bound)?));
        }
        let pools = scenario.node_pools.iter().map(|written| pool(written, &types, in_use.get(written.name.as_str())));
        let mut pending = Vec::new();
        for (age, written) in scenario.pods.iter().enumerate() {
            for facts in lowered(written, &vocabulary) {
                pending.push(PendingPod {
                    key: facts.key,
                    created: i64::try_from(age).unwrap_or(i64::MAX),
                    class: facts.class,
                    labels: Arc::clone(&facts.kind.labels),
                    volumes: Arc::new(PodVolumes::none()),
                    purpose: Purpose::Work,
                });
            }
        }
        let daemon = |written: &scenario::Pod| {
            let facts = lowered(written, &vocabulary).into_iter().next();
            facts.map(|facts| Arc::new(Daemon { name: Text::from(facts.key.to_string()), class: facts.class }))
        };
        Ok(Self {
            pools: pools.collect::<Result<Vec<_>, _>>()?,
            daemons: scenario.daemon_sets.iter().filter_map(daemon).collect(),
            config: config(&scenario.options),
            vocabulary,
            places,
            pending,
            bound,
        })
    }
}

fn config(options: &scenario::Options) -> PlaceConfig {
    let preferences = match options.preference_policy.as_str() {
        "Ignore" => PreferencePolicy::Ignore,
        _ => PreferencePolicy::Respect,
    };
    let min_values = match options.min_values_policy.as_str() {
        "BestEffort" => MinValuesPolicy::BestEffort,
        _ => MinValuesPolicy::Strict,
    };
    PlaceConfig { preferences, min_values, ..PlaceConfig::default() }
}

fn resources(quantities: &scenario::Quantities, owner: &str) -> Result<Resources, ScenarioError> {
    let read = |(name, text): (&String, &String)| {
        let name = ResourceName::new(name.as_str());
        let amount = parse_quantity(&name, text).map_err(|_| ScenarioError::Meaningless {
            what: "a quantity",
            owner: owner.to_owned(),
            text: text.clone(),
        })?;
        Ok((name, amount))
    };
    quantities.iter().map(read).collect()
}

fn requirement(written: &scenario::Requirement, owner: &str) -> Result<Requirement, ScenarioError> {
    let values = written.values.iter().map(String::as_str);
    let read = Operator::parse(&written.operator).and_then(|operator| Requirement::new(operator, values));
    let read = read.map(|requirement| requirement.with_min_values(written.min_values));
    read.ok_or_else(|| ScenarioError::Meaningless {
        what: "a requirement",
        owner: owner.to_owned(),
        text: format!("{} {}", written.key, written.operator),
    })
}

fn instance_type(written: &scenario::InstanceType) -> Result<Arc<InstanceType>, ScenarioError> {
    let name = &written.name;
    let mut requirements = Requirements::none().with(labels::INSTANCE_TYPE, Requirement::is(name.as_str()));
    for (key, value) in &written.labels {
        requirements.add(key, Requirement::is(value.as_str()));
    }
    for one in &written.requirements {
        requirements.add(&one.key, requirement(one, name)?);
    }
    let (mut zones, mut capacity_types) = (BTreeSet::new(), BTreeSet::new());
    let mut offerings = Vec::new();
    for offering in &written.offerings {
        if offering.available {
            zones.insert(offering.zone.as_str());
            capacity_types.insert(offering.capacity_type.as_str());
        }
        let bought = Requirements::none()
            .with(labels::ZONE, Requirement::is(offering.zone.as_str()))
            .with(labels::CAPACITY_TYPE, Requirement::is(offering.capacity_type.as_str()));
        let price = Price::from_dollars(offering.price);
        offerings.push(Offering {
            requirements: bought,
            price,
            available: offering.available,
            reservation_capacity: None,
        });
    }
    requirements.add(labels::ZONE, Requirement::any_of(zones));
    requirements.add(labels::CAPACITY_TYPE, Requirement::any_of(capacity_types));
    let (capacity, overhead) = (resources(&written.capacity, name)?, resources(&written.overhead, name)?);
    Ok(InstanceType::new(TypeName::new(name.as_str()), requirements, capacity, overhead, offerings))
}

fn pool(
    written: &scenario::NodePool,
    types: &[Arc<InstanceType>],
    in_use: Option<&Resources>,
) -> Result<Arc<Pool>, ScenarioError> {
    let name = &written.name;
    let mut requirements = Requirements::none().with(labels::NODE_POOL, Requirement::is(name.as_str()));
    for one in &written.requirements {
        requirements.add(&one.key, requirement(one, name)?);
    }
    for (key, value) in &written.labels {
        requirements.add(key, Requirement::is(value.as_str()));
    }
    let listed = |kind: &&Arc<InstanceType>| {
        written.instance_types.is_empty() || written.instance_types.iter().any(|own| own == kind.name.as_str())
    };
    Ok(Arc::new(Pool {
        name: PoolName::new(name.as_str()),
        weight: written.weight,
        requirements,
        taints: lower_taints(&written.taints),
        limits: resources(&written.limits, name)?,
        in_use: in_use.cloned().unwrap_or_default(),
        types: types.iter().filter(listed).cloned().collect(),
    }))
}

fn place(
    node: &scenario::Node,
    kind: Option<&Arc<InstanceType>>,
    vocabulary: &Vocabulary,
    bound: &mut BoundPods,
) -> Result<Place, ScenarioError> {
    let name = NodeName::new(node.name.as_str());
    let mut known: BTreeMap<&str, &str> =
        node.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let own = [
        (labels::HOSTNAME, &node.name),
        (labels::NODE_POOL, &node.node_pool),
        (labels::INSTANCE_TYPE, &node.instance_type),
        (labels::ZONE, &node.zone),
        (labels::CAPACITY_TYPE, &node.capacity_type),
    ];
    known.extend(own.into_iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| (key, value.as_str())));
    if !node.node_pool.is_empty() {
        known.extend([(labels::REGISTERED, "true"), (labels::INITIALIZED, "true")]);
    }
    let mut requirements = Requirements::none();
    known.into_iter().for_each(|(key, value)| requirements.add(key, Requirement::is(value)));
    let (mut used, mut used_by_daemons, mut host_ports) = (Resources::none(), Resources::none(), Vec::new());
    for written in &node.pods {
        for facts in lowered(written, vocabulary) {
            used.add(&facts.class.requests);
            if written.owner == "DaemonSet" {
                used_by_daemons.add(&facts.class.requests);
            }
            host_ports.extend(facts.class.host_ports.iter().cloned());
            bound.add(&facts.kind, &name);
        }
    }
    let allocatable = if node.allocatable.is_empty() {
        kind.map(|kind| kind.allocatable.clone()).unwrap_or_default()
    } else {
        resources(&node.allocatable, &node.name)?
    };
    Ok(Place {
        id: PlaceId::Node(name),
        pool: (!node.node_pool.is_empty()).then(|| PoolName::new(node.node_pool.as_str())),
        stage: Stage::Ready,
        requirements,
        taints: lower_taints(&node.taints),
        allocatable,
        used,
        used_by_daemons,
        host_ports,
        attached: BTreeSet::new(),
        attach_limits: AttachLimits::new(),
    })
}

/// The pods that a written one stands for, each lowered for itself.
fn lowered(written: &scenario::Pod, vocabulary: &Vocabulary) -> Vec<PodFacts> {
    let numbered =
        |index: u32| if written.replicas > 1 { format!("{}-{index}", written.name) } else { written.name.clone() };
    (0..written.replicas.max(1))
        .filter_map(|index| PodFacts::lower(&pod(written, numbered(index)), vocabulary))
        .collect()
}

fn pod(written: &scenario::Pod, name: String) -> core::Pod {
    let quantities = written.requests.iter().map(|(name, text)| (name.clone(), Quantity(text.clone()))).collect();
    let port = |port: &scenario::HostPort| core::ContainerPort {
        container_port: port.port,
        host_port: Some(port.port),
        host_ip: (!port.host_ip.is_empty()).then(|| port.host_ip.clone()),
        protocol: (!port.protocol.is_empty()).then(|| port.protocol.clone()),
        ..core::ContainerPort::default()
    };
    let container = core::Container {
        name: "main".to_owned(),
        ports: (!written.host_ports.is_empty()).then(|| written.host_ports.iter().map(port).collect()),
        resources: Some(core::ResourceRequirements {
            requests: Some(quantities),
            ..core::ResourceRequirements::default()
        }),
        ..core::Container::default()
    };
    let kind = if written.owner.is_empty() { "ReplicaSet" } else { &written.owner };
    let owner = OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        name: "owner".to_owned(),
        uid: "owner".to_owned(),
        controller: Some(true),
        ..OwnerReference::default()
    };
    core::Pod {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(written.namespace.clone()),
            labels: Some(written.labels.clone()),
            annotations: Some(written.annotations.clone()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(core::PodSpec {
            containers: vec![container],
            node_selector: Some(written.node_selector.clone()),
            affinity: written.affinity.clone(),
            tolerations: Some(written.tolerations.clone()),
            topology_spread_constraints: Some(written.topology_spread_constraints.clone()),
            priority: written.priority,
            ..core::PodSpec::default()
        }),
        status: None,
    }
}
