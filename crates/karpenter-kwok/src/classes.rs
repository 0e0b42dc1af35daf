//! KWOKNodeClasses as a launch sees them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::KWOKNodeClass;
use kube::{Api, Client};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A plan launches hundreds of claims of one class at once: what one of them read is good for all.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// Reads classes, and remembers them for a moment.
pub(crate) struct Classes {
    api: Api<KWOKNodeClass>,
    /// Held while a class is read, so that nobody reads it at the same time.
    read: Mutex<BTreeMap<String, (Instant, Arc<KWOKNodeClass>)>>,
}

impl Classes {
    pub(crate) fn new(client: Client) -> Self {
        Self { api: Api::all(client), read: Mutex::default() }
    }

    /// The class of that name; nothing if there is none or it is going.
    pub(crate) async fn find(&self, name: &str) -> kube::Result<Option<Arc<KWOKNodeClass>>> {
        let mut read = self.read.lock().await;
        let now = Instant::now();
        read.retain(|_, (at, _)| now.duration_since(*at) < GOOD_FOR);
        if let Some((_, class)) = read.get(name) {
            return Ok(Some(Arc::clone(class)));
        }
        let found = self.api.get_opt(name).await?.filter(|class| class.metadata.deletion_timestamp.is_none());
        let found = found.map(Arc::new);
        if let Some(class) = &found {
            read.insert(name.to_owned(), (now, Arc::clone(class)));
        }
        Ok(found)
    }
}
