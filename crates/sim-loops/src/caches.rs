//! What the loops know: every object they care about, decoded once, with indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use model::{Resources, Text};
use serde::de::DeserializeOwned;
use sim::{Change, StoreEvent};

use crate::key::Key;
use crate::machine::Machine;
use crate::pods::{controller_uid, is_bound, is_deleting, is_finished, node_name, phase};
use crate::requests::requests;
use crate::taint_eviction::no_execute;

/// An object before and after a change; `None` is absence.
#[derive(Clone, Debug)]
pub(crate) struct Moved<K> {
    pub(crate) key: Key,
    pub(crate) old: Option<Arc<K>>,
    pub(crate) new: Option<Arc<K>>,
}

/// A change that the caches took in.
#[derive(Clone, Debug)]
pub(crate) enum Noted {
    Pod(Moved<Pod>),
    Node(Moved<Node>),
    ReplicaSet(Moved<ReplicaSet>),
    Deployment(Moved<Deployment>),
    DaemonSet(Moved<DaemonSet>),
    StatefulSet(Moved<StatefulSet>),
    Job(Moved<Job>),
    Budget(Moved<PodDisruptionBudget>),
    Namespace(Moved<Namespace>),
    ServiceAccount(Moved<ServiceAccount>),
    /// Something that decides where volumes can be used.
    Storage,
    /// An object of a kind that no loop but the garbage collector looks at.
    Other,
}

/// Objects of one kind.
pub(crate) type Shelf<K> = BTreeMap<Key, Arc<K>>;

/// A pod, and when this process first saw it in each stage. The API's own times have only whole seconds.
#[derive(Clone, Debug)]
pub(crate) struct KnownPod {
    pub(crate) pod: Arc<Pod>,
    /// What it asks for in all.
    pub(crate) requests: Arc<Resources>,
    /// The order in which pods were first seen.
    pub(crate) arrival: u64,
    pub(crate) bound_at: Option<Timestamp>,
    pub(crate) running_at: Option<Timestamp>,
    pub(crate) deleting_at: Option<Timestamp>,
}

/// All that the loops know. Only [`Caches::apply`] and the orders of the outside change it.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    pub(crate) pods: BTreeMap<Key, Arc<KnownPod>>,
    pub(crate) nodes: BTreeMap<Text, Arc<Node>>,
    pub(crate) replica_sets: Shelf<ReplicaSet>,
    pub(crate) deployments: Shelf<Deployment>,
    pub(crate) daemon_sets: Shelf<DaemonSet>,
    pub(crate) stateful_sets: Shelf<StatefulSet>,
    pub(crate) jobs: Shelf<Job>,
    pub(crate) budgets: Shelf<PodDisruptionBudget>,
    pub(crate) namespaces: Shelf<Namespace>,
    pub(crate) service_accounts: Shelf<ServiceAccount>,
    pub(crate) claims: Shelf<PersistentVolumeClaim>,
    pub(crate) volumes: Shelf<PersistentVolume>,
    pub(crate) storage_classes: Shelf<StorageClass>,
    pub(crate) csi_nodes: Shelf<CSINode>,
    /// Machines whose kubelet this process plays, by node name.
    pub(crate) machines: BTreeMap<Text, Machine>,
    /// When a node that still has pods was seen to be gone.
    pub(crate) node_gone_at: BTreeMap<Text, Timestamp>,
    /// When the last change of a node's status was seen: its last sign of life if nobody plays its kubelet.
    pub(crate) node_seen_at: BTreeMap<Text, Timestamp>,
    /// When a node was first seen with its present `NoExecute` taints.
    pub(crate) no_execute_seen_at: BTreeMap<Text, Timestamp>,
    // The pods themselves and not only their keys: those of a node or a controller are read far more often than they
    // change, and with a hundred thousand pods each look-up costs more than the rest.
    pods_by_node: BTreeMap<Text, BTreeMap<Key, Arc<KnownPod>>>,
    pods_by_controller: BTreeMap<Text, BTreeMap<Key, Arc<KnownPod>>>,
    pods_without_controller: BTreeSet<Key>,
    replica_sets_by_controller: BTreeMap<Text, BTreeSet<Key>>,
    arrivals: u64,
}

impl Caches {
    /// Takes one change in; `None` for an object that cannot be read, which the API does not let in.
    pub(crate) fn apply(&mut self, event: &StoreEvent, now: Timestamp) -> Option<Noted> {
        let noted = match (event.key.group.as_str(), event.key.resource.as_str()) {
            ("", "pods") => self.apply_pod(event, now)?,
            ("", "nodes") => self.apply_node(event, now)?,
            ("apps", "replicasets") => self.apply_replica_set(event)?,
            ("apps", "deployments") => Noted::Deployment(put(&mut self.deployments, event)?),
            ("apps", "daemonsets") => Noted::DaemonSet(put(&mut self.daemon_sets, event)?),
            ("apps", "statefulsets") => Noted::StatefulSet(put(&mut self.stateful_sets, event)?),
            ("batch", "jobs") => Noted::Job(put(&mut self.jobs, event)?),
            ("policy", "poddisruptionbudgets") => Noted::Budget(put(&mut self.budgets, event)?),
            ("", "namespaces") => Noted::Namespace(put(&mut self.namespaces, event)?),
            ("", "serviceaccounts") => Noted::ServiceAccount(put(&mut self.service_accounts, event)?),
            ("", "persistentvolumeclaims") => {
                put(&mut self.claims, event)?;
                Noted::Storage
            }
            ("", "persistentvolumes") => {
                put(&mut self.volumes, event)?;
                Noted::Storage
            }
            ("storage.k8s.io", "storageclasses") => {
                put(&mut self.storage_classes, event)?;
                Noted::Storage
            }
            ("storage.k8s.io", "csinodes") => {
                put(&mut self.csi_nodes, event)?;
                Noted::Storage
            }
            _ => Noted::Other,
        };
        Some(noted)
    }

    fn apply_pod(&mut self, event: &StoreEvent, now: Timestamp) -> Option<Noted> {
        let key = key_of(event);
        let before = self.pods.remove(&key);
        let old = before.as_ref().map(|known| known.pod.clone());
        if let Some(old) = &old {
            self.unindex_pod(&key, old);
        }
        if event.change == Change::Deleted {
            return Some(Noted::Pod(Moved { key, old, new: None }));
        }
        let mut pod: Pod = decode(event)?;
        trim(&mut pod);
        let pod = Arc::new(pod);
        let known = before.filter(|before| before.pod.metadata.uid == pod.metadata.uid);
        if known.is_none() {
            self.arrivals += 1;
        }
        let since = |holds: bool, since: fn(&KnownPod) -> Option<Timestamp>| {
            holds.then(|| known.as_deref().and_then(since).unwrap_or(now))
        };
        let same = known.as_ref().filter(|known| known.pod.spec == pod.spec);
        let known = Arc::new(KnownPod {
            requests: same.map_or_else(|| Arc::new(requests(&pod)), |same| Arc::clone(&same.requests)),
            arrival: known.as_ref().map_or(self.arrivals, |known| known.arrival),
            bound_at: since(is_bound(&pod), |known| known.bound_at),
            running_at: since(phase(&pod) == "Running", |known| known.running_at),
            deleting_at: since(is_deleting(&pod), |known| known.deleting_at),
            pod: Arc::clone(&pod),
        });
        self.index_pod(&key, &known, now);
        self.pods.insert(key.clone(), known);
        Some(Noted::Pod(Moved { key, old, new: Some(pod) }))
    }

    fn index_pod(&mut self, key: &Key, known: &Arc<KnownPod>, now: Timestamp) {
        if let Some(node) = node_name(&known.pod) {
            let node: Text = node.into();
            if !self.nodes.contains_key(&node) {
                self.node_gone_at.entry(node.clone()).or_insert(now);
            }
            self.pods_by_node.entry(node).or_default().insert(key.clone(), Arc::clone(known));
        }
        match controller_uid(&known.pod.metadata) {
            Some(uid) => {
                self.pods_by_controller.entry(uid.into()).or_default().insert(key.clone(), Arc::clone(known));
            }
            None => {
                self.pods_without_controller.insert(key.clone());
            }
        }
    }

    fn unindex_pod(&mut self, key: &Key, pod: &Pod) {
        if let Some(node) = node_name(pod) {
            take_from(&mut self.pods_by_node, node, key);
            if !self.pods_by_node.contains_key(node) {
                self.node_gone_at.remove(node);
            }
        }
        match controller_uid(&pod.metadata) {
            Some(uid) => take_from(&mut self.pods_by_controller, uid, key),
            None => {
                self.pods_without_controller.remove(key);
            }
        }
    }

    fn apply_node(&mut self, event: &StoreEvent, now: Timestamp) -> Option<Noted> {
        let key = key_of(event);
        let name = key.name.clone();
        let old = self.nodes.remove(&name);
        if event.change == Change::Deleted {
            self.node_seen_at.remove(&name);
            self.no_execute_seen_at.remove(&name);
            self.machines.remove(&name);
            if self.pods_by_node.contains_key(&name) {
                self.node_gone_at.insert(name, now);
            }
            return Some(Noted::Node(Moved { key, old, new: None }));
        }
        let node: Arc<Node> = Arc::new(decode(event)?);
        self.nodes.insert(name.clone(), node.clone());
        self.node_gone_at.remove(&name);
        if old.as_ref().is_none_or(|old| old.status != node.status) {
            self.node_seen_at.insert(name.clone(), now);
        }
        if old.as_ref().is_none_or(|old| !no_execute(old).eq(no_execute(&node))) {
            self.no_execute_seen_at.insert(name.clone(), now);
        }
        if crate::machine::is_fake(&node) {
            self.machines.entry(name.clone()).or_insert_with(|| Machine::registered(now));
        }
        if let Some(machine) = self.machines.get_mut(&name) {
            machine.registered_at.get_or_insert(now);
        }
        Some(Noted::Node(Moved { key, old, new: Some(node) }))
    }

    fn apply_replica_set(&mut self, event: &StoreEvent) -> Option<Noted> {
        let moved = put(&mut self.replica_sets, event)?;
        if let Some(uid) = moved.old.as_ref().and_then(|old| controller_uid(&old.metadata)) {
            drop_from(&mut self.replica_sets_by_controller, uid, &moved.key);
        }
        if let Some(uid) = moved.new.as_ref().and_then(|new| controller_uid(&new.metadata)) {
            self.replica_sets_by_controller.entry(uid.into()).or_default().insert(moved.key.clone());
        }
        Some(Noted::ReplicaSet(moved))
    }

    /// The pods bound to a node, in the order of their keys.
    pub(crate) fn pods_on(&self, node: &str) -> impl Iterator<Item = (&Key, &KnownPod)> {
        known(self.pods_by_node.get(node).into_iter().flatten())
    }

    /// Nodes that are gone but still have pods.
    pub(crate) fn is_node_gone(&self, node: &str) -> bool {
        !self.nodes.contains_key(node)
    }

    /// The pods that a controller owns, in the order of their keys.
    pub(crate) fn pods_of(&self, uid: &str) -> impl Iterator<Item = (&Key, &KnownPod)> {
        known(self.pods_by_controller.get(uid).into_iter().flatten())
    }

    /// The pods of a namespace that no controller owns.
    pub(crate) fn orphan_pods(&self, namespace: &str) -> impl Iterator<Item = (&Key, &KnownPod)> {
        let all = self.pods_without_controller.range(Key::new(namespace, "")..);
        let namespace: Text = namespace.into();
        known(all.take_while(move |key| key.namespace == namespace).filter_map(|key| self.pods.get_key_value(key)))
    }

    /// The pods of a namespace.
    pub(crate) fn pods_in(&self, namespace: &str) -> impl Iterator<Item = (&Key, &KnownPod)> {
        let namespace: Text = namespace.into();
        known(self.pods.range(Key::new(namespace.clone(), "")..).take_while(move |(key, _)| key.namespace == namespace))
    }

    /// The ReplicaSets that a controller owns.
    pub(crate) fn replica_sets_of(&self, uid: &str) -> Vec<Arc<ReplicaSet>> {
        let keys = self.replica_sets_by_controller.get(uid).into_iter().flatten();
        keys.filter_map(|key| self.replica_sets.get(key).cloned()).collect()
    }

    /// The pods of a node that hold room there: those that have not ended.
    pub(crate) fn active_pods_on(&self, node: &str) -> impl Iterator<Item = (&Key, &KnownPod)> {
        self.pods_on(node).filter(|(_, known)| !is_finished(&known.pod))
    }
}

/// Drops what no loop looks at: with tens of thousands of pods, most of the memory would hold it. Pods are only ever
/// patched, never written back whole.
fn trim(pod: &mut Pod) {
    pod.metadata.managed_fields = None;
    if let Some(spec) = &mut pod.spec {
        if let Some(volumes) = &mut spec.volumes {
            volumes.retain(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some());
            volumes.shrink_to_fit();
        }
        for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
            container.volume_mounts = None;
            container.env = None;
            container.command = None;
            container.args = None;
            container.termination_message_path = None;
            container.termination_message_policy = None;
        }
    }
    if let Some(status) = &mut pod.status {
        status.host_ips = None;
        status.pod_ips = None;
        for container in status.container_statuses.iter_mut().flatten() {
            container.container_id = None;
            container.image = String::new();
            container.image_id = String::new();
            container.state = None;
        }
    }
}

fn known<'a>(
    pods: impl Iterator<Item = (&'a Key, &'a Arc<KnownPod>)>,
) -> impl Iterator<Item = (&'a Key, &'a KnownPod)> {
    pods.map(|(key, known)| (key, &**known))
}

fn key_of(event: &StoreEvent) -> Key {
    Key::new(event.key.namespace.as_deref().unwrap_or(""), event.key.name.as_str())
}

fn decode<K: DeserializeOwned>(event: &StoreEvent) -> Option<K> {
    serde_json::from_slice(&event.object).ok()
}

fn put<K: DeserializeOwned>(shelf: &mut Shelf<K>, event: &StoreEvent) -> Option<Moved<K>> {
    let key = key_of(event);
    if event.change == Change::Deleted {
        let old = shelf.remove(&key);
        return Some(Moved { key, old, new: None });
    }
    let new: Arc<K> = Arc::new(decode(event)?);
    let old = shelf.insert(key.clone(), new.clone());
    Some(Moved { key, old, new: Some(new) })
}

fn take_from<V>(index: &mut BTreeMap<Text, BTreeMap<Key, V>>, of: &str, key: &Key) {
    if let Some(found) = index.get_mut(of) {
        found.remove(key);
        if found.is_empty() {
            index.remove(of);
        }
    }
}

fn drop_from(index: &mut BTreeMap<Text, BTreeSet<Key>>, of: &str, key: &Key) {
    if let Some(keys) = index.get_mut(of) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(of);
        }
    }
}
