//! Requirements on node labels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema::{QUALIFIED_NAME, cel};

/// How a requirement compares a label with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is a number greater than the value.
    Gt,
    /// The label is a number less than the value.
    Lt,
    /// The label is a number greater than or equal to the value.
    Gte,
    /// The label is a number less than or equal to the value.
    Lte,
}

impl Operator {
    /// Whether the operator compares numbers, and so wants exactly one.
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::Gt | Self::Lt | Self::Gte | Self::Lte)
    }

    /// The operator as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
            Self::Gte => "Gte",
            Self::Lte => "Lte",
        }
    }
}

/// What a node's label must look like, and how many values must stay possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label that is looked at.
    #[schemars(length(max = 316), regex(pattern = QUALIFIED_NAME), extend("x-kubernetes-validations" = key_rules()))]
    pub key: String,
    /// How the label is compared with the values.
    pub operator: Operator,
    /// The values: at least one for In, exactly one number for Gt, Lt, Gte and Lte, none for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
    /// How many different values of this label the launchable instance types must offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub min_values: Option<i32>,
}

impl Requirement {
    /// The values, whether absent or given.
    pub fn values(&self) -> &[String] {
        self.values.as_deref().unwrap_or_default()
    }
}

/// The rules on the key of any requirement.
pub(crate) fn key_rules() -> Value {
    json!([
        cel(
            "self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.find('^[^/]+').endsWith('karpenter.sh')",
            r#"label domain "karpenter.sh" is restricted"#,
        ),
        cel("self != 'kubernetes.io/hostname'", r#"label "kubernetes.io/hostname" is restricted"#),
    ])
}

/// The rules on a list of requirements of a claim.
pub(crate) fn claim_rules() -> Value {
    json!([in_rule(), number_rule(), min_values_rule()])
}

/// The rules on a list of requirements of a pool, which must not name a pool.
pub(crate) fn pool_rules() -> Value {
    json!([
        in_rule(),
        number_rule(),
        min_values_rule(),
        cel(
            "self.all(requirement, requirement.key != 'karpenter.sh/nodepool')",
            r#"label "karpenter.sh/nodepool" is restricted"#,
        ),
    ])
}

/// The rules on a list of requirements of an overlay, which knows no `minValues`.
pub(crate) fn overlay_rules() -> Value {
    json!([
        in_rule(),
        cel(
            "self.all(requirement, requirement.operator != 'NotIn' || (has(requirement.values) && size(requirement.values) > 0))",
            "requirements with operator 'NotIn' must have a value defined",
        ),
        number_rule(),
    ])
}

fn in_rule() -> Value {
    cel(
        "self.all(requirement, requirement.operator != 'In' || (has(requirement.values) && size(requirement.values) > 0))",
        "requirements with operator 'In' must have a value defined",
    )
}

/// Looking at the text before `int()` would cost more than the API server allows for texts without a length limit; a
/// conversion that fails is reported with our message all the same.
fn number_rule() -> Value {
    cel(
        "self.all(requirement, !(requirement.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(requirement.values) && \
         size(requirement.values) == 1 && int(requirement.values[0]) >= 0))",
        "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
    )
}

fn min_values_rule() -> Value {
    cel(
        "self.all(requirement, requirement.operator != 'In' || !has(requirement.minValues) || \
         (has(requirement.values) && size(requirement.values) >= requirement.minValues))",
        "requirements with 'minValues' must have at least that many values specified in the 'values' field",
    )
}
