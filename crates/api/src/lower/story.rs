//! What is kept of pods and nodes only to be told: for metrics and events, never for decisions.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use model::{Resources, Text};

use super::pod_requests;

/// The phase of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPhase {
    /// Not all of its containers have started.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// A container ended badly.
    Failed,
    /// Its node is silent.
    Unknown,
}

impl PodPhase {
    fn read(text: Option<&str>) -> Self {
        match text {
            Some("Running") => Self::Running,
            Some("Succeeded") => Self::Succeeded,
            Some("Failed") => Self::Failed,
            Some("Unknown") => Self::Unknown,
            _ => Self::Pending,
        }
    }

    /// The phase as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}

/// How a pod came to be where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodStory {
    /// How far it is.
    pub phase: PodPhase,
    /// The address of the first object that owns it.
    pub owner: Option<Text>,
    /// When the scheduler bound it, if it did.
    pub scheduled: Option<Timestamp>,
    /// Since when it is ready, if it is.
    pub ready: Option<Timestamp>,
    /// What it is limited to.
    pub limits: Arc<Resources>,
}

impl PodStory {
    pub(super) fn lower(pod: &core::Pod, spec: &core::PodSpec) -> Self {
        let status = pod.status.as_ref();
        let conditions = || status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let since = |kind: &str| {
            let holds = conditions().find(|found| found.type_ == kind && found.status == "True")?;
            holds.last_transition_time.as_ref().map(|time| time.0)
        };
        Self {
            phase: PodPhase::read(status.and_then(|status| status.phase.as_deref())),
            owner: owner_address(pod),
            scheduled: since("PodScheduled"),
            ready: since("Ready"),
            limits: Arc::new(pod_requests::limits(spec)),
        }
    }
}

/// Where the API server would show the first owner, as the reference spells it.
fn owner_address(pod: &core::Pod) -> Option<Text> {
    let owner = pod.metadata.owner_references.as_ref()?.first()?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let kind = owner.kind.to_lowercase();
    Some(format!("/apis/{}/namespaces/{namespace}/{kind}s/{}", owner.api_version, owner.name).into())
}

/// One condition of an object, as somebody wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionFacts {
    /// What it is about.
    pub kind: String,
    /// Whether it holds: `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// When the status last changed.
    pub since: Timestamp,
}

impl From<&crate::Condition> for ConditionFacts {
    fn from(condition: &crate::Condition) -> Self {
        Self {
            kind: condition.type_.clone(),
            status: condition.status.as_str().to_owned(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: condition.last_transition_time.0,
        }
    }
}

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStory {
    /// Its phase, which hardly anybody sets any more.
    pub phase: String,
    /// Its conditions.
    pub conditions: Vec<ConditionFacts>,
}

impl NodeStory {
    pub(super) fn lower(status: Option<&core::NodeStatus>) -> Self {
        let Some(status) = status else { return Self::default() };
        let told = |found: &core::NodeCondition| ConditionFacts {
            kind: found.type_.clone(),
            status: found.status.clone(),
            reason: found.reason.clone().unwrap_or_default(),
            message: found.message.clone().unwrap_or_default(),
            since: found.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        };
        Self {
            phase: status.phase.clone().unwrap_or_default(),
            conditions: status.conditions.iter().flatten().map(told).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn story(metadata: Value, spec: Value, status: Value) -> PodStory {
        let pod: core::Pod =
            serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap();
        PodStory::lower(&pod, pod.spec.as_ref().unwrap())
    }

    /// A pod tells who owns it, when it was bound and became ready, and what it is limited to.
    #[test]
    fn a_pod_tells_its_story() {
        let owner = |kind: &str, name: &str| json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": ""});
        let container = json!({"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}});
        let condition =
            |kind: &str, status: &str, at: &str| json!({"type": kind, "status": status, "lastTransitionTime": at});
        let found = story(
            json!({"namespace": "n", "name": "p", "ownerReferences": [owner("ReplicaSet", "web"), owner("Job", "x")]}),
            json!({"containers": [container, container]}),
            json!({"phase": "Running", "conditions": [
                condition("PodScheduled", "True", "2026-01-01T00:00:01Z"),
                condition("Ready", "False", "2026-01-01T00:00:02Z"),
            ]}),
        );
        assert_eq!(found.owner.as_deref(), Some("/apis/apps/v1/namespaces/n/replicasets/web"));
        assert_eq!(found.phase, PodPhase::Running);
        assert_eq!(found.scheduled, Some("2026-01-01T00:00:01Z".parse().unwrap()));
        assert_eq!(found.ready, None);
        assert_eq!(found.limits.to_string(), "cpu=4 memory=2Gi pods=1");
    }

    #[test]
    fn phases_are_read_and_written() {
        for phase in [PodPhase::Pending, PodPhase::Running, PodPhase::Succeeded, PodPhase::Failed, PodPhase::Unknown] {
            assert_eq!(PodPhase::read(Some(phase.as_str())), phase);
        }
        assert_eq!(PodPhase::read(None), PodPhase::Pending);
    }
}
