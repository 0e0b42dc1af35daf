//! Deleting: at once, gracefully, or when the finalizers are gone.

use crate::accept;
use crate::answer::Answer;
use crate::call::{Call, Reply};
use crate::header::{FOREGROUND, ORPHAN};
use crate::list;
use crate::namespaces;
use crate::output::ListFacts;
use crate::query::dry_run_refused;
use crate::status_body::{Cause, Details, GroupResource, Status};
use crate::store::Stored;
use crate::times;
use crate::write::{text, unkept};
use jiff::SignedDuration;
use schema::ResourceInfo;
use serde_json::{Value, json};
use std::sync::Arc;

/// How a deletion is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) dry_run: bool,
    /// The older way to say the propagation; it decides about the answer's code.
    pub(crate) orphan_dependents: Option<bool>,
}

/// What becomes of an object's dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// What became of an object.
pub(crate) struct Deleted {
    pub(crate) object: Arc<Stored>,
    pub(crate) is_gone: bool,
}

/// Built-in resources whose deletion is answered with the object.
const ANSWERED_WITH_OBJECT: [(&str, &str); 12] = [
    ("", "namespaces"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
];

/// Deletes one object.
pub(crate) fn delete(call: &mut Call<'_>) -> Result<Reply, Status> {
    let options = options(call)?;
    warn_of_children(call, &options);
    let stored = call.existing()?;
    let Deleted { object, is_gone } = delete_one(call, &stored, &options)?;
    let code = if !is_gone && options.orphan_dependents == Some(false) { 202 } else { 200 };
    if !is_gone || ANSWERED_WITH_OBJECT.contains(&(call.info.group.as_str(), call.info.plural.as_str())) {
        return Ok(Reply::Object { code, stored: object });
    }
    let details = Details {
        name: object.header.name.clone(),
        group: call.info.group.clone(),
        kind: call.info.plural.clone(),
        uid: object.header.uid.clone(),
        ..Details::default()
    };
    Ok(Reply::Status { code, status: Status::success(0, Some(details)), changed: Some(object) })
}

/// Deletes everything that is selected.
pub(crate) fn delete_collection(call: &mut Call<'_>) -> Result<Reply, Status> {
    let options = options(call)?;
    warn_of_children(call, &options);
    let objects = list::selected(call)?;
    for stored in &objects {
        delete_one(call, stored, &options)?;
    }
    let shown: Vec<&Stored> = objects.iter().map(|stored| &**stored).collect();
    let facts = ListFacts { revision: call.store.revision(), ..ListFacts::default() };
    let body = call.form.list(&shown, &facts, call.store.now());
    Ok(Reply::Ready(Answer::document(200, "application/json", body)))
}

/// Jobs leave their pods behind, which people do not expect.
fn warn_of_children(call: &mut Call<'_>, options: &Options) {
    if call.is("batch", "jobs") && options.propagation.is_none() {
        call.warnings.push(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
             them or set propagationPolicy=Orphan to suppress this warning"
                .to_owned(),
        );
    }
}

/// Deletes one object of the call's resource, as far as it can go now.
pub(crate) fn delete_one(call: &mut Call<'_>, stored: &Arc<Stored>, options: &Options) -> Result<Deleted, Status> {
    check_preconditions(call.info, stored, options)?;
    if call.is("", "namespaces") {
        return namespaces::delete(call, stored, options);
    }
    let mut object = stored.value();
    let grace = match grace(call, &object, options) {
        Grace::Pending => return Ok(Deleted { object: stored.clone(), is_gone: false }),
        other => other,
    };
    let finalizers = finalizers(call.info, stored, options);
    if finalizers != stored.header.finalizers {
        set_finalizers(&mut object, &finalizers);
    }
    match grace {
        Grace::Seconds { seconds, until } => {
            if !stored.header.deleting {
                count(&mut object);
            }
            object["metadata"]["deletionTimestamp"] = json!(until);
            object["metadata"]["deletionGracePeriodSeconds"] = json!(seconds);
            let object = keep(call, stored, object, options);
            if seconds > 0 || !finalizers.is_empty() {
                return Ok(Deleted { object, is_gone: false });
            }
            if options.dry_run {
                return Ok(Deleted { object, is_gone: true });
            }
        }
        Grace::None | Grace::Pending if !finalizers.is_empty() => {
            if !stored.header.deleting {
                count(&mut object);
                object["metadata"]["deletionTimestamp"] = json!(times::seconds(call.store.now()));
            }
            object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            return Ok(Deleted { object: keep(call, stored, object, options), is_gone: false });
        }
        Grace::None | Grace::Pending => {}
    }
    if options.dry_run {
        return Ok(Deleted { object: stored.clone(), is_gone: true });
    }
    let last = call.store.remove(&call.id(), &stored.header.key());
    Ok(Deleted { object: last.unwrap_or_else(|| stored.clone()), is_gone: true })
}

/// Keeps an object on its way out, unless nothing changed or nothing is to be kept.
fn keep(call: &mut Call<'_>, stored: &Arc<Stored>, object: Value, options: &Options) -> Arc<Stored> {
    match () {
        () if object == stored.value() => stored.clone(),
        () if options.dry_run => unkept(&object),
        () => call.store.put(&call.id(), object),
    }
}

/// Whether an object that is being deleted waits for nothing any more.
pub(crate) fn is_done(info: &ResourceInfo, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let holds_content =
        info.group.is_empty() && info.plural == "namespaces" && !is_empty(&object["spec"]["finalizers"]);
    !metadata["deletionTimestamp"].is_null()
        && is_empty(&metadata["finalizers"])
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && !holds_content
}

/// How long an object stays after the request.
enum Grace {
    /// The kind knows no grace, or it is over.
    None,
    /// Somebody (for a pod its kubelet) has to delete it again with no grace.
    Seconds { seconds: i64, until: String },
    /// It is being deleted already, and this request does not hurry it.
    Pending,
}

/// Only pods are deleted gracefully.
fn grace(call: &Call<'_>, object: &Value, options: &Options) -> Grace {
    if !call.is("", "pods") {
        return Grace::None;
    }
    let now = call.store.now();
    let metadata = &object["metadata"];
    let asked = options.grace_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if !metadata["deletionTimestamp"].is_null() {
        let current = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        return match asked {
            _ if current == 0 => Grace::None,
            Some(asked) if asked < current => {
                let until = times::parse(text(metadata, "deletionTimestamp"))
                    .and_then(|until| until.checked_sub(SignedDuration::from_secs(current - asked)).ok())
                    .unwrap_or(now);
                let seconds = if until < now && asked != 0 { 1 } else { asked };
                Grace::Seconds { seconds, until: times::seconds(until.max(now)) }
            }
            _ => Grace::Pending,
        };
    }
    let spec = &object["spec"];
    let own = spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
    let runs =
        !text(spec, "nodeName").is_empty() && !matches!(text(&object["status"], "phase"), "Succeeded" | "Failed");
    let seconds = match asked.unwrap_or(own) {
        _ if !runs => 0,
        seconds if seconds < 0 => 1,
        seconds => seconds,
    };
    let until = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
    Grace::Seconds { seconds, until: times::seconds(until) }
}

/// A deletion counts as a change, for kinds that count.
pub(crate) fn count(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64().filter(|generation| *generation > 0) {
        object["metadata"]["generation"] = json!(generation + 1);
    }
}

/// The finalizers of an object after a request to delete it: the propagation adds one.
pub(crate) fn finalizers(info: &ResourceInfo, stored: &Stored, options: &Options) -> Vec<String> {
    let own = stored.header.finalizers.iter().filter(|name| *name != FOREGROUND && *name != ORPHAN);
    let default = match (info.group.as_str(), info.plural.as_str()) {
        ("batch", "jobs") | ("", "replicationcontrollers") => Propagation::Orphan,
        _ => Propagation::Background,
    };
    let already = match () {
        () if stored.header.has_finalizer(FOREGROUND) => Some(Propagation::Foreground),
        () if stored.header.has_finalizer(ORPHAN) => Some(Propagation::Orphan),
        () => None,
    };
    let has_dependents_policy = !(info.plural == "events" && info.group.is_empty());
    let added = match options.propagation.or(already).unwrap_or(default) {
        Propagation::Foreground if has_dependents_policy => Some(FOREGROUND),
        Propagation::Orphan if has_dependents_policy => Some(ORPHAN),
        _ => None,
    };
    own.cloned().chain(added.map(str::to_owned)).collect()
}

/// Writes the finalizers of an object; an empty list is no list.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".to_owned(), json!(finalizers));
        }
    }
}

/// Refuses to delete another object of the name, or another state of it.
pub(crate) fn check_preconditions(info: &ResourceInfo, stored: &Stored, options: &Options) -> Result<(), Status> {
    let header = &stored.header;
    // The real server names the kind here, not the resource.
    let kind = GroupResource { group: &info.group, resource: &info.kind };
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != header.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            header.uid
        );
        return Err(Status::conflict(kind, &header.name, &why));
    }
    let current = header.revision.to_string();
    if let Some(version) = options.resource_version.as_ref().filter(|version| **version != current) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
             ({current}). The object might have been modified"
        );
        return Err(Status::conflict(kind, &header.name, &why));
    }
    Ok(())
}

/// Fields of `DeleteOptions`; any other is refused.
const FIELDS: [&str; 8] = [
    "kind",
    "apiVersion",
    "gracePeriodSeconds",
    "preconditions",
    "orphanDependents",
    "propagationPolicy",
    "dryRun",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
];

/// Reads the options from the body or, if there is none, from the query.
fn options(call: &Call<'_>) -> Result<Options, Status> {
    if call.body.is_empty() {
        return from_query(call);
    }
    let body = accept::json_body(call.headers, call.body)?;
    let body: Value = serde_json::from_slice(&body)
        .map_err(|problem| Status::bad_request(format!("the body is not DeleteOptions: {problem}")))?;
    from_body(&body)
}

fn from_query(call: &Call<'_>) -> Result<Options, Status> {
    let orphan = call.query.text("orphanDependents").map(|_| call.query.flag("orphanDependents")).transpose()?;
    Ok(Options {
        grace_seconds: call.query.number("gracePeriodSeconds")?,
        propagation: propagation(call.query.text("propagationPolicy"), orphan)?,
        uid: None,
        resource_version: None,
        dry_run: call.query.dry_run()?,
        orphan_dependents: orphan,
    })
}

/// Reads the options of a deletion, also those inside an eviction.
pub(crate) fn from_body(body: &Value) -> Result<Options, Status> {
    let members = match body {
        Value::Null => return Ok(Options::default()),
        Value::Object(members) => members,
        _ => return Err(Status::bad_request("the body is not DeleteOptions")),
    };
    if let Some(unknown) = members.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(Status::bad_request(format!("unknown field \"{unknown}\" in DeleteOptions")));
    }
    if !matches!(text(body, "kind"), "" | "DeleteOptions") {
        return Err(Status::bad_request("decoded object cannot be converted to DeleteOptions"));
    }
    let orphan = body["orphanDependents"].as_bool();
    let precondition = |field: &str| body["preconditions"][field].as_str().map(str::to_owned);
    let dry_run = match body["dryRun"].as_array().map(Vec::as_slice) {
        None | Some([]) => false,
        Some([only]) if only == "All" => true,
        Some([first, ..]) => return Err(dry_run_refused(first.as_str().unwrap_or_default())),
    };
    Ok(Options {
        grace_seconds: body["gracePeriodSeconds"].as_i64(),
        propagation: propagation(body["propagationPolicy"].as_str(), orphan)?,
        uid: precondition("uid"),
        resource_version: precondition("resourceVersion"),
        dry_run,
        orphan_dependents: orphan,
    })
}

fn propagation(policy: Option<&str>, orphan: Option<bool>) -> Result<Option<Propagation>, Status> {
    let refuse = |reason: &str, message: String| {
        let cause = Cause { reason: reason.to_owned(), message, field: "propagationPolicy".to_owned() };
        Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", vec![cause]))
    };
    match (policy.filter(|policy| !policy.is_empty()), orphan) {
        (Some(policy), Some(_)) => refuse(
            "FieldValueInvalid",
            format!("Invalid value: \"{policy}\": orphanDependents and deletionPropagation cannot be both set"),
        ),
        (None, None) => Ok(None),
        (None, Some(true)) | (Some("Orphan"), None) => Ok(Some(Propagation::Orphan)),
        (None, Some(false)) | (Some("Background"), None) => Ok(Some(Propagation::Background)),
        (Some("Foreground"), None) => Ok(Some(Propagation::Foreground)),
        (Some(other), None) => refuse(
            "FieldValueNotSupported",
            format!(
                "Unsupported value: \"{other}\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            ),
        ),
    }
}
