//! The cluster at one moment, for the planner.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use model::{PendingPod, PlaceId, PodKey, Revision, Snapshot};

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

    /// Remembers where a plan put pods that need a place, instead of what was remembered before.
    pub fn set_seats(&mut self, seats: BTreeMap<PodKey, PlaceId>) {
        self.seats = seats;
    }

    /// Where these pods were to go. The place of a claim becomes that of its node once there is one.
    fn seats_of(&self, pending: &[PendingPod]) -> BTreeMap<PodKey, PlaceId> {
        if self.seats.is_empty() {
            return BTreeMap::new();
        }
        let place = |seat: &PlaceId| match seat {
            PlaceId::Claim(name) => {
                let node = self.claims.get(name).and_then(|claim| self.node_of(claim));
                node.map_or_else(|| seat.clone(), |node| PlaceId::Node(node.name.clone()))
            }
            PlaceId::Node(_) => seat.clone(),
        };
        pending.iter().filter_map(|pod| Some((pod.key.clone(), place(self.seats.get(&pod.key)?)))).collect()
    }
}
