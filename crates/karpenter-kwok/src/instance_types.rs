//! The machines that exist when no file says otherwise.

use std::sync::Arc;

use model::{
    CapacityType, InstanceType, Offering, Price, Requirement, Requirements, ResourceName, Resources, format_quantity,
    labels,
};

use crate::machine::{Machine, Terms};

const CPUS: [i64; 12] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
const OPERATING_SYSTEMS: [&str; 2] = ["linux", "windows"];
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];
const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
const EPHEMERAL_STORAGE_BYTES: i64 = 20 << 30;
const PODS_PER_CPU: i64 = 16;
const PODS_MAX: i64 = 1024;
const DOLLARS_PER_CPU: f64 = 0.025;
const DOLLARS_PER_GIGABYTE: f64 = 0.001;
const SPOT_SHARE: f64 = 0.7;

/// A family of machines with a fixed ratio of memory to processors.
struct Family {
    letter: &'static str,
    gibibytes_per_cpu: i64,
}

const FAMILIES: [Family; 3] = [
    Family { letter: "c", gibibytes_per_cpu: 2 },
    Family { letter: "s", gibibytes_per_cpu: 4 },
    Family { letter: "m", gibibytes_per_cpu: 8 },
];

/// The 144 built-in types: every size of every family, for each operating system and architecture.
pub fn built_in() -> Vec<Arc<InstanceType>> {
    let mut types = Vec::new();
    for cpus in CPUS {
        for family in &FAMILIES {
            for operating_system in OPERATING_SYSTEMS {
                for architecture in ARCHITECTURES {
                    types.extend(machine(cpus, family, operating_system, architecture).instance_types());
                }
            }
        }
    }
    types
}

fn machine(cpus: i64, family: &Family, operating_system: &str, architecture: &str) -> Machine {
    let memory_bytes = cpus * family.gibibytes_per_cpu * (1 << 30);
    let capacity = Resources::none()
        .with(ResourceName::cpu(), cpus * 1000)
        .with(ResourceName::memory(), memory_bytes)
        .with(ResourceName::pods(), (cpus * PODS_PER_CPU).min(PODS_MAX))
        .with(ResourceName::new("ephemeral-storage"), EPHEMERAL_STORAGE_BYTES);
    let dollars = DOLLARS_PER_CPU * cpus as f64 + DOLLARS_PER_GIGABYTE * (memory_bytes as f64 / 1e9);
    Machine {
        name: format!("{}-{cpus}x-{architecture}-{operating_system}", family.letter),
        architecture: architecture.to_owned(),
        operating_systems: vec![operating_system.to_owned()],
        capacity,
        memory_label: format_quantity(&ResourceName::memory(), memory_bytes),
        offerings: offerings(dollars).into_iter().map(|offering| (offering, Terms::default())).collect(),
    }
}

fn offerings(dollars: f64) -> Vec<Offering> {
    let prices = [(CapacityType::Spot, SPOT_SHARE * dollars), (CapacityType::OnDemand, dollars)];
    let in_zone = |zone: &'static str| {
        prices.into_iter().map(move |(capacity_type, dollars)| Offering {
            requirements: Requirements::none()
                .with(labels::ZONE, Requirement::is(zone))
                .with(labels::CAPACITY_TYPE, Requirement::is(capacity_type.as_str())),
            price: Price::from_dollars(dollars),
            available: true,
            reservation_capacity: None,
        })
    };
    ZONES.into_iter().flat_map(in_zone).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::Text;

    use super::*;

    fn named(name: &str) -> Arc<InstanceType> {
        built_in().into_iter().find(|kind| kind.name.as_str() == name).unwrap()
    }

    /// KWOK-01: there are 144 of them, and no two are called alike.
    #[test]
    fn there_are_144_types() {
        let types = built_in();
        let names: BTreeSet<&str> = types.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!((types.len(), names.len()), (144, 144));
        for cpus in [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256] {
            for family in ["c", "s", "m"] {
                for rest in ["amd64-linux", "arm64-linux", "amd64-windows", "arm64-windows"] {
                    assert!(names.contains(format!("{family}-{cpus}x-{rest}").as_str()));
                }
            }
        }
    }

    /// KWOK-01: what they have and what they cost.
    #[test]
    fn capacity_and_price_follow_the_name() {
        let table = [
            ("c-1x-amd64-linux", "cpu=1 ephemeral-storage=20Gi memory=2Gi pods=16", 0.027_147_483_648),
            ("s-1x-arm64-linux", "cpu=1 ephemeral-storage=20Gi memory=4Gi pods=16", 0.029_294_967_296),
            ("m-1x-amd64-windows", "cpu=1 ephemeral-storage=20Gi memory=8Gi pods=16", 0.033_589_934_592),
            ("s-48x-amd64-linux", "cpu=48 ephemeral-storage=20Gi memory=192Gi pods=768", 1.406_158_430_208),
            ("m-256x-arm64-windows", "cpu=256 ephemeral-storage=20Gi memory=2Ti pods=1024", 8.599_023_255_552),
        ];
        for (name, capacity, dollars) in table {
            let kind = named(name);
            assert_eq!(kind.capacity.to_string(), capacity, "{name}");
            for offering in &kind.offerings {
                let share = if offering.capacity_type() == CapacityType::Spot { 0.7 } else { 1.0 };
                assert!((offering.price.dollars() - share * dollars).abs() < 1e-9, "{name}: {}", offering.price);
            }
        }
    }

    /// KWOK-01: four zones, each on the spot market and on demand, all for sale.
    #[test]
    fn every_type_is_sold_in_four_zones_in_two_ways() {
        for kind in built_in() {
            let ways: BTreeSet<(Option<&Text>, CapacityType)> =
                kind.offerings.iter().map(|offering| (offering.zone(), offering.capacity_type())).collect();
            assert_eq!((kind.offerings.len(), ways.len()), (8, 8), "{}", kind.name);
            assert!(kind.offerings.iter().all(Offering::is_launchable));
        }
        let zones: BTreeSet<Text> =
            named("c-1x-amd64-linux").offerings.iter().filter_map(|offering| offering.zone().cloned()).collect();
        assert_eq!(zones, ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"].map(Text::from).into());
    }

    /// KWOK-01: the labels a node of a type can carry, and what the machine keeps for itself.
    #[test]
    fn labels_and_overhead() {
        let kind = named("s-4x-arm64-windows");
        let table = [
            (labels::INSTANCE_TYPE, "In [s-4x-arm64-windows]"),
            (labels::ARCH, "In [arm64]"),
            (labels::OS, "In [windows]"),
            (labels::ZONE, "In [test-zone-a test-zone-b test-zone-c test-zone-d]"),
            (labels::CAPACITY_TYPE, "In [on-demand spot]"),
            ("karpenter.kwok.sh/instance-size", "In [4]"),
            ("karpenter.kwok.sh/instance-family", "In [s]"),
            ("karpenter.kwok.sh/instance-cpu", "In [4]"),
            ("karpenter.kwok.sh/instance-memory", "In [16Gi]"),
        ];
        assert_eq!(kind.requirements.iter().count(), table.len());
        for (key, expected) in table {
            assert_eq!(kind.requirements.get(key).unwrap().to_string(), expected, "{key}");
        }
        assert_eq!(kind.overhead.to_string(), "cpu=100m memory=10Mi");
        assert_eq!(kind.allocatable.to_string(), "cpu=3900m ephemeral-storage=20Gi memory=16374Mi pods=64");
    }
}
