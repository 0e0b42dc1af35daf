//! The person's tool: `kubectl karpenter demo` plays a story on an embedded cluster and shows what happens, and
//! `kubectl karpenter bench` measures the planner on scenario files.
//!
//! This crate will never know how to change a cluster behind the controller's back: it reads what everybody can see
//! (changes of objects) and what the planner wrote down, and tells it.
//!
//! ```text
//! changes of objects ─┐
//!                     ├─► story (fold) ─► lines ─► text | JSON
//! recorded plans ─────┘              └──► summary
//! ```

pub mod arguments;
pub mod bench;
pub mod demo;
pub mod failure;
pub mod json;
pub mod paint;
pub mod progress;
pub mod serve;
pub mod story;
pub mod summary;
pub mod text;
