//! Why a pod is not planned at all.

use std::fmt;

use model::Text;

/// What keeps a volume of a pod from being used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumeFault {
    /// There is no such claim.
    ClaimMissing,
    /// The claim is being deleted.
    ClaimGoing,
    /// The claim lost its volume.
    ClaimLost,
    /// The claim names a volume that does not exist.
    VolumeMissing {
        /// The volume.
        volume: Text,
    },
    /// The volume is being deleted.
    VolumeGoing {
        /// The volume.
        volume: Text,
    },
    /// The claim names a volume, but nobody said that the two are bound.
    BindingUnfinished {
        /// The volume.
        volume: Text,
    },
    /// Neither a volume nor a storage class that could make one.
    NoStorageClass,
    /// The storage class does not exist.
    StorageClassMissing {
        /// The storage class.
        storage_class: Text,
    },
    /// The storage class binds at once, so the claim must be bound before the pod gets a node.
    BindsAtOnce {
        /// The storage class.
        storage_class: Text,
    },
    /// The storage class asks for a label that new nodes never carry.
    UnsupportedTopology {
        /// The storage class.
        storage_class: Text,
        /// The label.
        key: Text,
    },
    /// The provider cannot serve this driver.
    UnsupportedDriver {
        /// The driver.
        driver: Text,
    },
}

impl fmt::Display for VolumeFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClaimMissing => formatter.write_str("getting persistent volume claim, not found"),
            Self::ClaimGoing => formatter.write_str("persistentvolumeclaim is being deleted"),
            Self::ClaimLost => formatter.write_str("persistentvolumeclaim bound to non-existent persistentvolume"),
            Self::VolumeMissing { volume } => {
                write!(formatter, "failed to validate pvc, persistentvolume \"{volume}\" not found")
            }
            Self::VolumeGoing { volume } => {
                write!(
                    formatter,
                    "failed to validate pvc, persistentvolume is being deleted (PersistentVolume={volume})"
                )
            }
            Self::BindingUnfinished { volume } => write!(
                formatter,
                "pvc is considered unbound because it does not contain annotation \
                 (annotation={BIND_COMPLETED}, PersistentVolume={volume})"
            ),
            Self::NoStorageClass => formatter.write_str("unbound pvc must define a storage class"),
            Self::StorageClassMissing { storage_class } => {
                write!(formatter, "failed to validate pvc, failed to get storage class, \"{storage_class}\" not found")
            }
            Self::BindsAtOnce { storage_class } => write!(
                formatter,
                "failed to validate pvc, pvc with immediate volume binding mode must be bound (StorageClass={storage_class})"
            ),
            Self::UnsupportedTopology { storage_class, key } => write!(
                formatter,
                "failed to validate pvc, storage class uses unsupported topology key \
                 (StorageClass={storage_class}, TopologyKey={key})"
            ),
            Self::UnsupportedDriver { driver } => {
                write!(formatter, "failed to validate pvc, provisioner is not supported (Provisioner={driver})")
            }
        }
    }
}

/// The annotation by which the volume controller says that claim and volume belong together.
pub(super) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// Why a pod is not planned at all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodFault {
    /// The pod wants to stay away from our nodes; that is its right and no news.
    KeepsAway,
    /// A field selector in node affinity.
    MatchFields,
    /// A node affinity without a single term that could match.
    EmptyAffinity,
    /// An expression that cannot be read.
    Unreadable {
        /// The label.
        key: Text,
    },
    /// A label that users may not select.
    Restricted {
        /// The label.
        key: Text,
    },
    /// Node selector and node affinity that no node can satisfy together.
    Contradiction {
        /// The label they part on.
        key: Text,
    },
    /// A volume that cannot be used.
    Volume {
        /// The PersistentVolumeClaim.
        claim: Text,
        /// What is wrong with it.
        fault: VolumeFault,
    },
}

impl fmt::Display for PodFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepsAway => formatter.write_str("configured to not run on a Karpenter provisioned node"),
            Self::MatchFields => formatter.write_str("node selector term with matchFields is not supported"),
            Self::EmptyAffinity => formatter.write_str("required node affinity has no term that could match a node"),
            Self::Unreadable { key } => write!(formatter, "the node affinity expression on \"{key}\" cannot be read"),
            Self::Restricted { key } => {
                write!(formatter, "label \"{key}\" is restricted; select a well-known or custom label instead")
            }
            Self::Contradiction { key } => {
                write!(formatter, "node selector and required node affinity contradict each other on label \"{key}\"")
            }
            Self::Volume { claim, fault } => write!(formatter, "{fault} (PersistentVolumeClaim={claim})"),
        }
    }
}
