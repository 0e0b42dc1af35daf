//! Joins them: our controllers, unmodified, on an embedded Kubernetes with an embedded cloud, in virtual time, from one
//! seed.
//!
//! This crate will never know a real client nor real time. One seed is one run, byte for byte, in any process of the
//! same build: one thread, a paused clock, and every latency, fault and choice drawn from the seed.
//!
//! - [`World`] holds the embedded parts; [`World::start_controller`] starts controllers in it.
//! - [`Scenario`] is a story as data, [`Player`] plays it.
//! - [`FaultPlan`] says what goes wrong; [`Wire`](wire::Wire) and [`MeddledProvider`](cloud::MeddledProvider) carry it
//!   out.
//! - [`check`] reads the API's history and the cloud's machines, and says which rules were broken.
//! - [`seeds`] draws a story and a plan from a seed and runs them.
//! - [`load`] makes a cluster large and busy, and measures what the controllers need for it.

mod blows;
pub mod chance;
pub mod check;
pub mod clock;
pub mod cloud;
mod controller;
pub mod effect;
pub mod fault;
pub mod load;
mod play;
pub mod process;
mod scenario;
pub mod seeds;
pub mod wire;
mod world;

pub use blows::Blows;
pub use controller::{Around, Controller, ControllerSettings};
pub use fault::{Call, CallFault, FaultPlan, Meddler};
pub use play::Player;
pub use scenario::{Action, AnyTarget, Scale, Scenario, ScenarioError, Step, Target};
pub use world::{CloudKind, PlanLog, RecordedPlan, World, WorldSettings, accounts, run_in_virtual_time, sleep_until};
