//! Which tasks a change wakes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::budget::covers;
use crate::caches::{Caches, Moved, Noted};
use crate::key::{Key, Task};
use crate::pods::{controller, is_active, is_bound, is_deleting, is_finished, is_ready, node_name};
use crate::selector::matches;
use crate::taint_eviction::no_execute;

/// The tasks that a change wakes; the scheduler and the garbage collector watch for themselves.
pub(crate) fn tasks(caches: &Caches, noted: &Noted) -> Vec<Task> {
    match noted {
        Noted::Pod(moved) => of_pod(caches, moved),
        Noted::Node(moved) => of_node(caches, moved),
        Noted::ReplicaSet(moved) => {
            let sides = [&moved.old, &moved.new].into_iter().flatten();
            let mut tasks: Vec<Task> = sides.filter_map(|set| owner_task(&set.metadata)).collect();
            tasks.push(Task::ReplicaSet(moved.key.clone()));
            let orphaned = moved.new.as_ref().is_some_and(|set| controller(&set.metadata).is_none());
            if orphaned && moved.old.is_none() {
                let local = caches.deployments.range(Key::new(moved.key.namespace.clone(), "")..);
                let local = local.take_while(|(key, _)| key.namespace == moved.key.namespace);
                tasks.extend(local.map(|(key, _)| Task::Deployment(key.clone())));
            }
            let replicas = |set: &k8s_openapi::api::apps::v1::ReplicaSet| set.spec.as_ref().and_then(|it| it.replicas);
            tasks.extend(on_rescale(caches, moved, replicas));
            tasks
        }
        Noted::Deployment(moved) => {
            let replicas = |set: &k8s_openapi::api::apps::v1::Deployment| set.spec.as_ref().and_then(|it| it.replicas);
            let mut tasks = vec![Task::Deployment(moved.key.clone())];
            tasks.extend(on_rescale(caches, moved, replicas));
            tasks
        }
        Noted::StatefulSet(moved) => {
            let replicas = |set: &k8s_openapi::api::apps::v1::StatefulSet| set.spec.as_ref().and_then(|it| it.replicas);
            let mut tasks = vec![Task::StatefulSet(moved.key.clone())];
            tasks.extend(on_rescale(caches, moved, replicas));
            tasks
        }
        Noted::DaemonSet(moved) => vec![Task::DaemonSet(moved.key.clone())],
        Noted::Job(moved) => vec![Task::Job(moved.key.clone())],
        Noted::Budget(moved) => vec![Task::Budget(moved.key.clone())],
        Noted::Namespace(moved) => vec![Task::Namespace(moved.key.clone())],
        Noted::ServiceAccount(Moved { key, new: None, .. }) => {
            vec![Task::Namespace(Key::cluster(key.namespace.clone()))]
        }
        Noted::ServiceAccount(_) | Noted::Storage | Noted::Other => Vec::new(),
    }
}

/// The task of an object's controller.
fn owner_task(metadata: &ObjectMeta) -> Option<Task> {
    let owner = controller(metadata)?;
    let key = Key::new(metadata.namespace.as_deref().unwrap_or(""), owner.name.as_str());
    match owner.kind.as_str() {
        "ReplicaSet" => Some(Task::ReplicaSet(key)),
        "Deployment" => Some(Task::Deployment(key)),
        "DaemonSet" => Some(Task::DaemonSet(key)),
        "StatefulSet" => Some(Task::StatefulSet(key)),
        "Job" => Some(Task::Job(key)),
        _ => None,
    }
}

fn budgets<'a>(caches: &'a Caches, namespace: &str) -> impl Iterator<Item = (&'a Key, &'a Arc<PodDisruptionBudget>)> {
    let namespace: model::Text = namespace.into();
    let from = caches.budgets.range(Key::new(namespace.clone(), "")..);
    from.take_while(move |(key, _)| key.namespace == namespace)
}

fn on_rescale<K>(caches: &Caches, moved: &Moved<K>, replicas: impl Fn(&K) -> Option<i32>) -> Vec<Task> {
    let before = moved.old.as_ref().map(|old| replicas(old));
    if before == moved.new.as_ref().map(|new| replicas(new)) {
        return Vec::new();
    }
    budgets(caches, &moved.key.namespace).map(|(key, _)| Task::Budget(key.clone())).collect()
}

fn of_pod(caches: &Caches, moved: &Moved<Pod>) -> Vec<Task> {
    let Moved { key, old, new } = moved;
    let sides = || [old, new].into_iter().flatten();
    let mut tasks: Vec<Task> = sides().filter_map(|pod| owner_task(&pod.metadata)).collect();
    tasks.dedup();
    let budget_view = |pod: &Pod| (is_ready(pod), is_deleting(pod), is_finished(pod), pod.metadata.labels.clone());
    if old.as_ref().map(|pod| budget_view(pod)) != new.as_ref().map(|pod| budget_view(pod)) {
        let concerned = budgets(caches, &key.namespace).filter(|(_, budget)| sides().any(|pod| covers(budget, pod)));
        tasks.extend(concerned.map(|(key, _)| Task::Budget(key.clone())));
    }
    let Some(pod) = new else { return tasks };
    if old.is_none() && controller(&pod.metadata).is_none() {
        tasks.extend(adopters(caches, key, pod));
    }
    match node_name(pod) {
        Some(node) => {
            if caches.machines.contains_key(node) {
                tasks.push(Task::KubeletPod(key.clone()));
            }
            let newly_bound = !old.as_ref().is_some_and(|old| is_bound(old));
            let tainted = caches.nodes.get(node).is_some_and(|node| no_execute(node).next().is_some());
            if tainted && (newly_bound || old.as_ref().is_some_and(|old| old.spec != pod.spec)) {
                tasks.push(Task::TaintEviction(key.clone()));
            }
            if caches.is_node_gone(node) {
                tasks.push(Task::PodCollection(key.clone()));
            }
        }
        None if is_deleting(pod) => tasks.push(Task::PodCollection(key.clone())),
        None => {}
    }
    tasks
}

/// ReplicaSets that would adopt a pod that has no controller.
fn adopters(caches: &Caches, key: &Key, pod: &Pod) -> Vec<Task> {
    let local = caches.replica_sets.range(Key::new(key.namespace.clone(), "")..);
    let local = local.take_while(|(other, _)| other.namespace == key.namespace);
    let wanting = local.filter(|(_, set)| {
        let selector = set.spec.as_ref().map(|spec| &spec.selector);
        selector.is_some_and(|selector| matches(selector, pod.metadata.labels.as_ref())) && is_active(pod)
    });
    wanting.map(|(key, _)| Task::ReplicaSet(key.clone())).collect()
}

fn of_node(caches: &Caches, moved: &Moved<Node>) -> Vec<Task> {
    let Moved { key, old, new } = moved;
    let name = &key.name;
    let mut tasks = Vec::new();
    let placing = |node: &Node| (node.metadata.labels.clone(), node.spec.clone());
    if old.as_ref().map(|node| placing(node)) != new.as_ref().map(|node| placing(node)) {
        tasks.extend(caches.daemon_sets.keys().map(|key| Task::DaemonSet(key.clone())));
    }
    let Some(node) = new else {
        tasks.extend(caches.pods_on(name).map(|(key, _)| Task::PodCollection(key.clone())));
        return tasks;
    };
    tasks.push(Task::KubeletNode(name.clone()));
    tasks.push(Task::NodeLifecycle(name.clone()));
    if old.is_none() {
        tasks.extend(caches.pods_on(name).map(|(key, _)| Task::KubeletPod(key.clone())));
    }
    let evicting = no_execute(node).next().is_some();
    if evicting && old.as_ref().is_none_or(|old| !no_execute(old).eq(no_execute(node))) {
        tasks.extend(caches.pods_on(name).map(|(key, _)| Task::TaintEviction(key.clone())));
    }
    tasks
}
