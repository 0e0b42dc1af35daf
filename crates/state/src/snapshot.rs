//! The cluster at one moment, for the planner.

use std::sync::Arc;

use jiff::Timestamp;
use model::{Revision, Snapshot};

use crate::cluster::Cluster;

impl Cluster {
    /// Everything a placement depends on, as of now.
    pub fn snapshot(&self, now: Timestamp) -> Arc<Snapshot> {
        Arc::new(Snapshot {
            revision: Revision(self.revision),
            vocabulary: Arc::clone(&self.vocabulary),
            pools: self.planned_pools(),
            places: self.places(),
            pending: self.demand(now),
            daemons: self.daemons.values().cloned().collect(),
        })
    }
}
