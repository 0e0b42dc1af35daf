//! The words the planner thinks in: quantities, label requirements, taints, instance types, pods, places and plans.
//!
//! Everything here is a plain value. This crate will never know Kubernetes objects, a cloud, async code, a clock or
//! logging: whoever builds a [`Snapshot`] has already read the world, and whoever gets a [`Plan`] will change it.

mod instance_type;
mod names;
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
mod snapshot;
mod taint;
mod vocabulary;

pub use instance_type::{CapacityType, InstanceType, Offering};
pub use names::{ClaimName, NodeName, PodKey, PoolName, ProviderId, Text, TypeName};
pub use place::{Place, PlaceId, Stage};
pub use plan::{Nomination, Plan, PlannedClaim, Unplaced};
pub use pod::{Attempt, Daemon, PendingGroup, PodClass, Preference, Rule};
pub use pool::Pool;
pub use price::Price;
pub use quantity::{QuantityError, format_quantity, parse_quantity};
pub use refusal::{PoolRefusal, Refusal, Shortfall};
pub use requirement::{Operator, Requirement};
pub use requirements::{Mismatch, Requirements, Undefined};
pub use resources::{ResourceName, Resources};
pub use snapshot::{Revision, Snapshot};
pub use taint::{Effect, Taint, Toleration, TolerationOperator, first_untolerated};
pub use vocabulary::{Vocabulary, labels};
