//! The provider trait, served by Node objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::kwok_node_class::{self, conditions::READY};
use api::{ConditionStatus, KWOKNodeClass, NodeClaim, NodePool};
use cloud::{
    CloudError, CloudProvider, Instance, InstanceTypes, LaunchError, LaunchId, LaunchRequest, Launched, NodeClassKind,
    Origin, RebootError, RepairPolicy, Termination,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use model::{InstanceType, NodeName, ProviderId, Text, Vocabulary};
use tokio::task::JoinSet;

use crate::arrivals::{Arrivals, words};
use crate::choose::choose;
use crate::classes::Classes;
use crate::resume::{Found, unfinished};
use crate::{claim, node, repair};

const NODE_CLASS_KIND: NodeClassKind = NodeClassKind {
    group: kwok_node_class::GROUP,
    version: "v1alpha1",
    kind: "KWOKNodeClass",
    plural: "kwoknodeclasses",
};

/// Launches Node objects instead of machines.
///
/// A Node carries its launch id, so that a repeated launch finds it; it is owned by its claim, so that it goes with
/// it. Machines whose Node comes later are remembered in memory: call [`KwokProvider::resume`] once after a start.
pub struct KwokProvider {
    client: Client,
    classes: Classes,
    types: InstanceTypes,
    vocabulary: Arc<Vocabulary>,
    arrivals: Arc<Arrivals>,
    /// Nodes being made later. They end with the provider, as they would with its process.
    making: Mutex<JoinSet<()>>,
}

impl KwokProvider {
    /// A provider that sells the given types to every pool.
    pub fn new(client: Client, types: InstanceTypes) -> Self {
        let vocabulary = Arc::new(vocabulary(&types));
        let arrivals = Arrivals::new(client.clone());
        let classes = Classes::new(client.clone());
        Self { client, classes, types, vocabulary, arrivals, making: Mutex::default() }
    }

    fn make_later(&self, request: &LaunchRequest, node: Node, delay: Duration) {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        while making.try_join_next().is_some() {}
        if let Some(arrival) = self.arrivals.make_later(request, node, delay) {
            making.spawn(arrival);
        }
    }

    /// Takes up the launches whose Node was still to come when an earlier process ended; how many there were.
    ///
    /// Call it once, with all claims, before the controllers start.
    pub async fn resume(&self, claims: Vec<Arc<NodeClaim>>, now: Timestamp) -> Result<usize, CloudError> {
        let classes: Api<KWOKNodeClass> = Api::all(self.client.clone());
        let classes = classes.list(&ListParams::default()).await.map_err(failed("list KWOKNodeClasses"))?;
        let delay_of = |class: KWOKNodeClass| Some((class.metadata.name.clone()?, delay(&class)));
        let nodes = self.nodes().list(&ListParams::default()).await.map_err(failed("list nodes"))?;
        let found = Found {
            claims,
            nodes: nodes.items.into_iter().filter_map(|node| node.metadata.name.map(NodeName::new)).collect(),
            delays: classes.items.into_iter().filter_map(delay_of).collect(),
        };
        let unfinished = unfinished(&found, now);
        for launch in &unfinished {
            match choose(&self.types, &launch.request.claim) {
                Ok(choice) => {
                    let node = node::build(&launch.request, &choice);
                    self.make_later(&launch.request, node, launch.remaining);
                }
                Err(error) => {
                    let claim = claim::name(&launch.request.claim);
                    tracing::warn!(claim, %error, "launch cannot be resumed");
                }
            }
        }
        Ok(unfinished.len())
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// The class of a claim, if it can be launched with.
    async fn usable_class(&self, claim: &NodeClaim) -> Result<Arc<KWOKNodeClass>, LaunchError> {
        let name = &claim.spec.node_class_ref.name;
        let refused = |error: kube::Error| LaunchError::Failed {
            message: format!("reading KWOKNodeClass `{name}`: {}", words(&error)),
        };
        let missing = || LaunchError::InsufficientCapacity { message: format!("KWOKNodeClass `{name}` not found") };
        let class = self.classes.find(name).await.map_err(refused)?.ok_or_else(missing)?;
        match not_ready(&class) {
            Some(why) => Err(LaunchError::NodeClassNotReady { message: format!("KWOKNodeClass `{name}`: {why}") }),
            None => Ok(class),
        }
    }

    async fn launch_claim(&self, request: &LaunchRequest) -> Result<Launched, LaunchError> {
        let name = node::node_name(claim::name(&request.claim), &request.id);
        if let Some(launched) = self.arrivals.expects(&name) {
            return Ok(launched);
        }
        let class = self.usable_class(&request.claim).await?;
        let choice = choose(&self.types, &request.claim)?;
        let node = node::build(request, &choice);
        let delay = delay(&class);
        if delay.is_zero() {
            let refused = |error| LaunchError::Failed { message: format!("creating node `{name}`: {error}") };
            return self.arrivals.make(&node).await.map(|node| node::launched(&node)).map_err(refused);
        }
        let launched = node::launched(&node);
        self.make_later(request, node, delay);
        Ok(launched)
    }

    async fn find(&self, request: &LaunchRequest) -> Result<Option<Launched>, CloudError> {
        let name = node::node_name(claim::name(&request.claim), &request.id);
        if let Some(launched) = self.arrivals.expects(&name) {
            return Ok(Some(launched));
        }
        let found = self.nodes().get_opt(name.as_str()).await.map_err(failed("get node"))?;
        let ours = found.filter(|node| node::launch_of(node).as_ref() == Some(&request.id));
        Ok(ours.map(|node| node::launched(&node)))
    }

    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, CloudError> {
        let Some(name) = node::node_of(id) else { return Ok(None) };
        if self.arrivals.expects(&name).is_some() {
            return Ok(Some(Instance { provider_id: id.clone(), origin: None }));
        }
        let node = self.nodes().get_opt(name.as_str()).await.map_err(failed("get node"))?;
        Ok(node.as_ref().and_then(instance_of).filter(|instance| instance.provider_id == *id))
    }

    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        // The expected ones first: one that arrives in between is then seen twice, not overlooked.
        let expected = self.arrivals.all();
        let nodes = self.nodes().list(&ListParams::default()).await.map_err(failed("list nodes"))?;
        let on_their_way = expected.iter().map(|name| Instance { provider_id: node::provider_id(name), origin: None });
        let mut instances: BTreeMap<ProviderId, Instance> =
            on_their_way.map(|instance| (instance.provider_id.clone(), instance)).collect();
        let present = nodes.items.iter().filter_map(instance_of);
        instances.extend(present.map(|instance| (instance.provider_id.clone(), instance)));
        Ok(instances.into_values().collect())
    }
}

/// Takes up launches whose node was still to come when an earlier process ended. Failures are told in the log: the
/// claims they concern are given up in time like any other whose node does not come.
pub async fn resume_launches(client: Client, provider: Arc<KwokProvider>, now: impl Fn() -> Timestamp) {
    let claims: Api<NodeClaim> = Api::all(client);
    let listed = match claims.list(&ListParams::default()).await {
        Ok(listed) => listed.items.into_iter().map(Arc::new).collect(),
        Err(error) => {
            tracing::error!(%error, "could not list nodeclaims whose launch may be unfinished");
            return;
        }
    };
    match provider.resume(listed, now()).await {
        Ok(0) => {}
        Ok(resumed) => tracing::info!(resumed, "resumed launches of an earlier process"),
        Err(error) => tracing::error!(%error, "could not resume launches"),
    }
}

impl CloudProvider for KwokProvider {
    fn name(&self) -> &'static str {
        "kwok"
    }

    fn vocabulary(&self) -> Arc<Vocabulary> {
        Arc::clone(&self.vocabulary)
    }

    fn node_class_kind(&self) -> NodeClassKind {
        NODE_CLASS_KIND
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        repair::policies()
    }

    fn instance_types<'a>(&'a self, _: &'a NodePool) -> BoxFuture<'a, Result<InstanceTypes, CloudError>> {
        std::future::ready(Ok(Arc::clone(&self.types))).boxed()
    }

    fn launch<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Launched, LaunchError>> {
        self.launch_claim(request).boxed()
    }

    fn find_launched<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Option<Launched>, CloudError>> {
        self.find(request).boxed()
    }

    fn terminate<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Termination, CloudError>> {
        async move {
            if let Some(name) = node_name_of(claim) {
                self.arrivals.remove(&name).await.map_err(failed("delete node"))?;
            }
            Ok(Termination::Gone)
        }
        .boxed()
    }

    fn reboot<'a>(&'a self, claim: &'a NodeClaim, operation: &'a str) -> BoxFuture<'a, Result<(), RebootError>> {
        repair::reboot(self.nodes(), claim, operation).boxed()
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Instance>, CloudError>> {
        self.instance(id).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, CloudError>> {
        self.instances().boxed()
    }
}

/// The core words, ours, and every label that tells offerings apart.
fn vocabulary(types: &[Arc<InstanceType>]) -> Vocabulary {
    use kwok_node_class::{INSTANCE_CPU_LABEL, INSTANCE_FAMILY_LABEL, INSTANCE_MEMORY_LABEL, INSTANCE_SIZE_LABEL};
    let offerings = types.iter().flat_map(|kind| &kind.offerings);
    let keys: BTreeSet<Text> =
        offerings.flat_map(|offering| offering.requirements.iter().map(|(key, _)| Text::clone(key))).collect();
    Vocabulary::core()
        .with_well_known([INSTANCE_SIZE_LABEL, INSTANCE_FAMILY_LABEL, INSTANCE_CPU_LABEL, INSTANCE_MEMORY_LABEL])
        .with_well_known(keys)
        .with_restricted_domain(kwok_node_class::GROUP)
}

fn delay(class: &KWOKNodeClass) -> Duration {
    class.spec.node_registration_delay.as_ref().map_or(Duration::ZERO, |delay| delay.as_duration())
}

/// Why a class says of itself that it cannot be used. One that says nothing yet can.
fn not_ready(class: &KWOKNodeClass) -> Option<&str> {
    let mut conditions = class.status.as_ref()?.conditions.as_ref()?.iter();
    let ready = conditions.find(|condition| condition.type_ == READY)?;
    (ready.status == ConditionStatus::False).then_some(if ready.message.is_empty() {
        &ready.reason
    } else {
        &ready.message
    })
}

/// The machine a Node stands for; a Node that is going stands for nothing.
fn instance_of(node: &Node) -> Option<Instance> {
    let id = ProviderId::new(node.spec.as_ref()?.provider_id.as_deref()?);
    let stays = node.metadata.deletion_timestamp.is_none();
    let origin = node::claim_of(node).zip(node::launch_of(node)).zip(node.metadata.creation_timestamp.as_ref());
    let origin = origin.map(|((claim, launch), made)| Origin { launch, claim, started: made.0 });
    (stays && node::node_of(&id).is_some()).then_some(Instance { provider_id: id, origin })
}

/// The Node of a claim. A claim whose status was never written can still have one: its launch id tells which.
fn node_name_of(claim: &NodeClaim) -> Option<NodeName> {
    let recorded = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
    match recorded.filter(|id| !id.is_empty()) {
        Some(id) => node::node_of(&ProviderId::new(id)),
        None => LaunchId::of(claim).map(|id| node::node_name(claim::name(claim), &id)),
    }
}

fn failed(attempt: &'static str) -> impl Fn(kube::Error) -> CloudError {
    move |error| CloudError { attempt, message: words(&error) }
}
