//! Waiting by watching: a condition on all objects of a kind, checked whenever one of them changes.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use anyhow::Result;
use futures::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

/// Long enough for a busy machine; only a broken test takes it.
///
/// And longer than Kubernetes may stand still by itself: an eviction that was granted to somebody who died before his pod
/// was deleted is held against the budget for two minutes.
pub const BOUND: Duration = Duration::from_secs(240);

/// Objects by name, as the watch has shown them so far.
pub type Seen<K> = BTreeMap<String, K>;

/// Waits until `met` says yes for all objects of a kind; the objects as they were then.
///
/// The bound is only there so that a broken test ends, by a panic, which keeps the logs; it says what was waited for and what there was instead.
pub async fn wait_for<K>(api: Api<K>, what: &str, met: impl Fn(&Seen<K>) -> bool) -> Result<Seen<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut seen = Seen::new();
    let watching = async {
        let mut events = pin!(watcher(api, watcher::Config::default()));
        let mut listed = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => seen.clear(),
                Ok(Event::InitApply(object) | Event::Apply(object)) => {
                    seen.insert(object.name_any(), object);
                }
                Ok(Event::Delete(object)) => {
                    seen.remove(&object.name_any());
                }
                Ok(Event::InitDone) => listed = true,
                // The watcher recovers by itself; the bound ends a watch that never does.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
            if listed && met(&seen) {
                return;
            }
        }
    };
    if tokio::time::timeout(BOUND, watching).await.is_err() {
        let names: Vec<&String> = seen.keys().collect();
        panic!("waited {BOUND:?} in vain for {what}; there were {names:?}\n{seen:#?}");
    }
    Ok(seen)
}

/// Waits for what cannot be watched: an endpoint or a log. Asks again after short pauses.
pub async fn wait_until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> Result<T> {
    const PAUSE: Duration = Duration::from_millis(50);
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    match tokio::time::timeout(BOUND, asking).await {
        Ok(answer) => Ok(answer),
        Err(_) => panic!("waited {BOUND:?} in vain for {what}"),
    }
}
