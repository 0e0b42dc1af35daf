//! Selector terms: how a class finds what it uses in the account.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema::{cel, selector_tags};

/// Selects subnets by tags or by ID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubnetSelectorTerm {
    /// Tags the subnet has; the value `*` stands for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector_tags")]
    pub tags: Option<BTreeMap<String, String>>,
    /// ID of the subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "subnet-[0-9a-z]+"))]
    pub id: Option<String>,
}

/// Selects security groups by tags, ID or name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroupSelectorTerm {
    /// Tags the group has; the value `*` stands for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector_tags")]
    pub tags: Option<BTreeMap<String, String>>,
    /// ID of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "sg-[0-9a-z]+"))]
    pub id: Option<String>,
    /// Name of the group, which is not its tag `Name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Selects capacity reservations by tags, ID or the way they match instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservationSelectorTerm {
    /// Tags the reservation has; the value `*` stands for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector_tags")]
    pub tags: Option<BTreeMap<String, String>>,
    /// ID of the reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^cr-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// Account that owns the reservation.
    #[serde(default, rename = "ownerID", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]{12}$"))]
    pub owner_id: Option<String>,
    /// How the reservation matches instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<InstanceMatchCriteria>,
}

/// How a capacity reservation matches instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InstanceMatchCriteria {
    /// Any instance of the right shape uses it.
    Open,
    /// Only instances that name it use it.
    Targeted,
}

/// Selects one placement group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    cel("has(self.name) != has(self.id)", "must specify exactly one of ['name', 'id']"),
]))]
pub struct PlacementGroupSelector {
    /// Name of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// ID of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^pg-[0-9a-z]+$"))]
    pub id: Option<String>,
}

/// Selects images by alias, tags, ID, name or SSM parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmiSelectorTerm {
    /// A published family and a version of it, such as `al2023@latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 30),
        regex(pattern = "^[a-zA-Z0-9]+@.+$"),
        extend("x-kubernetes-validations" = [
            cel(
                "self.find('^[^@]+') in ['al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025']",
                "family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket', \
                 'windows2019', 'windows2022', 'windows2025'",
            ),
            cel(
                "!self.startsWith('windows') || self.endsWith('@latest')",
                "windows families may only specify version 'latest'",
            ),
        ])
    )]
    pub alias: Option<String>,
    /// Tags the image has; the value `*` stands for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector_tags")]
    pub tags: Option<BTreeMap<String, String>>,
    /// ID of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "ami-[0-9a-z]+"))]
    pub id: Option<String>,
    /// Name of the image, which is not its tag `Name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Owner of the image: an account, `self`, `amazon` or `aws-marketplace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Name or ARN of an SSM parameter that holds the image's ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssm_parameter: Option<String>,
}

// The rules that forbid a combination come in two strengths. For images one bad term is enough; for the other lists
// every term has to be bad. Existing objects rely on the leniency, so it stays; resolution takes the ID then.

/// The rules on a list of subnet terms.
pub(crate) fn subnet_rules() -> Value {
    json!([
        cel("self.all(term, has(term.tags) || has(term.id))", "expected at least one, got none, ['tags', 'id']"),
        cel(
            "!self.all(term, has(term.id) && has(term.tags))",
            "'id' is mutually exclusive, cannot be set with a combination of other fields in a subnet selector term",
        ),
    ])
}

/// The rules on a list of security group terms.
pub(crate) fn security_group_rules() -> Value {
    json!([
        cel(
            "self.all(term, has(term.tags) || has(term.id) || has(term.name))",
            "expected at least one, got none, ['tags', 'id', 'name']",
        ),
        cel(
            "!self.all(term, has(term.id) && (has(term.tags) || has(term.name)))",
            "'id' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term",
        ),
        cel(
            "!self.all(term, has(term.name) && (has(term.tags) || has(term.id)))",
            "'name' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term",
        ),
    ])
}

/// The rules on a list of capacity reservation terms; an owner alone selects nothing.
pub(crate) fn capacity_reservation_rules() -> Value {
    json!([
        cel(
            "self.all(term, has(term.tags) || has(term.id) || has(term.instanceMatchCriteria))",
            "expected at least one, got none, ['tags', 'id', 'instanceMatchCriteria']",
        ),
        cel(
            "size(self) == 0 || !self.all(term, has(term.id) && \
             (has(term.tags) || has(term.ownerID) || has(term.instanceMatchCriteria)))",
            "'id' is mutually exclusive, cannot be set along with other fields in a capacity reservation selector term",
        ),
    ])
}

/// The rules on a list of image terms.
pub(crate) fn ami_rules() -> Value {
    json!([
        cel(
            "self.all(term, has(term.tags) || has(term.id) || has(term.name) || has(term.alias) || has(term.ssmParameter))",
            "expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']",
        ),
        cel(
            "!self.exists(term, has(term.id) && (has(term.alias) || has(term.tags) || has(term.name) || has(term.owner)))",
            "'id' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms",
        ),
        cel(
            "!self.exists(term, has(term.alias) && (has(term.id) || has(term.tags) || has(term.name) || has(term.owner)))",
            "'alias' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms",
        ),
        cel(
            "size(self) == 1 || !self.exists(term, has(term.alias))",
            "'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms",
        ),
    ])
}
