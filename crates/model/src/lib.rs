//! The words the planner thinks in: quantities, label requirements, taints, instance types, pods, places and plans.
//!
//! Everything here is a plain value. This crate will never know Kubernetes objects, a cloud, async code, a clock or
//! logging: whoever builds a [`Snapshot`] has already read the world, and whoever gets a [`Plan`] will change it.

mod bound_pods;
mod instance_type;
mod names;
mod overlay;
mod place;
mod plan;
mod pod;
mod pool;
mod price;
mod quantity;
mod refusal;
mod requirement;
mod requirements;
mod resources;
mod selector;
mod snapshot;
mod taint;
mod topology;
mod type_search;
mod vocabulary;
mod volumes;

pub use bound_pods::{BoundKind, BoundPods};
pub use instance_type::{CapacityType, InstanceType, Offering};
pub use names::{BufferKey, ClaimName, NodeName, PodKey, PoolName, ProviderId, Text, TypeName, shared};
pub use overlay::{Assortment, Overlaid, Overlay, OverlayConflict, OverlayMarks, PriceChange, overlay};
pub use place::{Place, PlaceId, Stage};
pub use plan::{Nomination, Plan, PlannedClaim, Unplaced};
pub use pod::{Daemon, PendingPod, PodClass, Preference, Purpose, Rule};
pub use pool::Pool;
pub use price::Price;
pub use quantity::{QuantityError, format_quantity, parse_quantity};
pub use refusal::{Monotony, PlaceRefusal, PoolRefusal, Refusal, Shortfall, Spreading};
pub use requirement::{Operator, Requirement};
pub use requirements::{Mismatch, Near, Requirements, Undefined};
pub use resources::{ResourceName, Resources};
pub use selector::{LabelOperator, LabelRequirement, Labels, Selector};
pub use snapshot::{Revision, Snapshot};
pub use taint::{Effect, Taint, Toleration, TolerationOperator, first_untolerated};
pub use topology::{HostPort, Inclusion, NamespaceScope, PodTerm, SpreadConstraint, WeightedPodTerm};
pub use type_search::{TypeFit, TypeGap, TypeSearch};
pub use vocabulary::{Vocabulary, labels};
pub use volumes::{AttachLimits, Attachment, PodVolumes};
