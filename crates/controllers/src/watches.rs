//! Watches: one task per kind, lowering objects as they arrive and sending them to the hub.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use api::lower::{self, BudgetFacts, NodeClassFacts, NodeFacts, PodFacts};
use api::{NodeClaim, NodePool};
use cloud::CloudProvider;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use model::{ClaimName, NodeName, PodKey, PoolName, Vocabulary};
use serde::de::DeserializeOwned;
use state::{Key, Kind, Object};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// News from a watch.
#[derive(Debug)]
pub enum News {
    /// An object as it is now.
    Applied(Object),
    /// An object that is gone.
    Removed(Key),
    /// A list of one kind is about to be asked for; it waits for the word that this was heard.
    ListBegins(Kind, oneshot::Sender<()>),
    /// A complete list of one kind ended; these were in it.
    Listed(Kind, BTreeSet<Key>),
    /// An object that cannot be read; it is left out until it changes.
    Malformed {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// What is wrong with it.
        error: String,
    },
    /// The API server did not answer or broke off; the watch goes on after a pause.
    Interrupted {
        /// The kind that was watched.
        kind: Kind,
        /// What happened.
        error: String,
    },
}

/// News that wait to be folded. More than this, and watches wait: the API server keeps what we have not read.
const NEWS_MAX: usize = 4096;
/// Objects per page of a list.
const PAGE: u32 = 500;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What one watch is about; for NodeClasses also the kind of class.
#[derive(Clone, Copy, Debug)]
struct Watched {
    kind: Kind,
    class: &'static str,
}

impl Watched {
    fn of(kind: Kind) -> Self {
        Self { kind, class: "" }
    }
}

/// The key of an object by its metadata alone.
fn key_of(watched: Watched, metadata: &ObjectMeta) -> Option<Key> {
    let name = metadata.name.as_deref()?;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    Some(match watched.kind {
        Kind::Pod => Key::Pod(PodKey::new(namespace, name)),
        Kind::Node => Key::Node(NodeName::new(name)),
        Kind::Claim => Key::Claim(ClaimName::new(name)),
        Kind::Pool => Key::Pool(PoolName::new(name)),
        Kind::NodeClass => Key::NodeClass(watched.class.to_owned(), name.to_owned()),
        Kind::Daemon => Key::Daemon(format!("{namespace}/{name}").into()),
        Kind::Budget => Key::Budget(namespace.to_owned(), name.to_owned()),
    })
}

/// Starts all watches. They end with the returned set.
pub fn start(client: &Client, provider: &dyn CloudProvider) -> (JoinSet<()>, mpsc::Receiver<News>) {
    let (sender, receiver) = mpsc::channel(NEWS_MAX);
    let mut tasks = JoinSet::new();
    let vocabulary = provider.vocabulary();
    let (for_pods, for_daemons): (Arc<Vocabulary>, _) = (Arc::clone(&vocabulary), vocabulary);
    tasks.spawn(follow(Api::<Pod>::all(client.clone()), Watched::of(Kind::Pod), sender.clone(), move |pod| {
        PodFacts::lower(&pod, &for_pods).map(|pod| Object::Pod(Arc::new(pod)))
    }));
    tasks.spawn(follow(Api::<Node>::all(client.clone()), Watched::of(Kind::Node), sender.clone(), |node| {
        NodeFacts::lower(&node).map(|node| Object::Node(Arc::new(node)))
    }));
    tasks.spawn(follow(Api::<DaemonSet>::all(client.clone()), Watched::of(Kind::Daemon), sender.clone(), move |set| {
        lower::daemon(&set, &for_daemons).map(|daemon| Object::Daemon(Arc::new(daemon)))
    }));
    tasks.spawn(follow(
        Api::<PodDisruptionBudget>::all(client.clone()),
        Watched::of(Kind::Budget),
        sender.clone(),
        |budget| BudgetFacts::lower(&budget).map(|budget| Object::Budget(Arc::new(budget))),
    ));
    tasks.spawn(follow_guarded(
        Api::<DeserializeGuard<NodeClaim>>::all(client.clone()),
        Watched::of(Kind::Claim),
        sender.clone(),
        |claim| Some(Object::Claim(Arc::new(claim))),
    ));
    tasks.spawn(follow_guarded(
        Api::<DeserializeGuard<NodePool>>::all(client.clone()),
        Watched::of(Kind::Pool),
        sender.clone(),
        |pool| Some(Object::Pool(Arc::new(pool))),
    ));
    let class = provider.node_class_kind();
    let named = GroupVersionKind::gvk(class.group, class.version, class.kind);
    let resource = ApiResource::from_gvk_with_plural(&named, class.plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    tasks.spawn(follow(api, Watched { kind: Kind::NodeClass, class: class.kind }, sender, move |object| {
        NodeClassFacts::lower(class.kind, &object).map(|class| Object::NodeClass(Arc::new(class)))
    }));
    (tasks, receiver)
}

/// An object of a custom kind may be stored by a newer or older version of us: what cannot be read is reported.
async fn follow_guarded<K>(
    api: Api<DeserializeGuard<K>>,
    watched: Watched,
    sender: mpsc::Sender<News>,
    lower: impl Fn(K) -> Option<Object>,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let reading = sender.clone();
    follow(api, watched, sender, move |guarded| match guarded.0 {
        Ok(object) => lower(object),
        Err(invalid) => {
            let name = invalid.metadata.name.unwrap_or_default();
            // A full channel drops the report, not the watch; the object is skipped either way.
            let _ = reading.try_send(News::Malformed { kind: watched.kind, name, error: invalid.error });
            None
        }
    })
    .await;
}

async fn follow<K>(api: Api<K>, watched: Watched, sender: mpsc::Sender<News>, lower: impl Fn(K) -> Option<Object>)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut events = pin!(watcher(api, watcher::Config::default().page_size(PAGE)));
    let mut listed = BTreeSet::new();
    let mut pause = FIRST_PAUSE;
    while let Some(event) = events.next().await {
        let news = match event {
            Err(error) => {
                let interrupted = News::Interrupted { kind: watched.kind, error: error.to_string() };
                if sender.send(interrupted).await.is_err() {
                    return;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            Ok(Event::Init) => {
                listed.clear();
                let (heard, hearing) = oneshot::channel();
                if sender.send(News::ListBegins(watched.kind, heard)).await.is_err() || hearing.await.is_err() {
                    return;
                }
                continue;
            }
            Ok(Event::InitDone) => Some(News::Listed(watched.kind, std::mem::take(&mut listed))),
            // An object that cannot be read is there all the same: what was known of it before stays known.
            Ok(Event::InitApply(object)) => {
                listed.extend(key_of(watched, object.meta()));
                lower(object).map(News::Applied)
            }
            Ok(Event::Apply(object)) => lower(object).map(News::Applied),
            Ok(Event::Delete(object)) => key_of(watched, object.meta()).map(News::Removed),
        };
        pause = FIRST_PAUSE;
        if let Some(news) = news
            && sender.send(news).await.is_err()
        {
            return;
        }
    }
}
