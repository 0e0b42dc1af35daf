//! How much disk space pods have.

use api::ec2_node_class::{AmiFamily, BlockDeviceMapping, InstanceStorePolicy};
use catalogue::InstanceTypeFacts;
use model::{ResourceName, parse_quantity};

use crate::class::ClassView;
use crate::family::FamilyTraits;
use crate::resources::EPHEMERAL_STORAGE;

const BYTES_PER_GIGABYTE: i64 = 1_000_000_000;
const BYTES_PER_GIBIBYTE: i64 = 1 << 30;

/// Bytes of disk space: of the local disks if they are striped for it, else of the volume that pods are on.
pub(crate) fn ephemeral_storage(facts: &InstanceTypeFacts, class: &ClassView) -> i64 {
    let striped = facts.local_storage.filter(|_| class.instance_store_policy == Some(InstanceStorePolicy::RAID0));
    match striped {
        Some(disks) => i64::try_from(disks.total_gb).unwrap_or(i64::MAX).saturating_mul(BYTES_PER_GIGABYTE),
        None => volume_of_pods(class),
    }
}

/// Bytes of the volume that pods are on.
fn volume_of_pods(class: &ClassView) -> i64 {
    let family = FamilyTraits::of(class.family);
    let root = class.volumes.iter().find(|volume| volume.root_volume == Some(true)).and_then(size);
    let named = match class.family {
        // Nobody knows how such an image uses its volumes; the last is the best guess.
        AmiFamily::Custom => class.volumes.last().and_then(size),
        _ => {
            let on_device = |volume: &&BlockDeviceMapping| volume.device_name.as_deref() == family.ephemeral_device;
            class.volumes.iter().find(on_device).and_then(size)
        }
    };
    root.or(named).unwrap_or(family.ephemeral_gib * BYTES_PER_GIBIBYTE)
}

fn size(volume: &BlockDeviceMapping) -> Option<i64> {
    let text = &volume.ebs.as_ref()?.volume_size.as_ref()?.0;
    parse_quantity(&ResourceName::new(EPHEMERAL_STORAGE), text).ok()
}
