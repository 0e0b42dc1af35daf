//! The slow, obviously right judge: where may a pod run, and if nowhere, in which words would the kube-scheduler say so.
//!
//! This crate will never know the planner, Kubernetes objects or speed. It states the filters of the kube-scheduler
//! (1.36, default feature gates) over plain values, one small function per filter, so that each can be read beside the
//! documentation of the rule. The embedded scheduler places pods with it, and plans are checked against it.
//!
//! ```text
//! Situation (nodes, pods on them) + PodFacts -> Question -> objections per node -> Survey -> message
//! ```
//!
//! Plans are judged by [`audit`], which knows nodes only as concrete labels and sums.
//!
//! Whoever builds the facts has already folded what depends on other objects into them: priority classes into numbers,
//! `matchLabelKeys` into selectors, namespace selectors into namespaces, claims and volumes into [`VolumeFacts`].

mod affinity;
mod audit;
mod facts;
mod filters;
mod message;
mod node_term;
mod objection;
mod preemption;
mod question;
mod situation;
mod spread;
mod volumes;

pub use audit::{
    NewNode, Replay, Target, Violation, audit, new_nodes, pending_pods, reachable_domains, reckoned_price, situation,
};
pub use facts::{Blocker, Namespaces, NodeFacts, PodAffinityTerm, PodFacts, VolumeFacts, VolumePlace, ZoneLabel};
pub use message::unschedulable_message;
pub use model::{HostPort, Inclusion, LabelOperator, LabelRequirement, Labels, Selector, SpreadConstraint};
pub use node_term::NodeTerm;
pub use objection::{Objection, Plugin};
pub use preemption::{Eviction, Preemption, preempt};
pub use question::{Question, Survey, check, survey};
pub use situation::{Gates, Situation};
