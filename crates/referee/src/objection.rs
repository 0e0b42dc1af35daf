//! Why a pod may not run on a node.

use std::fmt;

use model::{PodKey, ResourceName, Taint, Text};

use crate::{Blocker, HostPort};

/// The filters in the order in which the kube-scheduler asks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Plugin {
    /// What is looked at before any node.
    BeforeNodes,
    /// Cordoned nodes.
    NodeUnschedulable,
    /// The node that the pod names.
    NodeName,
    /// Taints.
    TaintToleration,
    /// Node selector and node affinity.
    NodeAffinity,
    /// Host ports.
    NodePorts,
    /// Room.
    NodeResourcesFit,
    /// Volumes that exclude other users.
    VolumeRestrictions,
    /// Attach limits.
    NodeVolumeLimits,
    /// Where volumes can be reached or made.
    VolumeBinding,
    /// Zone labels of volumes.
    VolumeZone,
    /// Topology spread.
    PodTopologySpread,
    /// Pod affinity and anti-affinity.
    InterPodAffinity,
}

/// A rule that speaks against a pod on a node. `Display` gives the kube-scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Objection {
    /// The pod may go nowhere at all.
    Blocked {
        /// Why.
        blocker: Blocker,
    },
    /// The pod's affinity lists nodes by name, and not this one.
    NotListed,
    /// The node is cordoned.
    Unschedulable,
    /// The pod names another node.
    OtherNodeNamed,
    /// A taint of the node is not tolerated.
    Untolerated {
        /// The first such taint.
        taint: Taint,
    },
    /// Node selector or required node affinity do not hold.
    NodeAffinity,
    /// A host port is taken.
    PortTaken {
        /// The port.
        port: HostPort,
    },
    /// The node has all the pods it takes.
    TooManyPods {
        /// How many it takes.
        allowed: i64,
    },
    /// There is too little of a resource.
    Insufficient {
        /// The resource.
        resource: ResourceName,
        /// What the pod asks for.
        wanted: i64,
        /// What is left.
        free: i64,
        /// What the node has when it is empty.
        allocatable: i64,
    },
    /// A volume for one pod only is in use by another.
    VolumeInUse {
        /// The volume.
        handle: Text,
    },
    /// The node can attach no more volumes of a driver.
    TooManyVolumes {
        /// The driver.
        driver: Text,
        /// How many it can attach.
        limit: u32,
    },
    /// A volume cannot be reached from the node.
    VolumeElsewhere {
        /// The volume.
        handle: Text,
    },
    /// A volume that waits for the pod cannot be made for the node.
    VolumeNotMadeHere {
        /// The volume.
        handle: Text,
    },
    /// A volume's zone labels do not agree with the node's.
    VolumeZone {
        /// The volume.
        handle: Text,
    },
    /// The node lacks the label that a spread constraint counts by.
    SpreadLabelMissing {
        /// The label.
        topology_key: Text,
    },
    /// A domain would have too many more pods than the emptiest.
    Skewed {
        /// The label that makes the domains.
        topology_key: Text,
        /// The difference there would be.
        skew: i64,
        /// The largest that is allowed.
        max_skew: u32,
    },
    /// A required pod affinity does not hold.
    Affinity,
    /// A required pod anti-affinity of the pod does not hold.
    AntiAffinity {
        /// The pod that it wants to stay away from.
        pod: PodKey,
    },
    /// A pod that is there wants to stay away from this one.
    ExistingAntiAffinity {
        /// That pod.
        pod: PodKey,
    },
}

impl Objection {
    /// The filter that objects.
    pub fn plugin(&self) -> Plugin {
        match self {
            Self::Blocked { .. } | Self::NotListed => Plugin::BeforeNodes,
            Self::Unschedulable => Plugin::NodeUnschedulable,
            Self::OtherNodeNamed => Plugin::NodeName,
            Self::Untolerated { .. } => Plugin::TaintToleration,
            Self::NodeAffinity => Plugin::NodeAffinity,
            Self::PortTaken { .. } => Plugin::NodePorts,
            Self::TooManyPods { .. } | Self::Insufficient { .. } => Plugin::NodeResourcesFit,
            Self::VolumeInUse { .. } => Plugin::VolumeRestrictions,
            Self::TooManyVolumes { .. } => Plugin::NodeVolumeLimits,
            Self::VolumeElsewhere { .. } | Self::VolumeNotMadeHere { .. } => Plugin::VolumeBinding,
            Self::VolumeZone { .. } => Plugin::VolumeZone,
            Self::SpreadLabelMissing { .. } | Self::Skewed { .. } => Plugin::PodTopologySpread,
            Self::Affinity | Self::AntiAffinity { .. } | Self::ExistingAntiAffinity { .. } => Plugin::InterPodAffinity,
        }
    }

    /// Whether the objection could fall if other pods left the node.
    pub fn could_fall(&self) -> bool {
        match self {
            Self::Insufficient { wanted, allocatable, .. } => wanted <= allocatable,
            Self::PortTaken { .. }
            | Self::TooManyPods { .. }
            | Self::VolumeInUse { .. }
            | Self::TooManyVolumes { .. }
            | Self::Skewed { .. }
            | Self::AntiAffinity { .. }
            | Self::ExistingAntiAffinity { .. } => true,
            Self::Blocked { .. }
            | Self::NotListed
            | Self::Unschedulable
            | Self::OtherNodeNamed
            | Self::Untolerated { .. }
            | Self::NodeAffinity
            | Self::VolumeElsewhere { .. }
            | Self::VolumeNotMadeHere { .. }
            | Self::VolumeZone { .. }
            | Self::SpreadLabelMissing { .. }
            | Self::Affinity => false,
        }
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Blocked { blocker } => return blocker.fmt(formatter),
            Self::NotListed => "node(s) didn't satisfy plugin(s) [NodeAffinity]",
            Self::Unschedulable => "node(s) were unschedulable",
            Self::OtherNodeNamed => "node(s) didn't match the requested node name",
            Self::Untolerated { .. } => "node(s) had untolerated taint(s)",
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::PortTaken { .. } => "node(s) didn't have free ports for the requested pod ports",
            Self::TooManyPods { .. } => "Too many pods",
            Self::Insufficient { resource, .. } => return write!(formatter, "Insufficient {resource}"),
            Self::VolumeInUse { .. } => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
            }
            Self::TooManyVolumes { .. } => "node(s) exceed max volume count",
            Self::VolumeElsewhere { .. } => "node(s) didn't match PersistentVolume's node affinity",
            Self::VolumeNotMadeHere { .. } => "node(s) didn't find available persistent volumes to bind",
            Self::VolumeZone { .. } => "node(s) had no available volume zone",
            Self::SpreadLabelMissing { .. } => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::Skewed { .. } => "node(s) didn't match pod topology spread constraints",
            Self::Affinity => "node(s) didn't match pod affinity rules",
            Self::AntiAffinity { .. } => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity { .. } => "node(s) didn't satisfy existing pods anti-affinity rules",
        })
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnboundImmediateClaims => formatter.write_str("pod has unbound immediate PersistentVolumeClaims"),
            Self::MissingClaim(name) => write!(formatter, "persistentvolumeclaim \"{name}\" not found"),
        }
    }
}
