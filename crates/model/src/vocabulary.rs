//! The labels that mean something to us.

use std::collections::BTreeSet;

use crate::Text;

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
