//! Pods as the planner sees them: classes of equal pods, and daemons that come with every node.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::{
    HostPort, Labels, PodKey, PodTerm, PodVolumes, Requirements, Resources, SpreadConstraint, Text, Toleration,
    WeightedPodTerm,
};

/// A scheduling rule that pods can state and that this planner does not know.
///
/// Pods with such a rule are refused with it: launching a node that the kube-scheduler then rejects helps nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A dynamic resource claim.
    ResourceClaim,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ResourceClaim => "a dynamic resource claim",
        })
    }
}

/// A wish about labels, with its weight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Preference {
    /// 1 to 100; heavier wishes are tried first.
    pub weight: i32,
    /// The wish.
    pub requirements: Requirements,
}

/// What a pod's spec says about where it may run. Replicas of one workload say the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodClass {
    /// The pod's priority; higher first.
    pub priority: i32,
    /// What it asks for, with `pods` = 1.
    pub requests: Resources,
    /// Node selector and required node affinity; one of these must hold. Never empty.
    pub alternatives: Vec<Requirements>,
    /// Preferred node affinity.
    pub preferences: Vec<Preference>,
    /// Taints it puts up with.
    pub tolerations: Vec<Toleration>,
    /// Topology spread constraints that must hold.
    pub spread: Vec<SpreadConstraint>,
    /// Topology spread constraints that should hold.
    pub soft_spread: Vec<SpreadConstraint>,
    /// Required pod affinity.
    pub affinity: Vec<PodTerm>,
    /// Required pod anti-affinity.
    pub anti_affinity: Vec<PodTerm>,
    /// Preferred pod affinity.
    pub soft_affinity: Vec<WeightedPodTerm>,
    /// Preferred pod anti-affinity.
    pub soft_anti_affinity: Vec<WeightedPodTerm>,
    /// Ports of the host.
    pub host_ports: Vec<HostPort>,
    /// Rules of the pod that the planner does not know.
    pub unplanned_rules: BTreeSet<Rule>,
}

impl PodClass {
    /// A pod that asks for nothing but these resources.
    pub fn plain(requests: Resources) -> Self {
        Self {
            priority: 0,
            requests,
            alternatives: vec![Requirements::none()],
            preferences: Vec::new(),
            tolerations: Vec::new(),
            spread: Vec::new(),
            soft_spread: Vec::new(),
            affinity: Vec::new(),
            anti_affinity: Vec::new(),
            soft_affinity: Vec::new(),
            soft_anti_affinity: Vec::new(),
            host_ports: Vec::new(),
            unplanned_rules: BTreeSet::new(),
        }
    }
}

/// What a pending pod stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// A pod that waits.
    Work,
    /// Room that is kept free, for a capacity buffer or to spare: no pod, so nothing is nominated for it.
    Headroom,
}

/// A pod that needs a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPod {
    /// Namespace and name.
    pub key: PodKey,
    /// When it was made, in seconds since 1970; of equal pods the oldest goes first.
    pub created: i64,
    /// What decides where it may run; equal ones may be shared.
    pub class: Arc<PodClass>,
    /// Its labels, for the rules of other pods and its own.
    pub labels: Arc<Labels>,
    /// Its volumes.
    pub volumes: Arc<PodVolumes>,
    /// What it stands for.
    pub purpose: Purpose,
}

/// A DaemonSet: one pod of this class comes with every node that it may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Namespace and name of the DaemonSet.
    pub name: Text,
    /// What its pods look like.
    pub class: Arc<PodClass>,
}
