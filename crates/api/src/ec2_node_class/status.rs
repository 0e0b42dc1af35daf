//! What a class found in the account.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, standard_conditions, time_schema};
use crate::ec2_node_class::selector::InstanceMatchCriteria;

/// What the class found, and whether it can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassStatus {
    /// The subnets, those with most free addresses first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnets: Option<Vec<Subnet>>,
    /// The security groups, by ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<SecurityGroup>>,
    /// The images, newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amis: Option<Vec<Ami>>,
    /// The capacity reservations, by ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_reservations: Option<Vec<CapacityReservation>>,
    /// The instance profile that launches use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// Whether the class can be used, and if not, why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "standard_conditions")]
    pub conditions: Option<Vec<Condition>>,
}

/// A subnet that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subnet {
    /// ID of the subnet.
    pub id: String,
    /// Zone of the subnet.
    pub zone: String,
    /// ID of that zone, the same in all accounts.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
}

/// A security group that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroup {
    /// ID of the group.
    pub id: String,
    /// Name of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An image that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ami {
    /// ID of the image.
    pub id: String,
    /// Name of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether its owner advises against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
    /// Which instance types it suits.
    pub requirements: Vec<AmiRequirement>,
}

/// What a label of an instance type must look like to suit an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AmiRequirement {
    /// The label that is looked at.
    pub key: String,
    /// How the label is compared with the values.
    pub operator: String,
    /// The values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
}

/// A capacity reservation that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservation {
    /// Zone of the reservation.
    pub availability_zone: String,
    /// When the reservation ends, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub end_time: Option<Time>,
    /// ID of the reservation.
    #[schemars(regex(pattern = "^cr-[0-9a-z]+$"))]
    pub id: String,
    /// How the reservation matches instances.
    pub instance_match_criteria: InstanceMatchCriteria,
    /// The instance type that is reserved.
    pub instance_type: String,
    /// Whether EC2 may take the capacity back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruptible: Option<bool>,
    /// Account that owns the reservation.
    #[serde(rename = "ownerID")]
    #[schemars(regex(pattern = "^[0-9]{12}$"))]
    pub owner_id: String,
    /// What kind of reservation it is.
    #[serde(default)]
    pub reservation_type: ReservationType,
    /// Whether instances may still be launched into it.
    #[serde(default)]
    pub state: ReservationState,
}

/// Kinds of capacity reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReservationType {
    /// On-demand capacity.
    #[default]
    Default,
    /// A block with a fixed end.
    CapacityBlock,
}

/// Whether a capacity reservation may still be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReservationState {
    /// It may.
    #[default]
    Active,
    /// It ends soon, so nothing new goes there.
    Expiring,
}
