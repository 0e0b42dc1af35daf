//! What an instance is made of: volumes, network interfaces and their options.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema::cel;

/// One volume of an instance and the name it is attached by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// Name of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<BlockDevice>,
    /// Whether the kubelet keeps its data on this volume, so that its size is the ephemeral storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<bool>,
}

/// A volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    cel("has(self.snapshotID) || has(self.volumeSize)", "snapshotID or volumeSize must be defined"),
    cel(
        "!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
        "snapshotID must be set when volumeInitializationRate is set",
    ),
]))]
pub struct BlockDevice {
    /// Whether the volume goes with its instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether the volume is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Operations per second the volume is paid for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// Key the volume is encrypted with.
    #[serde(default, rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// Snapshot the volume is made from.
    #[serde(default, rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// MiB per second the volume is paid for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// MiB per second at which the snapshot is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub volume_initialization_rate: Option<i32>,
    /// Size of the volume in Gi, G, Ti or T.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "volume_size")]
    pub volume_size: Option<Quantity>,
    /// Type of the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,
}

/// Types of EBS volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VolumeType {
    /// Magnetic, previous generation.
    Standard,
    /// Provisioned operations.
    Io1,
    /// Provisioned operations, more durable.
    Io2,
    /// General purpose, previous generation.
    Gp2,
    /// Cold magnetic.
    Sc1,
    /// Magnetic for throughput.
    St1,
    /// General purpose.
    Gp3,
}

/// What happens to the disks that come with an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstanceStorePolicy {
    /// They become one striped volume for pods, images and logs.
    RAID0,
}

/// One network interface of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// The card it is on.
    #[schemars(range(min = 0))]
    pub network_card_index: i32,
    /// Its place on that card.
    #[schemars(range(min = 0))]
    pub device_index: i32,
    /// What it can do.
    pub interface_type: InterfaceType,
}

/// What a network interface can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceType {
    /// IP traffic.
    Interface,
    /// Traffic of the Elastic Fabric Adapter, without IP.
    EfaOnly,
}

/// Something that can be switched on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// On.
    Enabled,
    /// Off.
    Disabled,
}

/// Whether requests for instance metadata need a session token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpTokens {
    /// They do.
    Required,
    /// They need not.
    Optional,
}

/// How instances may ask for data about themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// Whether they may ask at all.
    #[serde(default = "MetadataOptions::enabled")]
    pub http_endpoint: Switch,
    /// Whether they may ask over IPv6.
    #[serde(default = "MetadataOptions::disabled", rename = "httpProtocolIPv6")]
    pub http_protocol_ipv6: Switch,
    /// How many hops the answer may travel; 1 keeps it from pods with a network of their own.
    #[serde(default = "MetadataOptions::one_hop")]
    #[schemars(range(min = 1, max = 64))]
    pub http_put_response_hop_limit: i64,
    /// Whether requests need a session token.
    #[serde(default = "MetadataOptions::tokens_required")]
    pub http_tokens: HttpTokens,
}

impl MetadataOptions {
    fn enabled() -> Switch {
        Switch::Enabled
    }

    fn disabled() -> Switch {
        Switch::Disabled
    }

    fn one_hop() -> i64 {
        1
    }

    fn tokens_required() -> HttpTokens {
        HttpTokens::Required
    }
}

impl Default for MetadataOptions {
    fn default() -> Self {
        Self {
            http_endpoint: Self::enabled(),
            http_protocol_ipv6: Self::disabled(),
            http_put_response_hop_limit: Self::one_hop(),
            http_tokens: Self::tokens_required(),
        }
    }
}

/// How long idle connections are tracked, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [cel(
    "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
    "at least one of ['tcpEstablishedTimeout', 'udpStreamTimeout', 'udpTimeout'] must be set",
)]))]
pub struct ConnectionTracking {
    /// For established TCP connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 432_000))]
    pub tcp_established_timeout: Option<i32>,
    /// For UDP flows with several requests and answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 180))]
    pub udp_stream_timeout: Option<i32>,
    /// For UDP flows with one request and answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 60))]
    pub udp_timeout: Option<i32>,
}

/// Options of the processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// Whether instances may run virtual machines themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested_virtualization: Option<Switch>,
}

/// The rules on the list of network interfaces.
pub(crate) fn network_interface_rules() -> Value {
    json!([
        cel(
            "size(self) == 0 || self.exists(one, one.networkCardIndex == 0 && one.deviceIndex == 0 && \
             one.interfaceType == 'interface')",
            "networkInterfaces must include a primary network interface on networkCardIndex 0 and deviceIndex 0 \
             of interfaceType 'interface'",
        ),
        cel(
            "self.all(one, self.exists_one(other, one.networkCardIndex == other.networkCardIndex && \
             one.deviceIndex == other.deviceIndex))",
            "networkInterfaces must not contain duplicate networkCardIndex and deviceIndex pairs",
        ),
        cel(
            "self.all(one, one.interfaceType != 'efa-only' || self.exists_one(other, \
             other.interfaceType == 'efa-only' && one.networkCardIndex == other.networkCardIndex))",
            "networkInterfaces may contain at most one 'efa-only' interface per networkCardIndex",
        ),
    ])
}

/// Up to 58 TiB or 64 TB in whole units. In Ti the second digit of two ends at 7, except for 58: a gap that users
/// of the reference meet too.
fn volume_size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": "^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|\
                    ([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|\
                    ([1-9]|[1-5][0-7]|58)Ti|([1-9]|[1-5][0-9]|6[0-4])T)$",
    })
}
