//! The index: objects by name, and who belongs to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use api::lower::{BudgetFacts, NodeClassFacts, NodeFacts, PodFacts, UnsupportedVolumes};
use api::scheduler_config::DefaultSpread;
use api::{NodeClaim, NodeClassReference, NodePool, labels};
use jiff::Timestamp;
use model::{
    BoundKind, BoundPods, ClaimName, InstanceType, Labels, NodeName, PlaceId, PodClass, PodKey, PoolName, ProviderId,
    Requirements, Resources, Revision, Text, Vocabulary,
};

use crate::attachments::Attachments;
use crate::buffers::Buffers;
use crate::change::{Key, Kind, Object, Wake};
use crate::daemons::Daemons;
use crate::default_spread::Groupings;
use crate::gone::Gone;
use crate::interned::Interned;
use crate::ledger::Ledger;
use crate::overlays::Overlays;
use crate::places::KnownPlaces;
use crate::storage::Storage;
use crate::usage::Usage;

/// A kind of NodeClass whose pools and claims are ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedKind {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
}

/// A machine at its stage of life.
#[derive(Clone, Debug)]
pub enum Tracked {
    /// A claim whose node has not joined.
    Claimed(Arc<NodeClaim>),
    /// A claim with its node.
    Joined(Arc<NodeClaim>, Arc<NodeFacts>),
    /// A node without a claim of ours: a place for pods, and nothing else.
    Foreign(Arc<NodeFacts>),
}

/// Everything we know about the cluster.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) vocabulary: Arc<Vocabulary>,
    managed: ManagedKind,
    pub(crate) revision: u64,
    pub(crate) pods: BTreeMap<PodKey, Arc<PodFacts>>,
    pub(crate) nodes: BTreeMap<NodeName, Arc<NodeFacts>>,
    pub(crate) claims: BTreeMap<ClaimName, Arc<NodeClaim>>,
    pub(crate) pools: BTreeMap<PoolName, Arc<NodePool>>,
    pub(crate) node_classes: BTreeMap<(String, String), Arc<NodeClassFacts>>,
    pub(crate) daemons: Daemons,
    pub(crate) budgets: BTreeMap<(String, String), Arc<BudgetFacts>>,
    pub(crate) storage: Storage,
    pub(crate) attachments: Attachments,
    pub(crate) groupings: Groupings,
    pub(crate) namespaces: Arc<BTreeMap<Text, Labels>>,
    /// What the provider sells, as it says.
    pub(crate) sold: BTreeMap<PoolName, Arc<[Arc<InstanceType>]>>,
    /// The same once overlays have had their say.
    pub(crate) types: BTreeMap<PoolName, Arc<[Arc<InstanceType>]>>,
    pub(crate) overlays: Overlays,
    pub(crate) buffers: Buffers,
    pub(crate) usage: BTreeMap<NodeName, Usage>,
    /// Pods that run on a node that is there.
    pub(crate) bound: BoundPods,
    pub(crate) waiting: BTreeSet<PodKey>,
    /// Bound pods whose wish not to be disturbed ends some day, or cannot be read.
    pub(crate) remarkable: BTreeSet<PodKey>,
    pub(crate) nodes_by_provider: BTreeMap<Text, BTreeSet<NodeName>>,
    pub(crate) claims_by_provider: BTreeMap<Text, BTreeSet<ClaimName>>,
    pub(crate) ledger: Ledger,
    pub(crate) known_places: KnownPlaces,
    pub(crate) nominations: BTreeMap<PlaceId, Range<Timestamp>>,
    /// Where the last plan put pods that need a place.
    pub(crate) seats: BTreeMap<PodKey, PlaceId>,
    /// Pods that were looked at again after their seats were open to them.
    pub(crate) tried: BTreeSet<PodKey>,
    /// Pods that we nominated to the nodes of their seats, by their uids.
    pub(crate) kept: BTreeMap<PodKey, Text>,
    pub(crate) classes: Interned<PodClass>,
    pub(crate) kinds: Interned<BoundKind>,
    pub(crate) limits: Interned<Resources>,
    pub(crate) owners: Interned<str>,
    pub(crate) listed: BTreeSet<Kind>,
    /// Kinds that are being listed now, with what we learnt of them from our own writes meanwhile.
    pub(crate) listing: BTreeMap<Kind, BTreeSet<Key>>,
    pub(crate) gone: Gone,
}

impl Cluster {
    /// An empty cluster.
    pub fn new(vocabulary: Arc<Vocabulary>, managed: ManagedKind) -> Self {
        Self {
            vocabulary,
            managed,
            revision: 0,
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            claims: BTreeMap::new(),
            pools: BTreeMap::new(),
            node_classes: BTreeMap::new(),
            daemons: Daemons::default(),
            budgets: BTreeMap::new(),
            storage: Storage::default(),
            attachments: Attachments::default(),
            groupings: Groupings::default(),
            namespaces: Arc::default(),
            sold: BTreeMap::new(),
            types: BTreeMap::new(),
            overlays: Overlays::default(),
            buffers: Buffers::default(),
            usage: BTreeMap::new(),
            bound: BoundPods::default(),
            waiting: BTreeSet::new(),
            remarkable: BTreeSet::new(),
            nodes_by_provider: BTreeMap::new(),
            claims_by_provider: BTreeMap::new(),
            ledger: Ledger::default(),
            known_places: KnownPlaces::default(),
            nominations: BTreeMap::new(),
            seats: BTreeMap::new(),
            tried: BTreeSet::new(),
            kept: BTreeMap::new(),
            classes: Interned::default(),
            kinds: Interned::default(),
            limits: Interned::default(),
            owners: Interned::default(),
            listed: BTreeSet::new(),
            listing: BTreeMap::new(),
            gone: Gone::default(),
        }
    }

    /// The same cluster with spread constraints for pods that state none.
    #[must_use]
    pub fn with_default_spread(mut self, defaults: DefaultSpread) -> Self {
        self.groupings.defaults = defaults;
        self
    }

    /// The same cluster with volumes that nodes cannot serve.
    #[must_use]
    pub fn with_unsupported_volumes(mut self, unsupported: UnsupportedVolumes) -> Self {
        self.storage.unsupported = unsupported;
        self
    }

    /// Folds an object as it is now. Answers from our own writes may come before or after the watch: older versions
    /// and objects that are gone are ignored.
    pub fn apply(&mut self, object: Object) -> Vec<Wake> {
        self.revision += 1;
        match object {
            Object::Pod(pod) => self.apply_pod(pod),
            Object::Node(node) => self.apply_node(node),
            Object::Claim(claim) => self.apply_claim(claim),
            Object::Pool(pool) => self.apply_pool(pool),
            Object::NodeClass(class) => {
                let mut wakes = self.pools_of_class(&class.kind, &class.name);
                let generation = class.generation;
                let before = self.node_classes.insert((class.kind.clone(), class.name.clone()), class);
                if before.is_none_or(|before| before.generation != generation) {
                    wakes.extend(self.overlays_concerned());
                }
                wakes
            }
            Object::Daemon(daemon) => {
                if self.daemons.apply(daemon) {
                    self.known_places.forget_claims();
                }
                Vec::new()
            }
            Object::Budget(budget) => {
                self.budgets.insert((budget.namespace.clone(), budget.name.clone()), budget);
                Vec::new()
            }
            Object::VolumeClaim(claim) => {
                let users = self.storage.apply_claim(claim);
                self.volumes_changed(&users)
            }
            Object::Volume(volume) => {
                let mut volume = Arc::unwrap_or_clone(volume);
                volume.alternatives = self.all_meant(volume.alternatives);
                let users = self.storage.users_of_volume(&volume.name);
                self.storage.volumes.insert(volume.name.clone(), Arc::new(volume));
                self.volumes_changed(&users)
            }
            Object::StorageClass(class) => {
                let mut class = Arc::unwrap_or_clone(class);
                class.alternatives = self.all_meant(class.alternatives);
                self.storage.classes.insert(class.name.clone(), Arc::new(class));
                let users = self.storage.all_users();
                self.volumes_changed(&users)
            }
            Object::CsiNode(node) => {
                self.known_places.forget_node(&node.node);
                self.storage.nodes.insert(node.node.clone(), node);
                Vec::new()
            }
            Object::Attachment(attachment) => self.attachments.apply(attachment),
            Object::Namespace(namespace) => {
                Arc::make_mut(&mut self.namespaces).insert(namespace.name, namespace.labels);
                Vec::new()
            }
            Object::Overlay(overlay) => self.apply_overlay(overlay),
            Object::Buffer(buffer) => self.apply_buffer(buffer),
            Object::PodTemplate(template) => self.buffers.apply_template(template),
            Object::Workload(workload) => self.buffers.apply_workload(workload),
            Object::Grouping(found) => {
                self.groupings.known.insert((found.namespace.clone(), found.kind, found.name.clone()), found);
                Vec::new()
            }
        }
    }

    /// Forgets an object that is gone.
    pub fn remove(&mut self, key: &Key) -> Vec<Wake> {
        self.revision += 1;
        match key {
            Key::Pod(key) => self.remove_pod(key),
            Key::Node(name) => self.remove_node(name),
            Key::Claim(name) => self.remove_claim(name),
            Key::Pool(name) => self.remove_pool(name),
            Key::NodeClass(kind, name) => {
                self.node_classes.remove(&(kind.clone(), name.clone()));
                self.pools_of_class(kind, name)
            }
            Key::Daemon(name) => {
                if self.daemons.remove(name) {
                    self.known_places.forget_claims();
                }
                Vec::new()
            }
            Key::Budget(namespace, name) => {
                self.budgets.remove(&(namespace.clone(), name.clone()));
                Vec::new()
            }
            Key::VolumeClaim(namespace, name) => {
                let users = self.storage.remove_claim(&(namespace.clone(), name.clone()));
                self.volumes_changed(&users)
            }
            Key::Volume(name) => {
                self.storage.volumes.remove(name);
                let users = self.storage.users_of_volume(name);
                self.volumes_changed(&users)
            }
            Key::StorageClass(name) => {
                self.storage.classes.remove(name);
                let users = self.storage.all_users();
                self.volumes_changed(&users)
            }
            Key::CsiNode(name) => {
                self.storage.nodes.remove(name);
                self.known_places.forget_node(name);
                Vec::new()
            }
            Key::Attachment(name) => self.attachments.remove(name),
            Key::Namespace(name) => {
                Arc::make_mut(&mut self.namespaces).remove(name);
                Vec::new()
            }
            Key::Overlay(name) => self.remove_overlay(name),
            Key::Buffer(key) => self.remove_buffer(key),
            Key::PodTemplate(namespace, name) => self.buffers.remove_template(namespace, name),
            Key::Workload(kind, namespace, name) => self.buffers.remove_workload(*kind, namespace, name),
            Key::Grouping(kind, namespace, name) => {
                self.groupings.known.remove(&(namespace.clone(), *kind, name.clone()));
                Vec::new()
            }
        }
    }

    /// Each of several sets of requirements with the values that are meant.
    fn all_meant(&self, alternatives: Vec<Requirements>) -> Vec<Requirements> {
        alternatives.into_iter().map(|one| self.vocabulary.all_meant(one)).collect()
    }

    /// Keeps a place from being taken away until pods that were planned for it have had time to arrive. A clock that
    /// shows a time before the span has been set back since.
    pub fn nominate(&mut self, place: PlaceId, span: Range<Timestamp>) {
        self.nominations.insert(place, span);
    }

    /// Whether pods are expected on this node.
    pub fn is_nominated(&self, claim: &ClaimName, node: &NodeName, now: Timestamp) -> bool {
        let places = [PlaceId::Claim(claim.clone()), PlaceId::Node(node.clone())];
        places.iter().any(|place| self.nominations.get(place).is_some_and(|span| span.contains(&now)))
    }

    /// Whether pools and claims with this NodeClass are ours.
    pub fn is_managed(&self, reference: &NodeClassReference) -> bool {
        self.managed.group == reference.group && self.managed.kind == reference.kind
    }

    /// Whether a node is ours by its label, be its claim gone.
    pub fn is_managed_node(&self, node: &NodeFacts) -> bool {
        let label = labels::node_class_label(&self.managed.group, &self.managed.kind);
        node.labels.contains_key(&label) || self.claim_of(node).is_some()
    }

    /// A claim of ours.
    pub fn claim(&self, name: &ClaimName) -> Option<&Arc<NodeClaim>> {
        self.claims.get(name)
    }

    /// Claims of ours in the order of their names.
    pub fn claims(&self) -> impl Iterator<Item = (&ClaimName, &Arc<NodeClaim>)> {
        self.claims.iter()
    }

    /// A node, ours or foreign.
    pub fn node(&self, name: &NodeName) -> Option<&Arc<NodeFacts>> {
        self.nodes.get(name)
    }

    /// Nodes in the order of their names, ours and foreign.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeFacts>> {
        self.nodes.values()
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// A pool.
    pub fn pool(&self, name: &PoolName) -> Option<&Arc<NodePool>> {
        self.pools.get(name)
    }

    /// Pools in the order of their names.
    pub fn pools(&self) -> impl Iterator<Item = (&PoolName, &Arc<NodePool>)> {
        self.pools.iter()
    }

    /// A NodeClass by kind and name.
    pub fn node_class(&self, kind: &str, name: &str) -> Option<&Arc<NodeClassFacts>> {
        self.node_classes.get(&(kind.to_owned(), name.to_owned()))
    }

    /// How many changes were folded.
    pub fn revision(&self) -> Revision {
        Revision(self.revision)
    }

    /// Bound pods whose wish not to be disturbed ends some day, or cannot be read.
    pub fn remarkably_protected(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.remarkable.iter().filter_map(|key| self.pods.get(key))
    }

    /// A pod.
    pub fn pod(&self, key: &PodKey) -> Option<&Arc<PodFacts>> {
        self.pods.get(key)
    }

    /// Pods in the order of their names.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.pods.values()
    }

    /// Pods bound to a node.
    pub fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &Arc<PodFacts>> {
        let keys = self.usage.get(node).into_iter().flat_map(|usage| &usage.pods);
        keys.filter_map(|key| self.pods.get(key))
    }

    /// Whether a node runs nothing that would need another node.
    pub fn is_vacant(&self, node: &NodeName) -> bool {
        !self.pods_on(node).any(|pod| pod.is_reschedulable())
    }

    /// Disruption budgets that protect a pod.
    pub fn budgets_of<'a>(&'a self, pod: &'a PodFacts) -> impl Iterator<Item = &'a Arc<BudgetFacts>> {
        let first = (pod.key.namespace.to_string(), String::new());
        let own = self.budgets.range(first..).map(|(_, budget)| budget);
        let own = own.take_while(|budget| *budget.namespace == *pod.key.namespace);
        own.filter(|budget| budget.protects(&pod.key.namespace, pod.labels()))
    }

    /// Nodes that run on this instance; more than one is somebody's mistake.
    pub fn nodes_of(&self, provider: &ProviderId) -> impl Iterator<Item = &Arc<NodeFacts>> {
        let names = self.nodes_by_provider.get(provider.as_str()).into_iter().flatten();
        names.filter_map(|name| self.nodes.get(name))
    }

    /// The claim behind a node, if there is exactly one.
    pub fn claim_of(&self, node: &NodeFacts) -> Option<&Arc<NodeClaim>> {
        let names = self.claims_by_provider.get(node.provider_id.as_ref()?.as_str())?;
        if names.len() == 1 { self.claims.get(names.first()?) } else { None }
    }

    /// Every machine once, claims before foreign nodes. A machine of ours that several claims or several nodes say
    /// they are is left out until that is settled: counted twice it would promise room that is not there.
    pub fn tracked(&self) -> impl Iterator<Item = Tracked> + '_ {
        let claimed =
            self.claims.values().filter(|claim| !self.is_disputed(claim)).map(|claim| match self.node_of(claim) {
                Some(node) => Tracked::Joined(Arc::clone(claim), Arc::clone(node)),
                None => Tracked::Claimed(Arc::clone(claim)),
            });
        let is_foreign = |node: &&Arc<NodeFacts>| {
            !node.provider_id.as_ref().is_some_and(|id| self.claims_by_provider.contains_key(id.as_str()))
        };
        let foreign = self.nodes.values().filter(is_foreign);
        claimed.chain(foreign.map(|node| Tracked::Foreign(Arc::clone(node))))
    }

    fn is_disputed(&self, claim: &NodeClaim) -> bool {
        let Some(provider) = provider_of(claim) else { return false };
        let claims = self.claims_by_provider.get(provider).map_or(0, BTreeSet::len);
        let nodes = self.nodes_by_provider.get(provider).map_or(0, BTreeSet::len);
        claims > 1 || nodes > 1
    }

    /// The node of a claim, if there is exactly one.
    pub fn node_of(&self, claim: &NodeClaim) -> Option<&Arc<NodeFacts>> {
        let names = self.nodes_by_provider.get(provider_of(claim)?)?;
        if names.len() == 1 { self.nodes.get(names.first()?) } else { None }
    }

    fn apply_pool(&mut self, pool: Arc<NodePool>) -> Vec<Wake> {
        let Some(name) = pool.metadata.name.as_deref().map(PoolName::new) else { return Vec::new() };
        let version =
            |pool: &NodePool| Version::new(pool.metadata.uid.as_deref(), pool.metadata.resource_version.as_deref());
        let known = self.pools.get(&name).map(|known| version(known));
        if !self.is_news(known, version(&pool)) {
            return Vec::new();
        }
        if !self.is_managed(&pool.spec.template.spec.node_class_ref) {
            self.forget_types(&name);
            return self.pools.remove(&name).map(|_| Wake::Pool(name)).into_iter().collect();
        }
        let before = self.pools.insert(name.clone(), Arc::clone(&pool));
        self.relabelled(&pool, before.as_deref());
        let mut wakes = vec![Wake::Pool(name.clone())];
        if before.as_ref().is_none_or(|before| before.spec != pool.spec) {
            wakes.extend(self.overlays_concerned());
        }
        if before.is_some_and(|before| before.spec != pool.spec) {
            let own = self.claims.iter().filter(|(_, claim)| pool_name(claim).as_ref() == Some(&name));
            wakes.extend(own.map(|(claim, _)| Wake::Claim(claim.clone())));
        }
        wakes
    }

    fn remove_pool(&mut self, name: &PoolName) -> Vec<Wake> {
        let Some(pool) = self.pools.remove(name) else { return Vec::new() };
        self.gone.remember(pool.metadata.uid.as_deref().unwrap_or_default());
        self.forget_types(name);
        [Wake::Pool(name.clone())].into_iter().chain(self.overlays_concerned()).collect()
    }

    fn pools_of_class(&self, kind: &str, class: &str) -> Vec<Wake> {
        let refers = |pool: &NodePool| {
            let reference = &pool.spec.template.spec.node_class_ref;
            reference.kind == kind && reference.name == class
        };
        self.pools.iter().filter(|(_, pool)| refers(pool)).map(|(name, _)| Wake::Pool(name.clone())).collect()
    }

    /// Whether this version says something new. An object that replaces another of its name means that the other is
    /// gone, even if nobody saw it go.
    pub(crate) fn is_news(&mut self, known: Option<Version>, new: Version) -> bool {
        if self.gone.contains(&new.uid) {
            return false;
        }
        match known {
            Some(known) if known.uid == new.uid => !is_older(&new.number, &known.number),
            Some(known) => {
                self.gone.remember(&known.uid);
                true
            }
            None => true,
        }
    }
}

/// Which object, and how new.
pub(crate) struct Version {
    uid: String,
    number: String,
}

impl Version {
    pub(crate) fn new(uid: Option<&str>, number: Option<&str>) -> Self {
        Self { uid: uid.unwrap_or_default().to_owned(), number: number.unwrap_or_default().to_owned() }
    }
}

/// The instance of a claim, once it has one.
pub(crate) fn provider_of(claim: &NodeClaim) -> Option<&str> {
    claim.status.as_ref()?.provider_id.as_deref().filter(|id| !id.is_empty())
}

/// The pool that a claim was made from; claims that people write themselves have none.
pub(crate) fn pool_name(claim: &NodeClaim) -> Option<PoolName> {
    claim.metadata.labels.as_ref()?.get(labels::NODE_POOL).map(|name| PoolName::new(name.as_str()))
}

/// Resource versions of one object grow; anything that is not a number is taken for newer.
fn is_older(version: &str, than: &str) -> bool {
    let numbers = version.parse::<u64>().ok().zip(than.parse::<u64>().ok());
    numbers.is_some_and(|(version, than)| version < than)
}
