//! What the volumes of a pod mean for its place.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Requirements, Text};

/// A volume at the driver that attaches it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attachment {
    /// The driver.
    pub driver: Text,
    /// What tells the volume from others of its driver; two pods that share one attach it once.
    pub handle: Text,
}

/// How many volumes of each driver a node can attach; a driver that is not named has no limit.
pub type AttachLimits = BTreeMap<Text, u32>;

/// Where the volumes of a pod can be reached from, and what has to be attached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodVolumes {
    /// One of these must hold for the node. Never empty; a pod without volumes has one that asks for nothing.
    pub alternatives: Vec<Requirements>,
    /// Volumes that count against attach limits.
    pub attachments: BTreeSet<Attachment>,
}

impl PodVolumes {
    /// No volumes.
    pub fn none() -> Self {
        Self { alternatives: vec![Requirements::none()], attachments: BTreeSet::new() }
    }
}
