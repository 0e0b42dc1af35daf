//! Every namespace has a service account that pods use by default.

use serde_json::json;

use crate::caches::Caches;
use crate::key::Key;
use crate::write::{Decision, SERVICE_ACCOUNTS, Write};

/// Makes the default service account of a namespace that has none.
pub(crate) fn reconcile(caches: &Caches, key: &Key) -> Decision {
    let Some(namespace) = caches.namespaces.get(key) else { return Decision::default() };
    let account = Key::new(key.name.clone(), "default");
    if namespace.metadata.deletion_timestamp.is_some() || caches.service_accounts.contains_key(&account) {
        return Decision::default();
    }
    let object = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": key.name},
    });
    let create = Write::Create { resource: SERVICE_ACCOUNTS, namespace: key.name.to_string(), object, owner: None };
    Decision::of(vec![create])
}
