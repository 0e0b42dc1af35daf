//! The row of a pod: what its phase, conditions and containers come to in one word.

use jiff::Timestamp;
use serde_json::Value;

use crate::table::duration;
use crate::table::read::{Subject, field, or_none};

pub(super) fn pod(pod: Subject<'_>) -> Vec<Value> {
    let summary = Summary::of(pod);
    let restarts = match summary.last_restart {
        Some(last) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, duration::between(last, pod.now))
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        pod.name(),
        format!("{}/{}", summary.ready, summary.containers).into(),
        summary.status.into(),
        restarts.into(),
        pod.age(),
        pod.text_or("/status/podIPs/0/ip", "<none>").into(),
        pod.text_or("/spec/nodeName", "<none>").into(),
        pod.text_or("/status/nominatedNodeName", "<none>").into(),
        readiness_gates(pod).into(),
    ]
}

fn readiness_gates(pod: Subject<'_>) -> String {
    let gates = pod.list("/spec/readinessGates");
    if gates.is_empty() {
        return or_none(String::new());
    }
    let open = gates.iter().filter(|gate| pod.condition_holds(field(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}

struct Summary {
    status: String,
    ready: usize,
    containers: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

/// Restarts of a group of containers.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += container["restartCount"].as_i64().unwrap_or_default();
        self.last = self.last.max(duration::timestamp(container.pointer("/lastState/terminated/finishedAt")));
    }
}

impl Summary {
    fn of(pod: Subject<'_>) -> Self {
        let side_cars = pod.list("/spec/initContainers").iter().filter(|container| is_side_car(container)).count();
        let init = InitContainers::of(pod);
        let mut restarts = init.restarts;
        let mut status = init.status.clone().unwrap_or_else(|| phase(pod));
        let mut ready = init.ready;
        if init.status.is_none() || pod.condition_holds("Initialized") {
            restarts = init.side_car_restarts;
            let (main_status, main_ready) = main_containers(pod, status, &mut restarts);
            status = main_status;
            ready += main_ready;
        }
        if pod.is_deleted() && pod.text("/status/reason") == "NodeLost" {
            status = "Unknown".to_owned();
        } else if pod.is_deleted() && !matches!(pod.text("/status/phase"), "Succeeded" | "Failed") {
            status = "Terminating".to_owned();
        }
        Self {
            status,
            ready,
            containers: pod.list("/spec/containers").len() + side_cars,
            restarts: restarts.count,
            last_restart: restarts.last,
        }
    }
}

fn phase(pod: Subject<'_>) -> String {
    let gated = pod
        .list("/status/conditions")
        .iter()
        .any(|condition| field(condition, "type") == "PodScheduled" && field(condition, "reason") == "SchedulingGated");
    let phase = match pod.text("/status/reason") {
        _ if gated => "SchedulingGated",
        "" => pod.text("/status/phase"),
        reason => reason,
    };
    phase.to_owned()
}

/// What init containers say: a status only while one of them has not come to its end.
#[derive(Default)]
struct InitContainers {
    status: Option<String>,
    ready: usize,
    restarts: Restarts,
    side_car_restarts: Restarts,
}

impl InitContainers {
    fn of(pod: Subject<'_>) -> Self {
        let specs = pod.list("/spec/initContainers");
        let mut result = Self::default();
        for (index, container) in pod.list("/status/initContainerStatuses").iter().enumerate() {
            let side_car =
                specs.iter().any(|spec| field(spec, "name") == field(container, "name") && is_side_car(spec));
            result.restarts.add(container);
            if side_car {
                result.side_car_restarts.add(container);
            }
            let terminated = container.pointer("/state/terminated");
            if terminated.is_some_and(|end| end["exitCode"].as_i64().unwrap_or_default() == 0) {
                continue;
            }
            if side_car && container["started"] == Value::Bool(true) {
                result.ready += usize::from(container["ready"] == Value::Bool(true));
                continue;
            }
            let waiting = container.pointer("/state/waiting/reason").and_then(Value::as_str).unwrap_or_default();
            result.status = Some(match terminated {
                Some(end) => format!("Init:{}", ending(end)),
                None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
                None => format!("Init:{index}/{}", specs.len()),
            });
            break;
        }
        result
    }
}

/// The status after looking at the main containers, and how many of them are ready. The first container that has
/// something to say wins, so they are read backwards.
fn main_containers(pod: Subject<'_>, before: String, restarts: &mut Restarts) -> (String, usize) {
    let mut status = before;
    let mut ready = 0;
    let mut failure = None;
    for container in pod.list("/status/containerStatuses").iter().rev() {
        restarts.add(container);
        let state = &container["state"];
        let waiting = field(&state["waiting"], "reason");
        if !waiting.is_empty() {
            status = waiting.to_owned();
        } else if let Some(end) = state.get("terminated") {
            status = ending(end);
            if end["exitCode"].as_i64().unwrap_or_default() != 0 {
                failure = Some(status.clone());
            }
        } else if container["ready"] == Value::Bool(true) && state.get("running").is_some() {
            ready += 1;
        }
    }
    // One container that ended does not end the pod while another still runs.
    if status == "Completed" {
        if ready > 0 && pod.condition_holds("Ready") {
            status = "Running".to_owned();
        } else if let Some(failure) = failure {
            status = failure;
        } else if ready > 0 {
            status = "NotReady".to_owned();
        }
    }
    (status, ready)
}

/// How a container ended: the reason, or else its signal or exit code.
fn ending(terminated: &Value) -> String {
    let reason = field(terminated, "reason");
    let signal = terminated["signal"].as_i64().unwrap_or_default();
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or_default())
    }
}

fn is_side_car(container: &Value) -> bool {
    field(container, "restartPolicy") == "Always"
}
