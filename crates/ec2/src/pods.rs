//! How many pods a node takes.

use api::ec2_node_class::{InterfaceType, NetworkInterface};
use catalogue::InstanceTypeFacts;

use crate::class::ClassView;
use crate::family::FamilyTraits;
use crate::settings::Settings;

/// What a node takes where addresses do not limit it.
const PODS_DEFAULT: i64 = 110;
/// Pods on the host's network that every node runs, which need no address.
const PODS_WITHOUT_ADDRESS: i64 = 2;

/// How many pods a node takes.
pub(crate) fn pods(facts: &InstanceTypeFacts, class: &ClassView, settings: &Settings) -> i64 {
    let family = FamilyTraits::of(class.family);
    let limit = match class.kubelet.max_pods {
        Some(max_pods) => max_pods,
        None if family.pods_by_addresses => address_limited_pods(facts, class, settings.reserved_enis),
        None => PODS_DEFAULT,
    };
    match class.kubelet.pods_per_core.filter(|_| family.pods_per_core) {
        Some(per_core) => limit.min(per_core.saturating_mul(i64::from(facts.vcpus))),
        None => limit,
    }
}

/// How many pods can have an address of their own.
///
/// Only interfaces on the default card carry pods. Each gives its first address to the node itself. An interface of the
/// Elastic Fabric Adapter takes the place of another but carries no IP traffic.
pub(crate) fn address_limited_pods(facts: &InstanceTypeFacts, class: &ClassView, reserved_enis: u32) -> i64 {
    let fabric_only = |interface: &&NetworkInterface| {
        interface.network_card_index == 0 && interface.interface_type == InterfaceType::EfaOnly
    };
    let without_ip = class.network_interfaces.iter().flatten().filter(fabric_only).count() as i64;
    let interfaces = i64::from(facts.network.default_card_interfaces_max()) - i64::from(reserved_enis) - without_ip;
    if interfaces <= 0 {
        return 0;
    }
    interfaces * (i64::from(facts.network.ipv4_per_interface) - 1) + PODS_WITHOUT_ADDRESS
}
