//! The index: objects by name, and who belongs to whom.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use api::lower::{BudgetFacts, NodeClassFacts, NodeFacts, PodFacts};
use api::{NodeClaim, NodeClassReference, NodePool, labels};
use jiff::Timestamp;
use model::{
    ClaimName, Daemon, InstanceType, NodeName, PlaceId, PodClass, PodKey, PoolName, ProviderId, Text, Vocabulary,
};

use crate::change::{Key, Kind, Object, Wake};
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
    pub(crate) daemons: BTreeMap<Text, Arc<Daemon>>,
    pub(crate) budgets: BTreeMap<(String, String), Arc<BudgetFacts>>,
    pub(crate) types: BTreeMap<PoolName, Arc<[Arc<InstanceType>]>>,
    pub(crate) usage: BTreeMap<NodeName, Usage>,
    pub(crate) waiting: BTreeSet<PodKey>,
    nodes_by_provider: BTreeMap<ProviderId, BTreeSet<NodeName>>,
    claims_by_provider: BTreeMap<ProviderId, BTreeSet<ClaimName>>,
    nominations: BTreeMap<PlaceId, Timestamp>,
    /// Each class once, with the number of its pods.
    classes: BTreeMap<Arc<PodClass>, usize>,
    pub(crate) listed: BTreeSet<Kind>,
    /// Kinds that are being listed now, with what we learnt of them from our own writes meanwhile.
    pub(crate) listing: BTreeMap<Kind, BTreeSet<Key>>,
    gone: VecDeque<String>,
}

/// Identities of objects that were seen to go. Long enough for every write that is still under way to come back:
/// a late answer about a dead object must not bring it to life.
const REMEMBERED_GONE: usize = 4096;

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
            daemons: BTreeMap::new(),
            budgets: BTreeMap::new(),
            types: BTreeMap::new(),
            usage: BTreeMap::new(),
            waiting: BTreeSet::new(),
            nodes_by_provider: BTreeMap::new(),
            claims_by_provider: BTreeMap::new(),
            nominations: BTreeMap::new(),
            classes: BTreeMap::new(),
            listed: BTreeSet::new(),
            listing: BTreeMap::new(),
            gone: VecDeque::new(),
        }
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
                let wakes = self.pools_of_class(&class.kind, &class.name);
                self.node_classes.insert((class.kind.clone(), class.name.clone()), class);
                wakes
            }
            Object::Daemon(daemon) => {
                self.daemons.insert(daemon.name.clone(), daemon);
                Vec::new()
            }
            Object::Budget(budget) => {
                self.budgets.insert((budget.namespace.clone(), budget.name.clone()), budget);
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
                self.daemons.remove(name);
                Vec::new()
            }
            Key::Budget(namespace, name) => {
                self.budgets.remove(&(namespace.clone(), name.clone()));
                Vec::new()
            }
        }
    }

    /// What a provider sells to a pool.
    pub fn set_types(&mut self, pool: PoolName, types: Arc<[Arc<InstanceType>]>) {
        self.revision += 1;
        self.types.insert(pool, types);
    }

    /// What the provider sells to a pool, as last heard.
    pub fn types(&self, pool: &PoolName) -> Option<&Arc<[Arc<InstanceType>]>> {
        self.types.get(pool)
    }

    /// Keeps a place from being taken away until pods that were planned for it have had time to arrive.
    pub fn nominate(&mut self, place: PlaceId, until: Timestamp) {
        self.nominations.insert(place, until);
    }

    /// Whether pods are expected on this node.
    pub fn is_nominated(&self, claim: &ClaimName, node: &NodeName, now: Timestamp) -> bool {
        let places = [PlaceId::Claim(claim.clone()), PlaceId::Node(node.clone())];
        places.iter().any(|place| self.nominations.get(place).is_some_and(|until| *until > now))
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

    /// A pod.
    pub fn pod(&self, key: &PodKey) -> Option<&Arc<PodFacts>> {
        self.pods.get(key)
    }

    /// Pods bound to a node.
    pub fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &Arc<PodFacts>> {
        let keys = self.usage.get(node).into_iter().flat_map(|usage| &usage.pods);
        keys.filter_map(|key| self.pods.get(key))
    }

    /// Disruption budgets that protect a pod.
    pub fn budgets_of<'a>(&'a self, pod: &'a PodFacts) -> impl Iterator<Item = &'a Arc<BudgetFacts>> {
        self.budgets.values().filter(|budget| budget.protects(&pod.key.namespace, &pod.labels))
    }

    /// Nodes that run on this instance; more than one is somebody's mistake.
    pub fn nodes_of(&self, provider: &ProviderId) -> impl Iterator<Item = &Arc<NodeFacts>> {
        let names = self.nodes_by_provider.get(provider).into_iter().flatten();
        names.filter_map(|name| self.nodes.get(name))
    }

    /// The claim behind a node, if there is exactly one.
    pub fn claim_of(&self, node: &NodeFacts) -> Option<&Arc<NodeClaim>> {
        let names = self.claims_by_provider.get(node.provider_id.as_ref()?)?;
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
            !node.provider_id.as_ref().is_some_and(|id| self.claims_by_provider.contains_key(id))
        };
        let foreign = self.nodes.values().filter(is_foreign);
        claimed.chain(foreign.map(|node| Tracked::Foreign(Arc::clone(node))))
    }

    fn is_disputed(&self, claim: &NodeClaim) -> bool {
        let Some(provider) = provider_id(claim) else { return false };
        let claims = self.claims_by_provider.get(&provider).map_or(0, BTreeSet::len);
        let nodes = self.nodes_by_provider.get(&provider).map_or(0, BTreeSet::len);
        claims > 1 || nodes > 1
    }

    /// The node of a claim, if there is exactly one.
    pub fn node_of(&self, claim: &NodeClaim) -> Option<&Arc<NodeFacts>> {
        let provider = provider_id(claim)?;
        let names = self.nodes_by_provider.get(&provider)?;
        if names.len() == 1 { self.nodes.get(names.first()?) } else { None }
    }

    fn apply_pod(&mut self, mut pod: Arc<PodFacts>) -> Vec<Wake> {
        let known = self.classes.get_key_value(&pod.class).map(|(known, _)| Arc::clone(known));
        if let Some(known) = known.filter(|known| !Arc::ptr_eq(known, &pod.class)) {
            Arc::make_mut(&mut pod).class = known;
        }
        *self.classes.entry(Arc::clone(&pod.class)).or_insert(0) += 1;
        let before = self.pods.insert(pod.key.clone(), Arc::clone(&pod));
        let mut wakes = before.as_ref().map(|old| self.forget_pod(old)).unwrap_or_default();
        if let Some(node) = &pod.node {
            self.usage.entry(node.clone()).or_default().add(&pod);
            wakes.push(Wake::Node(node.clone()));
            let news = |old: &Arc<PodFacts>| {
                old.node != pod.node
                    || old.is_terminal != pod.is_terminal
                    || old.deletion.is_some() != pod.deletion.is_some()
            };
            if before.as_ref().is_some_and(news) && pod.owner != api::lower::Owner::DaemonSet {
                wakes.push(Wake::PodMoved(node.clone()));
            }
        }
        if pod.is_provisionable() {
            self.waiting.insert(pod.key.clone());
            wakes.push(Wake::Waiting(pod.key.clone()));
        }
        wakes
    }

    fn remove_pod(&mut self, key: &PodKey) -> Vec<Wake> {
        let Some(pod) = self.pods.remove(key) else { return Vec::new() };
        let mut wakes = self.forget_pod(&pod);
        if let Some(node) = &pod.node {
            wakes.push(Wake::PodLeft(node.clone()));
            // A pod without grace goes at once: nobody saw it terminate.
            if pod.is_active() && pod.owner != api::lower::Owner::DaemonSet {
                wakes.push(Wake::PodMoved(node.clone()));
            }
        }
        wakes
    }

    fn forget_pod(&mut self, pod: &PodFacts) -> Vec<Wake> {
        self.waiting.remove(&pod.key);
        if let Some(count) = self.classes.get_mut(&pod.class) {
            *count -= 1;
            if *count == 0 {
                self.classes.remove(&pod.class);
            }
        }
        let Some(node) = &pod.node else { return Vec::new() };
        if let Some(usage) = self.usage.get_mut(node) {
            usage.take(pod);
            if usage.pods.is_empty() {
                self.usage.remove(node);
            }
        }
        vec![Wake::Node(node.clone())]
    }

    fn apply_node(&mut self, node: Arc<NodeFacts>) -> Vec<Wake> {
        let version = |node: &NodeFacts| Version::new(Some(&node.uid), Some(&node.resource_version));
        let known = self.nodes.get(&node.name).map(|known| version(known));
        if !self.is_news(known, version(&node)) {
            return Vec::new();
        }
        let mut wakes = vec![Wake::Node(node.name.clone())];
        if let Some(before) = self.nodes.insert(node.name.clone(), Arc::clone(&node)) {
            wakes.extend(self.unlink_node(&before));
        }
        if let Some(provider) = &node.provider_id {
            self.nodes_by_provider.entry(provider.clone()).or_default().insert(node.name.clone());
        }
        wakes.extend(self.wakes_of_node(&node));
        wakes
    }

    fn remove_node(&mut self, name: &NodeName) -> Vec<Wake> {
        let Some(node) = self.nodes.remove(name) else { return Vec::new() };
        self.remember_gone(&node.uid);
        self.nominations.remove(&PlaceId::Node(name.clone()));
        let mut wakes = self.wakes_of_node(&node);
        wakes.extend(self.unlink_node(&node));
        wakes
    }

    fn unlink_node(&mut self, node: &NodeFacts) -> Vec<Wake> {
        let Some(provider) = &node.provider_id else { return Vec::new() };
        if let Some(names) = self.nodes_by_provider.get_mut(provider) {
            names.remove(&node.name);
            if names.is_empty() {
                self.nodes_by_provider.remove(provider);
            }
        }
        self.wakes_of_provider(provider)
    }

    fn wakes_of_node(&self, node: &NodeFacts) -> Vec<Wake> {
        node.provider_id.as_ref().map(|provider| self.wakes_of_provider(provider)).unwrap_or_default()
    }

    fn wakes_of_provider(&self, provider: &ProviderId) -> Vec<Wake> {
        self.claims_by_provider.get(provider).into_iter().flatten().cloned().map(Wake::Claim).collect()
    }

    fn apply_claim(&mut self, claim: Arc<NodeClaim>) -> Vec<Wake> {
        let Some(name) = claim.metadata.name.as_deref().map(ClaimName::new) else { return Vec::new() };
        let version =
            |claim: &NodeClaim| Version::new(claim.metadata.uid.as_deref(), claim.metadata.resource_version.as_deref());
        let known = self.claims.get(&name).map(|known| version(known));
        if !self.is_managed(&claim.spec.node_class_ref) || !self.is_news(known, version(&claim)) {
            return Vec::new();
        }
        if let Some(before) = self.claims.insert(name.clone(), Arc::clone(&claim)) {
            self.unlink_claim(&name, &before);
        }
        if let Some(provider) = provider_id(&claim) {
            self.claims_by_provider.entry(provider).or_default().insert(name.clone());
        }
        self.wakes_of_claim(&name, &claim)
    }

    fn remove_claim(&mut self, name: &ClaimName) -> Vec<Wake> {
        let Some(claim) = self.claims.remove(name) else { return Vec::new() };
        self.remember_gone(claim.metadata.uid.as_deref().unwrap_or_default());
        self.nominations.remove(&PlaceId::Claim(name.clone()));
        self.unlink_claim(name, &claim);
        self.wakes_of_claim(name, &claim)
    }

    fn unlink_claim(&mut self, name: &ClaimName, claim: &NodeClaim) {
        let Some(provider) = provider_id(claim) else { return };
        if let Some(names) = self.claims_by_provider.get_mut(&provider) {
            names.remove(name);
            if names.is_empty() {
                self.claims_by_provider.remove(&provider);
            }
        }
    }

    fn wakes_of_claim(&self, name: &ClaimName, claim: &NodeClaim) -> Vec<Wake> {
        let node = provider_id(claim).into_iter().flat_map(|provider| self.nodes_by_provider.get(&provider));
        let nodes = node.flatten().cloned().map(Wake::Node);
        let pool = pool_name(claim).map(Wake::Pool);
        [Wake::Claim(name.clone())].into_iter().chain(nodes).chain(pool).collect()
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
            self.types.remove(&name);
            return self.pools.remove(&name).map(|_| Wake::Pool(name)).into_iter().collect();
        }
        let before = self.pools.insert(name.clone(), Arc::clone(&pool));
        let mut wakes = vec![Wake::Pool(name.clone())];
        if before.is_some_and(|before| before.spec != pool.spec) {
            let own = self.claims.iter().filter(|(_, claim)| pool_name(claim).as_ref() == Some(&name));
            wakes.extend(own.map(|(claim, _)| Wake::Claim(claim.clone())));
        }
        wakes
    }

    fn remove_pool(&mut self, name: &PoolName) -> Vec<Wake> {
        let Some(pool) = self.pools.remove(name) else { return Vec::new() };
        self.remember_gone(pool.metadata.uid.as_deref().unwrap_or_default());
        self.types.remove(name);
        vec![Wake::Pool(name.clone())]
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
    fn is_news(&mut self, known: Option<Version>, new: Version) -> bool {
        if self.gone.contains(&new.uid) {
            return false;
        }
        match known {
            Some(known) if known.uid == new.uid => !is_older(&new.number, &known.number),
            Some(known) => {
                self.remember_gone(&known.uid);
                true
            }
            None => true,
        }
    }

    fn remember_gone(&mut self, uid: &str) {
        self.gone.push_back(uid.to_owned());
        if self.gone.len() > REMEMBERED_GONE {
            self.gone.pop_front();
        }
    }
}

/// Which object, and how new.
struct Version {
    uid: String,
    number: String,
}

impl Version {
    fn new(uid: Option<&str>, number: Option<&str>) -> Self {
        Self { uid: uid.unwrap_or_default().to_owned(), number: number.unwrap_or_default().to_owned() }
    }
}

/// The instance of a claim, once it has one.
pub(crate) fn provider_id(claim: &NodeClaim) -> Option<ProviderId> {
    let id = claim.status.as_ref()?.provider_id.as_deref()?;
    (!id.is_empty()).then(|| ProviderId::new(id))
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
