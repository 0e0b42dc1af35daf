//! NodeOverlay: what instance types cost and have, when the user knows better than the provider.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, standard_conditions};
use crate::quantity::{ResourceList, read_resource_list, resource_list};
use crate::requirement::{Operator, key_rules, overlay_rules};
use crate::schema::{QUALIFIED_NAME, cel};

/// The conditions of a NodeOverlay and what they say.
pub mod conditions {
    use crate::condition::ConditionTypes;

    /// The overlay is in use.
    pub const READY: &str = "Ready";
    /// The overlay makes sense and does not conflict with another.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    /// What makes a NodeOverlay ready.
    pub const TYPES: ConditionTypes = ConditionTypes { root: READY, dependents: &[VALIDATION_SUCCEEDED] };
}

/// What the overlay changes, and where.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    plural = "nodeoverlays",
    shortname = "overlays",
    category = "karpenter",
    doc = "A NodeOverlay changes what instance types cost and have in the eyes of the scheduler.",
    status = "NodeOverlayStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Weight", "type": "integer", "jsonPath": ".spec.weight", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    cel("!has(self.price) || !has(self.priceAdjustment)", "cannot set both 'price' and 'priceAdjustment'"),
]))]
pub struct NodeOverlaySpec {
    /// Which instance types and offerings are changed.
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = overlay_rules())
    )]
    pub requirements: Vec<OverlayRequirement>,
    /// The price per hour, in place of the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\d+(\.\d+)?$"))]
    pub price: Option<String>,
    /// What is added to the provider's price per hour: a signed number, or a signed percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([+-]\d*\.?\d+|\+\d*\.?\d+%|-\d{1,2}(\.\d+)?%|-100%)$"))]
    pub price_adjustment: Option<String>,
    /// Resources the instance types have besides those the provider knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        schema_with = "resource_list",
        extend("x-kubernetes-validations" = [cel(
            "!('cpu' in self || 'memory' in self || 'ephemeral-storage' in self || 'pods' in self)",
            "invalid resource restricted",
        )])
    )]
    #[serde(deserialize_with = "read_resource_list")]
    pub capacity: Option<ResourceList>,
    /// The overlay of highest weight wins; absent counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub weight: Option<i32>,
}

/// What a label of an instance type or offering must look like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverlayRequirement {
    /// The label that is looked at.
    #[schemars(length(max = 316), regex(pattern = QUALIFIED_NAME), extend("x-kubernetes-validations" = key_rules()))]
    pub key: String,
    /// How the label is compared with the values.
    pub operator: Operator,
    /// The values: at least one for In and NotIn, exactly one number for Gt, Lt, Gte and Lte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
}

/// Whether the overlay is in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeOverlayStatus {
    /// Whether the overlay is in use, and if not, why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "standard_conditions")]
    pub conditions: Option<Vec<Condition>>,
}
