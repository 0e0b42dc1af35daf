//! Kubernetes events: what we tell people who read `kubectl describe`.
//!
//! Core v1 events from the source `karpenter`. The same news about the same object is told once in a while, not once
//! per pass; publishing never holds a reconciler up, and when the API server is slow the news are dropped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clock::Clock;

/// Good news or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    Normal,
    Warning,
}

/// What happened to whom.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) about: ObjectReference,
    pub(crate) tone: Tone,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// The same reason, object and message is not told again for this long.
    pub(crate) quiet: Duration,
}

/// How long most news stay news.
pub(crate) const QUIET: Duration = Duration::from_secs(120);
/// Events that wait to be written.
const WAITING_MAX: usize = 256;
/// Remembered news; the oldest go first.
const REMEMBERED_MAX: usize = 10_000;

/// Publishes events.
#[derive(Debug)]
pub struct Recorder {
    sender: mpsc::Sender<Event>,
    told: Mutex<Told>,
    /// Ends the writing with the recorder, queued events included: a process that is gone writes nothing.
    _writing: JoinSet<()>,
}

/// What was told when, and how much in all.
#[derive(Debug, Default)]
struct Told {
    last: BTreeMap<(String, &'static str, String), Timestamp>,
    count: u64,
}

impl Recorder {
    /// Starts the task that writes events; it ends with the recorder.
    pub(crate) fn start(client: Client, clock: Arc<dyn Clock>) -> Self {
        let (sender, mut receiver) = mpsc::channel::<Event>(WAITING_MAX);
        let mut writing = JoinSet::new();
        writing.spawn(async move {
            while let Some(mut event) = receiver.recv().await {
                let now = Time(clock.now());
                event.first_timestamp = Some(now.clone());
                event.last_timestamp = Some(now);
                let namespace = event.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
                let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
                if let Err(error) = api.create(&PostParams::default(), &event).await {
                    tracing::error!(%error, reason = event.reason, "could not publish event");
                }
            }
        });
        Self { sender, told: Mutex::default(), _writing: writing }
    }

    /// Tells people, unless they were told lately.
    pub(crate) fn publish(&self, now: Timestamp, notice: Notice) {
        let uid = notice.about.uid.clone().unwrap_or_default();
        let identity = (uid, notice.reason, notice.message.clone());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let recently = |before: &Timestamp| {
            now.duration_since(*before) < jiff::SignedDuration::try_from(notice.quiet).unwrap_or_default()
        };
        if told.last.get(&identity).is_some_and(recently) {
            return;
        }
        if told.last.len() >= REMEMBERED_MAX {
            let oldest = told.last.values().min().copied();
            told.last.retain(|_, when| Some(*when) != oldest);
        }
        told.last.insert(identity, now);
        told.count += 1;
        // A full queue means that the API server is slow; events are the first thing to go without.
        let _ = self.sender.try_send(event(now, told.count, notice));
    }
}

fn event(now: Timestamp, count: u64, notice: Notice) -> Event {
    let Notice { about, tone, reason, message, quiet: _ } = notice;
    let namespace = about.namespace.clone().filter(|space| !space.is_empty()).unwrap_or_else(|| "default".to_owned());
    let name = format!("{}.{:x}.{count:x}", about.name.as_deref().unwrap_or("object"), now.as_nanosecond());
    Event {
        metadata: ObjectMeta { name: Some(name), namespace: Some(namespace), ..ObjectMeta::default() },
        involved_object: about,
        type_: Some(format!("{tone:?}")),
        reason: Some(reason.to_owned()),
        message: Some(message),
        source: Some(EventSource { component: Some("karpenter".to_owned()), host: None }),
        count: Some(1),
        reporting_component: Some("karpenter".to_owned()),
        ..Event::default()
    }
}

/// References to objects by kind.
pub(crate) mod about {
    use api::lower::{NodeFacts, PodFacts};
    use api::{NodeClaim, NodePool};
    use k8s_openapi::api::core::v1::ObjectReference;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    fn of(api_version: &str, kind: &str, metadata: &ObjectMeta) -> ObjectReference {
        ObjectReference {
            api_version: Some(api_version.to_owned()),
            kind: Some(kind.to_owned()),
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            ..ObjectReference::default()
        }
    }

    /// A claim.
    pub(crate) fn claim(claim: &NodeClaim) -> ObjectReference {
        of("karpenter.sh/v1", "NodeClaim", &claim.metadata)
    }

    /// A pool.
    pub(crate) fn pool(pool: &NodePool) -> ObjectReference {
        of("karpenter.sh/v1", "NodePool", &pool.metadata)
    }

    /// A node; as everywhere in Kubernetes, the name stands for the uid in a node's events.
    pub(crate) fn node(node: &NodeFacts) -> ObjectReference {
        let name = Some(node.name.to_string());
        of("v1", "Node", &ObjectMeta { name: name.clone(), uid: name, ..ObjectMeta::default() })
    }

    /// A pod.
    pub(crate) fn pod(pod: &PodFacts) -> ObjectReference {
        let metadata = ObjectMeta {
            name: Some(pod.key.name.to_string()),
            namespace: Some(pod.key.namespace.to_string()),
            uid: Some(pod.uid.to_string()),
            ..ObjectMeta::default()
        };
        of("v1", "Pod", &metadata)
    }
}
