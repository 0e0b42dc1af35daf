//! AWS decisions without AWS. This crate will never know an SDK or a client.
//!
//! It begins with instance types: what a node of a type has, keeps for itself, is labelled with, and costs where, given
//! the EC2NodeClass it is launched from. [`RegionTypes`] holds what does not depend on the class.

mod capacity;
mod class;
mod compatibility;
mod family;
mod kubelet;
pub mod labels;
mod offerings;
mod overhead;
mod pods;
mod region_types;
mod requirements;
pub mod resources;
mod settings;
mod storage;

pub use class::{ClassView, ClassZone, PlacementGroup, PlacementStrategy, Reservation};
pub use family::{FamilyTraits, family_of};
pub use kubelet::{Kubelet, Threshold};
pub use labels::vocabulary;
pub use region_types::{RegionTypes, Unavailable, instance_types};
pub use settings::Settings;
