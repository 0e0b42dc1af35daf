//! Capacity buffers: what they refer to, the room that is kept for each, and where it was found.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::CapacityBuffer;
use api::capacity_buffer::ScalableReference;
use api::lower::{Headroom, PodTemplateFacts, WorkloadFacts, WorkloadKind};
use model::{BufferKey, ClaimName, NodeName, PendingPod, PlaceId, Text};

use crate::change::{Key, Kind, Object, Wake, buffer_key};
use crate::cluster::{Cluster, Version};

/// Everything about buffers.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    is_used: bool,
    known: BTreeMap<BufferKey, Arc<CapacityBuffer>>,
    templates: BTreeMap<(Text, Text), Arc<PodTemplateFacts>>,
    workloads: BTreeMap<(WorkloadKind, Text, Text), Arc<WorkloadFacts>>,
    /// The room to keep.
    headroom: BTreeMap<BufferKey, Headroom>,
    /// For how many pods room was found where, by the last plan.
    held: BTreeMap<PlaceId, usize>,
}

impl Buffers {
    /// The kinds that have to be listed.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = Kind> + use<> {
        let is_used = self.is_used;
        let workloads = WorkloadKind::ALL.into_iter().map(Kind::Workload);
        [Kind::Buffer, Kind::PodTemplate].into_iter().chain(workloads).filter(move |_| is_used)
    }

    pub(crate) fn keys(&self, kind: Kind) -> Vec<Key> {
        match kind {
            Kind::Buffer => self.known.keys().cloned().map(Key::Buffer).collect(),
            Kind::PodTemplate => {
                self.templates.keys().cloned().map(|(space, name)| Key::PodTemplate(space, name)).collect()
            }
            Kind::Workload(wanted) => {
                let own = self.workloads.values().filter(|found| found.kind == wanted);
                own.filter_map(|found| Object::Workload(Arc::clone(found)).key()).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn apply_template(&mut self, template: Arc<PodTemplateFacts>) -> Vec<Wake> {
        let (namespace, name) = (template.namespace.clone(), template.name.clone());
        let before = self.templates.insert((namespace.clone(), name.clone()), Arc::clone(&template));
        if before.as_ref() == Some(&template) { Vec::new() } else { self.users_of_template(&namespace, &name) }
    }

    pub(crate) fn remove_template(&mut self, namespace: &Text, name: &Text) -> Vec<Wake> {
        self.templates.remove(&(namespace.clone(), name.clone()));
        self.users_of_template(namespace, name)
    }

    /// A workload that only reports how far it is wakes nobody.
    pub(crate) fn apply_workload(&mut self, workload: Arc<WorkloadFacts>) -> Vec<Wake> {
        let (kind, namespace, name) = (workload.kind, workload.namespace.clone(), workload.name.clone());
        let before = self.workloads.insert((kind, namespace.clone(), name.clone()), Arc::clone(&workload));
        if before.as_ref() == Some(&workload) { Vec::new() } else { self.users_of_workload(kind, &namespace, &name) }
    }

    pub(crate) fn remove_workload(&mut self, kind: WorkloadKind, namespace: &Text, name: &Text) -> Vec<Wake> {
        self.workloads.remove(&(kind, namespace.clone(), name.clone()));
        self.users_of_workload(kind, namespace, name)
    }

    fn users_of_template(&self, namespace: &Text, name: &Text) -> Vec<Wake> {
        self.users(namespace, |buffer| buffer.spec.pod_template_ref.as_ref().is_some_and(|found| *found.name == **name))
    }

    fn users_of_workload(&self, kind: WorkloadKind, namespace: &Text, name: &Text) -> Vec<Wake> {
        let refers = |found: &ScalableReference| found.kind == kind.as_str() && *found.name == **name;
        self.users(namespace, |buffer| buffer.spec.scalable_ref.as_ref().is_some_and(refers))
    }

    fn users(&self, namespace: &Text, refers: impl Fn(&CapacityBuffer) -> bool) -> Vec<Wake> {
        let own = self.known.iter().filter(|(key, _)| key.namespace == *namespace);
        own.filter(|(_, buffer)| refers(buffer)).map(|(key, _)| Wake::Buffer(key.clone())).collect()
    }
}

impl Cluster {
    /// The same cluster with buffers, which it looks at from now on.
    #[must_use]
    pub fn with_buffers(mut self) -> Self {
        self.buffers.is_used = true;
        self
    }

    pub(crate) fn apply_buffer(&mut self, buffer: Arc<CapacityBuffer>) -> Vec<Wake> {
        let Some(key) = buffer_key(&buffer) else { return Vec::new() };
        let version = |buffer: &CapacityBuffer| {
            Version::new(buffer.metadata.uid.as_deref(), buffer.metadata.resource_version.as_deref())
        };
        let known = self.buffers.known.get(&key).map(|known| version(known));
        if !self.is_news(known, version(&buffer)) {
            return Vec::new();
        }
        self.buffers.known.insert(key.clone(), buffer);
        vec![Wake::Buffer(key)]
    }

    pub(crate) fn remove_buffer(&mut self, key: &BufferKey) -> Vec<Wake> {
        let Some(buffer) = self.buffers.known.remove(key) else { return Vec::new() };
        self.gone.remember(buffer.metadata.uid.as_deref().unwrap_or_default());
        self.buffers.headroom.remove(key);
        vec![Wake::Buffer(key.clone())]
    }

    /// Whether there may be something to plan for: pods that wait, or buffers.
    pub fn wants_room(&self) -> bool {
        self.waiting().next().is_some() || !self.buffers.known.is_empty()
    }

    /// A buffer.
    pub fn buffer(&self, key: &BufferKey) -> Option<&Arc<CapacityBuffer>> {
        self.buffers.known.get(key)
    }

    /// Buffers in the order of their namespaces and names.
    pub fn buffers(&self) -> impl Iterator<Item = (&BufferKey, &Arc<CapacityBuffer>)> {
        self.buffers.known.iter()
    }

    /// A PodTemplate, as far as buffers are in use.
    pub fn pod_template(&self, namespace: &str, name: &str) -> Option<&Arc<PodTemplateFacts>> {
        self.buffers.templates.get(&(Text::from(namespace), Text::from(name)))
    }

    /// A workload, as far as buffers are in use.
    pub fn workload(&self, kind: WorkloadKind, namespace: &str, name: &str) -> Option<&Arc<WorkloadFacts>> {
        self.buffers.workloads.get(&(kind, Text::from(namespace), Text::from(name)))
    }

    /// The room that is to be kept for a buffer.
    pub fn headroom(&self, key: &BufferKey) -> Option<&Headroom> {
        self.buffers.headroom.get(key)
    }

    /// Says what room is to be kept for a buffer; answers whether that is news.
    pub fn set_headroom(&mut self, key: &BufferKey, headroom: Option<Headroom>) -> bool {
        if self.buffers.headroom.get(key) == headroom.as_ref() {
            return false;
        }
        match headroom {
            Some(headroom) => drop(self.buffers.headroom.insert(key.clone(), headroom)),
            None => drop(self.buffers.headroom.remove(key)),
        }
        self.revision += 1;
        true
    }

    /// Says where room was found, for how many pods; answers whether a place is free of it that held some before.
    pub fn set_held(&mut self, held: BTreeMap<PlaceId, usize>) -> bool {
        let before = std::mem::replace(&mut self.buffers.held, held);
        before.keys().any(|place| !self.buffers.held.contains_key(place))
    }

    /// Whether room for pods of buffers is kept on a machine.
    pub fn holds_headroom(&self, claim: &ClaimName, node: &NodeName) -> bool {
        let held = &self.buffers.held;
        !held.is_empty()
            && (held.contains_key(&PlaceId::Node(node.clone())) || held.contains_key(&PlaceId::Claim(claim.clone())))
    }

    /// Pods that stand for the room to keep, as far as it can be planned.
    pub(crate) fn headroom_pods(&self) -> impl Iterator<Item = PendingPod> + '_ {
        let planned = self.buffers.headroom.values().filter(|headroom| headroom.can_be_planned());
        planned.flat_map(|headroom| headroom.pods(|key| self.pods.contains_key(key)))
    }
}
