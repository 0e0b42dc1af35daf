//! Watches: one task per kind, lowering objects as they arrive and sending them to the hub.

mod lean;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use api::lower::{
    AttachmentFacts, BudgetFacts, CsiNodeFacts, DaemonFacts, GroupingFacts, GroupingKind, NamespaceFacts,
    NodeClassFacts, NodeFacts, OverlayFacts, PodFacts, PodTemplateFacts, StorageClassFacts, VolumeClaimFacts,
    VolumeFacts, WorkloadFacts, WorkloadKind,
};
use api::{CapacityBuffer, NodeClaim, NodeOverlay, NodePool};
use cloud::CloudProvider;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use model::{BufferKey, ClaimName, NodeName, PodKey, PoolName, Vocabulary};
use serde::de::DeserializeOwned;
use state::{Key, Kind, Object};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use lean::Lean;

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
        Kind::VolumeClaim => Key::VolumeClaim(namespace.into(), name.into()),
        Kind::Volume => Key::Volume(name.into()),
        Kind::StorageClass => Key::StorageClass(name.into()),
        Kind::CsiNode => Key::CsiNode(NodeName::new(name)),
        Kind::Attachment => Key::Attachment(name.into()),
        Kind::Namespace => Key::Namespace(name.into()),
        Kind::Overlay => Key::Overlay(name.into()),
        Kind::Buffer => Key::Buffer(BufferKey::new(namespace, name)),
        Kind::PodTemplate => Key::PodTemplate(namespace.into(), name.into()),
        Kind::Workload(kind) => Key::Workload(kind, namespace.into(), name.into()),
        Kind::Grouping(kind) => Key::Grouping(kind, namespace.into(), name.into()),
    })
}

/// Starts a watch for each wanted kind. They end with the returned set.
pub fn start(
    client: &Client,
    provider: &dyn CloudProvider,
    wanted: &BTreeSet<Kind>,
) -> (JoinSet<()>, mpsc::Receiver<News>) {
    let (sender, receiver) = mpsc::channel(NEWS_MAX);
    let mut watches = Watches { client, sender, tasks: JoinSet::new() };
    for kind in wanted {
        watches.start(*kind, provider);
    }
    (watches.tasks, receiver)
}

struct Watches<'a> {
    client: &'a Client,
    sender: mpsc::Sender<News>,
    tasks: JoinSet<()>,
}

impl Watches<'_> {
    fn start(&mut self, kind: Kind, provider: &dyn CloudProvider) {
        let vocabulary: Arc<Vocabulary> = provider.vocabulary();
        match kind {
            Kind::Pod => self
                .follow(kind, move |pod: Pod| PodFacts::lower(&pod, &vocabulary).map(|pod| Object::Pod(Arc::new(pod)))),
            Kind::Node => {
                self.follow(kind, |node: Node| NodeFacts::lower(&node).map(|node| Object::Node(Arc::new(node))));
            }
            Kind::Daemon => self.follow(kind, move |set: DaemonSet| {
                DaemonFacts::lower(&set, &vocabulary).map(|set| Object::Daemon(Arc::new(set)))
            }),
            Kind::Budget => self.follow(kind, |budget: PodDisruptionBudget| {
                BudgetFacts::lower(&budget).map(|budget| Object::Budget(Arc::new(budget)))
            }),
            Kind::Claim => self.follow_guarded(kind, |claim: NodeClaim| Some(Object::Claim(Arc::new(claim)))),
            Kind::Pool => self.follow_guarded(kind, |pool: NodePool| Some(Object::Pool(Arc::new(pool)))),
            Kind::NodeClass => self.follow_classes(provider),
            Kind::VolumeClaim => self.follow(kind, |claim: PersistentVolumeClaim| {
                VolumeClaimFacts::lower(&claim).map(|claim| Object::VolumeClaim(Arc::new(claim)))
            }),
            Kind::Volume => self.follow(kind, |volume: PersistentVolume| {
                VolumeFacts::lower(&volume).map(|volume| Object::Volume(Arc::new(volume)))
            }),
            Kind::StorageClass => self.follow(kind, |class: StorageClass| {
                StorageClassFacts::lower(&class).map(|class| Object::StorageClass(Arc::new(class)))
            }),
            Kind::CsiNode => self
                .follow(kind, |node: CSINode| CsiNodeFacts::lower(&node).map(|node| Object::CsiNode(Arc::new(node)))),
            Kind::Attachment => self.follow(kind, |attachment: VolumeAttachment| {
                AttachmentFacts::lower(&attachment).map(|attachment| Object::Attachment(Arc::new(attachment)))
            }),
            Kind::Namespace => {
                self.follow(kind, |namespace: Namespace| NamespaceFacts::lower(&namespace).map(Object::Namespace));
            }
            Kind::Overlay => self.follow_guarded(kind, move |overlay: NodeOverlay| {
                OverlayFacts::lower(&overlay, &vocabulary).map(|overlay| Object::Overlay(Arc::new(overlay)))
            }),
            Kind::Buffer => self.follow_guarded(kind, |buffer: CapacityBuffer| Some(Object::Buffer(Arc::new(buffer)))),
            Kind::PodTemplate => self.follow(kind, move |template: PodTemplate| {
                PodTemplateFacts::lower(&template, &vocabulary).map(|template| Object::PodTemplate(Arc::new(template)))
            }),
            Kind::Workload(workload) => self.follow_workload(kind, workload, vocabulary),
            Kind::Grouping(grouping) => self.follow_grouping(kind, grouping),
        }
    }

    fn follow_workload(&mut self, kind: Kind, workload: WorkloadKind, vocabulary: Arc<Vocabulary>) {
        let object = |facts: WorkloadFacts| Object::Workload(Arc::new(facts));
        match workload {
            WorkloadKind::Deployment => {
                self.follow(kind, move |found: Deployment| WorkloadFacts::deployment(&found, &vocabulary).map(object));
            }
            WorkloadKind::ReplicaSet => {
                self.follow(kind, move |found: ReplicaSet| WorkloadFacts::replica_set(&found, &vocabulary).map(object));
            }
            WorkloadKind::StatefulSet => self
                .follow(kind, move |found: StatefulSet| WorkloadFacts::stateful_set(&found, &vocabulary).map(object)),
        }
    }

    fn follow_grouping(&mut self, kind: Kind, grouping: GroupingKind) {
        let object = |facts: GroupingFacts| Object::Grouping(Arc::new(facts));
        match grouping {
            GroupingKind::Service => {
                self.follow(kind, move |service: Service| GroupingFacts::service(&service).map(object));
            }
            GroupingKind::ReplicationController => self.follow(kind, move |controller: ReplicationController| {
                GroupingFacts::replication_controller(&controller).map(object)
            }),
            GroupingKind::ReplicaSet => {
                self.follow(kind, move |set: ReplicaSet| GroupingFacts::replica_set(&set).map(object));
            }
            GroupingKind::StatefulSet => {
                self.follow(kind, move |set: StatefulSet| GroupingFacts::stateful_set(&set).map(object));
            }
        }
    }

    fn follow<K>(&mut self, kind: Kind, lower: impl Fn(K) -> Option<Object> + Send + 'static)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let api: Api<Lean<K>> = Api::all(self.client.clone());
        self.tasks.spawn(follow(api, Watched::of(kind), self.sender.clone(), move |Lean(object)| lower(object)));
    }

    fn follow_guarded<K>(&mut self, kind: Kind, lower: impl Fn(K) -> Option<Object> + Send + 'static)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let api: Api<DeserializeGuard<K>> = Api::all(self.client.clone());
        self.tasks.spawn(follow_guarded(api, Watched::of(kind), self.sender.clone(), lower));
    }

    fn follow_classes(&mut self, provider: &dyn CloudProvider) {
        let class = provider.node_class_kind();
        let named = GroupVersionKind::gvk(class.group, class.version, class.kind);
        let resource = ApiResource::from_gvk_with_plural(&named, class.plural);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let watched = Watched { kind: Kind::NodeClass, class: class.kind };
        self.tasks.spawn(follow(api, watched, self.sender.clone(), move |object| {
            NodeClassFacts::lower(class.kind, &object).map(|class| Object::NodeClass(Arc::new(class)))
        }));
    }
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
