//! What end-to-end tests stand on: a real control plane with our custom resources and roles, the controller as a
//! process of its own under exactly the role it ships with, and waiting that watches instead of sleeping.
//!
//! Tests see the cluster only from outside: through the API server, kubectl, the controller's endpoints and its log.
//! This crate will never know a type of the planner, the state or the controllers.

mod bed;
mod controller;
mod manifests;
pub mod proxy;
pub mod seen;
mod waiting;

pub use bed::{Bed, client};
pub use controller::{Controller, ControllerSettings, controller_program};
pub use manifests::{FOREIGN_NODE, inflate, kwok_node_class, node_pool};
pub use waiting::{BOUND, Seen, wait_for, wait_until};
