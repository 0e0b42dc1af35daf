//! Kubernetes objects as the values that decisions are made from.
//!
//! Lowering happens once, when an object arrives. What comes out holds only what somebody reads later, so that a
//! large cluster fits into little memory, and what cannot be read becomes a fault that names the field.

mod budget;
mod claim;
mod daemon;
mod go_duration;
mod headroom;
mod node;
mod node_class;
mod overlay;
mod pod;
mod pod_class;
mod pod_fault;
mod pod_requests;
mod pod_rules;
mod selector;
mod story;
mod volume;
mod workload;

pub use budget::BudgetFacts;
pub use claim::{requirement, requirements, taints, to_requirements};
pub use daemon::DaemonFacts;
pub use headroom::{Headroom, PodTemplateFacts, TemplateFacts, WorkloadFacts, WorkloadKind};
pub use node::{NodeFacts, is_ephemeral_taint};
pub use node_class::{NodeClassFacts, NodeClassReadiness};
pub use overlay::{OverlayFacts, OverlayFault};
pub use pod::{Controller, ControllerKind, CostAnnotations, Owner, PodFacts, Protection};
pub use pod_fault::{PodFault, VolumeFault};
pub(crate) use pod_rules::inclusion;
pub use selector::{lower_taints, resources};
pub use story::{ConditionFacts, NodeStory, PodPhase, PodStory};
pub use volume::{AttachmentFacts, CsiNodeFacts, StorageClassFacts, UnsupportedVolumes, VolumeClaimFacts, VolumeFacts};
pub use workload::{GroupingFacts, GroupingKind, NamespaceFacts};
