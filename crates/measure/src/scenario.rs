//! The scenario file: one scheduling problem as JSON, the same for every scheduler that is compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Affinity, Taint, Toleration, TopologySpreadConstraint};
use serde::Deserialize;

/// Quantities by resource, in the spelling of Kubernetes.
pub(crate) type Quantities = BTreeMap<String, String>;

/// A scheduling problem.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// Version of the format; 1.
    pub version: u32,
    /// Name.
    pub name: String,
    /// What it is about.
    #[serde(default)]
    pub description: String,
    /// The seed it was drawn from.
    #[serde(default)]
    pub seed: u64,
    /// Settings that change the answer.
    #[serde(default)]
    pub options: Options,
    /// Provider labels that pods may select although no pool defines them.
    #[serde(default)]
    pub well_known_labels: Vec<String>,
    /// Machines for sale.
    pub instance_types: Vec<InstanceType>,
    /// Pools.
    pub node_pools: Vec<NodePool>,
    /// Daemons.
    #[serde(default)]
    pub daemon_sets: Vec<Pod>,
    /// Nodes that exist.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// Pods that wait.
    pub pods: Vec<Pod>,
}

/// Settings that change the answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Options {
    /// `Respect` or `Ignore`.
    #[serde(default)]
    pub preference_policy: String,
    /// `Strict` or `BestEffort`.
    #[serde(default)]
    pub min_values_policy: String,
    /// Only consolidation asks for it.
    #[serde(default)]
    pub spot_to_spot_consolidation: bool,
}

/// A demand on a label.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requirement {
    /// Label.
    pub key: String,
    /// Operator.
    pub operator: String,
    /// Values.
    #[serde(default)]
    pub values: Vec<String>,
    /// The least number of different values.
    pub min_values: Option<u32>,
}

/// A kind of machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceType {
    /// Name.
    pub name: String,
    /// What it has.
    pub capacity: Quantities,
    /// What it keeps for itself.
    #[serde(default)]
    pub overhead: Quantities,
    /// Labels with one value.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Labels with several values, or that never appear.
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    /// How it can be bought.
    pub offerings: Vec<Offering>,
}

/// A way to buy a machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Offering {
    /// Zone.
    pub zone: String,
    /// `spot` or `on-demand`.
    pub capacity_type: String,
    /// Dollars per hour.
    pub price: f64,
    /// Whether it is for sale.
    pub available: bool,
}

/// A pool.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodePool {
    /// Name.
    pub name: String,
    /// Weight.
    #[serde(default)]
    pub weight: i32,
    /// Demands on its nodes.
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    /// Labels of its nodes.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Taints of its nodes.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// Taints that are gone by the time pods come.
    #[serde(default)]
    pub startup_taints: Vec<Taint>,
    /// Limits.
    #[serde(default)]
    pub limits: Quantities,
    /// The types it may use; all when empty.
    #[serde(default)]
    pub instance_types: Vec<String>,
    /// Only consolidation asks for it.
    #[serde(default)]
    pub disruption: serde_json::Value,
}

/// A node that exists.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Its pool, empty when it is not managed.
    #[serde(default)]
    pub node_pool: String,
    /// Its type.
    #[serde(default)]
    pub instance_type: String,
    /// Its zone.
    #[serde(default)]
    pub zone: String,
    /// Its capacity type.
    #[serde(default)]
    pub capacity_type: String,
    /// Its labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// What it has; that of its type when empty.
    #[serde(default)]
    pub capacity: Quantities,
    /// What pods may use; that of its type when empty.
    #[serde(default)]
    pub allocatable: Quantities,
    /// Pods on it.
    #[serde(default)]
    pub pods: Vec<Pod>,
}

/// A pod, or several alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pod {
    /// Name.
    pub name: String,
    /// Namespace.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// How many; more than one are numbered.
    #[serde(default)]
    pub replicas: u32,
    /// Who made it.
    #[serde(default)]
    pub owner: String,
    /// Labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// What it asks for.
    #[serde(default)]
    pub requests: Quantities,
    /// Node selector.
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// Affinity.
    pub affinity: Option<Affinity>,
    /// Tolerations.
    #[serde(default)]
    pub tolerations: Vec<Toleration>,
    /// Topology spread constraints.
    #[serde(default)]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Ports of the host.
    #[serde(default)]
    pub host_ports: Vec<HostPort>,
    /// Priority.
    pub priority: Option<i32>,
}

/// A port of the host.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostPort {
    /// Number.
    pub port: i32,
    /// Protocol; TCP when empty.
    #[serde(default)]
    pub protocol: String,
    /// Address; all when empty.
    #[serde(default, rename = "hostIP")]
    pub host_ip: String,
}

fn default_namespace() -> String {
    "default".to_owned()
}

/// Why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("`{}` cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a scenario.
    #[error("`{}` is not a scenario", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A version of the format that nobody here knows.
    #[error("`{}` has version {version} of the format; version 1 is known", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Something in the file means nothing.
    #[error("{what} of `{owner}` cannot be read: `{text}`")]
    Meaningless {
        /// Which field.
        what: &'static str,
        /// Whose.
        owner: String,
        /// What it says.
        text: String,
    },
}

impl Scenario {
    /// Reads a scenario file.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ScenarioError::Unreadable { path: path.to_owned(), source })?;
        let scenario: Self =
            serde_json::from_str(&text).map_err(|source| ScenarioError::Malformed { path: path.to_owned(), source })?;
        match scenario.version {
            1 => Ok(scenario),
            version => Err(ScenarioError::Version { path: path.to_owned(), version }),
        }
    }
}
