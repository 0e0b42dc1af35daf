//! An observer that sees nothing but the API: pods, their budgets, pools, claims and nodes as watches show them. It
//! notes what must never happen, whatever goes wrong: a budget broken, a pool beyond its limits, a claim with two nodes.
//!
//! [`Ledger`] is the judgement, a pure fold of what was seen; [`Outside`] feeds it. Every rule is judged on the news of
//! one watch, whose order is the order of what happened; nothing here compares the times of two watches.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use api::{NodeClaim, NodePool};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

pub use judgement::{Ledger, Sight};

use crate::waiting::wait_until;

#[path = "outside/judgement.rs"]
mod judgement;

/// Watches a cluster for as long as the runtime lives.
#[derive(Clone)]
pub struct Outside {
    client: Client,
    ledger: Arc<Mutex<Ledger>>,
}

impl Outside {
    /// Begins to watch, and returns when everything that is there was seen.
    pub async fn watch(client: &Client) -> Result<Self> {
        let outside = Self { client: client.clone(), ledger: Arc::default() };
        outside.follow(|ledger, sight: Sight<Pod>| ledger.see_pod(sight));
        outside.follow(|ledger, sight: Sight<PodDisruptionBudget>| ledger.see_budget(sight));
        outside.follow(|ledger, sight: Sight<NodePool>| ledger.see_pool(sight));
        outside.follow(|ledger, sight: Sight<NodeClaim>| ledger.see_claim(sight));
        outside.follow(|ledger, sight: Sight<Node>| ledger.see_node(sight));
        let all = || (outside.ledger().listed >= KINDS).then_some(());
        wait_until("the observer to see everything", async || all()).await?;
        Ok(outside)
    }

    /// All claims that ever were, once everything that happened so far was seen. Fails if anything happened that must
    /// not.
    pub async fn verdict(&self) -> Result<BTreeSet<String>> {
        self.catch_up::<Pod>(|ledger| &ledger.pods_seen).await?;
        self.catch_up::<NodeClaim>(|ledger| &ledger.claims_seen).await?;
        self.catch_up::<Node>(|ledger| &ledger.nodes_seen).await?;
        let ledger = self.ledger();
        ensure!(ledger.broken().is_empty(), "seen from outside:\n{}", ledger.broken().join("\n"));
        Ok(ledger.claims_ever().clone())
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the observer has seen the objects of a kind as they are now.
    async fn catch_up<K>(&self, seen: impl Fn(&Ledger) -> &Versions) -> Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let is_current = async || {
            let listed = api.list(&Default::default()).await.ok()?;
            let version = |object: &K| Some((identity(object), object.resource_version()?));
            let versions: Versions = listed.items.iter().filter_map(version).collect();
            (*seen(&self.ledger()) == versions).then_some(())
        };
        wait_until("the observer to catch up", is_current).await
    }

    fn follow<K>(&self, see: impl Fn(&mut Ledger, Sight<K>) + Send + 'static)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let (api, ledger): (Api<K>, _) = (Api::all(self.client.clone()), Arc::clone(&self.ledger));
        tokio::spawn(async move {
            // Without a pause after each error a watch would spin for ever once its client is gone, and the runtime
            // could not end.
            let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
            let mut listed = BTreeSet::new();
            let mut is_first = true;
            while let Some(event) = events.next().await {
                let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
                match event {
                    Ok(Event::Init) => listed.clear(),
                    Ok(Event::InitApply(object)) => {
                        listed.insert(identity(&object));
                        see(&mut ledger, Sight::Is(object));
                    }
                    Ok(Event::InitDone) => {
                        see(&mut ledger, Sight::Only(std::mem::take(&mut listed)));
                        ledger.listed += usize::from(std::mem::take(&mut is_first));
                    }
                    Ok(Event::Apply(object)) => see(&mut ledger, Sight::Is(object)),
                    Ok(Event::Delete(object)) => see(&mut ledger, Sight::Gone(object)),
                    // The watch goes on by itself, and misses nothing.
                    Err(_) => {}
                }
            }
        });
    }
}

/// The kinds that are watched.
const KINDS: usize = 5;

/// Versions of objects by their identity.
pub(crate) type Versions = BTreeMap<Identity, String>;

/// Namespace and name; no two objects of a kind share them at a time.
pub(crate) type Identity = (String, String);

pub(crate) fn identity<K: Resource<DynamicType = ()>>(object: &K) -> Identity {
    (object.namespace().unwrap_or_default(), object.name_any())
}
