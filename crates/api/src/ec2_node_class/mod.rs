//! EC2NodeClass: how instances are launched on EC2.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::{cel, open_object};

pub mod instance;
pub mod labels;
pub mod selector;
pub mod status;

pub use instance::{
    BlockDevice, BlockDeviceMapping, ConnectionTracking, CpuOptions, HttpTokens, InstanceStorePolicy, InterfaceType,
    MetadataOptions, NetworkInterface, Switch, VolumeType,
};
pub use selector::{
    AmiSelectorTerm, CapacityReservationSelectorTerm, InstanceMatchCriteria, PlacementGroupSelector,
    SecurityGroupSelectorTerm, SubnetSelectorTerm,
};
pub use status::{Ami, AmiRequirement, CapacityReservation, EC2NodeClassStatus, SecurityGroup, Subnet};

/// The API group of EC2NodeClass, and the domain of its labels.
pub const GROUP: &str = "karpenter.k8s.aws";

/// The conditions of an EC2NodeClass and what they say.
pub mod conditions {
    use crate::condition::ConditionTypes;

    /// The class can be used.
    pub const READY: &str = "Ready";
    /// At least one image was found.
    pub const AMIS_READY: &str = "AMIsReady";
    /// At least one subnet was found.
    pub const SUBNETS_READY: &str = "SubnetsReady";
    /// At least one security group was found.
    pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
    /// The instance profile exists.
    pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
    /// The placement group, if one is wanted, was found.
    pub const PLACEMENT_GROUP_READY: &str = "PlacementGroupReady";
    /// The capacity reservations were listed.
    pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";
    /// The class passed the checks that its schema cannot make.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";

    /// What makes an EC2NodeClass ready while capacity reservations are used.
    pub const TYPES: ConditionTypes = ConditionTypes {
        root: READY,
        dependents: &[
            AMIS_READY,
            CAPACITY_RESERVATIONS_READY,
            PLACEMENT_GROUP_READY,
            SUBNETS_READY,
            SECURITY_GROUPS_READY,
            INSTANCE_PROFILE_READY,
            VALIDATION_SUCCEEDED,
        ],
    };
    /// What makes an EC2NodeClass ready while capacity reservations are not used.
    pub const TYPES_WITHOUT_RESERVATIONS: ConditionTypes = ConditionTypes {
        root: READY,
        dependents: &[
            AMIS_READY,
            PLACEMENT_GROUP_READY,
            SUBNETS_READY,
            SECURITY_GROUPS_READY,
            INSTANCE_PROFILE_READY,
            VALIDATION_SUCCEEDED,
        ],
    };
}

/// How instances are launched.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.k8s.aws",
    version = "v1",
    kind = "EC2NodeClass",
    plural = "ec2nodeclasses",
    shortname = "ec2nc",
    shortname = "ec2ncs",
    category = "karpenter",
    doc = "An EC2NodeClass says how instances are launched on EC2.",
    status = "EC2NodeClassStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Role", "type": "string", "jsonPath": ".spec.role", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    cel(
        "has(self.role) != has(self.instanceProfile)",
        "must specify exactly one of ['role', 'instanceProfile']",
    ),
    cel(
        "has(self.amiFamily) || self.amiSelectorTerms.exists(term, has(term.alias))",
        "must specify amiFamily if amiSelectorTerms does not contain an alias",
    ),
    cel(
        "!has(self.amiFamily) || self.amiFamily == 'Custom' || self.amiSelectorTerms.all(term, !has(term.alias) || \
         term.alias.find('^[^@]+') == self.amiFamily.lowerAscii())",
        "amiFamily must be the family of the alias, or 'Custom'",
    ),
]))]
pub struct EC2NodeClassSpec {
    /// Which subnets instances are launched into.
    #[schemars(
        length(min = 1, max = 30),
        extend("x-kubernetes-validations" = selector::subnet_rules())
    )]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// Which security groups instances are given.
    #[schemars(
        length(min = 1, max = 30),
        extend("x-kubernetes-validations" = selector::security_group_rules())
    )]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Which capacity reservations may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 30),
        extend("x-kubernetes-validations" = selector::capacity_reservation_rules())
    )]
    pub capacity_reservation_selector_terms: Option<Vec<CapacityReservationSelectorTerm>>,
    /// Which placement group instances are launched into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Whether instances get a public IPv4 address; absent leaves it to the subnet.
    #[serde(default, rename = "associatePublicIPAddress", skip_serializing_if = "Option::is_none")]
    pub associate_public_ip_address: Option<bool>,
    /// How many IP prefixes the primary network interface is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ip_prefix_count: Option<i32>,
    /// Which images instances may be started from.
    #[schemars(
        length(min = 1, max = 30),
        extend("x-kubernetes-validations" = selector::ami_rules())
    )]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// How user data is written and which devices are expected; absent means the family of the alias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<AmiFamily>,
    /// Text that instances run or read when they start, merged with what the family needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// The IAM role of the nodes, for which an instance profile is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub role: Option<String>,
    /// An instance profile that exists already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub instance_profile: Option<String>,
    /// Tags of everything that is made for the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resource_tags")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Settings of the kubelet, by the names of its configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub kubelet: Option<Map<String, Value>>,
    /// The volumes of an instance; absent means what the family usually has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 50),
        extend("x-kubernetes-validations" = [cel(
            "self.filter(mapping, has(mapping.rootVolume) && mapping.rootVolume).size() <= 1",
            "must have only one blockDeviceMappings with rootVolume",
        )])
    )]
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// What happens to the disks that come with an instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// The network interfaces of an instance; absent means one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 150),
        extend("x-kubernetes-validations" = instance::network_interface_rules())
    )]
    pub network_interfaces: Option<Vec<NetworkInterface>>,
    /// Whether instances report to CloudWatch each minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// How instances may ask for data about themselves.
    #[serde(default)]
    pub metadata_options: MetadataOptions,
    /// How long idle connections are tracked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_tracking: Option<ConnectionTracking>,
    /// Passed on to EC2 with each fleet, unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Options of the processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
}

/// How user data is written and which devices are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AmiFamily {
    /// Amazon Linux 2.
    AL2,
    /// Amazon Linux 2023.
    AL2023,
    /// Bottlerocket.
    Bottlerocket,
    /// User data is left as the user wrote it.
    Custom,
    /// Windows Server 2019.
    Windows2019,
    /// Windows Server 2022.
    Windows2022,
    /// Windows Server 2025.
    Windows2025,
}

/// Tags by which clusters and their owners recognise what is theirs must not be set by hand.
fn resource_tags(_: &mut SchemaGenerator) -> Schema {
    let forbidden = |condition: &str, what: &str| {
        cel(&format!("self.all(key, {condition})"), &format!("tag contains a restricted tag matching {what}"))
    };
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string" },
        "x-kubernetes-validations": [
            cel("self.all(key, key != '')", "empty tag keys aren't supported"),
            forbidden("key != 'eks:eks-cluster-name'", "eks:eks-cluster-name"),
            forbidden("!key.startsWith('kubernetes.io/cluster')", "kubernetes.io/cluster"),
            forbidden("key != 'karpenter.sh/nodepool'", "karpenter.sh/nodepool"),
            forbidden("key != 'karpenter.sh/nodeclaim'", "karpenter.sh/nodeclaim"),
            forbidden("key != 'karpenter.k8s.aws/ec2nodeclass'", "karpenter.k8s.aws/ec2nodeclass"),
        ],
    })
}
