//! The objects that every cluster has from the beginning.

use crate::names;
use crate::store::{CollectionId, Store};
use crate::strategy;
use crate::times;
use schema::Schemas;
use serde_json::{Value, json};

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Namespaces with their service accounts, and the two priority classes of the system.
pub(crate) fn fill(schemas: &Schemas, store: &mut Store) {
    for name in NAMESPACES {
        add(schemas, store, ["", "v1", "namespaces"], json!({ "metadata": { "name": name } }));
        add_service_account(schemas, store, name);
    }
    let classes = [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ];
    for (name, value, description) in classes {
        let class = json!({ "metadata": { "name": name }, "value": value, "description": description });
        add(schemas, store, ["scheduling.k8s.io", "v1", "priorityclasses"], class);
    }
}

/// The service account that pods of a namespace have if they name none.
pub(crate) fn add_service_account(schemas: &Schemas, store: &mut Store, namespace: &str) {
    let account = json!({ "metadata": { "name": "default", "namespace": namespace } });
    add(schemas, store, ["", "v1", "serviceaccounts"], account);
}

fn add(schemas: &Schemas, store: &mut Store, [group, version, plural]: [&str; 3], mut object: Value) {
    let Some(info) = schemas.resource(group, version, plural) else { return };
    object["apiVersion"] = json!(info.api_version());
    object["kind"] = json!(info.kind);
    object["metadata"]["uid"] = json!(names::uid(&mut store.rng));
    object["metadata"]["creationTimestamp"] = json!(times::seconds(store.now()));
    strategy::prepare_creation(info, store, &mut object);
    schemas.kind(info).default(&mut object);
    store.put(&CollectionId::of(info), object);
}
