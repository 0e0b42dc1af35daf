//! What belongs to the process rather than to the cluster: its configuration, its log, its leadership, its probes and
//! metrics endpoint, and its orderly end.
//!
//! Everything that decides here is a pure function of what it is handed (arguments, environment, clock, observed
//! Lease); the sockets, signals and API calls around it are thin.

mod calls;
mod client;
mod contradictions;
mod cpu_profile;
mod durations;
mod flags;
mod leader;
mod logging;
mod memory;
mod options;
mod process_metrics;
mod profiles;
mod serve;
mod shutdown;
mod workers;

pub use calls::Calls;
pub(crate) use calls::OBSERVED;
pub use client::{ConnectError, connect};
pub use contradictions::Contradiction;
pub use durations::parse_duration;
pub use flags::{Flag, Program};
pub use leader::{LeaderConfig, LeaderElector, LeaderError, LeaseRecord, LeaseStep, Lost, decide};
pub use logging::{LogSettings, Outputs, Record, json_layer, render};
pub(crate) use memory::SoftLimit;
pub use options::{FeatureGates, LogLevel, MinValuesPolicy, Mode, Options, OptionsError, PreferencePolicy};
pub(crate) use process_metrics::PROCESS_ROWS;
pub use process_metrics::ProcessMetrics;
pub use profiles::profile_router;
pub use serve::{
    NotReady, Readiness, ServeError, Server, bind, bind_all_interfaces, metrics_router, missing_resources, probe_router,
};
pub use shutdown::{ShutdownSignal, shutdown_signal};
pub(crate) use workers::scaled;
pub use workers::threads;
