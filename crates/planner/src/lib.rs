//! Decides where pending pods go: which existing place takes them, which new nodes are worth their price, and why a
//! pod gets none.
//!
//! Everything here is a pure function of a [`model::Snapshot`]: equal snapshots give equal plans, in whatever order
//! their lists come. This crate will never know input or output, time, chance or the order of a hash map.

mod claims;
mod config;
mod daemons;
mod limits;
mod place;
mod places;
mod pools;
mod refuse;
mod sizing;

pub use config::PlaceConfig;
pub use place::place;
