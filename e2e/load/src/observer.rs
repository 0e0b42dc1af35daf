//! What becomes of pods, nodes and claims, as anybody can see it through the API server.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Names that were seen in some state, and when the last of them came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    names: BTreeSet<String>,
    pub(crate) first: Option<Instant>,
    pub(crate) last: Option<Instant>,
}

impl Arrivals {
    fn note(&mut self, name: String) {
        if self.names.insert(name) {
            let now = Instant::now();
            self.first.get_or_insert(now);
            self.last = Some(now);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }
}

/// Everything seen so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Pods that the kube-scheduler found no node for.
    pub(crate) unschedulable: Arrivals,
    pub(crate) claims: Arrivals,
    /// Nodes that are ready.
    pub(crate) ready: Arrivals,
    pub(crate) bound: Arrivals,
    pub(crate) running: Arrivals,
}

/// Watches until it is dropped.
pub(crate) struct Observer {
    seen: Arc<Mutex<Seen>>,
    changed: Arc<Notify>,
    _watches: JoinSet<()>,
}

impl Observer {
    pub(crate) fn start(client: &Client) -> Self {
        let (seen, changed) = (Arc::new(Mutex::new(Seen::default())), Arc::new(Notify::new()));
        let mut watches = JoinSet::new();
        let claim = ApiResource::from_gvk(&GroupVersionKind::gvk("karpenter.sh", "v1", "NodeClaim"));
        let claims: Api<DynamicObject> = Api::all_with(client.clone(), &claim);
        let sink = Sink { seen: Arc::clone(&seen), changed: Arc::clone(&changed) };
        watches.spawn(follow(claims, sink.clone(), |seen, claim| seen.claims.note(claim.name_any())));
        watches.spawn(follow(Api::<Node>::all(client.clone()), sink.clone(), |seen, node| {
            if is_ready(&node) {
                seen.ready.note(node.name_any());
            }
        }));
        watches.spawn(follow(Api::<Pod>::default_namespaced(client.clone()), sink, note_pod));
        Self { seen, changed, _watches: watches }
    }

    pub(crate) fn seen(&self) -> Seen {
        lock(&self.seen).clone()
    }

    /// Waits until enough was seen.
    pub(crate) async fn until(&self, what: &str, limit: Duration, enough: impl Fn(&Seen) -> bool) -> Result<()> {
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            let changed = self.changed.notified();
            if enough(&lock(&self.seen)) {
                return Ok(());
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                let seen = self.seen();
                bail!(
                    "{what} did not come about within {limit:?}: {} claims, {} nodes ready, {} pods bound, {} running",
                    seen.claims.count(),
                    seen.ready.count(),
                    seen.bound.count(),
                    seen.running.count()
                );
            }
        }
    }
}

#[derive(Clone)]
struct Sink {
    seen: Arc<Mutex<Seen>>,
    changed: Arc<Notify>,
}

async fn follow<K>(api: Api<K>, sink: Sink, note: impl Fn(&mut Seen, K))
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut events = pin!(watcher(api, watcher::Config::default()));
    while let Some(event) = events.next().await {
        // A watch that broke off begins again by itself; what it missed is listed then.
        if let Ok(Event::Apply(object) | Event::InitApply(object)) = event {
            note(&mut lock(&sink.seen), object);
            sink.changed.notify_waiters();
        }
    }
}

fn note_pod(seen: &mut Seen, pod: Pod) {
    let name = pod.name_any();
    if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) {
        seen.bound.note(name.clone());
    }
    let Some(status) = pod.status else { return };
    if status.phase.as_deref() == Some("Running") {
        seen.running.note(name.clone());
    }
    let refused = |condition: &k8s_openapi::api::core::v1::PodCondition| {
        condition.type_ == "PodScheduled" && condition.status == "False"
    };
    if status.conditions.iter().flatten().any(refused) {
        seen.unschedulable.note(name);
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
