//! Custom resource definitions: what they define is served from the moment they are there.

use crate::status_body::Status;
use crate::store::{CollectionId, Store, Stored};
use crate::times;
use crate::write::{cause, text};
use schema::Schemas;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const GROUP: &str = "apiextensions.k8s.io";
pub(crate) const RESOURCE: &str = "customresourcedefinitions";

/// Refuses a definition whose schemas cannot be used.
pub(crate) fn check(definition: &Value) -> Result<(), Status> {
    // A scratch copy of the built-in kinds, because trying a definition must not serve it. Definitions are rare.
    Schemas::bundled().add_definition(definition).map_err(|errors| {
        let name = text(&definition["metadata"], "name");
        Status::invalid(GROUP, "CustomResourceDefinition", name, errors.iter().map(cause).collect())
    })
}

/// Brings the served kinds in line with the definitions in the store, and says so in their status.
pub(crate) fn follow(schemas: &mut Schemas, store: &mut Store) {
    let id = CollectionId::new(GROUP, RESOURCE);
    let present: BTreeMap<String, Arc<Stored>> =
        store.collection(&id).map(|collection| collection.objects.clone()).unwrap_or_default();
    let gone: Vec<String> = store.defined.keys().filter(|name| !present.contains_key(*name)).cloned().collect();
    for name in gone {
        store.defined.remove(&name);
        schemas.remove_definition(&name);
        // A definition's name is the resource, a dot, and the group.
        if let Some((resource, group)) = name.split_once('.') {
            store.drop_collection(&CollectionId::new(group, resource));
        }
    }
    for (name, stored) in present {
        let mut definition = stored.value();
        let state = (stored.header.uid.clone(), definition["metadata"]["generation"].as_i64().unwrap_or(0));
        if store.defined.get(&name) == Some(&state) {
            continue;
        }
        store.defined.insert(name, state);
        // It was checked before it was kept, so this does not fail; if it did, the kind would not be served.
        if schemas.add_definition(&definition).is_err() {
            continue;
        }
        let now = times::seconds(store.now());
        definition["status"] = status(&definition, &now);
        if definition != stored.value() {
            store.put(&id, definition);
        }
    }
}

fn status(definition: &Value, now: &str) -> Value {
    let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let stored = versions.iter().filter(|version| version["storage"] == true).map(|version| version["name"].clone());
    let conditions = [
        condition(definition, "NamesAccepted", "NoConflicts", "no conflicts found", now),
        condition(definition, "Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ];
    json!({
        "acceptedNames": definition["spec"]["names"],
        "storedVersions": stored.collect::<Vec<_>>(),
        "conditions": conditions,
    })
}

/// A condition that is true, since when it became so.
fn condition(definition: &Value, name: &str, reason: &str, message: &str, now: &str) -> Value {
    let mut known = definition["status"]["conditions"].as_array().into_iter().flatten();
    let since = known
        .find(|condition| condition["type"] == name && condition["status"] == "True")
        .map_or_else(|| json!(now), |condition| condition["lastTransitionTime"].clone());
    json!({ "type": name, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since })
}
