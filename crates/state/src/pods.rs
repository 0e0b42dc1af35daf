//! Pods: who uses what, who waits, and who runs where.

use std::sync::Arc;

use api::lower::{Owner, PodFacts};
use model::{NodeName, PodKey};

use crate::change::{Kind, Wake};
use crate::cluster::Cluster;

impl Cluster {
    pub(crate) fn apply_pod(&mut self, mut pod: Arc<PodFacts>) -> Vec<Wake> {
        self.share_equal_parts(Arc::make_mut(&mut pod));
        let before = self.pods.insert(pod.key.clone(), Arc::clone(&pod));
        let mut wakes = before.as_ref().map(|old| self.forget_pod(old)).unwrap_or_default();
        self.storage.add_user(&pod);
        self.fold_daemon_pod(before.as_deref(), &pod);
        if let Some(node) = &pod.node {
            self.usage.entry(node.clone()).or_default().add(&pod);
            self.known_places.forget_node(node);
            if self.nodes.contains_key(node) && pod.is_active() {
                self.bound.add(&pod.kind, node);
            }
            wakes.push(Wake::Node(node.clone()));
            let news = |old: &Arc<PodFacts>| {
                old.node != pod.node
                    || old.is_terminal != pod.is_terminal
                    || old.deletion.is_some() != pod.deletion.is_some()
            };
            // A pod that was bound before the first list ended is no news: a restart is no reason to wait anew.
            let is_news = before.as_ref().map_or(self.listed.contains(&Kind::Pod), news);
            if is_news && pod.owner != Owner::DaemonSet {
                wakes.push(Wake::PodMoved(node.clone()));
            }
        }
        if pod.node.is_some() && pod.protection.is_remarkable() {
            self.remarkable.insert(pod.key.clone());
            if before.as_ref().is_none_or(|old| (&old.protection, &old.node) != (&pod.protection, &pod.node)) {
                wakes.push(Wake::Protection(pod.key.clone()));
            }
        }
        if pod.node.is_some() {
            self.kept.remove(&pod.key);
            self.tried.remove(&pod.key);
        }
        if self.needs_place(&pod) {
            self.heard_of(before.as_deref(), &pod);
            self.waiting.insert(pod.key.clone());
            if !self.is_expected_to_wait(before.as_deref(), &pod) {
                wakes.push(Wake::Waiting(pod.key.clone()));
            }
        }
        wakes
    }

    /// Pods of one workload are alike: what they have in common is there once.
    fn share_equal_parts(&mut self, pod: &mut PodFacts) {
        pod.class = self.classes.share(&pod.class);
        pod.kind = self.kinds.share(&pod.kind);
        pod.story.limits = self.limits.share(&pod.story.limits);
        pod.story.owner = pod.story.owner.take().map(|owner| self.owners.share(&owner));
    }

    pub(crate) fn remove_pod(&mut self, key: &PodKey) -> Vec<Wake> {
        let Some(pod) = self.pods.remove(key) else { return Vec::new() };
        self.kept.remove(key);
        self.tried.remove(key);
        if self.daemons.remove_pod(&pod) {
            self.known_places.forget_claims();
        }
        let mut wakes = self.forget_pod(&pod);
        if let Some(node) = &pod.node {
            wakes.push(Wake::PodLeft(node.clone()));
            // A pod without grace goes at once: nobody saw it terminate.
            if pod.is_active() && pod.owner != Owner::DaemonSet {
                wakes.push(Wake::PodMoved(node.clone()));
            }
        }
        wakes
    }

    fn forget_pod(&mut self, pod: &PodFacts) -> Vec<Wake> {
        self.waiting.remove(&pod.key);
        self.remarkable.remove(&pod.key);
        self.classes.release(&pod.class);
        self.kinds.release(&pod.kind);
        self.limits.release(&pod.story.limits);
        pod.story.owner.iter().for_each(|owner| self.owners.release(owner));
        self.storage.remove_user(pod);
        let Some(node) = &pod.node else { return Vec::new() };
        if let Some(usage) = self.usage.get_mut(node) {
            usage.take(pod);
            if usage.pods.is_empty() {
                self.usage.remove(node);
            }
        }
        self.known_places.forget_node(node);
        if self.nodes.contains_key(node) && pod.is_active() {
            self.bound.take(&pod.kind, node);
        }
        vec![Wake::Node(node.clone())]
    }

    /// A new pod of a DaemonSet may show what the next ones will ask for.
    fn fold_daemon_pod(&mut self, before: Option<&PodFacts>, pod: &PodFacts) {
        let another = before.filter(|old| (&old.controller, old.created) != (&pod.controller, pod.created));
        let left = another.is_some_and(|old| self.daemons.remove_pod(old));
        let came = self.daemons.add_pod(pod);
        if left || came {
            self.known_places.forget_claims();
        }
    }

    /// The node is there: pods that are bound to it run.
    pub(crate) fn count_pods_on(&mut self, node: &NodeName) {
        for kind in self.kinds_on(node) {
            self.bound.add(&kind, node);
        }
    }

    /// The node is not there any more, and its pods do not run.
    pub(crate) fn discount_pods_on(&mut self, node: &NodeName) {
        for kind in self.kinds_on(node) {
            self.bound.take(&kind, node);
        }
    }

    fn kinds_on(&self, node: &NodeName) -> Vec<Arc<model::BoundKind>> {
        self.pods_on(node).filter(|pod| pod.is_active()).map(|pod| Arc::clone(&pod.kind)).collect()
    }

    /// Volumes of these pods changed, which may change where they can go or what their node has attached.
    pub(crate) fn volumes_changed(&mut self, users: &[PodKey]) -> Vec<Wake> {
        let mut wakes = Vec::new();
        for key in users {
            if let Some(node) = self.pods.get(key).and_then(|pod| pod.node.as_ref()) {
                self.known_places.forget_node(node);
            }
            if self.waiting.contains(key) {
                wakes.push(Wake::Waiting(key.clone()));
            }
        }
        wakes
    }
}
