//! An embedded AWS without wire: fleets, capacity pools, instances from pending to forgotten, interruptions, the bill.
//!
//! This crate will never know our planner, `ec2`, the SDK or Kubernetes. It is a state machine: every call takes the
//! time as an argument and answers at once, nothing happens between calls, and one seed gives one history. Whoever
//! runs it asks [`Aws::next_change`] when to look again and collects what happened with [`Aws::advance`].
//!
//! ```text
//! create_fleet ─► pending ─► running ─► shutting-down ─► terminated ─► forgotten
//!      │                        │            ▲
//!  FleetError (capacity)        └ interrupt ─┘ 120 s later
//! ```
//!
//! What it is not told about, it refuses: an unknown filter, type or zone is an error, never ignored.

mod allocate;
mod aws;
mod bill;
mod calls;
mod error;
mod fault;
mod filter;
mod fleet;
mod instance;
mod life;
mod log;
mod network;
mod pool;
mod request;
mod settings;
mod time;

pub use aws::Aws;
pub use bill::{Bill, BillLine};
pub use error::{AwsError, FleetError, FleetErrorCode};
pub use fault::{CallFault, CallFaultKind, FaultPlan, LaunchFault, LaunchFaultKind, PoolFault, Window};
pub use filter::Filter;
pub use instance::{AwsEvent, EventKind, Instance, InstanceId, InstanceState, StateReason};
pub use log::{Action, Call, CallRecord, Outcome};
pub use network::Subnet;
pub use pool::{CapacityPlan, CapacityRule, CapacityType, PoolKey, PoolPattern};
pub use request::{
    AllocationStrategy, DescribeRequest, FleetAnswer, FleetRequest, LaunchedInstance, Override, StateChange,
};
pub use settings::{AwsSettings, Delays, Quotas, RateLimit, Span};
