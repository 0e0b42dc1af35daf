//! Complete lists: what is not in one is gone, unless we ourselves have just made it.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::lower::GroupingKind;

use crate::change::{Key, Kind, Object, Wake};
use crate::cluster::Cluster;

impl Cluster {
    /// A list of one kind is about to be asked for. What we learn from our own writes from now on may be missing in
    /// it, because the list may have been taken before the write.
    pub fn begin_list(&mut self, kind: Kind) {
        self.listing.insert(kind, BTreeSet::new());
    }

    /// Folds the answer to one of our own writes.
    pub fn learn(&mut self, object: Object) -> Vec<Wake> {
        if let Some(key) = object.key()
            && let Some(learnt) = self.listing.get_mut(&key.kind())
        {
            learnt.insert(key);
        }
        self.apply(object)
    }

    /// After a complete list of one kind: forgets what was not in it. Should something that is kept be gone after all,
    /// the watch that follows the list says so.
    pub fn finish_list(&mut self, kind: Kind, present: &BTreeSet<Key>) -> Vec<Wake> {
        self.listed.insert(kind);
        let learnt = self.listing.remove(&kind).unwrap_or_default();
        let absent = self.keys(kind).into_iter().filter(|key| !present.contains(key) && !learnt.contains(key));
        let absent: Vec<Key> = absent.collect();
        absent.iter().flat_map(|key| self.remove(key)).collect()
    }

    /// Whether every kind was listed once; before that, what is missing may only be unseen.
    pub fn is_complete(&self) -> bool {
        self.wanted().is_subset(&self.listed)
    }

    /// The kinds that were not listed yet.
    pub fn unlisted(&self) -> impl Iterator<Item = Kind> {
        self.wanted().into_iter().filter(|kind| !self.listed.contains(kind))
    }

    /// The kinds that have to be listed.
    pub fn wanted(&self) -> BTreeSet<Kind> {
        let groupings = GroupingKind::ALL.into_iter().filter(|_| !self.groupings.defaults.is_empty());
        let overlays = self.overlays.are_used().then_some(Kind::Overlay);
        let buffers = self.buffers.wanted();
        Kind::ALWAYS.into_iter().chain(overlays).chain(buffers).chain(groupings.map(Kind::Grouping)).collect()
    }

    fn keys(&self, kind: Kind) -> Vec<Key> {
        match kind {
            Kind::Pod => self.pods.keys().cloned().map(Key::Pod).collect(),
            Kind::Node => self.nodes.keys().cloned().map(Key::Node).collect(),
            Kind::Claim => self.claims.keys().cloned().map(Key::Claim).collect(),
            Kind::Pool => self.pools.keys().cloned().map(Key::Pool).collect(),
            Kind::NodeClass => {
                self.node_classes.keys().cloned().map(|(kind, name)| Key::NodeClass(kind, name)).collect()
            }
            Kind::Daemon => self.daemons.sets.keys().cloned().map(Key::Daemon).collect(),
            Kind::Budget => self.budgets.keys().cloned().map(|(space, name)| Key::Budget(space, name)).collect(),
            Kind::VolumeClaim => {
                self.storage.claims.keys().cloned().map(|(space, name)| Key::VolumeClaim(space, name)).collect()
            }
            Kind::Volume => self.storage.volumes.keys().cloned().map(Key::Volume).collect(),
            Kind::StorageClass => self.storage.classes.keys().cloned().map(Key::StorageClass).collect(),
            Kind::CsiNode => self.storage.nodes.keys().cloned().map(Key::CsiNode).collect(),
            Kind::Attachment => self.attachments.names().map(Key::Attachment).collect(),
            Kind::Namespace => self.namespaces.keys().cloned().map(Key::Namespace).collect(),
            Kind::Overlay => self.overlays.names().map(Key::Overlay).collect(),
            Kind::Buffer | Kind::PodTemplate | Kind::Workload(_) => self.buffers.keys(kind),
            Kind::Grouping(wanted) => {
                let own = self.groupings.known.values().filter(|found| found.kind == wanted);
                own.filter_map(|found| Object::Grouping(Arc::clone(found)).key()).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{ClaimName, Vocabulary};
    use serde_json::json;

    use super::*;
    use crate::ManagedKind;

    fn claim(name: &str) -> Object {
        let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name, "uid": name},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}}});
        Object::Claim(Arc::new(serde_json::from_value(claim).unwrap()))
    }

    /// A claim that is created while a list is under way is not in the list, and is not gone: forgetting it would
    /// launch another for the same pods.
    #[test]
    fn what_we_made_during_a_list_stays() {
        let managed = ManagedKind { group: "g".to_owned(), kind: "K".to_owned() };
        let mut cluster = Cluster::new(Arc::new(Vocabulary::core()), managed);
        let names = |cluster: &Cluster| cluster.claims().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
        cluster.learn(claim("before"));
        cluster.begin_list(Kind::Claim);
        cluster.learn(claim("during"));
        cluster.apply(claim("listed"));
        let present = BTreeSet::from([Key::Claim(ClaimName::new("listed"))]);
        cluster.finish_list(Kind::Claim, &present);
        assert_eq!(names(&cluster), ["during", "listed"]);
        cluster.begin_list(Kind::Claim);
        cluster.finish_list(Kind::Claim, &present);
        assert_eq!(names(&cluster), ["listed"], "the next list knows better");
    }
}
