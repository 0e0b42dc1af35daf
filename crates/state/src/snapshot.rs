//! The cluster at one moment, for the planner.

use std::sync::Arc;

use jiff::Timestamp;
use model::{Revision, Snapshot};

use crate::cluster::{Cluster, Tracked};
use crate::demand::Demand;

impl Cluster {
    /// Everything a placement depends on, as of now.
    ///
    /// Costs a pass over machines, pools and pods that need a place, never over all pods: what runs is counted when it
    /// comes and goes, and a place is made anew only after something about it changed.
    pub fn snapshot(&mut self, now: Timestamp) -> Arc<Snapshot> {
        let machines: Vec<Tracked> = self.tracked().collect();
        let places = self.places(&machines);
        let Demand { pending, bound } = self.demand(&machines, now);
        Arc::new(Snapshot {
            revision: Revision(self.revision),
            vocabulary: Arc::clone(&self.vocabulary),
            pools: self.planned_pools(),
            seats: self.seats_of(&pending),
            places,
            pending,
            bound,
            namespaces: Arc::clone(&self.namespaces),
            daemons: self.daemons.planned().cloned().collect(),
        })
    }
}
