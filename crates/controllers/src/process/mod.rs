//! What belongs to the process rather than to the cluster: its configuration, its log, its leadership, its probes and
//! metrics endpoint, and its orderly end.
//!
//! Everything that decides here is a pure function of what it is handed (arguments, environment, clock, observed
//! Lease); the sockets, signals and API calls around it are thin.

mod client;
mod durations;
mod flags;
mod leader;
mod logging;
mod options;
mod process_metrics;
mod serve;
mod shutdown;

pub use client::{ConnectError, connect};
pub use durations::parse_duration;
pub use flags::{Flag, Program};
pub use leader::{LeaderConfig, LeaderElector, LeaderError, LeaseRecord, LeaseStep, Lost, decide};
pub use logging::{LogSettings, Outputs, Record, json_layer, render};
pub use options::{FeatureGates, LogLevel, MinValuesPolicy, Options, OptionsError, PreferencePolicy};
pub(crate) use process_metrics::PROCESS_ROWS;
pub use process_metrics::ProcessMetrics;
pub use serve::{
    NotReady, Readiness, ServeError, Server, bind, bind_all_interfaces, metrics_router, missing_resources, probe_router,
};
pub use shutdown::{ShutdownSignal, shutdown_signal};
