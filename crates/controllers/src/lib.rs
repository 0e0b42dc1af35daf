//! Watches in, effects out: provisioning, the life of claims and nodes, emptiness, pools.
//!
//! This crate will never know how a placement is chosen (the planner does) nor which cloud it works on (the provider
//! does). A reconciler reads like a list: gather, decide, write, report. What it decides it decides in pure functions;
//! what it writes goes through [`write`], one thin function per effect.
//!
//! Everything runs on one task, the [`hub`]: folding of watch events, the work queue, and all reconcilers as futures
//! of that task. Only the solve leaves it. Time and the solver's executor are handed in, so that a simulation can hold
//! both in its hands.

mod buffers;
pub mod census;
pub mod clock;
mod collection;
pub mod context;
mod deletion_cost;
mod disruption;
pub mod events;
pub mod hub;
mod lifecycle;
mod measured;
mod merge;
pub mod metrics;
mod overlays;
pub mod planted;
mod pools;
pub mod process;
mod protection;
mod provisioning;
mod queue;
mod reign;
pub mod run;
pub mod solver;
mod static_capacity;
mod termination;
pub mod watches;
mod work;
mod write;

pub use context::{Context, ContextParts};
