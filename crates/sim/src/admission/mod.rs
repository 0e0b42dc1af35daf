//! What a stock server adds to objects, or refuses, before their kind's rules are asked: namespaces must take content,
//! pods get tolerations, a priority and a service account.

mod priority;
mod service_account;
mod tolerations;

use crate::call::Call;
use crate::status_body::{Cause, Status};
use crate::store::CollectionId;
use serde_json::{Value, json};

/// Refuses new content of a namespace that is not there, or going.
pub(crate) fn namespace_takes_content(call: &Call<'_>, name: &str) -> Result<(), Status> {
    let Some(namespace) = call.namespace() else { return Ok(()) };
    let id = CollectionId::new("", "namespaces");
    match call.store.get(&id, None, namespace) {
        None => Err(Status::not_found(crate::server::resource_named("namespaces"), namespace)),
        Some(stored) if stored.header.deleting => {
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            let mut status = Status::forbidden(call.resource(), name, &why);
            if let Some(details) = &mut status.details {
                details.causes.push(Cause {
                    reason: "NamespaceTerminating".to_owned(),
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".to_owned(),
                });
            }
            Err(status)
        }
        Some(_) => Ok(()),
    }
}

/// Completes a new object.
pub(crate) fn admit_creation(call: &mut Call<'_>, object: &mut Value) -> Result<(), Status> {
    if call.is("", "pods") {
        service_account::admit(call, object)?;
        tolerations::admit(object);
        priority::admit(call, object)?;
    }
    if call.is("", "nodes") {
        taint_new_node(object);
    }
    Ok(())
}

/// A new node takes no pods until somebody has seen it ready.
fn taint_new_node(node: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let spec = &mut node["spec"];
    if spec.is_null() {
        *spec = json!({});
    }
    let taint = json!({ "key": KEY, "effect": "NoSchedule" });
    match spec["taints"].as_array_mut() {
        Some(taints) if taints.iter().any(|taint| taint["key"] == KEY && taint["effect"] == "NoSchedule") => {}
        Some(taints) => taints.push(taint),
        None => spec["taints"] = json!([taint]),
    }
}

/// Keeps what the server decided when the object was made.
pub(crate) fn admit_update(call: &Call<'_>, before: &Value, object: &mut Value) {
    if call.is("", "pods") {
        tolerations::admit(object);
        priority::carry(before, object);
    }
}
