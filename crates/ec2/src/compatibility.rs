//! Whether instances of a type can be launched from a class at all.

use api::ec2_node_class::{AmiFamily, InterfaceType, NetworkInterface};
use catalogue::{Hypervisor, InstanceTypeFacts, NetworkFacts, Support};

use crate::class::ClassView;

/// Whether a class can launch a type. Types it cannot launch stay known, but are not for sale.
pub(crate) fn is_compatible(facts: &InstanceTypeFacts, class: &ClassView) -> bool {
    let interfaces = class.network_interfaces.as_deref();
    let group = class.placement_group.as_ref();
    interfaces.is_none_or(|interfaces| has_interfaces(&facts.network, interfaces))
        // Amazon Linux 2023 needs a newer processor than the first Graviton.
        && !(class.family == AmiFamily::AL2023 && facts.family() == "a1")
        && (!class.nested_virtualization || facts.processor_features.iter().any(|feature| feature == "nested-virtualization"))
        && group.is_none_or(|group| facts.placement_strategies.iter().any(|known| known == group.strategy.as_str()))
        && (!class.connection_tracking || facts.hypervisor == Some(Hypervisor::Nitro))
}

fn has_interfaces(network: &NetworkFacts, interfaces: &[NetworkInterface]) -> bool {
    let has_place = |interface: &NetworkInterface| {
        let card = network.cards.iter().find(|card| i64::from(card.index) == i64::from(interface.network_card_index));
        card.is_some_and(|card| i64::from(interface.device_index) < i64::from(card.interfaces_max))
    };
    let fabric = interfaces.iter().filter(|interface| interface.interface_type == InterfaceType::EfaOnly).count();
    network.ena != Support::Unsupported
        && interfaces.iter().all(has_place)
        && fabric <= network.efa_interfaces_max.unwrap_or(0) as usize
}
