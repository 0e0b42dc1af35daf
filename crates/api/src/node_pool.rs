//! NodePool: which nodes may be made, how many, and when they may go again.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, standard_conditions};
use crate::duration::{DurationText, NillableDuration};
use crate::node_class_reference::NodeClassReference;
use crate::quantity::{ResourceList, read_resource_list, resource_list};
use crate::requirement::{Requirement, pool_rules};
use crate::schema::{LABEL_VALUE, cel, string_map};
use crate::taint::Taint;

/// The conditions of a NodePool and what they say.
pub mod conditions {
    use crate::condition::ConditionTypes;

    /// The pool can be used.
    pub const READY: &str = "Ready";
    /// The pool passed the checks that its schema cannot make.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    /// The referenced NodeClass is ready.
    pub const NODE_CLASS_READY: &str = "NodeClassReady";
    /// Nodes of this pool join the cluster; says nothing about [`READY`].
    pub const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";
    /// What makes a NodePool ready.
    pub const TYPES: ConditionTypes =
        ConditionTypes { root: READY, dependents: &[VALIDATION_SUCCEEDED, NODE_CLASS_READY] };
}

/// What the user wants of a pool.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    category = "karpenter",
    doc = "A NodePool says which nodes may be made, how many, and when they may go again.",
    status = "NodePoolStatus",
    derive = "PartialEq",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    printcolumn = r#"{"name": "NodeClass", "type": "string", "jsonPath": ".spec.template.spec.nodeClassRef.name"}"#,
    printcolumn = r#"{"name": "Nodes", "type": "string", "jsonPath": ".status.nodes"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Weight", "type": "integer", "jsonPath": ".spec.weight", "priority": 1}"#,
    printcolumn = r#"{"name": "CPU", "type": "string", "jsonPath": ".status.resources.cpu", "priority": 1}"#,
    printcolumn = r#"{"name": "Memory", "type": "string", "jsonPath": ".status.resources.memory", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    cel(
        "has(self.replicas) == has(oldSelf.replicas)",
        "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes",
    ),
    cel(
        "!has(self.replicas) || !has(self.limits) || size(self.limits) == 0 || \
         (size(self.limits) == 1 && 'nodes' in self.limits)",
        "only 'limits.nodes' is supported on static NodePools",
    ),
    cel("!has(self.replicas) || !has(self.weight)", "'weight' is not supported on static NodePools"),
]))]
pub struct NodePoolSpec {
    /// What every node of this pool is made from. A change makes existing nodes drift.
    pub template: NodeClaimTemplate,
    /// When nodes of this pool may be disrupted.
    #[serde(default)]
    #[schemars(extend("default" = { "consolidateAfter": "0s" }))]
    pub disruption: Disruption,
    /// What all nodes of this pool together may have; the name `nodes` limits their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resource_list")]
    #[serde(deserialize_with = "read_resource_list")]
    pub limits: Option<ResourceList>,
    /// Pools of higher weight are tried first; absent counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// How many nodes the pool always has, whatever the pods want. Needs the feature gate StaticCapacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// What every node of a pool is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClaimTemplate {
    /// Labels and annotations of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The nodes themselves.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations that every node of a pool is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateMetadata {
    /// Labels of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "template_labels")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "string_map")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The nodes of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// Taints that the nodes keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Option<Vec<Taint>>,
    /// Taints that the nodes have until somebody removes them; pods need not tolerate these to cause a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Option<Vec<Taint>>,
    /// What the labels of the nodes must be.
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = pool_rules())
    )]
    pub requirements: Vec<Requirement>,
    /// The settings of the cloud provider.
    #[schemars(extend("x-kubernetes-validations" = [
        cel("self.group == oldSelf.group", "nodeClassRef.group is immutable"),
        cel("self.kind == oldSelf.kind", "nodeClassRef.kind is immutable"),
    ]))]
    pub node_class_ref: NodeClassReference,
    /// How long a node may take to drain before its pods are deleted by force; absent means as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<DurationText>,
    /// How long a node may live.
    #[serde(default = "NillableDuration::thirty_days")]
    pub expire_after: NillableDuration,
}

/// When nodes may be disrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long no pod may have come or gone before a node is considered.
    #[serde(default = "NillableDuration::at_once")]
    pub consolidate_after: NillableDuration,
    /// Which nodes are considered.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many nodes may be disrupted at once; the strictest active budget counts.
    #[serde(default = "Budget::default_list")]
    #[schemars(
        length(max = 50),
        extend(
            "x-kubernetes-list-type" = "atomic",
            "x-kubernetes-validations" = [cel(
                "self.all(budget, has(budget.schedule) == has(budget.duration))",
                "'schedule' must be set with 'duration'",
            )]
        )
    )]
    pub budgets: Vec<Budget>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidate_after: NillableDuration::at_once(),
            consolidation_policy: ConsolidationPolicy::default(),
            budgets: Budget::default_list(),
        }
    }
}

/// Which nodes consolidation considers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConsolidationPolicy {
    /// Nodes without pods that would have to move.
    WhenEmpty,
    /// Also nodes whose pods fit elsewhere or on something cheaper.
    #[default]
    WhenEmptyOrUnderutilized,
    /// As before, when the saving is worth the disruption.
    Balanced,
}

/// How many nodes may be disrupted at once, for which reasons and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// A number of nodes, or a percentage of the pool's nodes.
    #[serde(default = "Budget::default_nodes")]
    #[schemars(regex(pattern = "^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub nodes: String,
    /// The reasons this budget is about; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// When the budget becomes active, in UTC: five cron fields, or a word such as `@daily`. Absent means always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
    ))]
    pub schedule: Option<String>,
    /// How long the budget stays active, in hours and minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^([0-9]+h[0-9]+m|[0-9]+[hm])(0s)?$"))]
    pub duration: Option<DurationText>,
}

impl Budget {
    fn default_nodes() -> String {
        "10%".to_owned()
    }

    fn default_list() -> Vec<Self> {
        vec![Self { nodes: Self::default_nodes(), reasons: None, schedule: None, duration: None }]
    }
}

/// Why a node is disrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DisruptionReason {
    /// Its pods fit elsewhere, or on something cheaper.
    Underutilized,
    /// It has no pods that would have to move.
    Empty,
    /// It no longer looks as its pool wants it to.
    Drifted,
    /// It is broken and has to be repaired.
    Unhealthy,
}

/// What the controllers know about a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// What all nodes of this pool together have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resource_list")]
    #[serde(deserialize_with = "read_resource_list")]
    pub resources: Option<ResourceList>,
    /// How many nodes the pool has.
    #[serde(default)]
    pub nodes: i64,
    /// The generation of the NodeClass when it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// Whether the pool can be used, and if not, why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "standard_conditions")]
    pub conditions: Option<Vec<Condition>>,
}

fn template_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
        "maxProperties": 100,
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [
            cel(
                "self.all(key, key in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || \
                 !key.find('^[^/]+').endsWith('karpenter.sh'))",
                r#"label domain "karpenter.sh" is restricted"#,
            ),
            cel(
                "self.all(key, key != 'karpenter.sh/nodepool')",
                r#"label "karpenter.sh/nodepool" is restricted"#,
            ),
            cel(
                "self.all(key, key != 'kubernetes.io/hostname')",
                r#"label "kubernetes.io/hostname" is restricted"#,
            ),
        ],
    })
}
