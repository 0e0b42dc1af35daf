//! The labels of nodes on EC2.

use api::ec2_node_class::{GROUP, labels};
use model::Vocabulary;

/// ID of the zone, the same place in every account.
pub const ZONE_ID: &str = "topology.k8s.aws/zone-id";

/// `c`, `m`, `r`: what a family is made for.
pub const CATEGORY: &str = "karpenter.k8s.aws/instance-category";
/// The number in the family's name.
pub const GENERATION: &str = "karpenter.k8s.aws/instance-generation";
/// `m5` of `m5.large`.
pub const FAMILY: &str = "karpenter.k8s.aws/instance-family";
/// `large` of `m5.large`.
pub const SIZE: &str = "karpenter.k8s.aws/instance-size";
/// Whether full processor speed is not promised all the time.
pub const FLEX: &str = "karpenter.k8s.aws/instance-capability-flex";
/// Virtual processors.
pub const CPU: &str = "karpenter.k8s.aws/instance-cpu";
/// Who made the processor.
pub const CPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-cpu-manufacturer";
/// The clock speed that is sustained.
pub const CPU_CLOCK_SPEED: &str = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz";
/// Memory in MiB.
pub const MEMORY: &str = "karpenter.k8s.aws/instance-memory";
/// Most bandwidth for volumes, in Mbps.
pub const EBS_BANDWIDTH: &str = "karpenter.k8s.aws/instance-ebs-bandwidth";
/// Network bandwidth that is always there, in Mbps.
pub const NETWORK_BANDWIDTH: &str = "karpenter.k8s.aws/instance-network-bandwidth";
/// `nitro`, `xen` or nothing.
pub const HYPERVISOR: &str = "karpenter.k8s.aws/instance-hypervisor";
/// Whether the hardware encrypts traffic between instances.
pub const ENCRYPTION_IN_TRANSIT: &str = "karpenter.k8s.aws/instance-encryption-in-transit-supported";
/// Whether Nitro Enclaves can run there.
pub const NITRO_SANDBOX: &str = "karpenter.k8s.aws/nitro-sandbox";
/// Size of the local NVMe disks in GB.
pub const LOCAL_NVME: &str = "karpenter.k8s.aws/instance-local-nvme";
/// Name of the graphics processor.
pub const GPU_NAME: &str = "karpenter.k8s.aws/instance-gpu-name";
/// Who made the graphics processor.
pub const GPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-gpu-manufacturer";
/// How many graphics processors.
pub const GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
/// Memory of each graphics processor in MiB.
pub const GPU_MEMORY: &str = "karpenter.k8s.aws/instance-gpu-memory";
/// Name of the accelerator.
pub const ACCELERATOR_NAME: &str = "karpenter.k8s.aws/instance-accelerator-name";
/// Who made the accelerator.
pub const ACCELERATOR_MANUFACTURER: &str = "karpenter.k8s.aws/instance-accelerator-manufacturer";
/// How many accelerators.
pub const ACCELERATOR_COUNT: &str = "karpenter.k8s.aws/instance-accelerator-count";
/// `default` or `dedicated`.
pub const TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
/// ID of the capacity reservation.
pub const RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
/// `default` or `capacity-block`.
pub const RESERVATION_TYPE: &str = "karpenter.k8s.aws/capacity-reservation-type";
/// Whether EC2 may take the reserved capacity back.
pub const RESERVATION_INTERRUPTIBLE: &str = "karpenter.k8s.aws/capacity-reservation-interruptible";
/// ID of the placement group.
pub const PLACEMENT_GROUP_ID: &str = "karpenter.k8s.aws/placement-group-id";
/// Partition of the placement group.
pub const PLACEMENT_GROUP_PARTITION: &str = "karpenter.k8s.aws/placement-group-partition";

/// The label that carries the name of the class. Users may select it, but it does not describe an instance type.
const NODE_CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";

/// The core words and those of EC2.
pub fn vocabulary() -> Vocabulary {
    let of_types = labels::LABELS.into_iter().filter(|label| *label != NODE_CLASS);
    Vocabulary::core()
        .with_well_known(of_types)
        .with_well_known(labels::LAUNCH_LABELS)
        .with_well_known([ZONE_ID])
        .with_reservation_label(RESERVATION_ID)
        .with_restricted_domain(GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_labels_of_our_domain_may_be_used() {
        let vocabulary = vocabulary();
        let table = [
            (CATEGORY, true, false),
            (RESERVATION_ID, true, false),
            (ZONE_ID, true, false),
            ("karpenter.k8s.aws/instance-colour", false, true),
            ("karpenter.k8s.aws/ec2nodeclass", false, true),
            ("sub.karpenter.k8s.aws/x", false, true),
            ("example.com/team", false, false),
        ];
        for (key, well_known, restricted) in table {
            assert_eq!(vocabulary.is_well_known(key), well_known, "{key}");
            assert_eq!(vocabulary.is_restricted(key), restricted, "{key}");
        }
        assert_eq!(vocabulary.reservation_label().map(|key| &**key), Some(RESERVATION_ID));
    }
}
