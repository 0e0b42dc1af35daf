//! Creating and changing objects.

use crate::accept;
use crate::admission;
use crate::bootstrap;
use crate::call::{Call, Reply};
use crate::definitions;
use crate::delete;
use crate::header::{FOREGROUND, ORPHAN, object_key};
use crate::names;
use crate::patch::{self, PatchKind};
use crate::shape::PatchShape;
use crate::status_body::{Cause, Status};
use crate::store::Stored;
use crate::strategy;
use crate::times;
use schema::{DecodeError, FieldError, KindSchema, Scope};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How often a generated name is drawn again when it is taken.
const GENERATED_NAME_TRIES: usize = 8;

/// Metadata that only the server writes.
const SYSTEM_METADATA: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
    "managedFields",
];

/// Makes an object.
pub(crate) fn create(call: &mut Call<'_>) -> Result<Reply, Status> {
    let dry_run = call.query.dry_run()?;
    let object = decoded(call)?;
    create_object(call, object, dry_run)
}

fn create_object(call: &mut Call<'_>, mut object: Value, dry_run: bool) -> Result<Reply, Status> {
    ensure_namespace(call, &mut object)?;
    let metadata = metadata_mut(&mut object)?;
    let version = metadata.remove("resourceVersion");
    for field in SYSTEM_METADATA {
        metadata.remove(field);
    }
    let generated = generate_name(call, &mut object)?;
    let name = text(&object["metadata"], "name").to_owned();
    admission::namespace_takes_content(call, &name)?;
    let metadata = metadata_mut(&mut object)?;
    metadata.insert("uid".to_owned(), json!(names::uid(&mut call.store.rng)));
    metadata.insert("creationTimestamp".to_owned(), json!(times::seconds(call.store.now())));
    admission::admit_creation(call, &mut object)?;
    strategy::prepare_creation(call.info, call.store, &mut object);
    let kind = call.schemas.kind(call.info);
    kind.default(&mut object);
    check(call, kind, &object, None, Scope::Main)?;
    warn_of_finalizers(call, None, &object);
    let version = version.filter(|version| version.as_str().is_some_and(|version| !version.is_empty()));
    // A dry run never comes to the store, which is what minds; a replacement that creates does not mind.
    if version.is_some() && !dry_run && call.target.name.is_none() {
        return Err(Status::server_failure("resourceVersion should not be set on objects to be created"));
    }
    if let Some(taken) = call.store.get(&call.id(), call.namespace(), &name) {
        return Err(match generated {
            true => Status::no_unique_name(call.resource(), &name),
            false if taken.header.deleting => Status::still_exists(call.resource(), &name),
            false => Status::already_exists(call.resource(), &name),
        });
    }
    if dry_run {
        if let (Some(version), true) = (version, call.target.name.is_none()) {
            object["metadata"]["resourceVersion"] = version;
        }
        return Ok(Reply::Object { code: 201, stored: unkept(&object) });
    }
    let stored = call.store.put(&call.id(), object);
    if call.is("", "namespaces") {
        bootstrap::add_service_account(call.schemas, call.store, &name);
    }
    Ok(Reply::Object { code: 201, stored })
}

/// Replaces an object, or its status.
pub(crate) fn update(call: &mut Call<'_>) -> Result<Reply, Status> {
    let dry_run = call.query.dry_run()?;
    let mut object = decoded(call)?;
    let metadata = metadata_mut(&mut object)?;
    match metadata.get("name").and_then(Value::as_str).unwrap_or_default() {
        "" => return Err(Status::bad_request("name must be provided")),
        name if name != call.name() => {
            let problem =
                format!("the name of the object ({name}) does not match the name on the URL ({})", call.name());
            return Err(Status::bad_request(problem));
        }
        _ => {}
    }
    ensure_namespace(call, &mut object)?;
    match call.existing() {
        Ok(old) => replace(call, &old, object, dry_run),
        Err(_) if call.target.subresource.is_none() && strategy::creates_on_update(call.info) => {
            refuse_other_uid(call, &object, dry_run)?;
            create_object(call, object, dry_run)
        }
        Err(status) => Err(status),
    }
}

/// Changes parts of an object, or of its status.
pub(crate) fn patch(call: &mut Call<'_>) -> Result<Reply, Status> {
    let dry_run = call.query.dry_run()?;
    let patch_type = accept::patch_type(call.headers, call.info.is_custom)?;
    let old = call.existing()?;
    let mut current = old.value();
    current["apiVersion"] = json!(call.info.api_version());
    let kind = call.schemas.kind(call.info);
    let changed = patched(&current, call.body, patch_type, kind)?;
    let mode = call.query.field_validation()?;
    let shown = changed.to_string();
    let decoded = kind.decode_value(changed, mode).map_err(|problem| unfit_patch(&shown, &problem))?;
    call.warnings.extend(decoded.warnings);
    let mut object = decoded.object;
    ensure_namespace(call, &mut object)?;
    if text(&object["metadata"], "name") != call.name() {
        let name = text(&object["metadata"], "name");
        let problem = format!("the name of the object ({name}) does not match the name on the URL ({})", call.name());
        return Err(Status::bad_request(problem));
    }
    replace(call, &old, object, dry_run)
}

/// The refusal of a patch that is not JSON.
pub(crate) fn unreadable_patch(problem: &serde_json::Error) -> Status {
    let words = if problem.is_eof() { "unexpected end of JSON input".to_owned() } else { problem.to_string() };
    Status::bad_request(format!("error decoding patch: {words}"))
}

/// The refusal of a patch that makes something else of the object.
fn unfit_patch(patched: &str, problem: &DecodeError) -> Status {
    let words = match problem {
        DecodeError::Syntax { problem, .. } | DecodeError::Unfit { problem, .. } => problem.clone(),
        DecodeError::Version { .. } => return Status::bad_request(problem.to_string()),
    };
    let message = format!("Invalid value: {patched:?}: {words}");
    let cause = Cause { reason: "FieldValueInvalid".to_owned(), message, field: "patch".to_owned() };
    Status::invalid("", "", "", vec![cause])
}

/// Applies a patch of any kind to a JSON object.
pub(crate) fn patched(
    current: &Value,
    body: &[u8],
    patch_type: accept::PatchType,
    kind: &KindSchema,
) -> Result<Value, Status> {
    let patch: Value = serde_json::from_slice(body).map_err(|problem| unreadable_patch(&problem))?;
    let shape = PatchShape(kind.shape());
    let patch_kind = match patch_type {
        accept::PatchType::Json => PatchKind::Json,
        accept::PatchType::Merge => PatchKind::Merge,
        accept::PatchType::Strategic => PatchKind::Strategic,
    };
    patch::apply(patch_kind, current, &patch, Some(&shape)).map_err(|problem| Status::patch_refused(&problem))
}

/// Brings the new state of an object in, after all checks; an unchanged object is not written.
pub(crate) fn replace(
    call: &mut Call<'_>,
    old: &Arc<Stored>,
    mut object: Value,
    dry_run: bool,
) -> Result<Reply, Status> {
    check_preconditions(call, old, &object)?;
    let kind = call.schemas.kind(call.info);
    kind.default(&mut object);
    let before = old.value();
    let is_status = call.target.subresource.as_deref() == Some("status");
    carry_metadata(&before, &mut object);
    if is_status {
        strategy::prepare_status_update(call.info, &before, &mut object);
    } else {
        strategy::prepare_update(call.info, &before, &mut object);
        admission::admit_update(call, &before, &mut object);
    }
    // What was carried over or taken out may need its empty form again.
    kind.default(&mut object);
    let scope = if is_status { Scope::Status } else { Scope::Main };
    check(call, kind, &object, Some(&before), scope)?;
    warn_of_finalizers(call, Some(&before), &object);
    commit_update(call, old, &before, object, dry_run)
}

/// Keeps a changed object; one that was only waiting for its last finalizer goes.
pub(crate) fn commit_update(
    call: &mut Call<'_>,
    old: &Arc<Stored>,
    before: &Value,
    mut object: Value,
    dry_run: bool,
) -> Result<Reply, Status> {
    object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
    object["apiVersion"] = before["apiVersion"].clone();
    if object == *before {
        return Ok(Reply::Object { code: 200, stored: old.clone() });
    }
    if dry_run {
        return Ok(Reply::Object { code: 200, stored: unkept(&object) });
    }
    if delete::is_done(call.info, &object) {
        let last = unkept(&object);
        call.store.remove(&call.id(), &object_key(call.namespace(), call.name()));
        return Ok(Reply::Object { code: 200, stored: last });
    }
    Ok(Reply::Object { code: 200, stored: call.store.put(&call.id(), object) })
}

/// The request's body as an object of the resource's kind.
pub(crate) fn decoded(call: &mut Call<'_>) -> Result<Value, Status> {
    let body = accept::json_body(call.headers, call.body)?;
    let mode = call.query.field_validation()?;
    let decoded =
        call.schemas.kind(call.info).decode(&body, mode).map_err(|problem| Status::bad_request(problem.to_string()))?;
    call.warnings.extend(decoded.warnings);
    Ok(decoded.object)
}

/// The request's body as a kind that is sent but never stored.
pub(crate) fn decoded_body(call: &mut Call<'_>, [group, version, kind]: [&str; 3]) -> Result<Value, Status> {
    let body = accept::json_body(call.headers, call.body)?;
    let mode = call.query.field_validation()?;
    let known = call.schemas.body(group, version, kind).ok_or_else(|| Status::internal("the kind is not known"))?;
    let decoded = known.decode(&body, mode).map_err(|problem| Status::bad_request(problem.to_string()))?;
    call.warnings.extend(decoded.warnings);
    Ok(decoded.object)
}

/// Fills the namespace in, or refuses another one than the path's.
fn ensure_namespace(call: &Call<'_>, object: &mut Value) -> Result<(), Status> {
    let metadata = metadata_mut(object)?;
    let found = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default().to_owned();
    match (call.namespace(), found.as_str()) {
        (Some(namespace), "") => {
            metadata.insert("namespace".to_owned(), json!(namespace));
            Ok(())
        }
        // A namespace that nothing has is taken out, not refused.
        (None, _) => {
            metadata.remove("namespace");
            Ok(())
        }
        (Some(namespace), found) if namespace == found => Ok(()),
        _ => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// Draws a name if only its beginning is given; says whether it did.
fn generate_name(call: &mut Call<'_>, object: &mut Value) -> Result<bool, Status> {
    let metadata = metadata_mut(object)?;
    let has_name = metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    let base = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default().to_owned();
    if has_name || base.is_empty() {
        return Ok(false);
    }
    let mut name = names::generated(&mut call.store.rng, &base);
    for _ in 1..GENERATED_NAME_TRIES {
        if call.store.get(&call.id(), call.namespace(), &name).is_none() {
            break;
        }
        name = names::generated(&mut call.store.rng, &base);
    }
    metadata_mut(object)?.insert("name".to_owned(), json!(name));
    Ok(true)
}

/// Refuses changes to another object of the name, or to an older state of it.
fn check_preconditions(call: &Call<'_>, old: &Stored, object: &Value) -> Result<(), Status> {
    let metadata = &object["metadata"];
    let (uid, version) = (text(metadata, "uid"), text(metadata, "resourceVersion"));
    if !uid.is_empty() && uid != old.header.uid {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.header.uid);
        return Err(Status::conflict(call.resource(), call.name(), &why));
    }
    if version.is_empty() || version == "0" {
        if strategy::needs_version_on_update(call.info) {
            let cause = Cause {
                reason: "FieldValueInvalid".to_owned(),
                message: "Invalid value: 0: must be specified for an update".to_owned(),
                field: "metadata.resourceVersion".to_owned(),
            };
            // The real server names the resource here, not the kind.
            return Err(Status::invalid(&call.info.group, &call.info.plural, call.name(), vec![cause]));
        }
        return Ok(());
    }
    match version.parse::<u64>() {
        Ok(version) if version == old.header.revision => Ok(()),
        Ok(_) => Err(Status::outdated(call.resource(), call.name())),
        Err(_) => {
            let message =
                format!("Invalid value: \"{version}\": strconv.ParseUint: parsing \"{version}\": invalid syntax");
            let cause =
                Cause { reason: "FieldValueInvalid".to_owned(), message, field: "metadata.resourceVersion".to_owned() };
            Err(Status::invalid(&call.info.group, &call.info.kind, call.name(), vec![cause]))
        }
    }
}

/// A replacement that would create cannot mean an object that there was.
fn refuse_other_uid(call: &Call<'_>, object: &Value, dry_run: bool) -> Result<(), Status> {
    let uid = text(&object["metadata"], "uid");
    if uid.is_empty() {
        return Ok(());
    }
    // A dry run does not come as far as the part of the store that adds its own beginning.
    let root = if dry_run { "" } else { "/registry" };
    let path: Vec<&str> = call.namespace().into_iter().chain([call.name()]).collect();
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {root}/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {uid}, UID in object meta: ",
        call.info.plural,
        path.join("/")
    );
    Err(Status::conflict(call.resource(), call.name(), &why))
}

/// Built-in kinds refuse such names; custom ones are warned of each new one.
fn warn_of_finalizers(call: &mut Call<'_>, before: Option<&Value>, object: &Value) {
    if !call.info.is_custom {
        return;
    }
    let names = |object: &Value| -> Vec<String> {
        let list = object["metadata"]["finalizers"].as_array();
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let old = before.map(names).unwrap_or_default();
    let is_plain = |name: &String| !name.contains('/') && name != FOREGROUND && name != ORPHAN;
    for name in names(object).into_iter().filter(|name| is_plain(name) && !old.contains(name)) {
        call.warnings.push(format!(
            "metadata.finalizers: \"{name}\": prefer a domain-qualified finalizer name to avoid accidental conflicts \
             with other finalizer writers"
        ));
    }
}

/// An update cannot touch what the server wrote into the metadata.
fn carry_metadata(before: &Value, object: &mut Value) {
    let old = &before["metadata"];
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    metadata.remove("managedFields");
    metadata.remove("selfLink");
    for field in ["uid", "generation", "creationTimestamp"] {
        set_or_remove(metadata, field, old.get(field));
    }
    // These may be left out, but not changed.
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        if metadata.get(field).is_none_or(Value::is_null) {
            set_or_remove(metadata, field, old.get(field));
        }
    }
}

/// Makes a member equal to another object's.
pub(crate) fn set_or_remove(object: &mut Map<String, Value>, field: &str, value: Option<&Value>) {
    match value {
        Some(value) => object.insert(field.to_owned(), value.clone()),
        None => object.remove(field),
    };
}

/// Refuses an object that breaks the rules of its kind.
pub(crate) fn check(
    call: &Call<'_>,
    kind: &KindSchema,
    object: &Value,
    before: Option<&Value>,
    scope: Scope,
) -> Result<(), Status> {
    let errors = kind.validate(object, before, scope);
    if errors.is_empty() {
        let is_definition = call.is(definitions::GROUP, definitions::RESOURCE) && scope == Scope::Main;
        return if is_definition { definitions::check(object) } else { Ok(()) };
    }
    let name = text(&object["metadata"], "name");
    // A custom object is what it says it is, even if that is the mistake.
    let shown = if call.info.is_custom { text(object, "kind") } else { call.info.kind.as_str() };
    Err(Status::invalid(&call.info.group, shown, name, errors.iter().map(cause).collect()))
}

/// A field's mistake as a cause.
pub(crate) fn cause(error: &FieldError) -> Cause {
    let field = if error.field.is_empty() { "<nil>".to_owned() } else { error.field.clone() };
    Cause { reason: error.kind.reason().to_owned(), message: error.body(), field }
}

/// An object that is shown but not kept.
pub(crate) fn unkept(object: &Value) -> Arc<Stored> {
    Arc::new(Stored::of(object, &[]))
}

fn metadata_mut(object: &mut Value) -> Result<&mut Map<String, Value>, Status> {
    let members = object.as_object_mut().ok_or_else(|| Status::bad_request("the body is not an object"))?;
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    metadata.as_object_mut().ok_or_else(|| Status::bad_request("metadata is not an object"))
}

/// A member's text; empty if it is not there.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}
