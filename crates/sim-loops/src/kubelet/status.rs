//! The status that a kubelet writes for a pod.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStatus, Node, Pod,
    PodCondition,
};
use serde_json::{Value, json};

use super::node::internal_address;
use crate::READY_ANNOTATION;
use crate::pace::Draws;
use crate::pods::{annotation, condition, set_condition, time, time_text, uid};

/// How a pod's containers ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    Failed(i32),
}

/// A time as the API writes it.
pub(crate) fn now_text(now: Timestamp) -> String {
    time_text(now)
}

/// The status of a pod that runs.
pub(crate) fn running(pod: &Pod, node: &Node, draws: &Draws, now: Timestamp) -> Value {
    let ready = annotation(&pod.metadata, READY_ANNOTATION) != Some("false");
    let gates_open = readiness_gates_open(pod);
    let truth = |holds: bool| if holds { "True" } else { "False" };
    let not_ready = |reason: &'static str| Some(reason.to_owned());
    let mut conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let mut set = |kind: &str, holds: bool, reason: Option<String>| {
        let status = truth(holds).to_owned();
        let condition = PodCondition { type_: kind.to_owned(), status, reason, ..PodCondition::default() };
        set_condition(&mut conditions, condition, now);
    };
    let containers = if ready { None } else { not_ready("ContainersNotReady") };
    let gates = if ready && !gates_open { not_ready("ReadinessGatesNotReady") } else { containers.clone() };
    set("PodReadyToStartContainers", true, None);
    set("Initialized", true, None);
    set("ContainersReady", ready, containers);
    set("Ready", ready && gates_open, gates);
    let host = node.status.iter().filter_map(|status| status.addresses.as_ref()).flatten();
    let host = host.filter(|address| address.type_ == "InternalIP").map(|address| address.address.clone()).next();
    let host = host.unwrap_or_else(|| internal_address(draws.number(uid(&node.metadata))));
    let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
    let own = if on_host { host.clone() } else { internal_address(draws.number(uid(&pod.metadata))) };
    let spec = pod.spec.as_ref();
    let containers = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let statuses: Vec<ContainerStatus> = containers
        .iter()
        .map(|container| {
            let state = ContainerStateRunning { started_at: Some(time(now)) };
            let state = ContainerState { running: Some(state), ..ContainerState::default() };
            container_status(pod, container, state, ready)
        })
        .collect();
    let mut status = json!({
        "phase": "Running",
        "conditions": conditions,
        "containerStatuses": statuses,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": own,
        "podIPs": [{"ip": own}],
        "startTime": time_text(now),
        "observedGeneration": pod.metadata.generation,
    });
    let first = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    if !first.is_empty() {
        status["initContainerStatuses"] = json!(first.iter().map(|it| started_first(pod, it, now)).collect::<Vec<_>>());
    }
    status
}

/// A container of the initialisation: a sidecar runs on, any other has ended.
fn started_first(pod: &Pod, container: &Container, now: Timestamp) -> ContainerStatus {
    if container.restart_policy.as_deref() == Some("Always") {
        let state = ContainerStateRunning { started_at: Some(time(now)) };
        return container_status(pod, container, ContainerState { running: Some(state), ..Default::default() }, true);
    }
    let mut status = container_status(pod, container, terminated(Outcome::Succeeded, now), true);
    status.started = Some(false);
    status
}

/// The status of a pod whose containers have ended.
pub(crate) fn ended(pod: &Pod, outcome: Outcome, now: Timestamp) -> Value {
    let reason = match outcome {
        Outcome::Succeeded => "PodCompleted",
        Outcome::Failed(_) => "PodFailed",
    };
    let mut conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    for kind in ["PodReadyToStartContainers", "ContainersReady", "Ready"] {
        let condition = PodCondition {
            type_: kind.to_owned(),
            status: "False".to_owned(),
            reason: (kind != "PodReadyToStartContainers").then(|| reason.to_owned()),
            ..PodCondition::default()
        };
        set_condition(&mut conditions, condition, now);
    }
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let statuses: Vec<ContainerStatus> = containers
        .iter()
        .map(|container| {
            let mut status = container_status(pod, container, terminated(outcome, now), false);
            status.started = Some(false);
            status
        })
        .collect();
    let phase = match outcome {
        Outcome::Succeeded => "Succeeded",
        Outcome::Failed(_) => "Failed",
    };
    json!({"phase": phase, "conditions": conditions, "containerStatuses": statuses})
}

fn terminated(outcome: Outcome, now: Timestamp) -> ContainerState {
    let (exit_code, reason) = match outcome {
        Outcome::Succeeded => (0, "Completed"),
        Outcome::Failed(code) => (code, "Error"),
    };
    let terminated = ContainerStateTerminated {
        exit_code,
        reason: Some(reason.to_owned()),
        finished_at: Some(time(now)),
        ..ContainerStateTerminated::default()
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

fn container_status(pod: &Pod, container: &Container, state: ContainerState, ready: bool) -> ContainerStatus {
    let image = container.image.clone().unwrap_or_default();
    ContainerStatus {
        name: container.name.clone(),
        container_id: Some(format!("containerd://{}-{}", uid(&pod.metadata), container.name)),
        image_id: image.clone(),
        image,
        ready,
        restart_count: 0,
        started: Some(true),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

fn readiness_gates_open(pod: &Pod) -> bool {
    let gates = pod.spec.iter().filter_map(|spec| spec.readiness_gates.as_ref()).flatten();
    gates.into_iter().all(|gate| condition(pod, &gate.condition_type).is_some_and(|known| known.status == "True"))
}
