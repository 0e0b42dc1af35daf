//! The provider that only pretends: it makes Node objects, and the KWOK controller makes them look alive.
//!
//! Everything above the provider is the real thing, so a cluster of thousands of nodes can be watched on a laptop.
//! What is decided here (which types exist, which one a claim gets, what its Node looks like) is decided in pure
//! functions; only [`provider`] and the maker of Nodes behind it talk to the API server. This library will never know
//! another cloud.

mod arrivals;
pub mod choose;
mod claim;
mod classes;
mod hash;
pub mod instance_types;
pub mod instance_types_file;
mod machine;
pub mod node;
pub mod provider;
mod repair;
pub mod resume;

pub use instance_types_file::InstanceTypesFileError;
pub use provider::{KwokProvider, resume_launches};
