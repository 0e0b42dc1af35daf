//! The names of resources that nodes on EC2 may have.

/// Graphics processors of NVIDIA.
pub const NVIDIA_GPU: &str = "nvidia.com/gpu";
/// Graphics processors of AMD.
pub const AMD_GPU: &str = "amd.com/gpu";
/// Gaudi accelerators of Habana.
pub const HABANA_GAUDI: &str = "habana.ai/gaudi";
/// AWS's own accelerators.
pub const NEURON: &str = "aws.amazon.com/neuron";
/// The cores of AWS's own accelerators.
pub const NEURON_CORE: &str = "aws.amazon.com/neuroncore";
/// Branch network interfaces, for pods with security groups of their own.
pub const POD_ENI: &str = "vpc.amazonaws.com/pod-eni";
/// Interfaces of the Elastic Fabric Adapter.
pub const EFA: &str = "vpc.amazonaws.com/efa";
/// Addresses that pods on Windows get.
pub const PRIVATE_IPV4_ADDRESS: &str = "vpc.amazonaws.com/PrivateIPv4Address";
/// Disk space that goes with the node.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
