//! What happens in the store, told to loops of this process.

use bytes::Bytes;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural resource name.
    pub resource: String,
    /// The namespace; None for objects of the whole cluster.
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

impl ObjectKey {
    /// A key of its four parts.
    pub fn new(group: &str, resource: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new (or was there already when the subscription began).
    Added,
    /// It is different now.
    Modified,
    /// It is gone.
    Deleted,
}

/// One change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreEvent {
    /// The store's revision that this change made; for a deletion the revision of the deletion.
    pub revision: u64,
    /// What became of the object.
    pub change: Change,
    /// Which object.
    pub key: ObjectKey,
    /// The object as JSON; for a deletion its last state.
    pub object: Bytes,
}

/// Everything that happens in the store, in order; what was there at the beginning comes first, as added.
#[derive(Debug)]
pub struct Subscription {
    events: mpsc::UnboundedReceiver<Arc<StoreEvent>>,
}

impl Subscription {
    pub(crate) fn new(events: mpsc::UnboundedReceiver<Arc<StoreEvent>>) -> Self {
        Self { events }
    }

    /// Waits for the next event; None when the server is gone.
    pub async fn next(&mut self) -> Option<Arc<StoreEvent>> {
        self.events.recv().await
    }

    /// The next event if there is one by now.
    pub fn try_next(&mut self) -> Option<Arc<StoreEvent>> {
        self.events.try_recv().ok()
    }

    /// The next event, for hand-written futures.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Arc<StoreEvent>>> {
        self.events.poll_recv(context)
    }
}
