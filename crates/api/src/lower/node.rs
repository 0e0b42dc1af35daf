//! Nodes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use model::{Effect, NodeName, ProviderId, Resources, Taint};

use super::selector::{lower_taints, resources};
use crate::labels;

/// What we keep of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFacts {
    /// Name.
    pub name: NodeName,
    /// Identity.
    pub uid: String,
    /// For writes that must not overwrite somebody else's.
    pub resource_version: String,
    /// When it was made.
    pub created: Timestamp,
    /// When its deletion was asked for.
    pub deletion: Option<Timestamp>,
    /// The instance behind it.
    pub provider_id: Option<ProviderId>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Owners.
    pub owners: Vec<OwnerReference>,
    /// Taints as stored, for writing them back whole.
    pub stored_taints: Vec<core::Taint>,
    /// Taints as rules.
    pub taints: Vec<Taint>,
    /// Whether the kubelet reports ready.
    pub is_ready: bool,
    /// What the machine has.
    pub capacity: Resources,
    /// What pods may use.
    pub allocatable: Resources,
}

impl NodeFacts {
    /// Lowers a node; `None` if the API server sent one without a name.
    pub fn lower(node: &core::Node) -> Option<Self> {
        let metadata = &node.metadata;
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let stored_taints: Vec<core::Taint> = spec.and_then(|spec| spec.taints.clone()).unwrap_or_default();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let amounts = |of: fn(&core::NodeStatus) -> Option<&BTreeMap<_, _>>| {
            status.and_then(of).map(resources).unwrap_or_default()
        };
        Some(Self {
            name: NodeName::new(metadata.name.as_deref()?),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            deletion: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            provider_id: spec
                .and_then(|spec| spec.provider_id.as_deref())
                .filter(|id| !id.is_empty())
                .map(ProviderId::new),
            labels: metadata.labels.clone().unwrap_or_default(),
            annotations: metadata.annotations.clone().unwrap_or_default(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            owners: metadata.owner_references.clone().unwrap_or_default(),
            taints: lower_taints(&stored_taints),
            stored_taints,
            is_ready: conditions.iter().any(|found| found.type_ == "Ready" && found.status == "True"),
            capacity: amounts(|status| status.capacity.as_ref()),
            allocatable: amounts(|status| status.allocatable.as_ref()),
        })
    }

    /// Whether a label has the value `true`.
    pub fn is_labelled(&self, key: &str) -> bool {
        self.labels.get(key).is_some_and(|value| value == "true")
    }

    /// Whether the node carries a finalizer.
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|found| found == finalizer)
    }
}

/// Taints that every young node has and loses by itself.
pub fn is_ephemeral_taint(taint: &Taint) -> bool {
    let known = [
        ("node.kubernetes.io/not-ready", Effect::NoSchedule),
        ("node.kubernetes.io/not-ready", Effect::NoExecute),
        ("node.kubernetes.io/unreachable", Effect::NoSchedule),
        ("node.cloudprovider.kubernetes.io/uninitialized", Effect::NoSchedule),
        (labels::UNREGISTERED_TAINT, Effect::NoExecute),
    ];
    taint.key.starts_with("readiness.k8s.io/") || known.contains(&(&*taint.key, taint.effect))
}
