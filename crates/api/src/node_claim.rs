//! NodeClaim: one node that is wanted, and how far it has come.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, relaxed_conditions, time_schema};
use crate::duration::{DurationText, NillableDuration};
use crate::node_class_reference::NodeClassReference;
use crate::quantity::{ResourceList, read_resource_list, resource_list};
use crate::requirement::{Requirement, claim_rules};
use crate::schema::cel;
use crate::taint::Taint;

/// The conditions of a NodeClaim and what they say.
pub mod conditions {
    use crate::condition::ConditionTypes;

    /// The node can be used.
    pub const READY: &str = "Ready";
    /// The provider made an instance.
    pub const LAUNCHED: &str = "Launched";
    /// The instance joined the cluster as a node.
    pub const REGISTERED: &str = "Registered";
    /// The node is ready, without its startup taints and with all the resources asked for.
    pub const INITIALIZED: &str = "Initialized";
    /// No pod came or went for as long as the pool's `consolidateAfter`.
    pub const CONSOLIDATABLE: &str = "Consolidatable";
    /// The node no longer looks as its pool wants it to.
    pub const DRIFTED: &str = "Drifted";
    /// The pods of a terminating node are gone.
    pub const DRAINED: &str = "Drained";
    /// The volumes of a terminating node are detached.
    pub const VOLUMES_DETACHED: &str = "VolumesDetached";
    /// The provider accepted the instance's deletion.
    pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
    /// The node has the shape that was expected of it.
    pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
    /// The node is part of a disruption that is being carried out.
    pub const DISRUPTION_REASON: &str = "DisruptionReason";
    /// The node is being rebooted to repair it.
    pub const REBOOTING: &str = "Rebooting";
    /// What makes a NodeClaim ready.
    pub const TYPES: ConditionTypes = ConditionTypes { root: READY, dependents: &[LAUNCHED, REGISTERED, INITIALIZED] };
}

/// What is wanted of the node.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    plural = "nodeclaims",
    category = "karpenter",
    doc = "A NodeClaim is one node that is wanted, and how far it has come.",
    status = "NodeClaimStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Type", "type": "string", "jsonPath": ".metadata.labels.node\\.kubernetes\\.io/instance-type"}"#,
    printcolumn = r#"{"name": "Capacity", "type": "string", "jsonPath": ".metadata.labels.karpenter\\.sh/capacity-type"}"#,
    printcolumn = r#"{"name": "Zone", "type": "string", "jsonPath": ".metadata.labels.topology\\.kubernetes\\.io/zone"}"#,
    printcolumn = r#"{"name": "Node", "type": "string", "jsonPath": ".status.nodeName"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "ImageID", "type": "string", "jsonPath": ".status.imageID", "priority": 1}"#,
    printcolumn = r#"{"name": "ID", "type": "string", "jsonPath": ".status.providerID", "priority": 1}"#,
    printcolumn = r#"{"name": "NodePool", "type": "string", "jsonPath": ".metadata.labels.karpenter\\.sh/nodepool", "priority": 1}"#,
    printcolumn = r#"{"name": "NodeClass", "type": "string", "jsonPath": ".spec.nodeClassRef.name", "priority": 1}"#,
    printcolumn = r#"{"name": "Drifted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Drifted\")].status", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [cel("self == oldSelf", "spec is immutable")]))]
pub struct NodeClaimSpec {
    /// Taints that the node keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Option<Vec<Taint>>,
    /// Taints that the node has until somebody removes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Option<Vec<Taint>>,
    /// What the labels of the node must be.
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = claim_rules())
    )]
    pub requirements: Vec<Requirement>,
    /// What the node must at least have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// The settings of the cloud provider.
    pub node_class_ref: NodeClassReference,
    /// How long the node may take to drain before its pods are deleted by force; absent means as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<DurationText>,
    /// How long the node may live.
    #[serde(default = "NillableDuration::thirty_days")]
    pub expire_after: NillableDuration,
}

/// What a node must at least have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRequirements {
    /// The least capacity the node may be launched with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resource_list")]
    #[serde(deserialize_with = "read_resource_list")]
    pub requests: Option<ResourceList>,
}

/// How far the node has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// Name of the node, once it registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The provider's name of the instance.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The image the instance was started from.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// What the node is expected to have in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resource_list")]
    #[serde(deserialize_with = "read_resource_list")]
    pub capacity: Option<ResourceList>,
    /// What the node is expected to have for pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resource_list")]
    #[serde(deserialize_with = "read_resource_list")]
    pub allocatable: Option<ResourceList>,
    /// When a pod last came to the node or went from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub last_pod_event_time: Option<Time>,
    /// The steps the node has taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "relaxed_conditions")]
    pub conditions: Option<Vec<Condition>>,
}
