//! Volumes: bound ones that can be reached from some zones, and ones that are made where their pod goes.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use model::labels;
use serde_json::{Value, json};

use super::{Artist, FENCE, read};

/// Makes and attaches all volumes.
pub(crate) const DRIVER: &str = "disk.example.com";

/// What the volume of each pod of a group is like.
#[derive(Clone, Debug)]
pub(super) enum Disk {
    /// There already; each of these terms is a place to reach it from.
    Bound(Vec<Value>),
    /// Made by this class once the pod has a node.
    Awaited(String),
}

/// How many volumes a node can attach.
pub(crate) fn csi_node(cluster: &str, node: &str, limit: u32) -> CSINode {
    let driver = json!({"name": DRIVER, "nodeID": node, "allocatable": {"count": limit}});
    read(json!({"metadata": {"name": node, "labels": {FENCE: cluster}}, "spec": {"drivers": [driver]}}))
}

impl Artist {
    fn class_name(&self, kind: &str) -> String {
        format!("{}-{kind}", self.name)
    }

    pub(super) fn storage_classes(&mut self) -> Vec<StorageClass> {
        if !self.flavours.volumes {
            return Vec::new();
        }
        let class = |kind: &str, topologies: Value| {
            read(json!({
                "metadata": {"name": self.class_name(kind), "labels": {FENCE: self.name}},
                "provisioner": DRIVER,
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowedTopologies": topologies,
            }))
        };
        let zones = |zones: &[&str]| json!({"matchLabelExpressions": [{"key": labels::ZONE, "values": zones}]});
        let mixed = json!({"matchLabelExpressions": [
            {"key": labels::ZONE, "values": ["c"]},
            {"key": labels::ARCH, "values": ["amd64"]},
        ]});
        vec![
            class("anywhere", Value::Null),
            class("zoned", json!([zones(&["a", "b"])])),
            class("either", json!([zones(&["b"]), mixed])),
        ]
    }

    /// What volumes a group has, if any.
    pub(super) fn disk(&mut self) -> Option<Disk> {
        if !self.flavours.volumes || !self.percent(50) {
            return None;
        }
        let zones = |zones: &[&str]| json!({"key": labels::ZONE, "operator": "In", "values": zones});
        let term = |expressions: Value| json!({"matchExpressions": expressions});
        let arch = json!({"key": labels::ARCH, "operator": "In", "values": ["amd64"]});
        Some(match self.rng.u8(..7) {
            0 => Disk::Bound(vec![term(json!([zones(&["a"])]))]),
            1 => Disk::Bound(vec![term(json!([zones(&["b", "c"])]))]),
            2 => Disk::Bound(vec![term(json!([zones(&["a"])])), term(json!([zones(&["b"]), arch]))]),
            3 => Disk::Bound(Vec::new()),
            4 => Disk::Awaited(self.class_name("anywhere")),
            5 => Disk::Awaited(self.class_name("zoned")),
            _ => Disk::Awaited(self.class_name("either")),
        })
    }

    /// A pod's claim, and its volume if it has one already.
    pub(super) fn claim(
        &self,
        disk: &Disk,
        namespace: &str,
        name: &str,
    ) -> (PersistentVolumeClaim, Option<PersistentVolume>) {
        let volume = format!("{namespace}-{name}");
        let (class, volume_name) = match disk {
            Disk::Bound(_) => ("", Some(&volume)),
            Disk::Awaited(class) => (class.as_str(), None),
        };
        let claim = read(json!({
            "metadata": {"namespace": namespace, "name": name, "labels": {FENCE: self.name}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": class,
                "volumeName": volume_name,
            },
        }));
        let Disk::Bound(terms) = disk else { return (claim, None) };
        let mut spec = json!({
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": DRIVER, "volumeHandle": volume},
            "claimRef": {"namespace": namespace, "name": name},
        });
        if !terms.is_empty() {
            spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
        }
        let volume = read(json!({"metadata": {"name": volume, "labels": {FENCE: self.name}}, "spec": spec}));
        (claim, Some(volume))
    }
}
