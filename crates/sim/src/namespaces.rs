//! What is special about namespaces: they go when their content is gone.

use crate::call::{Call, Reply};
use crate::delete::{self, Deleted, Options};
use crate::status_body::Status;
use crate::store::Stored;
use crate::times;
use crate::write;
use schema::Scope;
use serde_json::json;
use std::sync::Arc;

/// Namespaces that nobody can delete.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Marks a namespace as going; the collector does the rest.
pub(crate) fn delete(call: &mut Call<'_>, stored: &Arc<Stored>, options: &Options) -> Result<Deleted, Status> {
    let name = &stored.header.name;
    if IMMORTAL.contains(&name.as_str()) {
        return Err(Status::forbidden(call.resource(), name, "this namespace may not be deleted"));
    }
    let mut object = stored.value();
    if !stored.header.deleting {
        object["metadata"]["deletionTimestamp"] = json!(times::seconds(call.store.now()));
        object["status"]["phase"] = json!("Terminating");
        delete::set_finalizers(&mut object, &delete::finalizers(call.info, stored, options));
    }
    if delete::is_done(call.info, &object) && !options.dry_run {
        let last = call.store.remove(&call.id(), &stored.header.key());
        return Ok(Deleted { object: last.unwrap_or_else(|| stored.clone()), is_gone: true });
    }
    let object = match () {
        () if stored.header.deleting => stored.clone(),
        () if options.dry_run => write::unkept(&object),
        () => call.store.put(&call.id(), object),
    };
    Ok(Deleted { object, is_gone: false })
}

/// Takes a namespace's own finalizers off, which lets it go.
pub(crate) fn finalize(call: &mut Call<'_>) -> Result<Reply, Status> {
    let dry_run = call.query.dry_run()?;
    let wanted = write::decoded(call)?;
    let old = call.existing()?;
    let before = old.value();
    let version = wanted["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !version.is_empty() && version != old.header.revision.to_string() {
        return Err(Status::outdated(call.resource(), call.name()));
    }
    let mut object = before.clone();
    let finalizers = wanted["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
    if finalizers.is_empty() {
        object["spec"] = json!({});
    } else {
        object["spec"]["finalizers"] = json!(finalizers);
    }
    write::check(call, call.schemas.kind(call.info), &object, Some(&before), Scope::Main)?;
    write::commit_update(call, &old, &before, object, dry_run)
}
