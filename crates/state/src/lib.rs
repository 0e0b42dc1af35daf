//! The cluster in memory: watch events go in, immutable snapshots come out.
//!
//! One writer folds changes with [`Cluster::apply`] and [`Cluster::remove`]; readers take what they need and let go.
//! Each change answers with what it wakes, because only the state knows which claim belongs to which node.
//! This crate will never know a client, and holds no policy: it says what is, not what should be.

mod attachments;
mod buffers;
mod change;
mod cluster;
mod daemons;
mod default_spread;
mod demand;
mod gone;
mod interned;
mod ledger;
mod listing;
mod machines;
mod overlays;
mod places;
mod pods;
mod pools;
mod seats;
mod snapshot;
mod storage;
mod told;
mod usage;

pub use change::{Key, Kind, Object, Wake};
pub use cluster::{Cluster, ManagedKind, Tracked};
pub use overlays::OverlayVerdict;
pub use told::{ClaimPrice, NodeUsage};
