//! The labels that nodes of a type can carry.

use catalogue::{InstanceTypeFacts, Support, UsageClass};
use model::{CapacityType, Requirement, Requirements, Text, labels as core};

use crate::class::{ClassView, PlacementStrategy, Reservation};
use crate::family::FamilyTraits;
use crate::labels;

/// Kubernetes' name for the architecture; `None` for machines that run neither Linux nor Windows.
pub(crate) fn architecture(facts: &InstanceTypeFacts) -> Option<&'static str> {
    facts.architectures.iter().find_map(|architecture| match architecture.as_str() {
        "x86_64" => Some("amd64"),
        "arm64" => Some("arm64"),
        _ => None,
    })
}

pub(crate) fn is_amd64(facts: &InstanceTypeFacts) -> bool {
    architecture(facts) == Some("amd64")
}

/// How a type can be bought without a reservation.
pub(crate) fn capacity_types(facts: &InstanceTypeFacts) -> Vec<CapacityType> {
    let sold = [(UsageClass::OnDemand, CapacityType::OnDemand), (UsageClass::Spot, CapacityType::Spot)];
    sold.into_iter().filter(|(class, _)| facts.is_sold_as(*class)).map(|(_, capacity_type)| capacity_type).collect()
}

/// What holds for a type in a region whatever the class, together with what holds for most classes: Linux, and no
/// reservations. A label without a value is absent from the nodes.
pub(crate) fn fixed_requirements(facts: &InstanceTypeFacts, region: &str) -> Requirements {
    let mut requirements = Requirements::none();
    for (key, value) in values(facts, region) {
        requirements.add(key, value.map_or_else(Requirement::does_not_exist, Requirement::is));
    }
    for key in
        [core::WINDOWS_BUILD, labels::RESERVATION_ID, labels::RESERVATION_TYPE, labels::RESERVATION_INTERRUPTIBLE]
    {
        requirements.add(key, Requirement::does_not_exist());
    }
    requirements.add(labels::TENANCY, Requirement::any_of(["default", "dedicated"]));
    requirements.add(core::CAPACITY_TYPE, sold_as(&capacity_types(facts)));
    requirements
}

fn sold_as(capacity_types: &[CapacityType]) -> Requirement {
    Requirement::any_of(capacity_types.iter().map(|capacity_type| capacity_type.as_str()))
}

/// Labels that have one value or none.
fn values(facts: &InstanceTypeFacts, region: &str) -> Vec<(&'static str, Option<Text>)> {
    let text = |text: &str| Some(Text::from(text));
    let number = |number: u64| Some(Text::from(number.to_string()));
    let naming = Naming::of(&facts.name);
    let gpu = only(&facts.gpus);
    let accelerator = Marker::of(facts);
    let nvme = facts.local_storage.filter(|disks| disks.nvme != Support::Unsupported);
    let volumes = facts.volumes.bandwidth_max_mbps.filter(|_| facts.volumes.optimized == Support::Default);
    vec![
        (core::INSTANCE_TYPE, text(&facts.name)),
        (core::ARCH, architecture(facts).map(Text::from)),
        (core::OS, text("linux")),
        (core::REGION, text(region)),
        (labels::CATEGORY, naming.category.map(Text::from)),
        (labels::GENERATION, naming.generation.map(Text::from)),
        (labels::FAMILY, naming.family.map(Text::from)),
        (labels::SIZE, naming.size.map(Text::from)),
        (labels::FLEX, text(if facts.family().contains("-flex") { "true" } else { "false" })),
        (labels::CPU, number(u64::from(facts.vcpus))),
        (labels::CPU_MANUFACTURER, Some(lower_kebab(&facts.processor_manufacturer))),
        (labels::CPU_CLOCK_SPEED, facts.clock_speed_mhz.and_then(|speed| number(u64::from(speed)))),
        (labels::MEMORY, number(facts.memory_mib)),
        (labels::EBS_BANDWIDTH, volumes.and_then(|mbps| number(u64::from(mbps)))),
        (labels::NETWORK_BANDWIDTH, facts.network.baseline_bandwidth_mbps.and_then(|mbps| number(u64::from(mbps)))),
        (labels::HYPERVISOR, text(facts.hypervisor.map_or("", |hypervisor| hypervisor.as_str()))),
        (labels::ENCRYPTION_IN_TRANSIT, text(if facts.network.encryption_in_transit { "true" } else { "false" })),
        (labels::NITRO_SANDBOX, facts.nitro_enclaves.then(|| Text::from("true"))),
        (labels::LOCAL_NVME, nvme.and_then(|disks| number(disks.total_gb))),
        (labels::GPU_NAME, gpu.map(|gpu| lower_kebab(&gpu.name))),
        (labels::GPU_MANUFACTURER, gpu.map(|gpu| lower_kebab(&gpu.manufacturer))),
        (labels::GPU_COUNT, gpu.and_then(|gpu| number(u64::from(gpu.count)))),
        (labels::GPU_MEMORY, gpu.and_then(|gpu| number(gpu.memory_mib))),
        (labels::ACCELERATOR_NAME, accelerator.as_ref().map(|marker| lower_kebab(marker.name))),
        (labels::ACCELERATOR_MANUFACTURER, accelerator.as_ref().map(|marker| lower_kebab(marker.manufacturer))),
        (labels::ACCELERATOR_COUNT, accelerator.as_ref().and_then(|marker| number(u64::from(marker.count)))),
    ]
}

/// What accelerator labels tell.
struct Marker<'a> {
    name: &'a str,
    manufacturer: &'a str,
    count: u32,
}

impl<'a> Marker<'a> {
    /// AWS's own accelerators go before others, and only machines with one kind are marked.
    fn of(facts: &'a InstanceTypeFacts) -> Option<Self> {
        if !facts.neuron_devices.is_empty() {
            let device = only(&facts.neuron_devices)?;
            return Some(Self { name: &device.name, manufacturer: "aws", count: device.count });
        }
        let other = only(&facts.inference_accelerators)?;
        Some(Self { name: &other.name, manufacturer: &other.manufacturer, count: other.count })
    }
}

fn only<T>(entries: &[T]) -> Option<&T> {
    if entries.len() == 1 { entries.first() } else { None }
}

fn lower_kebab(text: &str) -> Text {
    Text::from(text.replace(' ', "-").to_lowercase())
}

/// What the name of a type tells.
#[derive(Debug, PartialEq, Eq)]
struct Naming<'a> {
    category: Option<&'a str>,
    generation: Option<&'a str>,
    family: Option<&'a str>,
    size: Option<&'a str>,
}

impl<'a> Naming<'a> {
    /// Category and generation are letters and digits, perhaps with terabytes of memory between them: `u-6tb1`.
    fn of(name: &'a str) -> Self {
        let parts = name.split_once('.').filter(|(_, size)| !size.contains('.'));
        let (family, size) = parts.unzip();
        let letters_end = name.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(name.len());
        let (category, rest) = name.split_at(letters_end);
        let rest = after_terabytes(rest).unwrap_or(rest);
        let digits_end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let known = !category.is_empty() && digits_end > 0 && rest.contains('.');
        Self { category: known.then_some(category), generation: known.then(|| &rest[..digits_end]), family, size }
    }
}

/// What stands behind `-6tb`.
fn after_terabytes(text: &str) -> Option<&str> {
    let digits = text.strip_prefix('-')?;
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == digits.len() { None } else { rest.strip_prefix("tb") }
}

/// Narrows the fixed requirements of a type to what its class makes of them.
pub(crate) fn requirements_of_class(
    fixed: &Requirements,
    facts: &InstanceTypeFacts,
    class: &ClassView,
    is_offered: impl Fn(&str) -> bool,
    reservations: &[&Reservation],
) -> Requirements {
    let mut requirements = fixed.clone();
    let zones = || class.zones.iter().filter(|zone| is_offered(&zone.name));
    requirements.add(core::ZONE, Requirement::any_of(zones().map(|zone| zone.name.as_str())));
    let mut ids = zones().filter_map(|zone| zone.id.as_deref()).peekable();
    if ids.peek().is_some() {
        requirements.add(labels::ZONE_ID, Requirement::any_of(ids));
    }
    if let Some(build) = FamilyTraits::of(class.family).windows_build {
        replace(&mut requirements, core::WINDOWS_BUILD, Requirement::is(build));
        let windows = Requirement::any_of(is_amd64(facts).then_some("windows"));
        replace(&mut requirements, core::OS, windows);
    }
    if !reservations.is_empty() {
        reserve(&mut requirements, facts, reservations);
    }
    if let Some(group) = &class.placement_group {
        requirements.add(labels::PLACEMENT_GROUP_ID, Requirement::is(group.id.as_str()));
        if let PlacementStrategy::Partition { count } = group.strategy
            && count > 0
        {
            let partitions = (1..=count).map(|partition| partition.to_string());
            requirements.add(labels::PLACEMENT_GROUP_PARTITION, Requirement::any_of(partitions));
        }
    }
    requirements
}

fn reserve(requirements: &mut Requirements, facts: &InstanceTypeFacts, reservations: &[&Reservation]) {
    let mut types = capacity_types(facts);
    types.push(CapacityType::Reserved);
    replace(requirements, core::CAPACITY_TYPE, sold_as(&types));
    let ids = reservations.iter().map(|reservation| reservation.facts.id.as_str());
    replace(requirements, labels::RESERVATION_ID, Requirement::any_of(ids));
    let kinds = reservations.iter().map(|reservation| reservation.kind());
    replace(requirements, labels::RESERVATION_TYPE, Requirement::any_of(kinds));
    let interruptible = reservations.iter().map(|reservation| reservation.interruptible());
    replace(requirements, labels::RESERVATION_INTERRUPTIBLE, Requirement::any_of(interruptible));
}

fn replace(requirements: &mut Requirements, key: &str, requirement: Requirement) {
    requirements.remove(key);
    requirements.add(key, requirement);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AWS-IT-18
    #[test]
    fn names_tell_category_and_generation() {
        let table = [
            ("m5.large", Some("m"), Some("5")),
            ("c7i-flex.2xlarge", Some("c"), Some("7")),
            ("u-6tb1.56xlarge", Some("u"), Some("1")),
            ("u7i-12tb.224xlarge", Some("u"), Some("7")),
            ("is4gen.medium", Some("is"), Some("4")),
            ("trn1n.32xlarge", Some("trn"), Some("1")),
            ("p6-b300.48xlarge", Some("p"), Some("6")),
            ("mac-m4.metal", None, None),
            ("u-tb1.metal", None, None),
            ("m5", None, None),
        ];
        for (name, category, generation) in table {
            let naming = Naming::of(name);
            assert_eq!((naming.category, naming.generation), (category, generation), "{name}");
        }
        let naming = Naming::of("c7i.metal-24xl");
        assert_eq!((naming.family, naming.size), (Some("c7i"), Some("metal-24xl")));
    }
}
