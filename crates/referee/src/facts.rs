//! What decides where a pod may run, as plain values.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    HostPort, LabelRequirement, Labels, NodeName, PodKey, Resources, Selector, SpreadConstraint, Taint, Text,
    Toleration,
};

use crate::NodeTerm;

/// A node as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Name.
    pub name: NodeName,
    /// Labels.
    pub labels: Labels,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Whether the node is cordoned.
    pub unschedulable: bool,
    /// What pods may use in all; `pods` is the number of pods.
    pub allocatable: Resources,
    /// How many volumes of a driver the node can attach; a driver that is not named has no limit.
    pub attach_limits: BTreeMap<Text, u32>,
}

impl NodeFacts {
    /// A node without labels, taints or room.
    pub fn new(name: NodeName) -> Self {
        Self {
            name,
            labels: Labels::new(),
            taints: Vec::new(),
            unschedulable: false,
            allocatable: Resources::none(),
            attach_limits: BTreeMap::new(),
        }
    }
}

/// A pod as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Namespace and name.
    pub key: PodKey,
    /// Labels.
    pub labels: Labels,
    /// What it asks for. An amount of `pods` is ignored: every pod counts as one.
    pub requests: Resources,
    /// The node that the spec names, if any.
    pub node_name: Option<NodeName>,
    /// The node selector.
    pub node_selector: Labels,
    /// Required node affinity: one term must hold. `None` when there is no such rule.
    pub node_terms: Option<Vec<NodeTerm>>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Host ports.
    pub host_ports: Vec<HostPort>,
    /// Topology spread constraints with `DoNotSchedule`.
    pub spread: Vec<SpreadConstraint>,
    /// Required pod affinity.
    pub affinity: Vec<PodAffinityTerm>,
    /// Required pod anti-affinity.
    pub anti_affinity: Vec<PodAffinityTerm>,
    /// Persistent volumes.
    pub volumes: Vec<VolumeFacts>,
    /// Something that keeps the pod from every node, found before any node was looked at.
    pub blocker: Option<Blocker>,
    /// Priority; pods of lower priority may be preempted.
    pub priority: i32,
    /// Whether the pod may preempt others.
    pub may_preempt: bool,
    /// Whether deletion has begun. Such pods keep their room but do not count for topology spread.
    pub terminating: bool,
}

impl PodFacts {
    /// A pod without demands.
    pub fn new(key: PodKey) -> Self {
        Self {
            key,
            labels: Labels::new(),
            requests: Resources::none(),
            node_name: None,
            node_selector: Labels::new(),
            node_terms: None,
            tolerations: Vec::new(),
            host_ports: Vec::new(),
            spread: Vec::new(),
            affinity: Vec::new(),
            anti_affinity: Vec::new(),
            volumes: Vec::new(),
            blocker: None,
            priority: 0,
            may_preempt: true,
            terminating: false,
        }
    }
}

/// Namespaces that a pod affinity term looks into.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Namespaces {
    /// Every one, those yet to come included.
    All,
    /// These.
    Listed(BTreeSet<Text>),
}

impl Namespaces {
    /// Just one.
    pub fn only(namespace: impl Into<Text>) -> Self {
        Self::Listed(BTreeSet::from([namespace.into()]))
    }

    /// Whether a namespace is one of them.
    pub fn contains(&self, namespace: &Text) -> bool {
        match self {
            Self::All => true,
            Self::Listed(listed) => listed.contains(namespace),
        }
    }
}

/// A required term of pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodAffinityTerm {
    /// Node label that makes the domains.
    pub topology_key: Text,
    /// Pods it speaks of; `matchLabelKeys` and `mismatchLabelKeys` are part of it.
    pub selector: Selector,
    /// Where those pods live.
    pub namespaces: Namespaces,
}

impl PodAffinityTerm {
    /// Whether the term speaks of this pod.
    pub fn matches(&self, pod: &PodFacts) -> bool {
        self.namespaces.contains(&pod.key.namespace) && self.selector.matches(&pod.labels)
    }
}

/// A persistent volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeFacts {
    /// What tells it from other volumes of its driver; a volume that two pods share is attached once.
    pub handle: Text,
    /// The driver that attaches it.
    pub driver: Text,
    /// Where it is or may come to be.
    pub place: VolumePlace,
    /// The volume's zone and region labels; each must agree with the node's.
    pub zone_labels: Vec<ZoneLabel>,
    /// Whether only one pod in the cluster may use it (`ReadWriteOncePod`).
    pub one_pod_only: bool,
}

/// Where a volume is or may come to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VolumePlace {
    /// It exists, and can be reached from nodes that meet one of these terms; `None` from everywhere.
    Bound(Option<Vec<NodeTerm>>),
    /// It will be made where the pod goes, on nodes that meet one of these terms; `None` anywhere.
    WaitsForPod(Option<Vec<NodeTerm>>),
}

/// A zone or region label of a volume with the values it stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneLabel {
    /// Label key.
    pub key: Text,
    /// Values; a volume in several zones has several.
    pub values: BTreeSet<Text>,
}

/// Something that keeps a pod from every node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocker {
    /// A claim that binds at once is not bound yet.
    UnboundImmediateClaims,
    /// A claim that does not exist.
    MissingClaim(Text),
}

impl PodFacts {
    /// Node selector and required node affinity together.
    pub(crate) fn selects(&self, node: &NodeFacts) -> bool {
        let by_selector = self
            .node_selector
            .iter()
            .all(|(key, value)| LabelRequirement::is(key.clone(), value.clone()).matches(&node.labels));
        let meets = |terms: &Vec<NodeTerm>| terms.iter().any(|term| term.matches(&node.name, &node.labels));
        by_selector && self.node_terms.as_ref().is_none_or(meets)
    }
}
