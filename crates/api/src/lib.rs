//! The custom resources: their Rust types, their schemas with CEL rules, and the pure rules that belong to them.
//!
//! This crate will never know a client, a cloud SDK or stored state. It reads and writes values; who fetched them,
//! and what happens next, is somebody else's business.
//!
//! Every text a user may write (durations, quantities, percentages) is kept byte for byte, so that an object that is
//! read and written back does not change under its owner's hands.

pub mod capacity_buffer;
pub mod condition;
pub mod definitions;
pub mod duration;
pub mod ec2_node_class;
pub mod hash;
pub mod kwok_node_class;
pub mod label_syntax;
pub mod labels;
pub mod lower;
pub mod node_claim;
pub mod node_class_reference;
pub mod node_overlay;
pub mod node_pool;
pub mod quantity;
pub mod requirement;
pub mod scheduler_config;
mod schema;
pub mod taint;
pub mod validation;

pub use capacity_buffer::{CapacityBuffer, CapacityBufferSpec, CapacityBufferStatus};
pub use condition::{Condition, ConditionSet, ConditionStatus, ConditionTypes};
pub use definitions::{Flavour, custom_resource_definitions};
pub use duration::{DurationText, NillableDuration};
pub use ec2_node_class::{EC2NodeClass, EC2NodeClassSpec, EC2NodeClassStatus};
pub use kwok_node_class::{KWOKNodeClass, KWOKNodeClassSpec, KWOKNodeClassStatus};
pub use node_claim::{NodeClaim, NodeClaimSpec, NodeClaimStatus};
pub use node_class_reference::NodeClassReference;
pub use node_overlay::{NodeOverlay, NodeOverlaySpec, NodeOverlayStatus};
pub use node_pool::{NodePool, NodePoolSpec, NodePoolStatus};
pub use quantity::ResourceList;
pub use requirement::{Operator, Requirement};
pub use taint::{Taint, TaintEffect};
