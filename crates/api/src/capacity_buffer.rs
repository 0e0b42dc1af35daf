//! CapacityBuffer: room that is kept free for pods still to come.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, standard_conditions};
use crate::quantity::{ResourceList, read_resource_list, resource_list};
use crate::schema::cel;

/// The strategy of a buffer that keeps nodes running for its pods.
pub const ACTIVE_CAPACITY: &str = "buffer.x-k8s.io/active-capacity";

/// The conditions of a CapacityBuffer and what they say.
pub mod conditions {
    /// The pod and the number of replicas are known.
    pub const READY_FOR_PROVISIONING: &str = "ReadyForProvisioning";
    /// Nodes are made for the buffer.
    pub const PROVISIONING: &str = "Provisioning";
    /// Reserved for quotas; never set.
    pub const LIMITED_BY_QUOTAS: &str = "LimitedByQuotas";
}

/// For which pods room is kept, and how much.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "autoscaling.x-k8s.io",
    version = "v1beta1",
    kind = "CapacityBuffer",
    plural = "capacitybuffers",
    shortname = "cb",
    category = "autoscaling",
    namespaced,
    doc = "A CapacityBuffer keeps room free for pods still to come.",
    status = "CapacityBufferStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Strategy", "type": "string", "jsonPath": ".spec.provisioningStrategy"}"#,
    printcolumn = r#"{"name": "PodTemplate", "type": "string", "jsonPath": ".status.podTemplateRef.name"}"#,
    printcolumn = r#"{"name": "Replicas", "type": "integer", "jsonPath": ".status.replicas"}"#,
    printcolumn = r#"{"name": "ConditionsType", "type": "string", "jsonPath": ".status.conditions[*].type"}"#,
    printcolumn = r#"{"name": "ConditionsStatus", "type": "string", "jsonPath": ".status.conditions[*].status"}"#,
    printcolumn = r#"{"name": "ConditionsReason", "type": "string", "jsonPath": ".status.conditions[*].reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    cel(
        "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
        "If podTemplateRef is set, replicas or limits must also be set",
    ),
    cel(
        "!has(self.podTemplateRef) || !has(self.scalableRef)",
        "You must define either PodTemplateRef or ScalableRef, but not both",
    ),
]))]
pub struct CapacityBufferSpec {
    /// How the room is kept. Any value is taken for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ACTIVE_CAPACITY))]
    pub provisioning_strategy: Option<String>,
    /// The PodTemplate of the pods room is kept for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalReference>,
    /// The workload whose pods room is kept for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableReference>,
    /// For how many pods room is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// For how many pods room is kept, in per cent of the workload's replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub percentage: Option<i32>,
    /// What all pods of the buffer together may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resource_list")]
    #[serde(deserialize_with = "read_resource_list")]
    pub limits: Option<ResourceList>,
}

/// An object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalReference {
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// A workload in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalableReference {
    /// API group of the workload; absent counts as `apps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Kind of the workload: Deployment, StatefulSet or ReplicaSet.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Name of the workload.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// How the buffer was understood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// The PodTemplate that is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalReference>,
    /// The generation of that PodTemplate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// For how many pods room is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The strategy that is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// Whether room is kept, and if not, why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "standard_conditions")]
    pub conditions: Option<Vec<Condition>>,
}
