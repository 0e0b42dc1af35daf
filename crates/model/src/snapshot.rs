//! The cluster at one moment.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::{BoundPods, Daemon, Labels, PendingPod, Place, PlaceId, PodKey, Pool, Text, Vocabulary};

/// Counts the changes that led to a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "r{}", self.0)
    }
}

/// Everything a placement depends on. Equal snapshots give equal plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The state's revision.
    pub revision: Revision,
    /// Labels that mean something.
    pub vocabulary: Arc<Vocabulary>,
    /// Pools that may be used, in any order.
    pub pools: Vec<Arc<Pool>>,
    /// Nodes and claims that take pods, and nodes that are going, which take none.
    pub places: Vec<Arc<Place>>,
    /// Pods that need a place, in any order.
    pub pending: Vec<PendingPod>,
    /// Where an earlier plan put pods that still need a place; they stay there as long as they can.
    pub seats: BTreeMap<PodKey, PlaceId>,
    /// Pods that have one.
    pub bound: BoundPods,
    /// Labels of the namespaces, for rules that select namespaces by them.
    pub namespaces: Arc<BTreeMap<Text, Labels>>,
    /// DaemonSets.
    pub daemons: Vec<Arc<Daemon>>,
}
