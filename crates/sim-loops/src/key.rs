//! Names of objects and of work.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::Text;

/// Namespace and name of an object; the namespace is empty for objects of the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: Text,
    pub(crate) name: Text,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object of the whole cluster.
    pub(crate) fn cluster(name: impl Into<Text>) -> Self {
        Self::new("", name)
    }

    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self::new(metadata.namespace.as_deref().unwrap_or(""), metadata.name.as_deref().unwrap_or(""))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => formatter.write_str(&self.name),
            namespace => write!(formatter, "{namespace}/{}", self.name),
        }
    }
}

/// One thing to look at: which loop, and which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// The kubelet of a machine: registration and readiness of its node.
    KubeletNode(Text),
    /// The kubelet's care for one pod bound to its node.
    KubeletPod(Key),
    /// Conditions and taints of a node.
    NodeLifecycle(Text),
    /// Deletion of a pod that does not tolerate a taint of its node.
    TaintEviction(Key),
    /// Deletion of a pod whose node is gone.
    PodCollection(Key),
    /// The next pod to schedule.
    Schedule,
    /// A ReplicaSet.
    ReplicaSet(Key),
    /// A Deployment.
    Deployment(Key),
    /// A DaemonSet.
    DaemonSet(Key),
    /// A StatefulSet.
    StatefulSet(Key),
    /// A Job.
    Job(Key),
    /// A PodDisruptionBudget.
    Budget(Key),
    /// The default service account of a namespace.
    Namespace(Key),
    /// Owners and namespaces that are gone.
    Garbage,
}
