//! The labels that mean something to us.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Operator, Requirement, Requirements, Text};

/// Label keys by name.
pub mod labels {
    /// The pool a node belongs to.
    pub const NODE_POOL: &str = "karpenter.sh/nodepool";
    /// `on-demand`, `spot` or `reserved`.
    pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
    /// Set on nodes that are usable.
    pub const INITIALIZED: &str = "karpenter.sh/initialized";
    /// Set on nodes that joined.
    pub const REGISTERED: &str = "karpenter.sh/registered";
    /// Zone.
    pub const ZONE: &str = "topology.kubernetes.io/zone";
    /// Region.
    pub const REGION: &str = "topology.kubernetes.io/region";
    /// Instance type.
    pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
    /// Processor architecture.
    pub const ARCH: &str = "kubernetes.io/arch";
    /// Operating system.
    pub const OS: &str = "kubernetes.io/os";
    /// Host name, one per node.
    pub const HOSTNAME: &str = "kubernetes.io/hostname";
    /// Windows build.
    pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

    /// The spelling in use today for keys that were renamed.
    pub fn current_spelling(key: &str) -> &str {
        match key {
            // The EBS driver has a name of its own for what every node calls its zone.
            "failure-domain.beta.kubernetes.io/zone" | "topology.ebs.csi.aws.com/zone" => ZONE,
            "failure-domain.beta.kubernetes.io/region" => REGION,
            "beta.kubernetes.io/arch" => ARCH,
            "beta.kubernetes.io/os" => OS,
            "beta.kubernetes.io/instance-type" => INSTANCE_TYPE,
            _ => key,
        }
    }
}

/// Which labels every new node will carry, and which domains users may not claim. A provider adds its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    well_known: BTreeSet<Text>,
    restricted_domains: BTreeSet<Text>,
    reservation: Option<Text>,
    /// Values in use today by the label and the value that is written.
    values: BTreeMap<Text, BTreeMap<Text, Text>>,
}

impl Vocabulary {
    /// What holds for every provider.
    pub fn core() -> Self {
        use labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, OS, REGION, WINDOWS_BUILD, ZONE};
        let well_known = [NODE_POOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD];
        Self {
            well_known: well_known.into_iter().map(Text::from).collect(),
            restricted_domains: BTreeSet::from([Text::from("karpenter.sh")]),
            reservation: None,
            values: BTreeMap::new(),
        }
    }

    /// Adds a provider's well-known labels.
    #[must_use]
    pub fn with_well_known<K: Into<Text>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.well_known.extend(keys.into_iter().map(Into::into));
        self
    }

    /// Adds a provider's own label domain.
    #[must_use]
    pub fn with_restricted_domain(mut self, domain: impl Into<Text>) -> Self {
        self.restricted_domains.insert(domain.into());
        self
    }

    /// Names the label that tells one capacity reservation from another.
    #[must_use]
    pub fn with_reservation_label(mut self, key: impl Into<Text>) -> Self {
        let key = key.into();
        self.well_known.insert(Text::clone(&key));
        self.reservation = Some(key);
        self
    }

    /// Says that a value of a label stands for another one: a storage driver may have its own names for zones. The
    /// label is meant in its current spelling.
    #[must_use]
    pub fn with_value<T: Into<Text>>(mut self, key: T, written: T, meant: T) -> Self {
        self.values.entry(key.into()).or_default().insert(written.into(), meant.into());
        self
    }

    /// A requirement with the values that are meant, be the label in an old spelling. Ranges of integers stay: values
    /// that stand for others are names.
    #[must_use]
    pub fn meant(&self, key: &str, requirement: Requirement) -> Requirement {
        let Some(values) = self.values.get(labels::current_spelling(key)) else { return requirement };
        let is_listed = matches!(requirement.operator(), Operator::In | Operator::NotIn);
        if !is_listed || requirement.bounds() != (None, None) {
            return requirement;
        }
        let meant = requirement.values().map(|written| Text::clone(values.get(written).unwrap_or(written)));
        let Some(meant) = Requirement::new(requirement.operator(), meant) else { return requirement };
        let meant = if requirement.demands_presence() { meant.intersection(&Requirement::exists()) } else { meant };
        meant.with_min_values(requirement.min_values())
    }

    /// All requirements of a set with the values that are meant.
    #[must_use]
    pub fn all_meant(&self, requirements: Requirements) -> Requirements {
        if self.values.is_empty() {
            return requirements;
        }
        let mut meant = Requirements::none();
        for (key, requirement) in requirements.iter() {
            meant.add(key, self.meant(key, requirement.clone()));
        }
        meant
    }

    /// The label that tells one capacity reservation from another, if the provider has such.
    pub fn reservation_label(&self) -> Option<&Text> {
        self.reservation.as_ref()
    }

    /// Whether every new node will get a value for this label.
    pub fn is_well_known(&self, key: &str) -> bool {
        self.well_known.contains(key)
    }

    /// The well-known labels in order.
    pub fn well_known(&self) -> impl Iterator<Item = &Text> {
        self.well_known.iter()
    }

    /// The domains users may not claim, in order.
    pub fn restricted_domains(&self) -> impl Iterator<Item = &Text> {
        self.restricted_domains.iter()
    }

    /// Whether users may not set or select this label.
    pub fn is_restricted(&self, key: &str) -> bool {
        if self.is_well_known(key) {
            return false;
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let owned = |owner: &Text| domain == &**owner || domain.ends_with(&format!(".{owner}"));
        key == labels::HOSTNAME || self.restricted_domains.iter().any(owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ-11: first the label gets its current spelling, then its values theirs.
    #[test]
    fn values_are_respelled_after_their_label() {
        let vocabulary = Vocabulary::core().with_value(labels::ZONE, "use1-az1", "us-east-1a").with_value(
            labels::ZONE,
            "use1-az2",
            "us-east-1b",
        );
        let old = "failure-domain.beta.kubernetes.io/zone";
        let table = [
            (old, Operator::In, &["use1-az1"][..], "topology.kubernetes.io/zone In [us-east-1a]"),
            (
                labels::ZONE,
                Operator::In,
                &["use1-az1", "use1-az9"],
                "topology.kubernetes.io/zone In [us-east-1a use1-az9]",
            ),
            (old, Operator::NotIn, &["use1-az2"], "topology.kubernetes.io/zone NotIn [us-east-1b]"),
            (old, Operator::Exists, &[], "topology.kubernetes.io/zone Exists"),
            (old, Operator::DoesNotExist, &[], "topology.kubernetes.io/zone DoesNotExist"),
            (labels::ZONE, Operator::Gt, &["3"], "topology.kubernetes.io/zone Exists >=4"),
            (labels::REGION, Operator::In, &["use1-az1"], "topology.kubernetes.io/region In [use1-az1]"),
        ];
        for (key, operator, values, expected) in table {
            let written = Requirement::new(operator, values.iter().copied()).unwrap().with_min_values(Some(2));
            let meant = vocabulary.meant(key, written.clone());
            let expected = format!("{expected} minValues 2");
            assert_eq!(Requirements::none().with(key, meant.clone()).to_string(), expected);
            assert_eq!(meant.demands_presence(), written.demands_presence(), "{expected}");
            assert_eq!(vocabulary.all_meant(Requirements::none().with(key, written)).to_string(), expected);
        }
    }
}
