//! What EC2 says about a type of instance.

use serde::{Deserialize, Serialize};

/// One type of instance, for example `m5.large`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstanceTypeFacts {
    /// Name.
    pub name: String,
    /// Virtual processors.
    pub vcpus: u32,
    /// Processor cores.
    pub cores: u32,
    /// Threads that each core runs.
    pub threads_per_core: u32,
    /// Memory in MiB, before the hypervisor takes its share.
    pub memory_mib: u64,
    /// Architectures as EC2 spells them: `x86_64`, `arm64`, `i386`, `x86_64_mac`, `arm64_mac`.
    pub architectures: Vec<String>,
    /// Who made the processor, for example `Intel`.
    pub processor_manufacturer: String,
    /// The clock speed that the processor sustains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_speed_mhz: Option<u32>,
    /// What the processor can do besides, for example `nested-virtualization`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processor_features: Vec<String>,
    /// Whether AWS counts it among the current generation.
    #[serde(skip_serializing_if = "is_false")]
    pub current_generation: bool,
    /// Whether there is no hypervisor.
    #[serde(skip_serializing_if = "is_false")]
    pub bare_metal: bool,
    /// What runs the instance; absent on bare metal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<Hypervisor>,
    /// Whether its processor time is rationed by credits.
    #[serde(skip_serializing_if = "is_false")]
    pub burstable: bool,
    /// Whether hardware virtual machines are supported.
    #[serde(skip_serializing_if = "is_false")]
    pub hardware_virtual_machine: bool,
    /// How it can be bought.
    pub usage_classes: Vec<UsageClass>,
    /// Strategies of placement groups it supports: `cluster`, `partition`, `spread`.
    pub placement_strategies: Vec<String>,
    /// Whether it can run Nitro Enclaves.
    #[serde(skip_serializing_if = "is_false")]
    pub nitro_enclaves: bool,
    /// Its network.
    pub network: NetworkFacts,
    /// How it reaches its volumes.
    pub volumes: VolumeFacts,
    /// The disks that come with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_storage: Option<LocalStorage>,
    /// Graphics processors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Accelerator>,
    /// Inference accelerators. AWS's own are listed among the Neuron devices too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inference_accelerators: Vec<Accelerator>,
    /// AWS's own accelerators: Inferentia and Trainium.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub neuron_devices: Vec<NeuronDevice>,
}

impl InstanceTypeFacts {
    /// Whether it can be bought that way.
    pub fn is_sold_as(&self, class: UsageClass) -> bool {
        self.usage_classes.contains(&class)
    }

    /// What stands before the dot: `m5` of `m5.large`.
    pub fn family(&self) -> &str {
        self.name.split_once('.').map_or(&*self.name, |(family, _)| family)
    }

    /// What stands after the dot: `large` of `m5.large`.
    pub fn size(&self) -> &str {
        self.name.split_once('.').map_or("", |(_, size)| size)
    }
}

/// What runs instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hypervisor {
    /// AWS's own.
    Nitro,
    /// Xen, for older types.
    Xen,
}

impl Hypervisor {
    /// EC2's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nitro => "nitro",
            Self::Xen => "xen",
        }
    }
}

/// How instances can be bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageClass {
    /// By the second, at list price.
    OnDemand,
    /// Spare capacity that may be taken back.
    Spot,
    /// A block reserved for a fixed time.
    CapacityBlock,
}

/// Whether something can be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// No.
    #[default]
    Unsupported,
    /// If asked for.
    Supported,
    /// Without asking.
    Default,
    /// Always.
    Required,
}

/// The network of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkFacts {
    /// Network interfaces on all cards together.
    pub interfaces_max: u32,
    /// Network cards, by index.
    pub cards: Vec<NetworkCard>,
    /// The card that the first interface is on.
    #[serde(skip_serializing_if = "is_zero")]
    pub default_card: u32,
    /// IPv4 addresses of each interface.
    pub ipv4_per_interface: u32,
    /// IPv6 addresses of each interface.
    pub ipv6_per_interface: u32,
    /// Whether the Elastic Network Adapter is supported.
    pub ena: Support,
    /// Interfaces of the Elastic Fabric Adapter, if it is supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efa_interfaces_max: Option<u32>,
    /// Whether traffic between instances is encrypted by the hardware.
    #[serde(skip_serializing_if = "is_false")]
    pub encryption_in_transit: bool,
    /// The bandwidth that is always there; absent where AWS is vague about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_bandwidth_mbps: Option<u32>,
    /// What the VPC resource controller knows of the type; absent for types it does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_limits: Option<VpcLimits>,
}

impl NetworkFacts {
    /// Interfaces on the default card, the only one that pods get addresses from.
    pub fn default_card_interfaces_max(&self) -> u32 {
        let default = self.cards.iter().find(|card| card.index == self.default_card);
        default.map_or(self.interfaces_max, |card| card.interfaces_max)
    }
}

/// One network card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkCard {
    /// Which card it is.
    #[serde(skip_serializing_if = "is_zero")]
    pub index: u32,
    /// Network interfaces on it.
    pub interfaces_max: u32,
}

/// What the VPC resource controller may do with a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VpcLimits {
    /// IPv4 addresses of each interface.
    pub ipv4_per_interface: u32,
    /// Whether an interface can be a trunk with branches.
    #[serde(skip_serializing_if = "is_false")]
    pub trunking: bool,
    /// Branch interfaces, which pods with security groups of their own need.
    #[serde(skip_serializing_if = "is_zero")]
    pub branch_interfaces: u32,
}

/// How a type reaches its volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VolumeFacts {
    /// Whether there is bandwidth for volumes alone.
    pub optimized: Support,
    /// The most bandwidth there is for volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_max_mbps: Option<u32>,
    /// Volumes that can be attached.
    pub attachments_max: u32,
}

/// The disks that come with a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalStorage {
    /// Size of all disks together, in GB of a thousand million bytes.
    pub total_gb: u64,
    /// Whether they speak NVMe.
    pub nvme: Support,
}

/// Graphics processors or inference accelerators of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Accelerator {
    /// Name, for example `A100`.
    pub name: String,
    /// Who made it.
    pub manufacturer: String,
    /// How many there are; zero where an instance gets a fraction of one.
    pub count: u32,
    /// Memory of each in MiB.
    pub memory_mib: u64,
}

/// AWS's own accelerators of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NeuronDevice {
    /// Name, for example `Trainium`.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// Cores of each.
    pub cores: u32,
    /// Memory of each in MiB.
    pub memory_mib: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references to such functions")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references to such functions")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}
