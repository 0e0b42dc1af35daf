//! From what a machine is to the instance type that describes it, for built-in and custom machines alike.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::kwok_node_class::{INSTANCE_CPU_LABEL, INSTANCE_FAMILY_LABEL, INSTANCE_MEMORY_LABEL, INSTANCE_SIZE_LABEL};
use model::{
    CapacityType, InstanceType, Offering, Requirement, Requirements, ResourceName, Resources, Text, TypeName,
    format_quantity, labels,
};

/// What every machine keeps for itself.
const OVERHEAD_MILLI_CPU: i64 = 100;
const OVERHEAD_MEMORY_BYTES: i64 = 10 << 20;

/// A machine before it becomes an instance type.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Name of the type.
    pub(crate) name: String,
    /// Processor architecture.
    pub(crate) architecture: String,
    /// The operating systems it can run.
    pub(crate) operating_systems: Vec<String>,
    /// What it has, `cpu` and `memory` among it.
    pub(crate) capacity: Resources,
    /// Its memory as a label shows it.
    pub(crate) memory_label: String,
    /// How it can be bought, and what is different about it then.
    pub(crate) offerings: Vec<(Offering, Terms)>,
}

/// What a machine has and keeps for itself otherwise than usual, if it is bought in a certain way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// In place of the machine's own.
    pub(crate) capacity: Resources,
    /// In place of what every machine keeps for itself.
    pub(crate) overhead: Resources,
}

impl Machine {
    /// The instance type, once for each of the terms on which it is sold.
    pub(crate) fn instance_types(&self) -> Vec<Arc<InstanceType>> {
        let mut sold: Vec<(&Terms, Vec<Offering>)> = Vec::new();
        for (offering, terms) in &self.offerings {
            match sold.iter_mut().find(|(known, _)| *known == terms) {
                Some((_, offerings)) => offerings.push(offering.clone()),
                None => sold.push((terms, vec![offering.clone()])),
            }
        }
        sold.into_iter().map(|(terms, offerings)| self.on_terms(terms, offerings)).collect()
    }

    /// Region and Windows build stay undefined: a machine that does not exist can be wherever the claim wants it.
    fn on_terms(&self, terms: &Terms, offerings: Vec<Offering>) -> Arc<InstanceType> {
        let Self { name, architecture, operating_systems, capacity, memory_label, offerings: _ } = self;
        let cpu = format_quantity(&ResourceName::cpu(), capacity.get(&ResourceName::cpu()));
        let size = aws_size(name).unwrap_or(&cpu).to_owned();
        let zones: BTreeSet<Text> = offerings.iter().filter_map(|offering| offering.zone().cloned()).collect();
        let capacity_types: BTreeSet<CapacityType> = offerings.iter().map(Offering::capacity_type).collect();
        let requirements = Requirements::none()
            .with(labels::INSTANCE_TYPE, Requirement::is(name.as_str()))
            .with(labels::ARCH, Requirement::is(architecture.as_str()))
            .with(labels::OS, Requirement::any_of(operating_systems.iter().map(String::as_str)))
            .with(labels::ZONE, Requirement::any_of(zones))
            .with(labels::CAPACITY_TYPE, Requirement::any_of(capacity_types.into_iter().map(CapacityType::as_str)))
            .with(INSTANCE_SIZE_LABEL, Requirement::is(size))
            .with(INSTANCE_FAMILY_LABEL, Requirement::is(family(name)))
            .with(INSTANCE_CPU_LABEL, Requirement::is(cpu))
            .with(INSTANCE_MEMORY_LABEL, Requirement::is(memory_label.as_str()));
        let overhead = Resources::none()
            .with(ResourceName::cpu(), OVERHEAD_MILLI_CPU)
            .with(ResourceName::memory(), OVERHEAD_MEMORY_BYTES);
        let capacity = instead(capacity.clone(), &terms.capacity);
        let overhead = instead(overhead, &terms.overhead);
        InstanceType::new(TypeName::new(name.as_str()), requirements, capacity, overhead, offerings)
    }
}

/// Resources, of which some are otherwise.
fn instead(mut usual: Resources, otherwise: &Resources) -> Resources {
    otherwise.iter().for_each(|(name, amount)| usual.set(name.clone(), amount));
    usual
}

/// The family: what stands before the first dot or dash, or else the first character.
fn family(name: &str) -> &str {
    match name.find(['.', '-']) {
        Some(end) => &name[..end],
        None => name.char_indices().nth(1).map_or(name, |(end, _)| &name[..end]),
    }
}

/// The size of a name such as `m5.2xlarge` or `c7i.metal-24xl`: what stands after its only dot.
fn aws_size(name: &str) -> Option<&str> {
    let (family, size) = name.split_once('.')?;
    let plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (plain(family) && plain(size)).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::{aws_size, family};

    #[test]
    fn names_tell_family_and_size() {
        let table = [
            ("c-1x-amd64-linux", "c", None),
            ("m5.2xlarge", "m5", Some("2xlarge")),
            ("c7i.metal-24xl", "c7i", Some("metal-24xl")),
            ("u-6tb1.metal", "u", Some("metal")),
            ("e2-standard-8", "e2", None),
            ("Standard_D2_v3", "S", None),
            ("a.b.c", "a", None),
            ("m5.", "m5", None),
            ("éclair", "é", None),
            ("x", "x", None),
        ];
        for (name, expected_family, expected_size) in table {
            assert_eq!(family(name), expected_family, "{name}");
            assert_eq!(aws_size(name), expected_size, "{name}");
        }
    }
}
