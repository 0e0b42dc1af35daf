//! Kubernetes events: what we tell people who read `kubectl describe`.
//!
//! Core v1 events from the source `karpenter`. The same news about the same object is told once in a while, not once
//! per pass; publishing never holds a reconciler up, and when the API server is slow the news are dropped.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::lifecycle::believed;

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
    /// When it may be told again.
    pub(crate) quiet: Quiet,
}

/// For how long news stay known, and what makes them the same news.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quiet {
    length: Duration,
    sameness: Sameness,
}

/// What two pieces of news about one object and for one reason have in common if they are the same.
#[derive(Clone, Copy, Debug)]
enum Sameness {
    /// Every word.
    Words,
    /// Every word but the numbers: a little more or less of something is no news.
    Gist,
    /// Object and reason are enough.
    Reason,
}

impl Quiet {
    /// The same words about the same object are not repeated for this long.
    pub(crate) const fn of_words(length: Duration) -> Self {
        Self { length, sameness: Sameness::Words }
    }

    /// The same words are not repeated for this long, be it that the numbers in them change.
    pub(crate) const fn of_gist(length: Duration) -> Self {
        Self { length, sameness: Sameness::Gist }
    }

    /// Nothing is said about the same object for the same reason for this long, whatever the words.
    pub(crate) const fn of_reason(length: Duration) -> Self {
        Self { length, sameness: Sameness::Reason }
    }

    fn identity(self, message: &str) -> String {
        match self.sameness {
            Sameness::Words => message.to_owned(),
            Sameness::Gist => message.chars().filter(|letter| !letter.is_ascii_digit()).collect(),
            Sameness::Reason => String::new(),
        }
    }
}

/// How long most news stay news.
pub(crate) const QUIET: Quiet = Quiet::of_words(Duration::from_secs(120));
/// Events per second and at once, for reasons that come by the thousand.
const PACE: Pace = Pace { per_second: 5, at_once: 10 };
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

/// Whom it is about, why, and what makes it the same news.
type Identity = (String, &'static str, String);

/// What was told when, and how much in all.
#[derive(Debug, Default)]
struct Told {
    last: BTreeMap<Identity, Timestamp>,
    /// What was told, oldest first; what was told again since stands here twice.
    order: VecDeque<(Identity, Timestamp)>,
    count: u64,
    buckets: BTreeMap<&'static str, Bucket>,
}

impl Told {
    /// Whether this is news now; if so it is known from now on.
    fn is_news(&mut self, now: Timestamp, notice: &Notice) -> bool {
        let uid = notice.about.uid.clone().unwrap_or_default();
        let identity = (uid, notice.reason, notice.quiet.identity(&notice.message));
        let quiet = SignedDuration::try_from(notice.quiet.length).unwrap_or_default();
        let told = self.last.get(&identity).and_then(|told| believed(*told, now));
        if told.is_some_and(|told| now.duration_since(told) < quiet) {
            return false;
        }
        if self.order.len() >= REMEMBERED_MAX {
            self.forget_oldest();
        }
        self.order.push_back((identity.clone(), now));
        self.last.insert(identity, now);
        self.count += 1;
        true
    }

    fn forget_oldest(&mut self) {
        let Some((identity, when)) = self.order.pop_front() else { return };
        if self.last.get(&identity) == Some(&when) {
            self.last.remove(&identity);
        }
    }

    fn bucket(&mut self, reason: &'static str, now: Timestamp) -> &mut Bucket {
        self.buckets.entry(reason).or_insert_with(|| Bucket::full(PACE, now))
    }
}

/// How many events of a kind there may be.
#[derive(Clone, Copy, Debug)]
struct Pace {
    per_second: u32,
    at_once: u32,
}

/// A token bucket: fills with time, and every event takes one token. Counts thousandths, so that no time is lost.
#[derive(Clone, Debug)]
struct Bucket {
    pace: Pace,
    thousandths: i64,
    as_of: Timestamp,
}

const TOKEN: i64 = 1000;

impl Bucket {
    fn full(pace: Pace, now: Timestamp) -> Self {
        Self { pace, thousandths: i64::from(pace.at_once) * TOKEN, as_of: now }
    }

    fn refill(&mut self, now: Timestamp) {
        let passed = i64::try_from(now.duration_since(self.as_of).as_millis()).unwrap_or(i64::MAX).max(0);
        let gained = passed.saturating_mul(i64::from(self.pace.per_second));
        self.thousandths = self.thousandths.saturating_add(gained).min(i64::from(self.pace.at_once) * TOKEN);
        self.as_of = believed(self.as_of, now).map_or(now, |as_of| as_of.max(now));
    }

    fn is_empty(&mut self, now: Timestamp) -> bool {
        self.refill(now);
        self.thousandths < TOKEN
    }

    /// Takes a token, if there is one.
    fn take(&mut self, now: Timestamp) -> bool {
        let is_empty = self.is_empty(now);
        self.thousandths -= if is_empty { 0 } else { TOKEN };
        !is_empty
    }
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

    /// Tells nobody anything.
    pub(crate) fn silent() -> Self {
        let (sender, _) = mpsc::channel(1);
        Self { sender, told: Mutex::default(), _writing: JoinSet::new() }
    }

    /// Tells people, unless they were told lately.
    pub(crate) fn publish(&self, now: Timestamp, notice: Notice) {
        let mut told = self.told();
        if told.is_news(now, &notice) {
            self.send(event(now, told.count, notice));
        }
    }

    /// Tells people, unless they were told lately, as long as there are not too many events of this kind. Answers
    /// whether there may be more.
    pub(crate) fn publish_paced(&self, now: Timestamp, notice: Notice) -> bool {
        let mut told = self.told();
        let reason = notice.reason;
        if told.bucket(reason, now).is_empty(now) {
            return false;
        }
        if told.is_news(now, &notice) {
            told.bucket(reason, now).take(now);
            self.send(event(now, told.count, notice));
        }
        true
    }

    /// Tells people every time: this happens only once.
    pub(crate) fn tell(&self, now: Timestamp, about: &ObjectReference, reason: &str, message: String) {
        let count = {
            let mut told = self.told();
            told.count += 1;
            told.count
        };
        self.send(event(now, count, Words { about: about.clone(), tone: Tone::Normal, reason, message }));
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, event: Event) {
        // A full queue means that the API server is slow; events are the first thing to go without.
        let _ = self.sender.try_send(event);
    }
}

/// What an event says.
struct Words<'a> {
    about: ObjectReference,
    tone: Tone,
    reason: &'a str,
    message: String,
}

impl From<Notice> for Words<'_> {
    fn from(Notice { about, tone, reason, message, quiet: _ }: Notice) -> Self {
        Self { about, tone, reason, message }
    }
}

fn event<'a>(now: Timestamp, count: u64, words: impl Into<Words<'a>>) -> Event {
    let Words { about, tone, reason, message } = words.into();
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
    use api::{CapacityBuffer, NodeClaim, NodePool};
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

    /// A buffer.
    pub(crate) fn buffer(buffer: &CapacityBuffer) -> ObjectReference {
        of("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", &buffer.metadata)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn notice(uid: &str, message: &str, quiet: Quiet) -> Notice {
        let about = ObjectReference { uid: Some(uid.to_owned()), ..ObjectReference::default() };
        Notice { about, tone: Tone::Normal, reason: "Told", message: message.to_owned(), quiet }
    }

    /// OBS-13: what is known is not said again before its time; for some reasons whatever the numbers, or whatever the words.
    #[test]
    fn news_are_told_once_in_a_while() {
        let minute = Duration::from_secs(60);
        let (words, gist, reason) = (Quiet::of_words(minute), Quiet::of_gist(minute), Quiet::of_reason(minute));
        let table = [
            (0, "u", "a 1", [true, true, true]),
            (59, "u", "a 1", [false, false, false]),
            (59, "u", "a 2", [true, false, false]),
            (59, "u", "b 1", [true, true, false]),
            (59, "v", "a 1", [true, true, true]),
            (60, "u", "a 1", [true, true, true]),
        ];
        let mut told = [Told::default(), Told::default(), Told::default()];
        for (at, uid, message, news) in table {
            let found = [words, gist, reason].map(|quiet| notice(uid, message, quiet));
            let found = [0, 1, 2].map(|index| told[index].is_news(second(at), &found[index]));
            assert_eq!(found, news, "{at} {uid} {message}");
        }
    }

    /// OBS-13: most news stay news for two minutes, word by word. Those with a time of their own are tested where they are
    /// made.
    #[test]
    fn most_news_last_two_minutes() {
        let table = [(0, "a", true), (119, "a", false), (119, "b", true), (120, "a", true)];
        let mut told = Told::default();
        for (at, message, is_news) in table {
            assert_eq!(told.is_news(second(at), &notice("u", message, QUIET)), is_news, "{message} at {at}");
        }
    }

    /// OBS-11: an event of the core group from the source `karpenter`, beside the object that it is about, or in the
    /// namespace `default` where that has none.
    #[test]
    fn events_say_who_tells_them() {
        for (namespace, expected) in [(Some("shop"), "shop"), (Some(""), "default"), (None, "default")] {
            let about = ObjectReference {
                kind: Some("Pod".to_owned()),
                name: Some("web".to_owned()),
                namespace: namespace.map(ToOwned::to_owned),
                ..ObjectReference::default()
            };
            let words = Words { about: about.clone(), tone: Tone::Warning, reason: "Why", message: "So".to_owned() };
            let event = event(second(1), 26, words);
            assert_eq!(event.metadata.namespace.as_deref(), Some(expected));
            assert_eq!(event.metadata.name.as_deref(), Some("web.3b9aca00.1a"));
            assert_eq!(event.involved_object, about);
            let source = event.source.unwrap();
            assert_eq!((source.component.as_deref(), source.host), (Some("karpenter"), None));
            assert_eq!(event.reporting_component.as_deref(), Some("karpenter"));
            let said = [event.type_, event.reason, event.message].map(Option::unwrap_or_default);
            assert_eq!((said.join(" "), event.count), ("Warning Why So".to_owned(), Some(1)));
        }
    }

    /// A cluster of many objects fills the memory; what was told last stays known.
    #[test]
    fn the_oldest_news_are_forgotten_first() {
        let quiet = Quiet::of_reason(Duration::from_secs(1_000_000));
        let mut told = Told::default();
        let count = i64::try_from(REMEMBERED_MAX).unwrap() + 1;
        for number in 0..count {
            assert!(told.is_news(second(number), &notice(&number.to_string(), "", quiet)));
        }
        assert_eq!((told.last.len(), told.order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
        assert!(told.is_news(second(count), &notice("0", "", quiet)), "long ago");
        assert!(!told.is_news(second(count), &notice(&(count - 1).to_string(), "", quiet)), "just now");
    }

    /// PROV-54: ten at once, and five more each second, over all objects together.
    #[test]
    fn some_events_are_paced() {
        let mut told = Told::default();
        let mut burst = |at: Timestamp| {
            let bucket = told.bucket("Nominated", at);
            (0..100).take_while(|_| bucket.take(at)).count()
        };
        let half = SignedDuration::from_millis(500);
        let found = [second(0), second(0), second(1), second(1) + half, second(2), second(3600)].map(&mut burst);
        assert_eq!(found, [10, 0, 5, 2, 3, 10]);
    }
}
