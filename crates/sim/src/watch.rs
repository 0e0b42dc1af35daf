//! Watches: the recent past first, then every change as it happens, translated by the selector.

use crate::answer::{Answer, WatchStream};
use crate::call::Call;
use crate::event::Change;
use crate::output::{Form, frame, to_bytes};
use crate::query::{VersionMatch, list_option_refused};
use crate::selector::Selector;
use crate::server::ApiServer;
use crate::status_body::Status;
use crate::store::{CollectionId, Past, Store, Stored};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a watch lasts if the client does not say: drawn between these two, as the real server does it.
const TIMEOUT_SECONDS_MIN: u64 = 1800;
const TIMEOUT_SECONDS_MAX: u64 = 3600;

/// Somebody who follows a collection.
#[derive(Debug)]
pub(crate) struct Watcher {
    sender: mpsc::UnboundedSender<Bytes>,
    namespace: Option<String>,
    selector: Selector,
    form: Form,
    is_first: bool,
}

/// What is needed to send a bookmark later on.
#[derive(Debug)]
pub(crate) struct Bookmarks {
    sender: mpsc::WeakUnboundedSender<Bytes>,
    form: Form,
}

impl Bookmarks {
    /// Sends a bookmark behind everything that was sent; false if the watch has ended.
    pub(crate) fn send(&self, store: &Store) -> bool {
        let line = frame("BOOKMARK", &self.form.bookmark(store.revision(), false));
        self.sender.upgrade().is_some_and(|sender| sender.send(line).is_ok())
    }
}

impl Watcher {
    /// Passes a change on, if it concerns this watch; false when nobody listens any more.
    pub(crate) fn tell(&mut self, past: &Past, now: Timestamp) -> bool {
        let line = self.translate(past, now);
        match line {
            Some(line) => self.sender.send(line).is_ok(),
            None => !self.sender.is_closed(),
        }
    }

    /// The line for a change: an object that begins to match is added, one that ceases to match is deleted.
    fn translate(&mut self, past: &Past, now: Timestamp) -> Option<Bytes> {
        if self.namespace.is_some() && past.object.header.namespace != self.namespace {
            return None;
        }
        let was = past.before.as_ref().is_some_and(|before| self.selector.matches(&before.header));
        let is = past.change != Change::Deleted && self.selector.matches(&past.object.header);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(self.line("ADDED", &past.object, now)),
            (true, true) => Some(self.line("MODIFIED", &past.object, now)),
            (true, false) if past.change == Change::Deleted => Some(self.line("DELETED", &past.object, now)),
            (true, false) => past.before.as_ref().map(|before| {
                let last = at_revision(before, past.revision);
                self.line("DELETED", &last, now)
            }),
        }
    }

    fn line(&mut self, event: &str, stored: &Stored, now: Timestamp) -> Bytes {
        let first = std::mem::replace(&mut self.is_first, false);
        frame(event, &self.form.watched(stored, now, first))
    }
}

/// The last state that matched, under the revision at which it ceased to.
fn at_revision(stored: &Stored, revision: u64) -> Stored {
    let mut object = stored.value();
    object["metadata"]["resourceVersion"] = Value::String(revision.to_string());
    Stored::of(&object, &[])
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// With everything that is there now.
    Now,
    /// With everything that is there now, and a bookmark that says where it ends.
    NowThenBookmark,
    /// After a revision.
    After(u64),
}

/// Starts a watch.
pub(crate) fn start(call: &mut Call<'_>, server: &ApiServer) -> Result<Answer, Status> {
    let selector = call.selector()?;
    let bookmarks = call.query.flag("allowWatchBookmarks")?;
    let beginning = beginning(call, bookmarks)?;
    let timeout = match call.query.timeout()? {
        Some(timeout) if !timeout.is_zero() => timeout,
        _ => Duration::from_secs(call.store.rng.u64(TIMEOUT_SECONDS_MIN..TIMEOUT_SECONDS_MAX)),
    };
    let (sender, receiver) = mpsc::unbounded_channel();
    let stream = WatchStream::new(receiver, Some(timeout));
    let id = CollectionId::of(call.info);
    if let Beginning::After(revision) = beginning
        && revision < call.store.forgotten(&id)
    {
        let status = Status::too_old(revision, call.store.forgotten(&id));
        // The receiver is in `stream`, so this cannot fail; the channel closes behind it.
        let _ = sender.send(frame("ERROR", &to_bytes(&status)));
        return Ok(Answer::stream("application/json", stream));
    }
    let mut watcher = Watcher {
        sender: sender.clone(),
        namespace: call.target.namespace.clone(),
        selector,
        form: call.form.clone(),
        is_first: true,
    };
    begin(call.store, &id, &mut watcher, beginning);
    let stream = if bookmarks {
        let bookmarks = Bookmarks { sender: sender.downgrade(), form: call.form.clone() };
        stream.with_bookmarks(server.clone(), bookmarks)
    } else {
        stream
    };
    let watchers = &mut call.store.collection_mut(&id).watchers;
    watchers.retain(|watcher| !watcher.sender.is_closed());
    watchers.push(watcher);
    Ok(Answer::stream("application/json", stream))
}

fn beginning(call: &Call<'_>, bookmarks: bool) -> Result<Beginning, Status> {
    let version = call.query.resource_version(call.resource())?;
    let version_match = call.query.version_match()?;
    let asked = call.query.text("sendInitialEvents").is_some();
    if asked && version_match != Some(VersionMatch::NotOlderThan) {
        return Err(list_option_refused(
            "FieldValueForbidden",
            "resourceVersionMatch",
            "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    if version_match.is_some() && !asked {
        return Err(list_option_refused(
            "FieldValueForbidden",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ));
    }
    let send_initial = call.query.flag("sendInitialEvents")?;
    Ok(match version {
        _ if asked && send_initial && bookmarks => Beginning::NowThenBookmark,
        _ if asked && send_initial => Beginning::Now,
        None | Some(0) if asked => Beginning::After(call.store.revision()),
        None | Some(0) => Beginning::Now,
        Some(revision) => Beginning::After(revision),
    })
}

/// Sends what a watch begins with.
fn begin(store: &mut Store, id: &CollectionId, watcher: &mut Watcher, beginning: Beginning) {
    let (now, revision) = (store.now(), store.revision());
    let collection = store.collection_mut(id);
    if let Beginning::After(after) = beginning {
        let from = collection.window.partition_point(|past| past.revision <= after);
        let past: Vec<Past> = collection.window.range(from..).cloned().collect();
        for change in &past {
            watcher.tell(change, now);
        }
        return;
    }
    let objects: Vec<Arc<Stored>> = collection
        .objects
        .values()
        .filter(|stored| watcher.namespace.is_none() || stored.header.namespace == watcher.namespace)
        .filter(|stored| watcher.selector.matches(&stored.header))
        .cloned()
        .collect();
    for stored in objects {
        let line = watcher.line("ADDED", &stored, now);
        // The receiver is alive in the caller.
        let _ = watcher.sender.send(line);
    }
    if beginning == Beginning::NowThenBookmark {
        let _ = watcher.sender.send(frame("BOOKMARK", &watcher.form.bookmark(revision, true)));
    }
}
