//! A pod on its node: started, run, stopped.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use model::{ResourceName, Resources, format_quantity};
use serde_json::json;

use super::status::{self, Outcome};
use crate::caches::{Caches, KnownPod};
use crate::key::Key;
use crate::pace::{Draws, Step};
use crate::pods::{after, annotation, is_deleting, is_finished, node_name, phase, uid};
use crate::requests::resources;
use crate::write::{Decision, PODS, Telling, Weight, Write, delete_now, patch_status, reference};
use crate::{EXIT_CODE_ANNOTATION, RUN_FOR_ANNOTATION, STOP_FOR_ANNOTATION};

/// Takes the next step of a pod on a played node, or says when it will be.
pub(crate) fn reconcile(caches: &Caches, key: &Key, draws: &Draws, now: Timestamp) -> Decision {
    let Some(known) = caches.pods.get(key) else { return Decision::default() };
    let Some(name) = node_name(&known.pod) else { return Decision::default() };
    let heard = caches.machines.get(name).is_some_and(crate::machine::Machine::speaks);
    let Some(node) = caches.nodes.get(name).filter(|_| heard) else { return Decision::default() };
    let pod = &*known.pod;
    if is_deleting(pod) {
        return stop(known, draws, now);
    }
    match phase(pod) {
        "Pending" => {
            let due = after(known.bound_at.unwrap_or(now), draws.length(Step::PodStart, uid(&pod.metadata)));
            if due > now { Decision::at(due) } else { Decision::of(start(caches, known, node, draws, now)) }
        }
        "Running" => run(known, node, draws, now),
        _ => Decision::default(),
    }
}

fn start(caches: &Caches, known: &KnownPod, node: &Node, draws: &Draws, now: Timestamp) -> Vec<Write> {
    let pod = &*known.pod;
    if let Some(refusal) = refuse(caches, known, node) {
        let message = format!("Pod was rejected: {}", refusal.message());
        let reason = format!("OutOf{}", refusal.resource);
        let status =
            json!({"phase": "Failed", "reason": reason, "message": message, "startTime": status::now_text(now)});
        return vec![
            tell(pod, Weight::Warning, "UnexpectedAdmissionError", refusal.message()),
            patch_status(PODS, &pod.metadata, status),
        ];
    }
    let mut writes = Vec::new();
    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
        let image = container.image.as_deref().unwrap_or("");
        let name = &container.name;
        let present = format!("Container image \"{image}\" already present on machine");
        writes.push(tell(pod, Weight::Detail, "Pulled", present));
        writes.push(tell(pod, Weight::Detail, "Created", format!("Container created: {name}")));
        writes.push(tell(pod, Weight::Normal, "Started", format!("Container started: {name}")));
        let line = format!("{name} started on {}", node_name(pod).unwrap_or(""));
        writes.push(Write::Log { key: Key::of(&pod.metadata), container: name.clone(), line });
    }
    writes.push(patch_status(PODS, &pod.metadata, status::running(pod, node, draws, now)));
    writes
}

/// A running pod is kept ready, and ends when its time is over.
fn run(known: &KnownPod, node: &Node, draws: &Draws, now: Timestamp) -> Decision {
    let pod = &*known.pod;
    if let Some(length) = run_length(pod, draws) {
        let due = after(known.running_at.unwrap_or(now), length);
        if due <= now {
            let outcome = match exit_code(pod) {
                0 => Outcome::Succeeded,
                code => Outcome::Failed(code),
            };
            let line = |name: &str| Write::Log {
                key: Key::of(&pod.metadata),
                container: name.to_owned(),
                line: format!("{name} ended with exit code {}", exit_code(pod)),
            };
            let mut writes: Vec<Write> =
                pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| line(&container.name)).collect();
            writes.push(patch_status(PODS, &pod.metadata, status::ended(pod, outcome, now)));
            return Decision::of(writes);
        }
        let mut decision = Decision::at(due);
        decision.writes.extend(readiness_write(pod, node, draws, now));
        return decision;
    }
    Decision::of(readiness_write(pod, node, draws, now).into_iter().collect())
}

/// Readiness that somebody else took away comes back while the kubelet can be heard.
fn readiness_write(pod: &Pod, node: &Node, draws: &Draws, now: Timestamp) -> Option<Write> {
    let next = status::running(pod, node, draws, now);
    let known = json!(pod.status.as_ref().and_then(|status| status.conditions.as_ref()));
    (next["conditions"] != known).then(|| patch_status(PODS, &pod.metadata, json!({"conditions": next["conditions"]})))
}

/// How long a pod runs; `None` for ever.
fn run_length(pod: &Pod, draws: &Draws) -> Option<SignedDuration> {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
    if policy == "Always" {
        return None;
    }
    Some(told_length(pod, RUN_FOR_ANNOTATION).unwrap_or_else(|| draws.length(Step::JobRun, uid(&pod.metadata))))
}

/// How long a pod takes to stop, were there no end to its grace.
fn stop_length(pod: &Pod, draws: &Draws) -> SignedDuration {
    told_length(pod, STOP_FOR_ANNOTATION).unwrap_or_else(|| draws.length(Step::PodStop, uid(&pod.metadata)))
}

fn told_length(pod: &Pod, name: &str) -> Option<SignedDuration> {
    annotation(&pod.metadata, name)?.parse().ok()
}

fn exit_code(pod: &Pod) -> i32 {
    annotation(&pod.metadata, EXIT_CODE_ANNOTATION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A pod that is being deleted stops within its grace period, and is then removed.
fn stop(known: &KnownPod, draws: &Draws, now: Timestamp) -> Decision {
    let pod = &*known.pod;
    let started = phase(pod) == "Running";
    let length = if started { stop_length(pod, draws) } else { SignedDuration::ZERO };
    let due = after(known.deleting_at.unwrap_or(now), length);
    // Whoever asks for the end once more with less grace gets it then.
    let due = pod.metadata.deletion_timestamp.as_ref().map_or(due, |until| due.min(until.0));
    if due > now {
        return Decision::at(due);
    }
    let mut writes = Vec::new();
    if started {
        for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
            writes.push(tell(pod, Weight::Detail, "Killing", format!("Stopping container {}", container.name)));
        }
    }
    if !is_finished(pod) {
        // A container that is stopped by a signal it handles ends well; one that never ran counts as failed.
        let outcome = if started { Outcome::Succeeded } else { Outcome::Failed(137) };
        writes.push(patch_status(PODS, &pod.metadata, status::ended(pod, outcome, now)));
    }
    if !is_waiting_for_others(pod) {
        writes.push(delete_now(PODS, &pod.metadata));
    }
    Decision::of(writes)
}

/// Deleted with no grace left, and only held by finalizers: nothing is left to do for the kubelet.
fn is_waiting_for_others(pod: &Pod) -> bool {
    let held = pod.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    held && pod.metadata.deletion_grace_period_seconds == Some(0)
}

/// The resource of which a node has too little for a pod that was bound to it.
struct Refusal {
    resource: ResourceName,
    wanted: i64,
    used: i64,
    capacity: i64,
}

impl Refusal {
    fn message(&self) -> String {
        let Self { resource, wanted, used, capacity } = self;
        // The real kubelet counts cpu in thousandths and everything else in whole units.
        let number =
            |amount: i64| if resource.is_cpu() { amount.to_string() } else { format_quantity(resource, amount) };
        format!(
            "Node didn't have enough resource: {resource}, requested: {}, used: {}, capacity: {}",
            number(*wanted),
            number(*used),
            number(*capacity)
        )
    }
}

/// Whether the pods that already run leave too little for this one.
fn refuse(caches: &Caches, known: &KnownPod, node: &Node) -> Option<Refusal> {
    let status = node.status.as_ref()?;
    let allocatable = resources(status.allocatable.as_ref().or(status.capacity.as_ref()));
    let mut used = Resources::none();
    let here = node_name(&known.pod)?;
    for (_, other) in caches.active_pods_on(here).filter(|(_, other)| other.running_at.is_some()) {
        used.add(&other.requests);
        used.add(&Resources::none().with(ResourceName::pods(), 1));
    }
    let wanted = Resources::clone(&known.requests).with(ResourceName::pods(), 1);
    let short = wanted.iter().find(|(name, amount)| *amount > 0 && used.get(name) + amount > allocatable.get(name))?;
    let (resource, amount) = short;
    Some(Refusal {
        resource: resource.clone(),
        wanted: amount,
        used: used.get(resource),
        capacity: allocatable.get(resource),
    })
}

fn tell(pod: &Pod, weight: Weight, reason: &'static str, message: String) -> Write {
    Write::Tell(Telling { about: reference(PODS, &pod.metadata), weight, reason, message })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pace::{Pace, Span};
    use crate::testing::{at, see, text};

    fn node() -> Value {
        json!({
            "kind": "Node",
            "metadata": {"name": "n", "uid": "n", "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "10"}},
        })
    }

    fn pod(name: &str, cpu: &str, change: Value) -> Value {
        let mut pod = json!({
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {
                "nodeName": "n",
                "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
            },
            "status": {"phase": "Pending"},
        });
        for part in ["metadata", "spec", "status"] {
            for (field, value) in change[part].as_object().into_iter().flatten() {
                pod[part][field] = value.clone();
            }
        }
        pod
    }

    /// What the kubelet does at a second about a pod that it saw at second 0, next to a running pod of one core.
    fn step(second: i64, pod: &Value) -> String {
        let slow = |seconds: u64| Span::millis(seconds * 1_000, seconds * 1_000);
        let pace = Pace { pod_start: slow(2), pod_stop: slow(5), job_run: slow(60), ..Pace::instant() };
        let mut caches = Caches::default();
        see(&mut caches, 0, &node());
        see(&mut caches, 0, &self::pod("other", "1", json!({"status": {"phase": "Running"}})));
        see(&mut caches, 0, pod);
        let key = Key::new("default", pod["metadata"]["name"].as_str().unwrap());
        text(&reconcile(&caches, &key, &Draws { seed: 1, pace }, at(second)))
    }

    #[test]
    fn a_pod_starts_runs_and_stops_in_its_time() {
        let deleted = json!({
            "deletionTimestamp": "1970-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30,
        });
        let hurried = json!({"deletionTimestamp": "1970-01-01T00:00:01Z", "deletionGracePeriodSeconds": 1});
        let slow = json!({
            "deletionTimestamp": "1970-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30,
            "annotations": {"sim.karpenter.sh/stop-for": "20s"},
        });
        let running = json!({"phase": "Running"});
        let once = json!({"restartPolicy": "Never"});
        let told = json!({"annotations": {"sim.karpenter.sh/run-for": "10s"}});
        let table = [
            (0, pod("p", "1", json!({})), "again@2"),
            (2, pod("p", "1", json!({})), "status:p=Running"),
            (2, pod("p", "1100m", json!({})), "status:p=Failed"),
            (0, pod("p", "1", json!({"status": running, "metadata": deleted})), "again@5"),
            (5, pod("p", "1", json!({"status": running, "metadata": deleted})), "status:p=Succeeded delete:p!"),
            (1, pod("p", "1", json!({"status": running, "metadata": hurried})), "status:p=Succeeded delete:p!"),
            (5, pod("p", "1", json!({"status": running, "metadata": slow})), "again@20"),
            (0, pod("p", "1", json!({"metadata": deleted})), "status:p=Failed delete:p!"),
            (0, pod("p", "1", json!({"status": running, "spec": once})), "status:p=conditions again@60"),
            (60, pod("p", "1", json!({"status": running, "spec": once})), "status:p=Succeeded"),
            (10, pod("p", "1", json!({"status": running, "spec": once, "metadata": told})), "status:p=Succeeded"),
            (9, pod("p", "1", json!({"status": {"phase": "Succeeded"}})), ""),
        ];
        for (second, pod, expected) in table {
            assert_eq!(step(second, &pod), expected, "{second} {pod}");
        }
    }
}
