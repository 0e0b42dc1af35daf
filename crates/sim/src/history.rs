//! What was asked and what was answered: the only thing that checkers of a simulated run may read.

use bytes::Bytes;
use jiff::Timestamp;

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many objects.
    List,
    /// Follows changes.
    Watch,
    /// Makes an object, or calls a subresource such as `binding` or `eviction`.
    Create,
    /// Replaces an object.
    Update,
    /// Changes parts of an object.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes many objects.
    DeleteCollection,
}

impl Verb {
    /// The name that the API uses for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether the call can change the store.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// One call and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When it was answered.
    pub at: Timestamp,
    /// Who asked.
    pub actor: String,
    /// What was asked for.
    pub verb: Verb,
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural resource name.
    pub resource: String,
    /// The namespace, if the call was in one.
    pub namespace: Option<String>,
    /// The object's name; for a creation the name it got. None for collections.
    pub name: Option<String>,
    /// The part of the object that was called.
    pub subresource: Option<String>,
    /// Whether nothing was to be kept.
    pub dry_run: bool,
    /// The HTTP status code of the answer.
    pub code: u16,
    /// The object after the write; for a deletion its last state. None for reads and refusals.
    pub object: Option<Bytes>,
    /// The store's revision after the call.
    pub revision: u64,
    /// What was sent, for writes.
    pub body: Option<Bytes>,
}
