//! Who does a task, and how it is decided.

use jiff::Timestamp;

use crate::caches::Caches;
use crate::key::Task;
use crate::pace::{Draws, Span};
use crate::workload::{daemon_set, deployment, job, replica_set, stateful_set};
use crate::write::Decision;
use crate::{budget, kubelet, namespaces, node_lifecycle, pod_collection, taint_eviction};

/// In whose name a task writes, and what its events give as their source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    pub(crate) user: String,
    pub(crate) component: &'static str,
    pub(crate) host: Option<String>,
}

/// The actor of a task.
pub(crate) fn actor(caches: &Caches, task: &Task) -> Actor {
    let controller = |account: &str, component: &'static str| Actor {
        user: format!("system:serviceaccount:kube-system:{account}"),
        component,
        host: None,
    };
    let kubelet =
        |node: &str| Actor { user: format!("system:node:{node}"), component: "kubelet", host: Some(node.to_owned()) };
    match task {
        Task::KubeletNode(node) => kubelet(node),
        Task::KubeletPod(key) => {
            let pod = caches.pods.get(key);
            kubelet(pod.and_then(|known| crate::pods::node_name(&known.pod)).unwrap_or(""))
        }
        Task::NodeLifecycle(_) => controller("node-controller", "node-controller"),
        Task::TaintEviction(_) => controller("node-controller", "taint-eviction-controller"),
        Task::PodCollection(_) => controller("pod-garbage-collector", "pod-garbage-collector"),
        Task::Schedule => {
            Actor { user: "system:kube-scheduler".to_owned(), component: "default-scheduler", host: None }
        }
        Task::ReplicaSet(_) => controller("replicaset-controller", "replicaset-controller"),
        Task::Deployment(_) => controller("deployment-controller", "deployment-controller"),
        Task::DaemonSet(_) => controller("daemon-set-controller", "daemonset-controller"),
        Task::StatefulSet(_) => controller("statefulset-controller", "statefulset-controller"),
        Task::Job(_) => controller("job-controller", "job-controller"),
        Task::Budget(_) => controller("disruption-controller", "controllermanager"),
        Task::Namespace(_) => controller("service-account-controller", "service-account-controller"),
        Task::Garbage => controller("generic-garbage-collector", "garbage-collector-controller"),
    }
}

/// How long after a change a task looks at it. Kubelets look at once and take their time with what they do.
pub(crate) fn reaction(draws: &Draws, task: &Task) -> Span {
    match task {
        Task::KubeletNode(_) | Task::KubeletPod(_) => Span::millis(0, 0),
        Task::Schedule => draws.pace.scheduler,
        Task::Garbage => draws.pace.garbage_collection,
        _ => draws.pace.controller,
    }
}

/// The decision of a task; the scheduler and the garbage collector, which keep state, decide elsewhere.
pub(crate) fn decide(caches: &Caches, task: &Task, draws: &Draws, now: Timestamp) -> Decision {
    match task {
        Task::KubeletNode(name) => kubelet::node::reconcile(caches, name, draws, now),
        Task::KubeletPod(key) => kubelet::pod::reconcile(caches, key, draws, now),
        Task::NodeLifecycle(name) => node_lifecycle::reconcile(caches, name, now),
        Task::TaintEviction(key) => taint_eviction::reconcile(caches, key, now),
        Task::PodCollection(key) => pod_collection::reconcile(caches, key, now),
        Task::ReplicaSet(key) => replica_set::reconcile(caches, key, now),
        Task::Deployment(key) => deployment::reconcile(caches, key, now),
        Task::DaemonSet(key) => daemon_set::reconcile(caches, key, now),
        Task::StatefulSet(key) => stateful_set::reconcile(caches, key, now),
        Task::Job(key) => job::reconcile(caches, key, now),
        Task::Budget(key) => budget::reconcile(caches, key, now),
        Task::Namespace(key) => namespaces::reconcile(caches, key),
        Task::Schedule | Task::Garbage => Decision::default(),
    }
}
