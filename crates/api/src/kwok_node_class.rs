//! KWOKNodeClass: the settings of the provider that only pretends to make nodes.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, standard_conditions};
use crate::duration::DurationText;

/// The API group of KWOKNodeClass, and the domain of its labels.
pub const GROUP: &str = "karpenter.kwok.sh";
/// Names the KWOKNodeClass on its claims and nodes.
pub const NODE_CLASS_LABEL: &str = "karpenter.kwok.sh/kwoknodeclass";
/// The processors of an instance type.
pub const INSTANCE_CPU_LABEL: &str = "karpenter.kwok.sh/instance-cpu";
/// The memory of an instance type.
pub const INSTANCE_MEMORY_LABEL: &str = "karpenter.kwok.sh/instance-memory";
/// The family of an instance type.
pub const INSTANCE_FAMILY_LABEL: &str = "karpenter.kwok.sh/instance-family";
/// The size of an instance type.
pub const INSTANCE_SIZE_LABEL: &str = "karpenter.kwok.sh/instance-size";

/// The labels of this provider's domain that may be asked for.
pub const LABELS: [&str; 5] =
    [NODE_CLASS_LABEL, INSTANCE_CPU_LABEL, INSTANCE_MEMORY_LABEL, INSTANCE_FAMILY_LABEL, INSTANCE_SIZE_LABEL];

/// The conditions of a KWOKNodeClass and what they say.
pub mod conditions {
    use crate::condition::ConditionTypes;

    /// The class can be used; true from the start.
    pub const READY: &str = "Ready";
    /// What makes a KWOKNodeClass ready.
    pub const TYPES: ConditionTypes = ConditionTypes { root: READY, dependents: &[] };
}

/// How nodes are pretended.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.kwok.sh",
    version = "v1alpha1",
    kind = "KWOKNodeClass",
    plural = "kwoknodeclasses",
    shortname = "kwoknc",
    shortname = "kwokncs",
    category = "karpenter",
    doc = "A KWOKNodeClass holds the settings of the provider that only pretends to make nodes.",
    status = "KWOKNodeClassStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct KWOKNodeClassSpec {
    /// How long after its launch a node appears in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_registration_delay: Option<DurationText>,
}

/// Whether the class can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KWOKNodeClassStatus {
    /// Whether the class can be used, and if not, why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "standard_conditions")]
    pub conditions: Option<Vec<Condition>>,
}
