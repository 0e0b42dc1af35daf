//! Volumes that are attached to nodes: a node that goes waits for those of pods that left it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::lower::{AttachmentFacts, PodFacts};
use model::{NodeName, Text};

use crate::change::Wake;
use crate::cluster::Cluster;
use crate::storage::remove_from;

/// VolumeAttachments by name and by node.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    known: BTreeMap<Text, Arc<AttachmentFacts>>,
    by_node: BTreeMap<NodeName, BTreeSet<Text>>,
}

impl Attachments {
    pub(crate) fn apply(&mut self, attachment: Arc<AttachmentFacts>) -> Vec<Wake> {
        let mut wakes = self.remove(&attachment.name);
        wakes.push(Wake::Node(attachment.node.clone()));
        self.by_node.entry(attachment.node.clone()).or_default().insert(Text::clone(&attachment.name));
        self.known.insert(Text::clone(&attachment.name), attachment);
        wakes
    }

    pub(crate) fn remove(&mut self, name: &Text) -> Vec<Wake> {
        let Some(before) = self.known.remove(name) else { return Vec::new() };
        remove_from(&mut self.by_node, &before.node, name);
        vec![Wake::Node(before.node.clone())]
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = Text> {
        self.known.keys().cloned()
    }
}

impl Cluster {
    /// Attachments of a node in the order of their names.
    pub fn attachments_on(&self, node: &NodeName) -> impl Iterator<Item = &Arc<AttachmentFacts>> {
        let names = self.attachments.by_node.get(node).into_iter().flatten();
        names.filter_map(|name| self.attachments.known.get(name))
    }

    /// The PersistentVolumes that a pod uses, as far as its claims have one.
    pub fn volumes_of(&self, pod: &PodFacts) -> impl Iterator<Item = &Text> {
        let claims = pod.volume_claims.iter().map(|name| (Text::clone(&pod.key.namespace), Text::clone(name)));
        claims.filter_map(|claim| self.storage.claims.get(&claim)?.volume.as_ref())
    }
}
