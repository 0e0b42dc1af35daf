//! The number of replicas of an object, wherever its kind keeps it, in one form.

use crate::accept;
use crate::call::{Call, Reply};
use crate::patch::{self, PatchKind};
use crate::selector::label_selector_text;
use crate::status_body::{Cause, Status};
use crate::store::Stored;
use crate::strategy;
use crate::write::{self, text};
use schema::{ScalePaths, Scope};
use serde_json::{Value, json};
use std::sync::Arc;

/// Reads the scale.
pub(crate) fn get(call: &mut Call<'_>) -> Result<Reply, Status> {
    let stored = call.existing()?;
    let (object, paths) = (stored.value(), paths(call)?);
    if call.info.is_custom && at(&object, &paths.spec_replicas).is_none() {
        return Err(Status::internal(&format!("the spec replicas field \"{}\" does not exist", paths.spec_replicas)));
    }
    Ok(Reply::Other { code: 200, object: scale_of(call, &object)?, changed: None })
}

/// Replaces the scale.
pub(crate) fn update(call: &mut Call<'_>) -> Result<Reply, Status> {
    let scale = write::decoded_body(call, ["autoscaling", "v1", "Scale"])?;
    let stored = call.existing()?;
    set(call, &stored, &scale)
}

/// Changes the scale in part.
pub(crate) fn patch(call: &mut Call<'_>) -> Result<Reply, Status> {
    let kind = match accept::patch_type(call.headers, call.info.is_custom)? {
        accept::PatchType::Json => PatchKind::Json,
        // A scale has no lists, so a strategic patch is a plain one.
        accept::PatchType::Merge | accept::PatchType::Strategic => PatchKind::Merge,
    };
    let stored = call.existing()?;
    let patch: Value = serde_json::from_slice(call.body).map_err(|problem| write::unreadable_patch(&problem))?;
    let scale = patch::apply(kind, &scale_of(call, &stored.value())?, &patch, None)
        .map_err(|problem| Status::patch_refused(&problem))?;
    set(call, &stored, &scale)
}

fn set(call: &mut Call<'_>, stored: &Arc<Stored>, scale: &Value) -> Result<Reply, Status> {
    let dry_run = call.query.dry_run()?;
    let metadata = &scale["metadata"];
    if !matches!(text(metadata, "name"), "") && text(metadata, "name") != call.name() {
        let found = text(metadata, "name");
        let problem = format!("the name of the object ({found}) does not match the name on the URL ({})", call.name());
        return Err(Status::bad_request(problem));
    }
    let version = text(metadata, "resourceVersion");
    if !version.is_empty() && version != stored.header.revision.to_string() {
        return Err(Status::outdated(call.resource(), call.name()));
    }
    let replicas = &scale["spec"]["replicas"];
    let replicas = match replicas {
        Value::Null => 0,
        other => other.as_i64().ok_or_else(|| Status::bad_request("spec.replicas is not a whole number"))?,
    };
    // The rules of a custom kind speak for themselves.
    if replicas < 0 && !call.info.is_custom {
        let cause = Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!("Invalid value: {replicas}: must be greater than or equal to 0"),
            field: "spec.replicas".to_owned(),
        };
        return Err(Status::invalid("autoscaling", "Scale", call.name(), vec![cause]));
    }
    let before = stored.value();
    let mut object = before.clone();
    put_at(&mut object, &paths(call)?.spec_replicas, json!(replicas));
    strategy::prepare_update(call.info, &before, &mut object);
    write::check(call, call.schemas.kind(call.info), &object, Some(&before), Scope::Scale)?;
    let Reply::Object { stored, .. } = write::commit_update(call, stored, &before, object, dry_run)? else {
        return Err(Status::internal("a scale was not kept as an object"));
    };
    Ok(Reply::Other { code: 200, object: scale_of(call, &stored.value())?, changed: Some(stored) })
}

fn paths(call: &Call<'_>) -> Result<ScalePaths, Status> {
    call.info.scale().cloned().ok_or_else(|| Status::method_not_allowed(call.resource(), "scale"))
}

fn scale_of(call: &Call<'_>, object: &Value) -> Result<Value, Status> {
    let paths = paths(call)?;
    let metadata = &object["metadata"];
    let mut own = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            own[field] = value.clone();
        }
    }
    let mut spec = json!({});
    if let Some(replicas) = at(object, &paths.spec_replicas).and_then(Value::as_i64).filter(|replicas| *replicas != 0) {
        spec["replicas"] = json!(replicas);
    }
    let mut status = json!({ "replicas": at(object, &paths.status_replicas).and_then(Value::as_i64).unwrap_or(0) });
    let selector = paths.label_selector.as_deref().and_then(|path| at(object, path));
    let selector = match selector {
        Some(Value::String(text)) => text.clone(),
        Some(selector) => label_selector_text(selector),
        None => String::new(),
    };
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    Ok(json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": own, "spec": spec, "status": status }))
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = object;
    for segment in path.split('.').filter(|segment| !segment.is_empty()) {
        value = value.get(segment)?;
    }
    Some(value)
}

fn put_at(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for segment in path.split('.').filter(|segment| !segment.is_empty()) {
        place = &mut place[segment];
    }
    *place = value;
}
