//! What a client may ask for: resources, as discovery shows them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::kind::KindSchema;

/// A part of an object, or an action on it, with an address of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subresource {
    /// Reads and writes of the status only.
    Status,
    /// The number of replicas, wherever the kind keeps it.
    Scale(ScalePaths),
    /// Deletes a pod if its disruption budgets allow it.
    Eviction,
    /// Gives a pod its node.
    Binding,
    /// What a container wrote.
    Log,
    /// Takes the last finalizers off a namespace.
    Finalize,
}

impl Subresource {
    /// The last segment of its path.
    #[must_use]
    pub fn segment(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale(_) => "scale",
            Self::Eviction => "eviction",
            Self::Binding => "binding",
            Self::Log => "log",
            Self::Finalize => "finalize",
        }
    }
}

/// Where a kind keeps what its scale shows, as JSON paths that begin with a dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScalePaths {
    /// The wanted number, `.spec.replicas`.
    pub spec_replicas: String,
    /// The number there is, `.status.replicas`.
    pub status_replicas: String,
    /// The selector of its pods, if the kind has one. A text for custom kinds, a label selector for built-in ones.
    pub label_selector: Option<String>,
}

/// A column that a custom resource definition adds to tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrinterColumn {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `date`, ...
    pub kind: String,
    /// A hint such as `int32`; may be empty.
    pub format: String,
    /// What the column is about; may be empty.
    pub description: String,
    /// 0 for columns that are always shown, more for wide tables.
    pub priority: i64,
    /// Where the value is, as a JSON path that begins with a dot.
    pub json_path: String,
}

/// One version of one resource.
#[derive(Clone, Debug)]
pub struct ResourceInfo {
    /// The group; empty for the core one.
    pub group: String,
    /// The version, as `v1`.
    pub version: String,
    /// The name in paths, as `pods`.
    pub plural: String,
    /// The name for one, as `pod`.
    pub singular: String,
    /// The kind, as `Pod`.
    pub kind: String,
    /// The kind of a list, as `PodList`.
    pub list_kind: String,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Short names, as `po`.
    pub short_names: Vec<String>,
    /// Groups of resources for people, as `all`.
    pub categories: Vec<String>,
    /// What may be done with the resource.
    pub verbs: Vec<String>,
    /// What has an address below the object.
    pub subresources: BTreeSet<Subresource>,
    /// Whether a custom resource definition made it.
    pub is_custom: bool,
    /// Columns of tables, for custom kinds.
    pub printer_columns: Vec<PrinterColumn>,
    /// The hash that discovery shows for built-in kinds.
    pub(crate) storage_version_hash: Option<String>,
    pub(crate) schema: Arc<KindSchema>,
}

impl ResourceInfo {
    /// `v1` or `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// How objects of the kind are read, completed and checked.
    #[must_use]
    pub fn schema(&self) -> &KindSchema {
        &self.schema
    }

    /// Whether the object has a status of its own address.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.subresources.contains(&Subresource::Status)
    }

    /// Where the scale is kept, if the kind has one.
    #[must_use]
    pub fn scale(&self) -> Option<&ScalePaths> {
        self.subresources.iter().find_map(|subresource| match subresource {
            Subresource::Scale(paths) => Some(paths),
            Subresource::Status
            | Subresource::Eviction
            | Subresource::Binding
            | Subresource::Log
            | Subresource::Finalize => None,
        })
    }
}
