//! Where a plan put pods that still need a place.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::lower::{NodeFacts, PodFacts, is_ephemeral_taint};
use model::{ClaimName, PendingPod, PlaceId, PodKey, Text};

use crate::change::Wake;
use crate::cluster::Cluster;
use crate::places::is_going;

impl Cluster {
    /// Remembers where a plan put pods that need a place, instead of what was remembered before.
    pub fn set_seats(&mut self, seats: BTreeMap<PodKey, PlaceId>) {
        let mut tried = std::mem::take(&mut self.tried);
        let is_same =
            |pod: &PodKey| Some(self.node_of_seat(self.seats.get(pod)?)? == self.node_of_seat(seats.get(pod)?)?);
        tried.retain(|pod| is_same(pod) == Some(true));
        self.tried = tried;
        self.seats = seats;
    }

    /// Whether the pod's seat is open to it, and nothing was heard of the pod since: the scheduler says so when it tries a
    /// pod in vain.
    pub fn is_untried(&self, pod: &PodKey) -> bool {
        self.is_open_to(pod) && !self.tried.contains(pod)
    }

    /// Notes that something was heard of a pod that still waits. That we nominated it is no such news.
    pub(crate) fn heard_of(&mut self, before: Option<&PodFacts>, pod: &PodFacts) {
        let is_news = before.is_some_and(|old| old.uid == pod.uid && old.is_nominated == pod.is_nominated);
        if is_news && self.is_open_to(&pod.key) {
            self.tried.insert(pod.key.clone());
        }
    }

    fn is_open_to(&self, pod: &PodKey) -> bool {
        let node = self.seats.get(pod).and_then(|seat| self.node_of_seat(seat));
        node.is_some_and(|node| !node.taints.iter().any(is_ephemeral_taint))
    }

    fn node_of_seat(&self, seat: &PlaceId) -> Option<&Arc<NodeFacts>> {
        match seat {
            PlaceId::Claim(name) => self.node_of(self.claims.get(name)?),
            PlaceId::Node(name) => self.nodes.get(name),
        }
    }

    /// Remembers that this pod is nominated by us, not by a scheduler that makes room for it: it still needs the place.
    pub fn keep_seat(&mut self, pod: &PodFacts) {
        self.kept.insert(pod.key.clone(), Text::clone(&pod.uid));
    }

    /// Whether pods wait for a place that was chosen for them.
    pub fn has_seats(&self) -> bool {
        !self.seats.is_empty()
    }

    /// Whether we should find a place for the pod.
    pub(crate) fn needs_place(&self, pod: &PodFacts) -> bool {
        pod.is_provisionable() || (pod.is_stranded() && self.kept.get(&pod.key) == Some(&pod.uid))
    }

    /// Where these pods were to go. The place of a claim becomes that of its node once there is one.
    pub(crate) fn seats_of(&self, pending: &[PendingPod]) -> BTreeMap<PodKey, PlaceId> {
        if self.seats.is_empty() {
            return BTreeMap::new();
        }
        let place = |seat: &PlaceId| match seat {
            PlaceId::Claim(_) => {
                self.node_of_seat(seat).map_or_else(|| seat.clone(), |node| PlaceId::Node(node.name.clone()))
            }
            PlaceId::Node(_) => seat.clone(),
        };
        pending.iter().filter_map(|pod| Some((pod.key.clone(), place(self.seats.get(&pod.key)?)))).collect()
    }

    /// Whether it is no news that this pod still waits: it asks for the same as before, and the machine that was chosen
    /// for it is on its way.
    ///
    /// The scheduler tries every waiting pod again with each node that comes, and says each time that it failed. Were
    /// that news, a plan would be put off again and again, also for those who need another one.
    pub(crate) fn is_expected_to_wait(&self, before: Option<&PodFacts>, pod: &PodFacts) -> bool {
        before.is_some_and(|old| old.uid == pod.uid && self.needs_place(old) && old.class == pod.class)
            && self.seats.get(&pod.key).is_some_and(|seat| self.is_on_its_way(seat))
    }

    /// Pods that still wait for the machine of this claim.
    pub(crate) fn seated_on(&self, claim: &ClaimName) -> impl Iterator<Item = Wake> {
        let is_there = move |seat: &PlaceId| matches!(seat, PlaceId::Claim(name) if name == claim);
        let seated = self.seats.iter().filter(move |(_, seat)| is_there(seat)).map(|(pod, _)| pod);
        seated.filter(|pod| self.waiting.contains(*pod)).cloned().map(Wake::Waiting)
    }

    /// Whether nobody could be on that place yet.
    fn is_on_its_way(&self, seat: &PlaceId) -> bool {
        let node = match seat {
            PlaceId::Claim(name) => match self.claims.get(name) {
                Some(claim) if !is_going(claim) => self.node_of(claim),
                _ => return false,
            },
            PlaceId::Node(name) => match self.nodes.get(name) {
                None => return false,
                found => found,
            },
        };
        node.is_none_or(|node| node.taints.iter().any(is_ephemeral_taint))
    }
}
