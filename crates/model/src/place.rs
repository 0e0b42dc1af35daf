//! Places that exist or are on their way: nodes, and claims whose node has not joined yet.

use std::collections::BTreeSet;
use std::fmt;

use crate::{AttachLimits, Attachment, ClaimName, HostPort, NodeName, PoolName, Requirements, Resources, Taint};

/// A node, or a claim whose node is still to come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceId {
    /// A node.
    Node(NodeName),
    /// A claim without a node.
    Claim(ClaimName),
}

impl fmt::Display for PlaceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(formatter, "node/{name}"),
            Self::Claim(name) => write!(formatter, "nodeclaim/{name}"),
        }
    }
}

/// How far a place has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// A usable node, ours or foreign.
    Ready,
    /// A node of ours that is not usable yet, or an instance that has not joined.
    Joining,
    /// A claim whose instance is not known yet: labels may still take any value its requirements admit.
    Promised,
    /// A node on its way out: rules between pods see it and the pods that stay on it until it is gone, as the
    /// kube-scheduler does, but no pod is put there.
    Going,
}

/// Where pods may go without a new machine, or where pods are that others still have to mind; see [`Stage::Going`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What it is.
    pub id: PlaceId,
    /// The pool it belongs to; foreign nodes have none.
    pub pool: Option<PoolName>,
    /// How far it has come.
    pub stage: Stage,
    /// Its labels, or what is known about them.
    pub requirements: Requirements,
    /// Taints that count for placement.
    pub taints: Vec<Taint>,
    /// What pods may use in all.
    pub allocatable: Resources,
    /// What bound pods use, daemons included.
    pub used: Resources,
    /// What bound daemons use.
    pub used_by_daemons: Resources,
    /// Host ports of bound pods.
    pub host_ports: Vec<HostPort>,
    /// Volumes of bound pods.
    pub attached: BTreeSet<Attachment>,
    /// How many volumes it can attach.
    pub attach_limits: AttachLimits,
}
