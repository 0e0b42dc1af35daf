//! Where volumes can be reached from, and who attaches them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::storage::v1 as storage;
use model::{NodeName, Requirement, Requirements, Text, labels};

use super::pod_fault::BIND_COMPLETED;
use super::selector::{expression, nothing};

/// What we keep of a PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeClaimFacts {
    /// Namespace.
    pub namespace: Text,
    /// Name.
    pub name: Text,
    /// The volume it names.
    pub volume: Option<Text>,
    /// The class that makes a volume for it.
    pub storage_class: Option<Text>,
    /// Its deletion was asked for.
    pub is_going: bool,
    /// Its volume is gone.
    pub is_lost: bool,
    /// The volume controller says that claim and volume belong together.
    pub is_bound: bool,
}

impl VolumeClaimFacts {
    /// Lowers a claim; `None` without a name.
    pub fn lower(claim: &core::PersistentVolumeClaim) -> Option<Self> {
        let metadata = &claim.metadata;
        let spec = claim.spec.as_ref();
        let named = |text: Option<&String>| text.filter(|text| !text.is_empty()).map(|text| Text::from(text.as_str()));
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        let is_annotated = |annotations: &BTreeMap<String, String>| annotations.contains_key(BIND_COMPLETED);
        Some(Self {
            namespace: Text::from(metadata.namespace.as_deref().unwrap_or("default")),
            name: Text::from(metadata.name.as_deref()?),
            volume: spec.and_then(|spec| named(spec.volume_name.as_ref())),
            storage_class: spec.and_then(|spec| named(spec.storage_class_name.as_ref())),
            is_going: metadata.deletion_timestamp.is_some(),
            is_lost: phase == Some("Lost"),
            is_bound: metadata.annotations.as_ref().is_some_and(is_annotated),
        })
    }
}

/// What we keep of a PersistentVolume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeFacts {
    /// Name.
    pub name: Text,
    /// Its deletion was asked for.
    pub is_going: bool,
    /// The CSI driver that attaches it; others are not counted by anybody.
    pub driver: Option<Text>,
    /// One of these must hold for a node that uses it; none at all means that any node will do.
    pub alternatives: Vec<Requirements>,
}

impl VolumeFacts {
    /// Lowers a volume; `None` without a name.
    pub fn lower(volume: &core::PersistentVolume) -> Option<Self> {
        let spec = volume.spec.as_ref();
        Some(Self {
            name: Text::from(volume.metadata.name.as_deref()?),
            is_going: volume.metadata.deletion_timestamp.is_some(),
            driver: spec.and_then(volume_driver),
            alternatives: spec.map(volume_alternatives).unwrap_or_default(),
        })
    }
}

fn volume_driver(spec: &core::PersistentVolumeSpec) -> Option<Text> {
    match (&spec.csi, &spec.aws_elastic_block_store) {
        (Some(csi), _) => Some(Text::from(csi.driver.as_str())),
        (None, Some(_)) => Some(Text::from(EBS_DRIVER)),
        (None, None) => None,
    }
}

/// A volume on a node's own disk names that node. A pod that needs a new node cannot take the disk along: the name is
/// forgotten, whatever else the volume asks for is not.
fn volume_alternatives(spec: &core::PersistentVolumeSpec) -> Vec<Requirements> {
    let is_on_node = spec.local.is_some() || spec.host_path.is_some();
    let required = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let lower = |term: &core::NodeSelectorTerm| {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let mut requirements = Requirements::none();
        for written in expressions.iter().filter(|written| !(is_on_node && written.key == labels::HOSTNAME)) {
            requirements.add(&written.key, expression(written).unwrap_or_else(nothing));
        }
        (!expressions.is_empty()).then_some(requirements)
    };
    required.into_iter().flat_map(|required| &required.node_selector_terms).filter_map(lower).collect()
}

/// What we keep of a StorageClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageClassFacts {
    /// Name.
    pub name: Text,
    /// The CSI driver of its volumes.
    pub driver: Text,
    /// Its volumes are made before any pod has a node.
    pub binds_at_once: bool,
    /// One of these must hold for a node that uses one of its volumes; none at all means that any node will do.
    pub alternatives: Vec<Requirements>,
}

impl StorageClassFacts {
    /// Lowers a storage class; `None` without a name.
    pub fn lower(class: &storage::StorageClass) -> Option<Self> {
        let lower = |term: &core::TopologySelectorTerm| {
            let expressions = term.match_label_expressions.as_deref().unwrap_or_default();
            let mut requirements = Requirements::none();
            for one in expressions {
                requirements.add(&one.key, Requirement::any_of(one.values.iter().map(String::as_str)));
            }
            (!expressions.is_empty()).then_some(requirements)
        };
        Some(Self {
            name: Text::from(class.metadata.name.as_deref()?),
            driver: Text::from(csi_name(&class.provisioner)),
            binds_at_once: class.volume_binding_mode.as_deref() == Some("Immediate"),
            alternatives: class.allowed_topologies.iter().flatten().filter_map(lower).collect(),
        })
    }
}

/// What we keep of a VolumeAttachment: which volume is attached where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentFacts {
    /// Name.
    pub name: Text,
    /// The node it is attached to.
    pub node: NodeName,
    /// The PersistentVolume; volumes that a pod brings along itself have none.
    pub volume: Option<Text>,
}

impl AttachmentFacts {
    /// Lowers an attachment; `None` without a name.
    pub fn lower(attachment: &storage::VolumeAttachment) -> Option<Self> {
        let storage::VolumeAttachmentSpec { node_name, source, attacher: _ } = &attachment.spec;
        Some(Self {
            name: Text::from(attachment.metadata.name.as_deref()?),
            node: NodeName::new(node_name.as_str()),
            volume: source.persistent_volume_name.as_deref().map(Text::from),
        })
    }
}

/// What we keep of a CSINode: for each driver on the node, how many volumes it can attach, if it says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsiNodeFacts {
    /// The node.
    pub node: NodeName,
    /// Limits by driver; a driver without one attaches as many as you like.
    pub limits: BTreeMap<Text, Option<u32>>,
}

impl CsiNodeFacts {
    /// Lowers a CSINode; `None` without a name.
    pub fn lower(node: &storage::CSINode) -> Option<Self> {
        let limit = |driver: &storage::CSINodeDriver| {
            let count = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count);
            (Text::from(driver.name.as_str()), count.and_then(|count| u32::try_from(count).ok()))
        };
        Some(Self {
            node: NodeName::new(node.metadata.name.as_deref()?),
            limits: node.spec.drivers.iter().map(limit).collect(),
        })
    }
}

/// Volumes that nodes of a provider cannot serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnsupportedVolumes {
    /// CSI drivers.
    pub drivers: BTreeSet<Text>,
    /// Labels that a storage class may ask for and new nodes never carry.
    pub topology_keys: BTreeSet<Text>,
}

const EBS_DRIVER: &str = "ebs.csi.aws.com";

/// Drivers that were part of Kubernetes once live on as CSI drivers of another name.
fn csi_name(provisioner: &str) -> &str {
    match provisioner {
        "kubernetes.io/aws-ebs" => EBS_DRIVER,
        "kubernetes.io/azure-disk" => "disk.csi.azure.com",
        "kubernetes.io/azure-file" => "file.csi.azure.com",
        "kubernetes.io/cinder" => "cinder.csi.openstack.org",
        "kubernetes.io/gce-pd" => "pd.csi.storage.gke.io",
        "kubernetes.io/portworx-volume" => "pxd.portworx.com",
        "kubernetes.io/vsphere-volume" => "csi.vsphere.vmware.com",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(spec: Value) -> VolumeFacts {
        let volume = json!({"metadata": {"name": "v"}, "spec": spec});
        VolumeFacts::lower(&serde_json::from_value(volume).unwrap()).unwrap()
    }

    fn shown(alternatives: &[Requirements]) -> String {
        alternatives
            .iter()
            .map(|one| {
                format!(
                    "[{}]",
                    one.iter().map(|(key, values)| format!("{key} {values}")).collect::<Vec<_>>().join(", ")
                )
            })
            .collect()
    }

    /// VOL-11: a disk of a node that the pod leaves behind does not hold the pod back.
    #[test]
    fn where_volumes_are() {
        let zone =
            |zone: &str| json!({"key": "failure-domain.beta.kubernetes.io/zone", "operator": "In", "values": [zone]});
        let host = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]});
        let terms = |terms: Value| json!({"required": {"nodeSelectorTerms": terms}});
        let both = terms(json!([{"matchExpressions": [zone("a"), host]}, {"matchExpressions": [zone("b")]}]));
        let only_host = terms(json!([{"matchExpressions": [host]}]));
        let table = [
            (json!({}), ""),
            (json!({"nodeAffinity": {}}), ""),
            (json!({"nodeAffinity": terms(json!([{}]))}), ""),
            (
                json!({"nodeAffinity": both}),
                "[kubernetes.io/hostname In [n1], topology.kubernetes.io/zone In [a]][topology.kubernetes.io/zone In [b]]",
            ),
            (
                json!({"nodeAffinity": both, "local": {"path": "/d"}}),
                "[topology.kubernetes.io/zone In [a]][topology.kubernetes.io/zone In [b]]",
            ),
            (json!({"nodeAffinity": only_host}), "[kubernetes.io/hostname In [n1]]"),
            (json!({"nodeAffinity": only_host, "hostPath": {"path": "/d"}}), "[]"),
        ];
        for (spec, expected) in table {
            assert_eq!(shown(&volume(spec.clone()).alternatives), expected, "{spec}");
        }
    }

    /// VOL-16, VOL-17: who attaches a volume.
    #[test]
    fn drivers() {
        let class = |provisioner: &str| {
            let class = json!({"metadata": {"name": "c"}, "provisioner": provisioner});
            StorageClassFacts::lower(&serde_json::from_value(class).unwrap()).unwrap().driver
        };
        let table = [
            ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
            ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
            ("ebs.csi.aws.com", "ebs.csi.aws.com"),
            ("example.com/own", "example.com/own"),
        ];
        for (provisioner, driver) in table {
            assert_eq!(&*class(provisioner), driver);
        }
        let table = [
            (json!({"csi": {"driver": "d", "volumeHandle": "h"}}), Some("d")),
            (json!({"awsElasticBlockStore": {"volumeID": "v"}}), Some("ebs.csi.aws.com")),
            (json!({"nfs": {"path": "/", "server": "s"}}), None),
        ];
        for (spec, driver) in table {
            assert_eq!(volume(spec.clone()).driver.as_deref(), driver, "{spec}");
        }
    }

    /// AWS-IT-24: the driver's own name for a zone is a zone.
    #[test]
    fn storage_classes() {
        let class = json!({"metadata": {"name": "c"}, "provisioner": "p", "volumeBindingMode": "Immediate",
            "allowedTopologies": [
                {"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": ["a", "b"]}]},
                {"matchLabelExpressions": [{"key": "rack", "values": ["r"]}]}, {}]});
        let class = StorageClassFacts::lower(&serde_json::from_value(class).unwrap()).unwrap();
        assert!(class.binds_at_once);
        assert_eq!(shown(&class.alternatives), "[topology.kubernetes.io/zone In [a b]][rack In [r]]");
    }

    #[test]
    fn limits_of_a_node() {
        let node = json!({"metadata": {"name": "n1"}, "spec": {"drivers": [
            {"name": "counted", "nodeID": "n", "allocatable": {"count": 25}},
            {"name": "vague", "nodeID": "n", "allocatable": {}},
            {"name": "silent", "nodeID": "n"}]}});
        let node = CsiNodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap();
        let limits: Vec<(&str, Option<u32>)> = node.limits.iter().map(|(driver, limit)| (&**driver, *limit)).collect();
        assert_eq!(limits, [("counted", Some(25)), ("silent", None), ("vague", None)]);
    }
}
