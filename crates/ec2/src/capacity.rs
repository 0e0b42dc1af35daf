//! What a node has.

use api::ec2_node_class::InterfaceType;
use catalogue::{Accelerator, InstanceTypeFacts};
use model::{ResourceName, Resources};

use crate::class::ClassView;
use crate::family::FamilyTraits;
use crate::pods::pods;
use crate::resources::{
    AMD_GPU, EFA, EPHEMERAL_STORAGE, HABANA_GAUDI, NEURON, NEURON_CORE, NVIDIA_GPU, POD_ENI, PRIVATE_IPV4_ADDRESS,
};
use crate::settings::Settings;
use crate::storage::ephemeral_storage;

const BYTES_PER_MEBIBYTE: i64 = 1 << 20;
/// What the kernel sets aside for devices on arm64.
const ARM64_RESERVED_MEBIBYTES: i64 = 64;

/// What every node of a type has, whatever its class. Resources of which there are none are left out.
pub(crate) fn fixed_capacity(facts: &InstanceTypeFacts) -> Resources {
    let gpus = |manufacturer: &str| {
        let of_maker = facts.gpus.iter().filter(|gpu: &&Accelerator| gpu.manufacturer == manufacturer);
        of_maker.map(|gpu| i64::from(gpu.count)).sum::<i64>()
    };
    let devices = &facts.neuron_devices;
    let cores = devices.first().map_or(0, |device| i64::from(device.count) * i64::from(device.cores));
    let limits = facts.network.vpc_limits.filter(|limits| limits.trunking);
    let amounts = [
        ("cpu", i64::from(facts.vcpus) * 1000),
        (NVIDIA_GPU, gpus("NVIDIA")),
        (AMD_GPU, gpus("AMD")),
        (HABANA_GAUDI, gpus("Habana")),
        (NEURON, devices.iter().map(|device| i64::from(device.count)).sum()),
        (NEURON_CORE, cores),
        (POD_ENI, limits.map_or(0, |limits| i64::from(limits.branch_interfaces))),
    ];
    amounts
        .into_iter()
        .filter(|(_, amount)| *amount > 0)
        .map(|(name, amount)| (ResourceName::new(name), amount))
        .collect()
}

/// What a node of a type has when launched from a class.
pub(crate) fn capacity(
    fixed: &Resources,
    facts: &InstanceTypeFacts,
    class: &ClassView,
    settings: &Settings,
) -> Resources {
    let memory = class.discovered_memory.get(&facts.name).copied();
    let mut capacity = fixed.clone();
    capacity.set(ResourceName::memory(), memory.unwrap_or_else(|| computed_memory(facts, settings)));
    capacity.set(ResourceName::pods(), pods(facts, class, settings));
    capacity.set(ResourceName::new(EPHEMERAL_STORAGE), ephemeral_storage(facts, class));
    let fabric = fabric_interfaces(facts, class);
    if fabric > 0 {
        capacity.set(ResourceName::new(EFA), fabric);
    }
    if let Some(addresses) = windows_addresses(facts, class) {
        capacity.set(ResourceName::new(PRIVATE_IPV4_ADDRESS), addresses);
    }
    capacity
}

/// Bytes of memory that are expected to be left after the hypervisor and the kernel took theirs.
pub(crate) fn computed_memory(facts: &InstanceTypeFacts, settings: &Settings) -> i64 {
    let is_arm = facts.architectures.first().is_some_and(|first| first == "arm64");
    let reserved = if is_arm { ARM64_RESERVED_MEBIBYTES } else { 0 };
    let bytes = (i64::try_from(facts.memory_mib).unwrap_or(i64::MAX >> 20) - reserved) * BYTES_PER_MEBIBYTE;
    let overhead = bytes as f64 * settings.vm_memory_overhead_percent / 1024.0 / 1024.0;
    bytes - overhead.ceil() as i64 * BYTES_PER_MEBIBYTE
}

/// Interfaces of the Elastic Fabric Adapter: those the class lists, or all if it lists no interfaces.
fn fabric_interfaces(facts: &InstanceTypeFacts, class: &ClassView) -> i64 {
    match &class.network_interfaces {
        Some(interfaces) => {
            interfaces.iter().filter(|interface| interface.interface_type == InterfaceType::EfaOnly).count() as i64
        }
        None => i64::from(facts.network.efa_interfaces_max.unwrap_or(0)),
    }
}

/// Addresses for pods on Windows, where one interface serves all; `None` where Windows does not run.
fn windows_addresses(facts: &InstanceTypeFacts, class: &ClassView) -> Option<i64> {
    let runs_windows = FamilyTraits::of(class.family).windows_build.is_some() && crate::requirements::is_amd64(facts);
    let addresses = |limits: catalogue::VpcLimits| i64::from(limits.ipv4_per_interface) - 1;
    runs_windows.then(|| facts.network.vpc_limits.map_or(0, addresses))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AWS-IT-09
    #[test]
    fn graphics_processors_are_counted_by_maker() {
        let gpu = |manufacturer: &str, count| Accelerator {
            manufacturer: manufacturer.to_owned(),
            count,
            ..Accelerator::default()
        };
        let table = [
            (vec![gpu("NVIDIA", 8)], "cpu=4 nvidia.com/gpu=8"),
            (vec![gpu("NVIDIA", 1), gpu("NVIDIA", 2)], "cpu=4 nvidia.com/gpu=3"),
            (vec![gpu("AMD", 2), gpu("NVIDIA", 1)], "amd.com/gpu=2 cpu=4 nvidia.com/gpu=1"),
            (vec![gpu("Habana", 8)], "cpu=4 habana.ai/gaudi=8"),
            (vec![gpu("Somebody", 8)], "cpu=4"),
            (vec![], "cpu=4"),
        ];
        for (gpus, expected) in table {
            let facts = InstanceTypeFacts { vcpus: 4, gpus, ..InstanceTypeFacts::default() };
            assert_eq!(fixed_capacity(&facts).to_string(), expected);
        }
    }
}
