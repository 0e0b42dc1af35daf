//! Pods.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use model::{BoundKind, Labels, NodeName, PodClass, PodKey, Resources, Text, Vocabulary};

use super::go_duration;
use super::pod_class::{Written, class};
use super::pod_fault::PodFault;
use super::pod_requests::MissingRequests;
use super::pod_rules::volume_claims;
use super::selector::labels;
use super::story::PodStory;

/// Who made a pod, as far as that matters to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A DaemonSet: the pod comes and goes with its node.
    DaemonSet,
    /// The kubelet itself, from a manifest on disk.
    Node,
    /// A StatefulSet: a terminating pod will come back under the same name.
    StatefulSet,
    /// Anybody else, or nobody.
    Other,
}

/// Kinds of objects that make pods and whose selector or template tells something about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControllerKind {
    /// A DaemonSet.
    DaemonSet,
    /// A Job.
    Job,
    /// A ReplicaSet.
    ReplicaSet,
    /// A ReplicationController.
    ReplicationController,
    /// A StatefulSet.
    StatefulSet,
}

/// The object that makes a pod; it lives in the pod's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Controller {
    /// Its kind.
    pub kind: ControllerKind,
    /// Its name.
    pub name: Text,
}

/// Whether a pod asked not to be disturbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protection {
    /// It did not ask.
    None,
    /// For as long as it runs.
    Always,
    /// Until that moment; before the pod has started, the moment is not known.
    Until(Option<Timestamp>),
    /// The annotation has a value that says nothing.
    Unreadable {
        /// What is wrong with it.
        problem: Text,
    },
}

impl Protection {
    fn read(annotation: Option<&str>, started: Option<Timestamp>) -> Self {
        match annotation {
            None => Self::None,
            Some("true") => Self::Always,
            Some(text) => match go_duration::parse(text) {
                Err(error) => {
                    let problem = format!("failed to parse {text:?} as a duration: {error}");
                    Self::Unreadable { problem: Text::from(problem) }
                }
                Ok(Duration::ZERO) => {
                    Self::Unreadable { problem: Text::from(format!("duration {text:?} must be positive")) }
                }
                Ok(length) => Self::Until(started.and_then(|start| start.checked_add(length).ok())),
            },
        }
    }

    /// Whether the pod is protected now.
    pub fn is_active(&self, now: Timestamp) -> bool {
        match self {
            Self::None | Self::Unreadable { .. } => false,
            Self::Always | Self::Until(None) => true,
            Self::Until(Some(end)) => now < *end,
        }
    }

    /// Whether there is something to tell about it: that it ends, or that it is none.
    pub fn is_remarkable(&self) -> bool {
        matches!(self, Self::Until(_) | Self::Unreadable { .. })
    }
}

/// What a pod's annotations say about the cost of its end, as it is written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostAnnotations {
    /// `karpenter.sh/disruption-cost`
    pub disruption: Option<Text>,
    /// `controller.kubernetes.io/pod-deletion-cost`
    pub deletion: Option<Text>,
}

impl CostAnnotations {
    /// Most pods say nothing, and take no room for it.
    fn read<'a>(annotation: impl Fn(&str) -> Option<&'a String>) -> Option<Arc<Self>> {
        let text = |key: &str| annotation(key).map(|text| Text::from(text.as_str()));
        let found =
            Self { disruption: text(crate::labels::DISRUPTION_COST), deletion: text(crate::labels::POD_DELETION_COST) };
        (found.disruption.is_some() || found.deletion.is_some()).then(|| Arc::new(found))
    }
}

/// What we keep of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Namespace and name.
    pub key: PodKey,
    /// Its identity; a pod of the same name made later has another.
    pub uid: Text,
    /// Its resource version; zero if that is no number.
    pub version: u64,
    /// When it was made.
    pub created: Timestamp,
    /// What decides where it may run.
    pub class: Arc<PodClass>,
    /// Why it is not planned, if so.
    pub faults: BTreeSet<PodFault>,
    /// The node it is bound to.
    pub node: Option<NodeName>,
    /// Who made it.
    pub owner: Owner,
    /// Succeeded or failed: it no longer uses anything.
    pub is_terminal: bool,
    /// When it is to be gone, if it is being deleted.
    pub deletion: Option<Timestamp>,
    /// The scheduler tried and found no node.
    pub is_unschedulable: bool,
    /// A node is kept in mind for it. The scheduler does so while it makes room there; a pod that never makes others leave
    /// has nobody making room for it.
    pub is_nominated: bool,
    /// Its readiness condition.
    pub is_ready: bool,
    /// Whether it may be disturbed.
    pub protection: Protection,
    /// What its end costs, if it says.
    pub costs: Option<Arc<CostAnnotations>>,
    /// Cluster or node critical: it leaves a node last.
    pub is_critical: bool,
    /// How long it may take to stop.
    pub grace: Duration,
    /// What rules of other pods can see of it.
    pub kind: Arc<BoundKind>,
    /// PersistentVolumeClaims of its namespace that it mounts.
    pub volume_claims: BTreeSet<Text>,
    /// The one object that made it and looks after it, if it is of a kind that matters.
    pub controller: Option<Controller>,
    /// What is only told of it.
    pub story: PodStory,
}

impl PodFacts {
    /// Lowers a pod; `None` if the API server sent one without a name.
    pub fn lower(pod: &core::Pod, vocabulary: &Vocabulary) -> Option<Self> {
        let metadata = &pod.metadata;
        let spec = pod.spec.as_ref()?;
        let status = pod.status.as_ref();
        let annotation = |key: &str| metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
        let started = status.and_then(|status| status.start_time.as_ref()).map(|time| time.0);
        let scheduled = condition(status, "PodScheduled");
        let key = PodKey::new(metadata.namespace.as_deref().unwrap_or("default"), metadata.name.as_deref()?);
        let labels = labels(metadata.labels.as_ref());
        let mut faults = BTreeSet::new();
        let missing = MissingRequests::AreZero;
        let written = Written { namespace: &key.namespace, labels: &labels, spec, status, missing };
        let class = class(&written, vocabulary, &mut faults);
        let kind = BoundKind {
            namespace: Text::clone(&key.namespace),
            labels: Arc::new(labels),
            anti_affinity: class.anti_affinity.clone(),
        };
        Some(Self {
            volume_claims: volume_claims(spec, &key.name),
            key,
            uid: Text::from(metadata.uid.as_deref().unwrap_or_default()),
            version: metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0),
            created: metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            class: Arc::new(class),
            faults,
            node: spec.node_name.as_deref().filter(|name| !name.is_empty()).map(NodeName::new),
            owner: owner(pod),
            is_terminal: matches!(status.and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed")),
            deletion: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            is_unschedulable: scheduled
                .is_some_and(|found| found.status == "False" && found.reason.as_deref() == Some("Unschedulable")),
            is_nominated: spec.preemption_policy.as_deref() != Some("Never")
                && status.and_then(|status| status.nominated_node_name.as_deref()).is_some_and(|node| !node.is_empty()),
            is_ready: condition(status, "Ready").is_some_and(|found| found.status == "True"),
            protection: Protection::read(annotation(crate::labels::DO_NOT_DISRUPT).map(String::as_str), started),
            costs: CostAnnotations::read(annotation),
            is_critical: matches!(
                spec.priority_class_name.as_deref(),
                Some("system-cluster-critical" | "system-node-critical")
            ),
            grace: grace(spec),
            kind: Arc::new(kind),
            controller: controller(pod),
            story: PodStory::lower(pod, spec),
        })
    }

    /// Whether we should find it a node: the scheduler could not, and it is not bound to come or go with a node.
    pub fn is_provisionable(&self) -> bool {
        !self.is_nominated && self.is_stranded()
    }

    /// As a pod that we should find a node for, whoever keeps one in mind for it.
    pub fn is_stranded(&self) -> bool {
        let free = self.node.is_none() && self.deletion.is_none() && !self.is_terminal;
        free && self.is_unschedulable && !matches!(self.owner, Owner::DaemonSet | Owner::Node)
    }

    /// Whether it runs or will run.
    pub fn is_active(&self) -> bool {
        !self.is_terminal && self.deletion.is_none()
    }

    /// Whether it needs another node when its own goes.
    pub fn is_reschedulable(&self) -> bool {
        let returning = self.owner == Owner::StatefulSet && !self.is_terminal;
        (self.is_active() || returning) && !matches!(self.owner, Owner::DaemonSet | Owner::Node)
    }

    /// Its labels.
    pub fn labels(&self) -> &Labels {
        &self.kind.labels
    }

    /// What it asks for.
    pub fn requests(&self) -> &Resources {
        &self.class.requests
    }
}

fn condition<'a>(status: Option<&'a core::PodStatus>, kind: &str) -> Option<&'a core::PodCondition> {
    status?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

fn grace(spec: &core::PodSpec) -> Duration {
    const KUBERNETES_DEFAULT_SECONDS: i64 = 30;
    let seconds = spec.termination_grace_period_seconds.unwrap_or(KUBERNETES_DEFAULT_SECONDS);
    Duration::from_secs(seconds.max(0).unsigned_abs())
}

fn owner(pod: &core::Pod) -> Owner {
    let owners = pod.metadata.owner_references.iter().flatten();
    for reference in owners {
        match (reference.api_version.as_str(), reference.kind.as_str()) {
            ("apps/v1", "DaemonSet") => return Owner::DaemonSet,
            ("apps/v1", "StatefulSet") => return Owner::StatefulSet,
            ("v1", "Node") => return Owner::Node,
            _ => {}
        }
    }
    Owner::Other
}

fn controller(pod: &core::Pod) -> Option<Controller> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let reference = owners.find(|reference| reference.controller == Some(true))?;
    let kind = match (reference.api_version.as_str(), reference.kind.as_str()) {
        ("apps/v1", "DaemonSet") => ControllerKind::DaemonSet,
        ("batch/v1", "Job") => ControllerKind::Job,
        ("apps/v1", "ReplicaSet") => ControllerKind::ReplicaSet,
        ("apps/v1", "StatefulSet") => ControllerKind::StatefulSet,
        ("v1", "ReplicationController") => ControllerKind::ReplicationController,
        _ => return None,
    };
    Some(Controller { kind, name: Text::from(reference.name.as_str()) })
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
