//! Nodes and claims, and which belong together.

use std::sync::Arc;

use api::NodeClaim;
use api::lower::NodeFacts;
use model::{ClaimName, NodeName, PlaceId, ProviderId, Text};

use crate::change::Wake;
use crate::cluster::{Cluster, Version, pool_name, provider_of};
use crate::places::is_going;

impl Cluster {
    pub(crate) fn apply_node(&mut self, node: Arc<NodeFacts>) -> Vec<Wake> {
        let version = |node: &NodeFacts| Version::new(Some(&node.uid), Some(&node.resource_version));
        let known = self.nodes.get(&node.name).map(|known| version(known));
        if !self.is_news(known, version(&node)) {
            return Vec::new();
        }
        let mut wakes = vec![Wake::Node(node.name.clone())];
        match self.nodes.insert(node.name.clone(), Arc::clone(&node)) {
            Some(before) => wakes.extend(self.unlink_node(&before)),
            None => self.count_pods_on(&node.name),
        }
        self.known_places.forget_node(&node.name);
        if let Some(provider) = &node.provider_id {
            self.nodes_by_provider.entry(provider.text()).or_default().insert(node.name.clone());
            self.forget_places_of(provider.as_str());
        }
        wakes.extend(self.wakes_of_node(&node));
        wakes
    }

    pub(crate) fn remove_node(&mut self, name: &NodeName) -> Vec<Wake> {
        let Some(node) = self.nodes.remove(name) else { return Vec::new() };
        self.gone.remember(&node.uid);
        self.discount_pods_on(name);
        self.known_places.forget_node(name);
        self.nominations.remove(&PlaceId::Node(name.clone()));
        let mut wakes = self.wakes_of_node(&node);
        wakes.extend(self.unlink_node(&node));
        wakes
    }

    fn unlink_node(&mut self, node: &NodeFacts) -> Vec<Wake> {
        let Some(provider) = &node.provider_id else { return Vec::new() };
        self.forget_places_of(provider.as_str());
        if let Some(names) = self.nodes_by_provider.get_mut(provider.as_str()) {
            names.remove(&node.name);
            if names.is_empty() {
                self.nodes_by_provider.remove(provider.as_str());
            }
        }
        self.wakes_of_provider(provider)
    }

    fn wakes_of_node(&self, node: &NodeFacts) -> Vec<Wake> {
        node.provider_id.as_ref().map(|provider| self.wakes_of_provider(provider)).unwrap_or_default()
    }

    fn wakes_of_provider(&self, provider: &ProviderId) -> Vec<Wake> {
        self.claims_by_provider.get(provider.as_str()).into_iter().flatten().cloned().map(Wake::Claim).collect()
    }

    pub(crate) fn apply_claim(&mut self, claim: Arc<NodeClaim>) -> Vec<Wake> {
        let Some(name) = claim.metadata.name.as_deref().map(ClaimName::new) else { return Vec::new() };
        let version =
            |claim: &NodeClaim| Version::new(claim.metadata.uid.as_deref(), claim.metadata.resource_version.as_deref());
        let known = self.claims.get(&name).map(|known| version(known));
        if !self.is_managed(&claim.spec.node_class_ref) || !self.is_news(known, version(&claim)) {
            return Vec::new();
        }
        let before = self.claims.insert(name.clone(), Arc::clone(&claim));
        if let Some(before) = &before {
            self.unlink_claim(&name, before);
        }
        self.ledger.add(&name, &claim);
        self.known_places.forget_claim(&name);
        if let Some(provider) = provider_of(&claim) {
            self.claims_by_provider.entry(Text::from(provider)).or_default().insert(name.clone());
            self.forget_places_of(provider);
        }
        let mut wakes = self.wakes_of_claim(&name, &claim);
        if is_going(&claim) && before.is_some_and(|before| !is_going(&before)) {
            wakes.extend(self.seated_on(&name));
        }
        wakes
    }

    pub(crate) fn remove_claim(&mut self, name: &ClaimName) -> Vec<Wake> {
        let Some(claim) = self.claims.remove(name) else { return Vec::new() };
        self.gone.remember(claim.metadata.uid.as_deref().unwrap_or_default());
        self.nominations.remove(&PlaceId::Claim(name.clone()));
        self.unlink_claim(name, &claim);
        let mut wakes = self.wakes_of_claim(name, &claim);
        if !is_going(&claim) {
            wakes.extend(self.seated_on(name));
        }
        wakes
    }

    fn unlink_claim(&mut self, name: &ClaimName, claim: &NodeClaim) {
        self.ledger.take(name, claim);
        self.known_places.forget_claim(name);
        let Some(provider) = provider_of(claim) else { return };
        self.forget_places_of(provider);
        if let Some(names) = self.claims_by_provider.get_mut(provider) {
            names.remove(name);
            if names.is_empty() {
                self.claims_by_provider.remove(provider);
            }
        }
    }

    fn wakes_of_claim(&self, name: &ClaimName, claim: &NodeClaim) -> Vec<Wake> {
        let node = provider_of(claim).into_iter().flat_map(|provider| self.nodes_by_provider.get(provider));
        let nodes = node.flatten().cloned().map(Wake::Node);
        let pool = pool_name(claim).map(Wake::Pool);
        [Wake::Claim(name.clone())].into_iter().chain(nodes).chain(pool).collect()
    }

    /// What is known of an instance changed: the places made from its nodes and claims are out of date.
    fn forget_places_of(&mut self, provider: &str) {
        for name in self.nodes_by_provider.get(provider).into_iter().flatten() {
            self.known_places.forget_node(name);
        }
        for name in self.claims_by_provider.get(provider).into_iter().flatten() {
            self.known_places.forget_claim(name);
        }
    }
}
