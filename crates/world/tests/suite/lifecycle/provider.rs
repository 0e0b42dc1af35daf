//! A provider in a test's hands: it passes calls on, unless it was told otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::{NodeClaim, NodePool};
use cloud::{
    CloudError, CloudProvider, Instance, InstanceTypes, LaunchError, LaunchRequest, Launched, NodeClassKind,
    RegistrationHook, Termination,
};
use futures::FutureExt;
use futures::future::{BoxFuture, pending, ready};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use model::{ProviderId, Vocabulary};
use world::Around;
use world::clock::VirtualClock;

/// What the provider does otherwise.
#[derive(Default)]
pub(crate) struct Orders {
    /// Every launch fails so.
    pub(crate) refusal: Option<LaunchError>,
    /// The launch of this claim is never answered.
    pub(crate) silent_for: Option<String>,
    /// Launches make no node; they answer with this identity, and the test makes what it likes.
    pub(crate) made_by_hand: Option<String>,
    /// How often an end fails.
    pub(crate) failed_ends: usize,
    /// How often an end is only promised, after that.
    pub(crate) promised_ends: usize,
    /// Ends never reach the machines.
    pub(crate) machines_stay: bool,
    /// No instance is known any more.
    pub(crate) knows_nothing: bool,
    /// What this pool can buy is not told.
    pub(crate) sells_nothing_to: Option<String>,
    /// What holds registrations back.
    pub(crate) hooks: Vec<Arc<dyn RegistrationHook>>,
}

/// The orders, and what was asked so far.
#[derive(Clone, Default)]
pub(crate) struct Script(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    orders: Orders,
    launches: Vec<String>,
    ends: Vec<(String, Duration)>,
    lists: Vec<Duration>,
}

impl Script {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the orders.
    pub(crate) fn order(&self, change: impl FnOnce(&mut Orders)) {
        change(&mut self.told().orders);
    }

    /// The claims that were to be launched, in the order of the calls.
    pub(crate) fn launches(&self) -> Vec<String> {
        self.told().launches.clone()
    }

    /// When all instances were asked for.
    pub(crate) fn lists(&self) -> Vec<Duration> {
        self.told().lists.clone()
    }

    /// When the end of a claim's instance was asked for.
    pub(crate) fn ends_of(&self, claim: &str) -> Vec<Duration> {
        self.told().ends.iter().filter(|(name, _)| name == claim).map(|(_, at)| *at).collect()
    }

    /// Stands around another provider.
    pub(crate) fn around(&self, clock: VirtualClock) -> Around {
        let script = self.clone();
        Arc::new(move |inner| Arc::new(ScriptedProvider { inner, script: script.clone(), clock }))
    }
}

struct ScriptedProvider {
    inner: Arc<dyn CloudProvider>,
    script: Script,
    clock: VirtualClock,
}

/// An instance of four CPUs that nobody has made a node for, and what its provider says of it.
fn bare(id: &str) -> Launched {
    let pairs = |pairs: [(&str, &str); 2]| pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let amounts = |cpu: &str| -> BTreeMap<String, Quantity> {
        let amounts = [("cpu", cpu), ("memory", "8Gi"), ("pods", "64")];
        amounts.map(|(key, text)| (key.to_owned(), Quantity(text.to_owned()))).into()
    };
    Launched {
        provider_id: ProviderId::new(id),
        image_id: "image-1".to_owned(),
        labels: pairs([("example.com/team", "provider"), ("example.com/rack", "r1")]),
        annotations: pairs([("example.com/note", "provider"), ("example.com/host", "h1")]),
        capacity: amounts("4"),
        allocatable: amounts("3900m"),
    }
}

impl CloudProvider for ScriptedProvider {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn vocabulary(&self) -> Arc<Vocabulary> {
        self.inner.vocabulary()
    }

    fn node_class_kind(&self) -> NodeClassKind {
        self.inner.node_class_kind()
    }

    fn registration_hooks(&self) -> Vec<Arc<dyn RegistrationHook>> {
        self.script.told().orders.hooks.clone()
    }

    fn instance_types<'a>(&'a self, pool: &'a NodePool) -> BoxFuture<'a, Result<InstanceTypes, CloudError>> {
        let withheld = self.script.told().orders.sells_nothing_to.clone();
        if withheld.is_some() && withheld == pool.metadata.name {
            return ready(Err(CloudError { attempt: "list types", message: "down".to_owned() })).boxed();
        }
        self.inner.instance_types(pool)
    }

    fn launch<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Launched, LaunchError>> {
        let mut told = self.script.told();
        told.launches.push(request.claim.metadata.name.clone().unwrap_or_default());
        if let Some(refusal) = told.orders.refusal.clone() {
            return ready(Err(refusal)).boxed();
        }
        if told.orders.silent_for.is_some() && told.orders.silent_for == request.claim.metadata.name {
            return pending().boxed();
        }
        match &told.orders.made_by_hand {
            Some(id) => ready(Ok(bare(id))).boxed(),
            None => self.inner.launch(request),
        }
    }

    fn find_launched<'a>(&'a self, request: &'a LaunchRequest) -> BoxFuture<'a, Result<Option<Launched>, CloudError>> {
        self.inner.find_launched(request)
    }

    fn terminate<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Termination, CloudError>> {
        let mut told = self.script.told();
        told.ends.push((claim.metadata.name.clone().unwrap_or_default(), self.clock.elapsed()));
        if told.orders.failed_ends > 0 {
            told.orders.failed_ends -= 1;
            return ready(Err(CloudError { attempt: "end", message: "the cloud is down".to_owned() })).boxed();
        }
        if told.orders.promised_ends > 0 {
            told.orders.promised_ends -= 1;
            return ready(Ok(Termination::Requested)).boxed();
        }
        match told.orders.machines_stay {
            true => ready(Ok(Termination::Gone)).boxed(),
            false => self.inner.terminate(claim),
        }
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Instance>, CloudError>> {
        match self.script.told().orders.knows_nothing {
            true => ready(Ok(None)).boxed(),
            false => self.inner.get(id),
        }
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, CloudError>> {
        let mut told = self.script.told();
        told.lists.push(self.clock.elapsed());
        match told.orders.knows_nothing {
            true => ready(Ok(Vec::new())).boxed(),
            false => self.inner.list(),
        }
    }
}
