//! The control loops of the embedded Kubernetes: scheduler, kubelets, workload controllers, node lifecycle, garbage
//! collection.
//!
//! This crate will never know our planner, state or controllers, nor any cloud. It sees the API as every other client
//! does, decides in pure functions of what it has seen, and writes through the same door.
//!
//! ```text
//! store events -> Caches -> wake: tasks -> queue (time, arrival, key) -> decide(&Caches, key, now) -> writes -> API
//!                                                                                        \-> look again at -> queue
//! ```
//!
//! One task runs everything. A write is answered, and its event taken in, before the next decision, so no loop ever
//! works on stale knowledge. How long a step takes is drawn from the seed ([`Pace`]); for the steps of one object (a pod
//! that starts, a node that becomes ready) the draw depends on nothing but the seed and the object's uid.
//!
//! Nothing ticks: a loop runs when something it cares about changed, or at a time that it named itself. A day in which
//! nothing happens costs nothing.
//!
//! What is not here: preemption, provisioning of volumes, controller revisions (`kubectl rollout history` of DaemonSets
//! and StatefulSets), horizontal autoscaling, services and endpoints, node leases, rate limits of evictions by zone.

mod budget;
mod caches;
mod carry;
mod key;
mod kubelet;
mod machine;
mod namespaces;
mod node_lifecycle;
mod pace;
mod pod_collection;
mod pods;
mod queue;
mod requests;
mod run;
mod scheduler;
mod selector;
mod taint_eviction;
mod tasks;
mod tellings;
#[cfg(test)]
mod testing;
mod wake;
mod workload;
mod write;

pub use pace::{EventDetail, Pace, Span};
pub use run::{Clock, run};

use k8s_openapi::api::core::v1::Node;

/// How long a pod with restart policy `Never` or `OnFailure` runs, for example `30s`. Without it the time is drawn.
pub const RUN_FOR_ANNOTATION: &str = "sim.karpenter.sh/run-for";

/// The exit code with which such a pod ends; anything but `0` makes it fail, whatever its restart policy. `0` without it.
pub const EXIT_CODE_ANNOTATION: &str = "sim.karpenter.sh/exit-code";

/// How long a pod takes to stop, for example `10m`, if its grace period is not over earlier. Without it the time is drawn.
pub const STOP_FOR_ANNOTATION: &str = "sim.karpenter.sh/stop-for";

/// With the value `false`, the pod runs but never becomes ready.
pub const READY_ANNOTATION: &str = "sim.karpenter.sh/ready";

/// What the loops are run with.
#[derive(Clone, Debug, Default)]
pub struct LoopSettings {
    /// Where all draws come from.
    pub seed: u64,
    /// How long steps take.
    pub pace: Pace,
}

/// Something that happens to machines, told by whoever plays the cloud.
#[derive(Clone, Debug)]
pub enum Order {
    /// A machine came up: its kubelet creates this Node, not ready, and then makes it ready.
    Boot(Box<Node>),
    /// The kubelet of this node is no longer heard: after 40 s its conditions are unknown, and it is tainted unreachable.
    Silence(String),
    /// The kubelet of this node is heard again.
    Speak(String),
    /// The machine of this node is gone, and its containers with it; its kubelet never speaks again.
    PowerOff(String),
}
