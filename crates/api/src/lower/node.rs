//! Nodes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use model::{Effect, NodeName, ProviderId, Resources, Taint};

use super::selector::{lower_taints, resources};
use super::story::NodeStory;
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
    /// What is only told of it.
    pub story: NodeStory,
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
            story: NodeStory::lower(status),
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
        (labels::NOT_READY_TAINT, Effect::NoSchedule),
        (labels::NOT_READY_TAINT, Effect::NoExecute),
        ("node.kubernetes.io/unreachable", Effect::NoSchedule),
        ("node.cloudprovider.kubernetes.io/uninitialized", Effect::NoSchedule),
        (labels::UNREGISTERED_TAINT, Effect::NoExecute),
    ];
    taint.key.starts_with("readiness.k8s.io/") || known.contains(&(&*taint.key, taint.effect))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(metadata: Value, spec: Value, status: Value) -> NodeFacts {
        let node = json!({"metadata": metadata, "spec": spec, "status": status});
        NodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap()
    }

    #[test]
    fn a_node_is_what_its_object_says() {
        let found = node(
            json!({"name": "n1", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"karpenter.sh/initialized": "true", "karpenter.sh/registered": "yes"},
                "finalizers": ["karpenter.sh/termination"]}),
            json!({"providerID": "kwok://n1", "taints": [
                {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                {"key": "odd", "effect": "Unheard"}]}),
            json!({"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3900m", "memory": "8Gi"},
                "conditions": [{"type": "Ready", "status": "True"}]}),
        );
        let taints: Vec<String> = found.taints.iter().map(ToString::to_string).collect();
        assert_eq!(taints, ["gpu=yes:NoSchedule"]);
        // What is written back is what was read, unknown effects included.
        assert_eq!(found.stored_taints.len(), 2);
        assert_eq!(found.allocatable.to_string(), "cpu=3900m memory=8Gi");
        assert_eq!(found.capacity.to_string(), "cpu=4");
        assert_eq!(found.provider_id, Some(ProviderId::new("kwok://n1")));
        assert!(found.is_ready && found.is_labelled(labels::INITIALIZED) && !found.is_labelled(labels::REGISTERED));
        assert!(found.has_finalizer(labels::TERMINATION_FINALIZER) && !found.has_finalizer("other"));
    }

    #[test]
    fn a_bare_node_has_nothing() {
        let found = node(
            json!({"name": "n1"}),
            json!({"providerID": ""}),
            json!({"conditions": [{"type": "Ready", "status": "Unknown"}]}),
        );
        assert_eq!((found.provider_id, found.is_ready, found.deletion), (None, false, None));
        assert!(found.allocatable.is_empty() && found.taints.is_empty());
        let nameless: core::Node = serde_json::from_value(json!({"metadata": {}})).unwrap();
        assert_eq!(NodeFacts::lower(&nameless), None);
    }

    #[test]
    fn ephemeral_taints_are_told_by_key_and_effect() {
        let table = [
            ("node.kubernetes.io/not-ready", Effect::NoSchedule, true),
            ("node.kubernetes.io/not-ready", Effect::NoExecute, true),
            ("node.kubernetes.io/not-ready", Effect::PreferNoSchedule, false),
            ("node.kubernetes.io/unreachable", Effect::NoSchedule, true),
            ("node.kubernetes.io/unreachable", Effect::NoExecute, false),
            ("node.cloudprovider.kubernetes.io/uninitialized", Effect::NoSchedule, true),
            ("karpenter.sh/unregistered", Effect::NoExecute, true),
            ("karpenter.sh/disrupted", Effect::NoSchedule, false),
            ("readiness.k8s.io/network", Effect::NoExecute, true),
            ("readiness.k8s.io/network", Effect::PreferNoSchedule, true),
            ("readiness.k8s.io", Effect::NoSchedule, false),
        ];
        for (key, effect, expected) in table {
            let taint = Taint::new(key, "any value", effect);
            assert_eq!(is_ephemeral_taint(&taint), expected, "{taint}");
        }
    }
}
