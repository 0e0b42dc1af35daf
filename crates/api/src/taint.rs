//! Taints that nodes are given.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::QUALIFIED_NAME;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// New pods stay away.
    NoSchedule,
    /// New pods go elsewhere if they can.
    PreferNoSchedule,
    /// New pods stay away and running pods are evicted.
    NoExecute,
}

impl TaintEffect {
    /// The effect as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// Keeps pods that do not tolerate it off a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// The name of the taint.
    #[schemars(length(min = 1), regex(pattern = QUALIFIED_NAME))]
    pub key: String,
    /// The value of the taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = QUALIFIED_NAME))]
    pub value: Option<String>,
    /// What happens to pods that do not tolerate the taint.
    pub effect: TaintEffect,
    /// When the taint was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::condition::time_schema")]
    pub time_added: Option<Time>,
}
