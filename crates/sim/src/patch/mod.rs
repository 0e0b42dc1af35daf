//! Patches: JSON Patch (RFC 6902), JSON merge patch (RFC 7386) and Kubernetes' strategic merge patch.
//!
//! All three are pure functions from an object and a patch to the patched object. What the API server answers to a
//! patch that does not apply is part of its interface, so errors carry the server's status code and words.

mod error;
mod json;
mod merge;
mod order;
mod strategic;
#[cfg(test)]
mod tests;

pub(crate) use error::{PatchError, Refused};
use serde_json::Value;

/// Which of the three patch formats a request body is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// `application/json-patch+json`: a list of operations.
    Json,
    /// `application/merge-patch+json`: an object laid over the original; lists are replaced.
    Merge,
    /// `application/strategic-merge-patch+json`: like merge, with lists merged by key where the kind says so.
    Strategic,
}

/// How a list of a kind behaves under a strategic merge patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListRule<'a> {
    /// The patch's list takes the place of the original one.
    Replace,
    /// Items are objects; those with the same value in this field are merged, others are added.
    MergeByKey(&'a str),
    /// Items are plain values; the lists are united.
    MergeSet,
}

/// What a strategic merge patch must know about a field: its fields or items, and its patch strategy.
pub(crate) trait Shape {
    /// The shape of a named field; `None` if there is no such field. A map answers with the shape of its values.
    fn field(&self, name: &str) -> Option<Box<dyn Shape + '_>>;
    /// The shape of a list's items; `None` if this is not a list.
    fn item(&self) -> Option<Box<dyn Shape + '_>>;
    /// How this list is patched (not asked of anything but lists).
    fn list_rule(&self) -> ListRule<'_>;
    /// Whether an object here is replaced as a whole instead of merged (patch strategy `replace`).
    fn replaces(&self) -> bool {
        false
    }
}

/// Applies `patch` to `original` and gives the new object; neither is changed.
///
/// `shape` is the kind's shape and is needed for [`PatchKind::Strategic`] only: without one (a custom resource) such a
/// patch is refused. Directives (`$patch`, `$retainKeys`, ...) never reach the result; one that is not known is an
/// error. The result is not validated.
pub(crate) fn apply(
    kind: PatchKind,
    original: &Value,
    patch: &Value,
    shape: Option<&dyn Shape>,
) -> Result<Value, PatchError> {
    match kind {
        PatchKind::Json => json::apply(original, patch),
        PatchKind::Merge => merge::apply(original, patch),
        PatchKind::Strategic => {
            let shape = shape.ok_or(PatchError::NoStrategicPatch)?;
            strategic::apply(original, patch, shape)
        }
    }
}
