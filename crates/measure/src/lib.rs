//! Measures the planner on scenario files, and reports in the same words as the program that measures the Go scheduler.
//!
//! This crate will never know a cluster or a client: a scenario is all there is. Nor does it choose an allocator: the
//! program that wants its heap counted hands in what counts.

mod lower;
mod report;
mod run;
mod scenario;
mod table;

pub use lower::Cluster;
pub use report::{
    Claim, Launch, Line, Memory, Range, Report, Sizes, Spread, Statistics, Timing, Told, max_resident_bytes,
};
pub use run::{HeapMeter, Measured, Way, measure, uncounted};
pub use scenario::{
    HostPort, InstanceType, Node, NodePool, Offering, Options, Pod, Requirement, Scenario, ScenarioError,
};
pub use table::Table;
