//! Persistent volumes of a pod, as the referee judges them.
//!
//! Nobody provisions volumes here: a claim that waits for its first consumer stays unbound, and only tells where its
//! volume could be made.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, PodSpec, TopologySelectorTerm};
use model::Text;
use referee::{Blocker, LabelOperator, LabelRequirement, NodeTerm, VolumeFacts, VolumePlace, ZoneLabel};

use super::lower::node_term;
use crate::caches::Caches;
use crate::key::Key;
use crate::pods::name;

const ZONE_LABELS: [&str; 4] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

/// The volumes of a pod, and what about them keeps it from every node.
pub(crate) fn of(caches: &Caches, pod: &Pod, spec: &PodSpec) -> (Vec<VolumeFacts>, Option<Blocker>) {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("");
    let mut found = Vec::new();
    for volume in spec.volumes.iter().flatten() {
        let claim_name = match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(source), _) => source.claim_name.clone(),
            (None, Some(_)) => format!("{}-{}", name(&pod.metadata), volume.name),
            (None, None) => continue,
        };
        let Some(claim) = caches.claims.get(&Key::new(namespace, claim_name.as_str())) else {
            return (found, Some(Blocker::MissingClaim(claim_name.into())));
        };
        match volume_of(caches, claim) {
            Some(facts) => found.push(facts),
            None => return (found, Some(Blocker::UnboundImmediateClaims)),
        }
    }
    (found, None)
}

/// The facts of a claim's volume; `None` if it should be bound and is not.
fn volume_of(caches: &Caches, claim: &PersistentVolumeClaim) -> Option<VolumeFacts> {
    let spec = claim.spec.as_ref()?;
    let one_pod_only = spec.access_modes.iter().flatten().any(|mode| mode == "ReadWriteOncePod");
    if let Some(bound) = spec.volume_name.as_deref().filter(|bound| !bound.is_empty()) {
        let volume = caches.volumes.get(&Key::cluster(bound))?;
        return Some(VolumeFacts { one_pod_only, ..bound_volume(volume) });
    }
    let class = spec.storage_class_name.as_deref().unwrap_or("");
    let class = caches.storage_classes.get(&Key::cluster(class))?;
    if class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer") {
        return None;
    }
    let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
    let terms: Vec<NodeTerm> = topologies.iter().map(topology_term).collect();
    Some(VolumeFacts {
        handle: format!("{}/{}", claim.metadata.namespace.as_deref().unwrap_or(""), name(&claim.metadata)).into(),
        driver: class.provisioner.as_str().into(),
        place: VolumePlace::WaitsForPod(Some(terms).filter(|terms| !terms.is_empty())),
        zone_labels: Vec::new(),
        one_pod_only,
    })
}

fn bound_volume(volume: &PersistentVolume) -> VolumeFacts {
    let spec = volume.spec.as_ref();
    let csi = spec.and_then(|spec| spec.csi.as_ref());
    let required = spec.and_then(|spec| spec.node_affinity.as_ref()).and_then(|it| it.required.as_ref());
    let labels = volume.metadata.labels.iter().flatten();
    let zone = |(key, value): (&String, &String)| {
        let values: BTreeSet<Text> = value.split("__").map(Text::from).collect();
        ZONE_LABELS.contains(&key.as_str()).then(|| ZoneLabel { key: key.as_str().into(), values })
    };
    VolumeFacts {
        handle: csi.map_or_else(|| name(&volume.metadata), |csi| csi.volume_handle.as_str()).into(),
        driver: csi.map_or("", |csi| csi.driver.as_str()).into(),
        place: VolumePlace::Bound(required.map(|it| it.node_selector_terms.iter().map(node_term).collect())),
        zone_labels: labels.filter_map(zone).collect(),
        one_pod_only: false,
    }
}

fn topology_term(term: &TopologySelectorTerm) -> NodeTerm {
    let expressions = term.match_label_expressions.iter().flatten();
    let labels = expressions.map(|expression| LabelRequirement {
        key: expression.key.as_str().into(),
        operator: LabelOperator::In,
        values: expression.values.iter().map(|value| value.as_str().into()).collect(),
    });
    NodeTerm { labels: labels.collect(), fields: Vec::new() }
}
