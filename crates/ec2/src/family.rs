//! What image families differ in.

use api::ec2_node_class::{AmiFamily, EC2NodeClassSpec};

/// What a family does its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyTraits {
    /// Whether the memory kept for the kubelet follows the number of addresses, whatever the number of pods.
    pub memory_by_addresses: bool,
    /// Whether `podsPerCore` means anything.
    pub pods_per_core: bool,
    /// Whether the number of pods follows the number of addresses.
    pub pods_by_addresses: bool,
    /// The device that pods' disk space is on.
    pub ephemeral_device: Option<&'static str>,
    /// How large that device is unless a class says otherwise.
    pub ephemeral_gib: i64,
    /// The build of Windows.
    pub windows_build: Option<&'static str>,
}

const LINUX: FamilyTraits = FamilyTraits {
    memory_by_addresses: true,
    pods_per_core: true,
    pods_by_addresses: true,
    ephemeral_device: Some("/dev/xvda"),
    ephemeral_gib: 20,
    windows_build: None,
};

impl FamilyTraits {
    /// The traits of a family.
    pub fn of(family: AmiFamily) -> Self {
        let windows = |build| Self {
            memory_by_addresses: false,
            pods_per_core: true,
            pods_by_addresses: false,
            ephemeral_device: Some("/dev/sda1"),
            ephemeral_gib: 50,
            windows_build: Some(build),
        };
        match family {
            AmiFamily::AL2 | AmiFamily::AL2023 => LINUX,
            AmiFamily::Custom => Self { ephemeral_device: None, ..LINUX },
            AmiFamily::Bottlerocket => {
                Self { memory_by_addresses: false, pods_per_core: false, ephemeral_device: Some("/dev/xvdb"), ..LINUX }
            }
            AmiFamily::Windows2019 => windows("10.0.17763"),
            AmiFamily::Windows2022 => windows("10.0.20348"),
            AmiFamily::Windows2025 => windows("10.0.26100"),
        }
    }
}

/// The family of a class: the one it names, or else the one of its alias.
pub fn family_of(spec: &EC2NodeClassSpec) -> AmiFamily {
    let aliases = spec.ami_selector_terms.iter().filter_map(|term| term.alias.as_deref());
    let mut of_alias = aliases.filter_map(|alias| match alias.split('@').next()? {
        "al2" => Some(AmiFamily::AL2),
        "al2023" => Some(AmiFamily::AL2023),
        "bottlerocket" => Some(AmiFamily::Bottlerocket),
        "windows2019" => Some(AmiFamily::Windows2019),
        "windows2022" => Some(AmiFamily::Windows2022),
        "windows2025" => Some(AmiFamily::Windows2025),
        _ => None,
    });
    // The schema refuses a class with neither; one that slipped through is left as its user wrote it.
    spec.ami_family.or_else(|| of_alias.next()).unwrap_or(AmiFamily::Custom)
}
