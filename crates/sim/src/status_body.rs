//! The answers that are not objects: `Status` bodies with the words of the real server. Every refusal of this crate is
//! made here, so that text exists in one place.

use crate::patch::{PatchError, Refused};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Why a call was refused, or that it succeeded without an object to show.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Status {
    /// Whether it is a refusal at all.
    pub status: Outcome,
    /// What went wrong, for people.
    #[serde(default)]
    pub message: String,
    /// What went wrong, for programs.
    #[serde(default)]
    pub reason: String,
    /// What it went wrong with.
    #[serde(default)]
    pub details: Option<Box<Details>>,
    /// The HTTP status code; 0 (not shown) where the real server says none.
    #[serde(default)]
    pub code: u16,
}

/// Whether a call did what it was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It did.
    Success,
    /// It did not.
    Failure,
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { status, message, reason, details, code } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "Status")?;
        map.serialize_entry("apiVersion", "v1")?;
        map.serialize_entry("metadata", &BTreeMap::<String, String>::new())?;
        map.serialize_entry("status", status)?;
        if !message.is_empty() {
            map.serialize_entry("message", message)?;
        }
        if !reason.is_empty() {
            map.serialize_entry("reason", reason)?;
        }
        if let Some(details) = details {
            map.serialize_entry("details", details)?;
        }
        if *code != 0 {
            map.serialize_entry("code", code)?;
        }
        map.end()
    }
}

/// What a [`Status`] speaks about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource or the kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One entry per thing that is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When trying again makes sense.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One thing that is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// For programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field, if it is about one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// A resource by group and plural name, as messages spell it: `pods`, `deployments.apps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupResource<'a> {
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
}

impl fmt::Display for GroupResource<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.resource)?;
        if !self.group.is_empty() {
            write!(formatter, ".{}", self.group)?;
        }
        Ok(())
    }
}

impl Status {
    fn failure(code: u16, reason: &str, message: String, details: Option<Details>) -> Self {
        Self { status: Outcome::Failure, message, reason: reason.to_owned(), details: details.map(Box::new), code }
    }

    /// A success without an object.
    pub(crate) fn success(code: u16, details: Option<Details>) -> Self {
        Self { status: Outcome::Success, ..Self::failure(code, "", String::new(), details) }
    }

    pub(crate) fn not_found(resource: GroupResource<'_>, name: &str) -> Self {
        Self::failure(404, "NotFound", format!("{resource} \"{name}\" not found"), Some(about(resource, name)))
    }

    /// A path that leads nowhere.
    pub(crate) fn no_such_path() -> Self {
        Self::failure(
            404,
            "NotFound",
            "the server could not find the requested resource".to_owned(),
            Some(Details::default()),
        )
    }

    pub(crate) fn already_exists(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!("{resource} \"{name}\" already exists");
        Self::failure(409, "AlreadyExists", message, Some(about(resource, name)))
    }

    /// The name is taken by an object on its way out.
    pub(crate) fn still_exists(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!("object is being deleted: {resource} \"{name}\" already exists");
        Self::failure(409, "AlreadyExists", message, Some(about(resource, name)))
    }

    pub(crate) fn no_unique_name(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!(
            "{resource} \"{name}\" already exists, the server was not able to generate a unique name for the object"
        );
        let details = Details { retry_after_seconds: 1, ..about(resource, name) };
        Self::failure(409, "AlreadyExists", message, Some(details))
    }

    pub(crate) fn conflict(resource: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        Self::failure(409, "Conflict", message, Some(about(resource, name)))
    }

    pub(crate) fn outdated(resource: GroupResource<'_>, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    pub(crate) fn forbidden(resource: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} \"{name}\" is forbidden: {why}")
        };
        Self::failure(403, "Forbidden", message, Some(about(resource, name)))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, "BadRequest", message.into(), None)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, "Expired", message.into(), None)
    }

    pub(crate) fn too_old(asked: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {asked} ({oldest})"))
    }

    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
        Self::failure(504, "Timeout", message, Some(details))
    }

    pub(crate) fn method_not_allowed(resource: GroupResource<'_>, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind \"{resource}\"");
        Self::failure(405, "MethodNotAllowed", message, Some(about(resource, "")))
    }

    /// A method that no path of this shape has.
    pub(crate) fn method_unknown() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::failure(405, "MethodNotAllowed", message, Some(Details::default()))
    }

    pub(crate) fn not_acceptable(known: &str) -> Self {
        let message = format!("only the following media types are accepted: {known}");
        Self::failure(406, "NotAcceptable", message, None)
    }

    /// What the real server's router says before it comes to the resource.
    pub(crate) fn no_representation(known: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {known}");
        Self::failure(406, "NotAcceptable", message, Some(Details::default()))
    }

    /// What the real server's router says before it comes to the resource.
    pub(crate) fn media_type_unknown() -> Self {
        let message = "415: Unsupported Media Type".to_owned();
        Self::failure(415, "UnsupportedMediaType", message, Some(Details::default()))
    }

    pub(crate) fn unsupported_media_type(known: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {known}");
        Self::failure(415, "UnsupportedMediaType", message, None)
    }

    pub(crate) fn too_many_requests(message: &str, retry_after_seconds: u32, cause: Cause) -> Self {
        let details = Details { retry_after_seconds, causes: vec![cause], ..Details::default() };
        Self::failure(429, "TooManyRequests", message.to_owned(), Some(details))
    }

    /// A misconfiguration that the server reports as its own failure.
    pub(crate) fn server_failure(message: &str) -> Self {
        Self::failure(500, "", message.to_owned(), None)
    }

    pub(crate) fn internal(why: &str) -> Self {
        let cause = Cause { message: why.to_owned(), ..Cause::default() };
        let details = Details { causes: vec![cause], ..Details::default() };
        Self::failure(500, "InternalError", format!("Internal error occurred: {why}"), Some(details))
    }

    /// A patch that cannot be carried out, in the words of the patch.
    pub(crate) fn patch_refused(problem: &PatchError) -> Self {
        let refused: Refused = problem.refused();
        let details = (refused == Refused::Unprocessable).then(Details::default);
        Self::failure(refused.code(), refused.reason().unwrap_or_default(), problem.to_string(), details)
    }

    /// An object that breaks rules of its kind.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let subject = GroupResource { group, resource: kind };
        let lines: Vec<String> = causes.iter().map(cause_line).collect();
        let mut unique: Vec<&String> = Vec::new();
        for line in &lines {
            if !unique.contains(&line) {
                unique.push(line);
            }
        }
        let message = match unique.as_slice() {
            [] => format!("{subject} \"{name}\" is invalid"),
            [one] => format!("{subject} \"{name}\" is invalid: {one}"),
            several => {
                let joined: Vec<&str> = several.iter().map(|line| line.as_str()).collect();
                format!("{subject} \"{name}\" is invalid: [{}]", joined.join(", "))
            }
        };
        let details = Details { causes, ..about(subject, name) };
        Self::failure(422, "Invalid", message, Some(details))
    }

    /// Whether the object (or its namespace, or its kind) does not exist.
    pub fn is_not_found(&self) -> bool {
        self.reason == "NotFound"
    }

    /// Whether an object of this name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// Whether somebody else changed the object first.
    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict"
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({} {})", self.message, self.code, self.reason)
    }
}

impl std::error::Error for Status {}

fn about(resource: GroupResource<'_>, name: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: resource.group.to_owned(),
        kind: resource.resource.to_owned(),
        ..Details::default()
    }
}

fn cause_line(cause: &Cause) -> String {
    if cause.field.is_empty() { cause.message.clone() } else { format!("{}: {}", cause.field, cause.message) }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
