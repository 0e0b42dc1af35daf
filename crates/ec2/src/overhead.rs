//! What a node keeps for itself.

use catalogue::InstanceTypeFacts;
use model::{ResourceName, Resources};

use crate::capacity::computed_memory;
use crate::class::ClassView;
use crate::family::FamilyTraits;
use crate::kubelet::Threshold;
use crate::pods::address_limited_pods;
use crate::resources::EPHEMERAL_STORAGE;
use crate::settings::Settings;

const BYTES_PER_MEBIBYTE: i64 = 1 << 20;
const BYTES_PER_GIBIBYTE: i64 = 1 << 30;

const KUBE_RESERVED_MEBIBYTES: i64 = 255;
const KUBE_RESERVED_MEBIBYTES_PER_POD: i64 = 11;
const EVICTION_MEMORY: Threshold = Threshold::Amount(100 * BYTES_PER_MEBIBYTE);
const EVICTION_STORAGE: Threshold = Threshold::Percent(10.0);

/// What a node keeps of its capacity: reserved for the kubelet and for the system, and free as long as nobody is evicted.
pub(crate) fn overhead(
    capacity: &Resources,
    facts: &InstanceTypeFacts,
    class: &ClassView,
    settings: &Settings,
) -> Resources {
    let mut total = kube_reserved(capacity, facts, class);
    total.add(&class.kubelet.system_reserved);
    total.add(&eviction_threshold(capacity, facts, class, settings));
    total
}

fn kube_reserved(capacity: &Resources, facts: &InstanceTypeFacts, class: &ClassView) -> Resources {
    // Images whose kubelet is configured by address count keep that much however many pods there really are.
    let pods = match FamilyTraits::of(class.family).memory_by_addresses {
        true => address_limited_pods(facts, class, 0),
        false => capacity.get(&ResourceName::pods()),
    };
    let memory = KUBE_RESERVED_MEBIBYTES_PER_POD.saturating_mul(pods).saturating_add(KUBE_RESERVED_MEBIBYTES);
    let mut reserved = Resources::none()
        .with(ResourceName::cpu(), kube_reserved_milli_cpu(i64::from(facts.vcpus) * 1000))
        .with(ResourceName::memory(), memory.saturating_mul(BYTES_PER_MEBIBYTE))
        .with(ResourceName::new(EPHEMERAL_STORAGE), BYTES_PER_GIBIBYTE);
    for (name, amount) in class.kubelet.kube_reserved.iter() {
        reserved.set(name.clone(), amount);
    }
    reserved
}

/// A share of each core that falls with the number of cores: 6 % of the first, 1 % of the second, 0.5 % of the next two,
/// 0.25 % of the rest, each cut to whole thousandths.
fn kube_reserved_milli_cpu(milli_cpu: i64) -> i64 {
    // Up to where the share holds, and the share in hundredths of a percent.
    const BANDS: [(i64, i64); 4] = [(1000, 600), (2000, 100), (4000, 50), (i64::MAX, 25)];
    let mut reserved = 0;
    let mut start = 0;
    for (end, share) in BANDS {
        reserved += (milli_cpu.min(end) - start).max(0) * share / 10_000;
        start = end;
    }
    reserved
}

fn eviction_threshold(
    capacity: &Resources,
    facts: &InstanceTypeFacts,
    class: &ClassView,
    settings: &Settings,
) -> Resources {
    let storage_name = ResourceName::new(EPHEMERAL_STORAGE);
    let storage = class.kubelet.evict_below_storage.unwrap_or(EVICTION_STORAGE);
    let memory = class.kubelet.evict_below_memory.unwrap_or(EVICTION_MEMORY);
    let storage_amount = storage.of(capacity.get(&storage_name));
    Resources::none()
        .with(ResourceName::memory(), memory.of(computed_memory(facts, settings)))
        .with(storage_name, storage_amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AWS-IT-14
    #[test]
    fn larger_machines_keep_a_smaller_share_of_their_processors() {
        let table = [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (96, 310), (448, 1190)];
        for (cores, expected) in table {
            assert_eq!(kube_reserved_milli_cpu(cores * 1000), expected, "{cores} cores");
        }
    }
}
