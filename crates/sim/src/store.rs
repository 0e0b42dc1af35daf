//! The objects, their recent past, and those who follow them.
//!
//! Objects are kept as JSON text with a small parsed header. The recent past is a window of changes per resource, each
//! with the state before it: a list at an older revision is the present with the later changes taken back.

use crate::collect::GarbageQueue;
use crate::event::{Change, ObjectKey, StoreEvent};
use crate::header::{FOREGROUND, Header, ORPHAN, object_key};
use crate::history::Record;
use crate::logs::Logs;
use crate::selector::selectable_fields;
use crate::server::Clock;
use crate::watch::Watcher;
use bytes::Bytes;
use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use schema::ResourceInfo;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::mpsc;

/// How long an event stays after its last change.
const EVENT_LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// An object as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) header: Header,
    /// The whole object; `apiVersion` and `kind` come first, so that they can be cut off or exchanged.
    pub(crate) json: Bytes,
    /// Where the object goes on after `apiVersion` and `kind`.
    rest: usize,
}

impl Stored {
    /// Writes an object down.
    pub(crate) fn of(object: &Value, fields: &'static [&'static str]) -> Self {
        let prefix =
            type_prefix(object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
        let mut json = prefix.clone().into_bytes();
        let members = object.as_object().into_iter().flatten();
        for (name, value) in members.filter(|(name, _)| *name != "apiVersion" && *name != "kind") {
            json.push(b',');
            write_json(&mut json, name);
            json.push(b':');
            write_json(&mut json, value);
        }
        json.push(b'}');
        Self { header: Header::of(object, fields), json: Bytes::from(json), rest: prefix.len() }
    }

    /// The object, parsed.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// The members of the object after `apiVersion` and `kind`, with the closing brace.
    pub(crate) fn members(&self) -> &[u8] {
        // A comma stands before the first member; there always is one, `metadata`.
        self.json.get(self.rest + 1..).unwrap_or_default()
    }

    /// The object in another version of its kind.
    pub(crate) fn json_as(&self, api_version: &str, kind: &str) -> Bytes {
        let prefix = type_prefix(api_version, kind);
        if self.json.starts_with(prefix.as_bytes()) {
            return self.json.clone();
        }
        let mut json = prefix.into_bytes();
        json.push(b',');
        json.extend_from_slice(self.members());
        Bytes::from(json)
    }
}

/// Writes a value that cannot fail to be written: a name or an object of the store.
fn write_json(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // A vector takes everything, and JSON values have only text as keys.
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok());
}

fn type_prefix(api_version: &str, kind: &str) -> String {
    format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\"")
}

/// One change in the window.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pub(crate) revision: u64,
    pub(crate) change: Change,
    pub(crate) key: String,
    /// The object before the change, if it was there.
    pub(crate) before: Option<Arc<Stored>>,
    /// The object after the change; for a deletion its last state, with the revision of the deletion.
    pub(crate) object: Arc<Stored>,
}

/// A resource by group and plural name; all its versions share one collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectionId {
    pub(crate) group: String,
    pub(crate) resource: String,
}

impl CollectionId {
    pub(crate) fn new(group: &str, resource: &str) -> Self {
        Self { group: group.to_owned(), resource: resource.to_owned() }
    }

    pub(crate) fn of(info: &ResourceInfo) -> Self {
        Self::new(&info.group, &info.plural)
    }

    fn object_key(&self, header: &Header) -> ObjectKey {
        ObjectKey::new(&self.group, &self.resource, header.namespace.as_deref(), &header.name)
    }
}

/// The objects of one resource.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    pub(crate) objects: BTreeMap<String, Arc<Stored>>,
    pub(crate) window: VecDeque<Past>,
    /// The newest revision that the window no longer reaches: what happened up to here is forgotten.
    forgotten: u64,
    pub(crate) watchers: Vec<Watcher>,
}

impl Collection {
    /// The objects behind a key as they were at a revision, which must not be forgotten, in the order of their keys.
    ///
    /// Costs what changed since and what is taken of the answer, not what is there: large lists are read in many pages.
    pub(crate) fn at<'a>(&'a self, revision: u64, after: Option<&str>) -> impl Iterator<Item = &'a Arc<Stored>> {
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut changed: BTreeMap<&str, Option<&Arc<Stored>>> = BTreeMap::new();
        for past in self.window.iter().rev().take_while(|past| past.revision > revision) {
            changed.insert(&past.key, past.before.as_ref());
        }
        let mut before = match after {
            Some(after) => changed.split_off(after),
            None => std::mem::take(&mut changed),
        };
        after.map(|after| before.remove(after));
        let mut present = self.objects.range::<str, _>((behind, Bound::Unbounded)).peekable();
        let mut before = before.into_iter().peekable();
        std::iter::from_fn(move || {
            loop {
                let is_present_first = match (present.peek(), before.peek()) {
                    (Some((key, _)), Some((other, _))) => key.as_str() < *other,
                    (Some(_), None) => true,
                    (None, Some(_)) => false,
                    (None, None) => return None,
                };
                if is_present_first {
                    return present.next().map(|(_, stored)| stored);
                }
                let (key, stored) = before.next()?;
                // What is there now under this key is not what was there then.
                present.next_if(|(other, _)| other.as_str() == key);
                if stored.is_some() {
                    return stored;
                }
            }
        })
    }

    fn remember(&mut self, past: Past, window_max: usize) {
        self.window.push_back(past);
        while self.window.len() > window_max {
            self.forgotten = self.window.pop_front().map_or(self.forgotten, |past| past.revision);
        }
    }
}

/// Everything that the server keeps, except the schemas.
pub(crate) struct Store {
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
    pub(crate) logs: Logs,
    pub(crate) garbage: GarbageQueue,
    /// The definitions that are served, by name, with the identity and count of changes they were served in.
    pub(crate) defined: BTreeMap<String, (String, i64)>,
    /// None if no history is kept.
    pub(crate) records: Option<Vec<Arc<Record>>>,
    revision: u64,
    compacted: u64,
    window_max: usize,
    collections: BTreeMap<CollectionId, Collection>,
    uids: BTreeMap<String, ObjectKey>,
    dependents: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// When events go by themselves: the time, the key, and the revision that was kept.
    expiring: VecDeque<(Timestamp, String, u64)>,
    subscribers: Vec<mpsc::UnboundedSender<Arc<StoreEvent>>>,
}

impl Store {
    pub(crate) fn new(clock: Clock, seed: u64, window_max: usize, keep_history: bool) -> Self {
        Self {
            clock,
            rng: Rng::with_seed(seed),
            logs: Logs::default(),
            garbage: GarbageQueue::default(),
            defined: BTreeMap::new(),
            records: keep_history.then(Vec::new),
            revision: 1,
            compacted: 0,
            window_max,
            collections: BTreeMap::new(),
            uids: BTreeMap::new(),
            dependents: BTreeMap::new(),
            expiring: VecDeque::new(),
            subscribers: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Everything before now is forgotten.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.revision;
        for collection in self.collections.values_mut() {
            collection.window.clear();
        }
    }

    /// The newest revision of a resource that can no longer be looked back at.
    pub(crate) fn forgotten(&self, id: &CollectionId) -> u64 {
        self.compacted.max(self.collections.get(id).map_or(0, |collection| collection.forgotten))
    }

    pub(crate) fn collection(&self, id: &CollectionId) -> Option<&Collection> {
        self.collections.get(id)
    }

    pub(crate) fn collection_mut(&mut self, id: &CollectionId) -> &mut Collection {
        self.collections.entry(id.clone()).or_default()
    }

    pub(crate) fn collection_ids(&self) -> impl Iterator<Item = &CollectionId> {
        self.collections.keys()
    }

    /// Takes a resource out, with its objects and watchers; the objects are told as deleted.
    pub(crate) fn drop_collection(&mut self, id: &CollectionId) {
        let keys: Vec<String> =
            self.collections.get(id).into_iter().flat_map(|collection| collection.objects.keys().cloned()).collect();
        for key in keys {
            self.remove(id, &key);
        }
        self.collections.remove(id);
    }

    pub(crate) fn get(&self, id: &CollectionId, namespace: Option<&str>, name: &str) -> Option<&Arc<Stored>> {
        self.collections.get(id)?.objects.get(&object_key(namespace, name))
    }

    pub(crate) fn find(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.get(&CollectionId::new(&key.group, &key.resource), key.namespace.as_deref(), &key.name)
    }

    /// The object that has this identity now.
    pub(crate) fn key_by_uid(&self, uid: &str) -> Option<&ObjectKey> {
        self.uids.get(uid)
    }

    /// The objects that name this identity as their owner.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &ObjectKey> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Keeps an object under a new revision and tells everybody.
    pub(crate) fn put(&mut self, id: &CollectionId, mut object: Value) -> Arc<Stored> {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = Value::String(self.revision.to_string());
        let stored = Arc::new(Stored::of(&object, selectable_fields(&id.group, &id.resource)));
        let before = self.collection_mut(id).objects.insert(stored.header.key(), stored.clone());
        let change = if before.is_some() { Change::Modified } else { Change::Added };
        self.index(id, before.as_deref(), Some(&stored));
        self.tell(id, change, before, stored.clone());
        self.notice_garbage(id, &stored, change);
        self.notice_logs(id, &stored.header, change);
        if id.resource == "events" && id.group.is_empty() {
            let until = self.now().checked_add(EVENT_LIFETIME).unwrap_or(Timestamp::MAX);
            self.expiring.push_back((until, stored.header.key(), stored.header.revision));
        }
        stored
    }

    /// Lets go of events that nobody touched for an hour, as the real server does.
    pub(crate) fn expire_events(&mut self) {
        let now = self.now();
        let id = CollectionId::new("", "events");
        while let Some((_, key, revision)) = self.expiring.pop_front_if(|(until, _, _)| *until <= now) {
            let kept = self.collections.get(&id).and_then(|events| events.objects.get(&key));
            if kept.is_some_and(|event| event.header.revision == revision) {
                self.remove(&id, &key);
            }
        }
    }

    /// Takes an object out under a new revision and tells everybody; gives its last state.
    pub(crate) fn remove(&mut self, id: &CollectionId, key: &str) -> Option<Arc<Stored>> {
        let before = self.collections.get_mut(id)?.objects.remove(key)?;
        self.revision += 1;
        let mut object = before.value();
        object["metadata"]["resourceVersion"] = Value::String(self.revision.to_string());
        let last = Arc::new(Stored::of(&object, selectable_fields(&id.group, &id.resource)));
        self.index(id, Some(&before), None);
        self.tell(id, Change::Deleted, Some(before), last.clone());
        self.notice_garbage(id, &last, Change::Deleted);
        self.notice_logs(id, &last.header, Change::Deleted);
        Some(last)
    }

    /// From now on the receiver hears everything; what is there comes first.
    pub(crate) fn subscribe(&mut self) -> mpsc::UnboundedReceiver<Arc<StoreEvent>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        for (id, collection) in &self.collections {
            for stored in collection.objects.values() {
                // The receiver is in this function, so this cannot fail.
                let _ = sender.send(Arc::new(store_event(id, Change::Added, stored)));
            }
        }
        self.subscribers.push(sender);
        receiver
    }

    fn index(&mut self, id: &CollectionId, before: Option<&Stored>, after: Option<&Stored>) {
        if let Some(before) = before {
            let key = id.object_key(&before.header);
            self.uids.remove(&before.header.uid);
            for owner in &before.header.owners {
                if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                    dependents.remove(&key);
                    if dependents.is_empty() {
                        self.dependents.remove(&owner.uid);
                    }
                }
            }
        }
        if let Some(after) = after {
            let key = id.object_key(&after.header);
            for owner in &after.header.owners {
                self.dependents.entry(owner.uid.clone()).or_default().insert(key.clone());
            }
            self.uids.insert(after.header.uid.clone(), key);
        }
    }

    fn tell(&mut self, id: &CollectionId, change: Change, before: Option<Arc<Stored>>, object: Arc<Stored>) {
        let (revision, now, window_max) = (self.revision, self.now(), self.window_max);
        self.subscribers.retain(|subscriber| !subscriber.is_closed());
        if !self.subscribers.is_empty() {
            let event = Arc::new(StoreEvent { revision, ..store_event(id, change, &object) });
            for subscriber in &self.subscribers {
                // A receiver that went away meanwhile is taken out at the next event.
                let _ = subscriber.send(event.clone());
            }
        }
        let past = Past { revision, change, key: object.header.key(), before, object };
        let collection = self.collection_mut(id);
        collection.watchers.retain_mut(|watcher| watcher.tell(&past, now));
        collection.remember(past, window_max);
    }

    /// Notes what the garbage collection has to look at after a change.
    fn notice_garbage(&mut self, id: &CollectionId, stored: &Stored, change: Change) {
        let header = &stored.header;
        if change == Change::Deleted {
            let mut looks: Vec<ObjectKey> = self.dependents(&header.uid).cloned().collect();
            looks.extend(header.owners.iter().filter_map(|owner| self.uids.get(&owner.uid)).cloned());
            looks.extend(header.namespace.as_ref().map(|namespace| ObjectKey::new("", "namespaces", None, namespace)));
            looks.retain(|key| self.is_garbage_concern(key));
            for key in looks {
                self.garbage.push(key);
            }
        } else if self.is_garbage_concern(&id.object_key(header)) {
            self.garbage.push(id.object_key(header));
        }
    }

    /// Those who follow a pod's log hear its end.
    fn notice_logs(&mut self, id: &CollectionId, header: &Header, change: Change) {
        if id.resource != "pods" || !id.group.is_empty() {
            return;
        }
        let namespace = header.namespace.as_deref().unwrap_or_default();
        if change == Change::Deleted {
            self.logs.forget(namespace, &header.name);
        } else if matches!(header.field("status.phase"), Some("Succeeded" | "Failed")) {
            self.logs.end(namespace, &header.name);
        }
    }

    /// Whether the collector has anything to decide about an object: an owner that is gone or going, or its own
    /// deletion that waits for dependents or content.
    fn is_garbage_concern(&self, key: &ObjectKey) -> bool {
        let Some(stored) = self.find(key) else { return false };
        let header = &stored.header;
        let waits = header.deleting
            && (header.has_finalizer(FOREGROUND)
                || header.has_finalizer(ORPHAN)
                || (key.resource == "namespaces" && key.group.is_empty()));
        waits || header.owners.iter().any(|owner| !self.is_solid_owner(&owner.uid))
    }

    /// Whether an owner is there and not waiting for its dependents to go.
    pub(crate) fn is_solid_owner(&self, uid: &str) -> bool {
        self.uids
            .get(uid)
            .and_then(|key| self.find(key))
            .is_some_and(|owner| !(owner.header.deleting && owner.header.has_finalizer(FOREGROUND)))
    }
}

fn store_event(id: &CollectionId, change: Change, stored: &Stored) -> StoreEvent {
    StoreEvent {
        revision: stored.header.revision,
        change,
        key: id.object_key(&stored.header),
        object: stored.json.clone(),
    }
}
