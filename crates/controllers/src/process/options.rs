//! The configuration of the process: read once from arguments and environment, handed on as plain values.

use std::collections::BTreeMap;
use std::time::Duration;

use api::scheduler_config::{DefaultSpread, SchedulerConfigError};
pub use planner::{MinValuesPolicy, PreferencePolicy};

use super::contradictions::{self, Contradiction};
use super::durations::parse_duration;
use super::flags::{self, Flag, Program};

/// The environment variable that names the namespace the controller runs in.
const SYSTEM_NAMESPACE: &str = "SYSTEM_NAMESPACE";
/// The namespace assumed when [`SYSTEM_NAMESPACE`] is not set.
const SYSTEM_NAMESPACE_DEFAULT: &str = "kube-system";
/// The environment variable that names the client configuration.
const KUBECONFIG: &str = "KUBECONFIG";
/// What worker scaling assumes when the CPU requests are unknown.
const CPU_REQUESTS_MILLICORES_DEFAULT: u32 = 1000;

/// Everything the process can be told, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The port of `/metrics`; 0 picks a free one.
    pub metrics_port: u16,
    /// The port of `/healthz` and `/readyz`; 0 picks a free one.
    pub health_probe_port: u16,
    /// Whether profiles are served on the metrics port.
    pub enable_profiling: bool,
    /// The service in front of the controller, if any.
    pub karpenter_service: String,
    /// Requests per second to the API server; not positive means no limit.
    pub kube_client_qps: i32,
    /// Requests to the API server that may be sent at once.
    pub kube_client_burst: i32,
    /// Whether the process acts or only observes.
    pub mode: Mode,
    /// Whether the process acts without holding the Lease.
    pub disable_leader_election: bool,
    /// The name of the Lease.
    pub leader_election_name: String,
    /// The namespace of the Lease, already resolved to the system namespace when none was given.
    pub leader_election_namespace: String,
    /// Whether caches wait for the Lease before they fill.
    pub disable_controller_warmup: bool,
    /// Whether the metrics that describe cluster state are left out.
    pub disable_cluster_state_observability: bool,
    /// The memory limit of the container, if it has one.
    pub memory_limit_bytes: Option<u64>,
    /// The CPU requests of the container, never zero.
    pub cpu_requests_millicores: u32,
    /// The least level that is logged.
    pub log_level: LogLevel,
    /// Where the log goes.
    pub log_output_paths: Vec<String>,
    /// Where failures of logging itself go.
    pub log_error_output_paths: Vec<String>,
    /// The longest time for which pending pods are gathered.
    pub batch_max_duration: Duration,
    /// The silence that ends a batch.
    pub batch_idle_duration: Duration,
    /// What preferred affinities and spreads mean.
    pub preference_policy: PreferencePolicy,
    /// What `minValues` means when it cannot be met.
    pub min_values_policy: MinValuesPolicy,
    /// Whether pods with dynamic resource claims are left alone.
    pub ignore_dra_requests: bool,
    /// What the cluster's scheduler is configured with.
    pub scheduler_config: DefaultSpread,
    /// Which optional features are on.
    pub feature_gates: FeatureGates,
    /// Names in the feature gates that mean nothing here; worth a line in the log.
    pub unknown_feature_gates: Vec<String>,
    /// Whether nodes are repaired by the older, forceful controller.
    pub legacy_node_repair: bool,
    /// The namespace the controller runs in.
    pub system_namespace: String,
    /// The path of the client configuration; nothing means the one inside the cluster.
    pub kubeconfig: Option<String>,
    provider_settings: BTreeMap<&'static str, String>,
}

impl Options {
    /// Reads the arguments (without the program's own name) and the environment.
    ///
    /// A flag wins over its environment variable, which wins over the default. A malformed flag is an error; a
    /// malformed number, duration or yes/no in the environment counts as absent. Level, policies and feature gates are
    /// checked wherever they come from. The process environment is not touched: `environment` answers for it.
    pub fn from_args<I>(
        program: &Program,
        arguments: I,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, OptionsError>
    where
        I: IntoIterator<Item = String>,
    {
        let flags = flags::texts_by_flag(program, arguments.into_iter().collect())?;
        let options = Settings { flags, environment }.read(program)?;
        match contradictions::find(&options) {
            found if found.is_empty() => Ok(options),
            found => Err(OptionsError::Contradictory { found }),
        }
    }

    /// The settings that were changed although nothing reads them yet. Whoever set one should hear about it.
    pub fn without_effect(&self, program: &Program) -> Vec<&'static str> {
        let Ok(default) = Self::from_args(program, [], &|_| None) else { return Vec::new() };
        let FeatureGates {
            reserved_capacity,
            node_overlay,
            static_capacity,
            capacity_buffer,
            pod_deletion_cost_management,
            ..
        } = default.feature_gates;
        let gates = FeatureGates {
            reserved_capacity,
            node_overlay,
            static_capacity,
            capacity_buffer,
            pod_deletion_cost_management,
            ..self.feature_gates
        };
        let settings = [
            ("feature-gates", gates == default.feature_gates),
            ("ignore-dra-requests", self.ignore_dra_requests == default.ignore_dra_requests),
            ("legacy-node-repair", self.legacy_node_repair == default.legacy_node_repair),
        ];
        settings.into_iter().filter(|(_, is_default)| !is_default).map(|(name, _)| name).collect()
    }

    /// The value of a provider's flag; nothing when the program has no such flag.
    pub fn provider_setting(&self, name: &str) -> Option<&str> {
        self.provider_settings.get(name).map(String::as_str)
    }
}

/// What the process may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything.
    Act,
    /// Read and plan, and write nothing.
    Observe,
}

/// The least level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything, with the place in the code.
    Debug,
    /// What happens.
    Info,
    /// What failed.
    Error,
}

/// Which optional features are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// Unhealthy nodes are repaired.
    pub node_repair: bool,
    /// Reserved capacity is used before other capacity.
    pub reserved_capacity: bool,
    /// A spot node may be replaced by a cheaper spot node.
    pub spot_to_spot_consolidation: bool,
    /// NodeOverlay objects adjust instance types.
    pub node_overlay: bool,
    /// NodePools may ask for a fixed number of nodes.
    pub static_capacity: bool,
    /// CapacityBuffer objects ask for headroom.
    pub capacity_buffer: bool,
    /// A drifted node may go before its replacement is ready.
    pub terminate_first_drift: bool,
    /// An unhealthy node may go before its replacement is ready.
    pub terminate_first_repair: bool,
    /// Pods are annotated with their cost of deletion.
    pub pod_deletion_cost_management: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            node_repair: false,
            reserved_capacity: true,
            spot_to_spot_consolidation: false,
            node_overlay: false,
            static_capacity: false,
            capacity_buffer: false,
            terminate_first_drift: false,
            terminate_first_repair: false,
            pod_deletion_cost_management: false,
        }
    }
}

impl FeatureGates {
    fn by_name(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "NodeRepair" => &mut self.node_repair,
            "ReservedCapacity" => &mut self.reserved_capacity,
            "SpotToSpotConsolidation" => &mut self.spot_to_spot_consolidation,
            "NodeOverlay" => &mut self.node_overlay,
            "StaticCapacity" => &mut self.static_capacity,
            "CapacityBuffer" => &mut self.capacity_buffer,
            "TerminateFirstDrift" => &mut self.terminate_first_drift,
            "TerminateFirstRepair" => &mut self.terminate_first_repair,
            "PodDeletionCostManagement" => &mut self.pod_deletion_cost_management,
            _ => return None,
        })
    }
}

/// Why the process does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Not a failure: help or version was asked for.
    #[error("{text}")]
    Information {
        /// What to print.
        text: String,
    },
    /// There is no such flag.
    #[error("unknown argument `{argument}`")]
    UnknownArgument {
        /// What was given.
        argument: String,
        /// The nearest flag there is.
        similar: Option<String>,
    },
    /// A flag stands last, without its value.
    #[error("flag `--{flag}` needs a value")]
    MissingValue {
        /// The flag's name.
        flag: String,
    },
    /// The argument cannot be read.
    #[error("cannot read argument `{argument}`: {problem}")]
    Unreadable {
        /// What was given.
        argument: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The value does not fit the setting.
    #[error("`{value}` is not a value for `{setting}`: want {wanted}")]
    InvalidValue {
        /// The flag or environment variable.
        setting: String,
        /// What was found.
        value: String,
        /// What would have been right.
        wanted: &'static str,
    },
    /// Settings make no sense together.
    #[error("{}", found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Contradictory {
        /// All that was found.
        found: Vec<Contradiction>,
    },
    /// The scheduler's configuration cannot be used.
    #[error("`{setting}`: {error}")]
    SchedulerConfig {
        /// The flag or environment variable.
        setting: String,
        /// What is wrong with it.
        error: SchedulerConfigError,
    },
}

impl OptionsError {
    /// What to do about it, where that is more than the message says.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Information { .. }
            | Self::MissingValue { .. }
            | Self::InvalidValue { .. }
            | Self::Contradictory { .. }
            | Self::SchedulerConfig { .. } => None,
            Self::UnknownArgument { similar: Some(similar), .. } => Some(format!("did you mean `{similar}`?")),
            Self::UnknownArgument { similar: None, .. } | Self::Unreadable { .. } => {
                Some("run with `--help` to see every flag".to_owned())
            }
        }
    }

    /// The exit status of a process that stops with this: 0 when it only informed, else 2.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Information { .. } => 0,
            Self::UnknownArgument { .. }
            | Self::MissingValue { .. }
            | Self::Unreadable { .. }
            | Self::InvalidValue { .. }
            | Self::Contradictory { .. }
            | Self::SchedulerConfig { .. } => 2,
        }
    }
}

/// The texts that were given, before they are typed.
struct Settings<'a> {
    flags: BTreeMap<String, String>,
    environment: &'a dyn Fn(&str) -> Option<String>,
}

impl Settings<'_> {
    fn read(&self, program: &Program) -> Result<Options, OptionsError> {
        let variable = |name| (self.environment)(name).filter(|text| !text.is_empty());
        let system_namespace = variable(SYSTEM_NAMESPACE).unwrap_or_else(|| SYSTEM_NAMESPACE_DEFAULT.to_owned());
        let lease_namespace = self.text(&flags::LEADER_ELECTION_NAMESPACE).value;
        let (feature_gates, unknown_feature_gates) = self.checked(&flags::FEATURE_GATES, feature_gates, GATES)?;
        Ok(Options {
            metrics_port: self.lenient(&flags::METRICS_PORT, number, PORT)?,
            health_probe_port: self.lenient(&flags::HEALTH_PROBE_PORT, number, PORT)?,
            enable_profiling: self.switch(&flags::ENABLE_PROFILING)?,
            karpenter_service: self.text(&flags::KARPENTER_SERVICE).value,
            kube_client_qps: self.lenient(&flags::KUBE_CLIENT_QPS, number, NUMBER)?,
            kube_client_burst: self.lenient(&flags::KUBE_CLIENT_BURST, number, NUMBER)?,
            mode: if self.switch(&flags::OBSERVE)? { Mode::Observe } else { Mode::Act },
            disable_leader_election: self.switch(&flags::DISABLE_LEADER_ELECTION)?,
            leader_election_name: self.checked(&flags::LEADER_ELECTION_NAME, not_empty, NAME)?,
            leader_election_namespace: if lease_namespace.is_empty() {
                system_namespace.clone()
            } else {
                lease_namespace
            },
            disable_controller_warmup: self.switch(&flags::DISABLE_CONTROLLER_WARMUP)?,
            disable_cluster_state_observability: self.switch(&flags::DISABLE_CLUSTER_STATE_OBSERVABILITY)?,
            memory_limit_bytes: self.lenient(&flags::MEMORY_LIMIT, memory_limit, NUMBER)?,
            cpu_requests_millicores: self.lenient(&flags::CPU_REQUESTS, cpu_requests, NUMBER)?,
            log_level: self.checked(&flags::LOG_LEVEL, log_level, "debug, info or error")?,
            log_output_paths: self.checked(&flags::LOG_OUTPUT_PATHS, paths, PATHS)?,
            log_error_output_paths: self.checked(&flags::LOG_ERROR_OUTPUT_PATHS, paths, PATHS)?,
            batch_max_duration: self.lenient(&flags::BATCH_MAX_DURATION, parse_duration, DURATION)?,
            batch_idle_duration: self.lenient(&flags::BATCH_IDLE_DURATION, parse_duration, DURATION)?,
            preference_policy: self.checked(&flags::PREFERENCE_POLICY, preference_policy, "Respect or Ignore")?,
            min_values_policy: self.checked(&flags::MIN_VALUES_POLICY, min_values_policy, "Strict or BestEffort")?,
            ignore_dra_requests: self.switch(&flags::IGNORE_DRA_REQUESTS)?,
            scheduler_config: self.scheduler_config()?,
            feature_gates,
            unknown_feature_gates,
            legacy_node_repair: self.switch(&flags::LEGACY_NODE_REPAIR)?,
            system_namespace,
            kubeconfig: variable(KUBECONFIG),
            provider_settings: program.provider_flags.iter().map(|flag| (flag.name, self.text(flag).value)).collect(),
        })
    }

    fn scheduler_config(&self) -> Result<DefaultSpread, OptionsError> {
        let Text { setting, value } = self.text(&flags::SCHEDULER_CONFIG);
        DefaultSpread::parse(&value).map_err(|error| OptionsError::SchedulerConfig { setting, error })
    }

    /// The text that counts for a flag, with the name of the place it came from.
    fn text(&self, flag: &Flag) -> Text {
        if let Some(value) = self.flags.get(flag.name) {
            Text { setting: format!("--{}", flag.name), value: value.clone() }
        } else if let Some(value) = (self.environment)(flag.environment) {
            Text { setting: flag.environment.to_owned(), value }
        } else {
            Text { setting: format!("--{}", flag.name), value: flag.default.to_owned() }
        }
    }

    /// A setting that must be right wherever it comes from.
    fn checked<T>(
        &self,
        flag: &Flag,
        parse: impl Fn(&str) -> Option<T>,
        wanted: &'static str,
    ) -> Result<T, OptionsError> {
        let Text { setting, value } = self.text(flag);
        parse(&value).ok_or(OptionsError::InvalidValue { setting, value, wanted })
    }

    /// A setting whose environment variable counts as absent when it is malformed.
    fn lenient<T>(
        &self,
        flag: &Flag,
        parse: impl Fn(&str) -> Option<T>,
        wanted: &'static str,
    ) -> Result<T, OptionsError> {
        let from_environment = || (self.environment)(flag.environment).and_then(|text| parse(&text));
        let setting = || format!("--{}", flag.name);
        match self.flags.get(flag.name) {
            Some(value) => {
                parse(value).ok_or(OptionsError::InvalidValue { setting: setting(), value: value.clone(), wanted })
            }
            None => from_environment().or_else(|| parse(flag.default)).ok_or_else(|| OptionsError::InvalidValue {
                setting: setting(),
                value: flag.default.to_owned(),
                wanted,
            }),
        }
    }

    /// A yes/no: a flag says exactly `true` or `false`, a variable may also use the shorter forms.
    fn switch(&self, flag: &Flag) -> Result<bool, OptionsError> {
        match self.flags.get(flag.name).map(String::as_str) {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(value) => Err(OptionsError::InvalidValue {
                setting: format!("--{}", flag.name),
                value: value.to_owned(),
                wanted: SWITCH,
            }),
            None => self.lenient(flag, truth, SWITCH),
        }
    }
}

/// A text and the flag or variable it came from.
struct Text {
    setting: String,
    value: String,
}

const PORT: &str = "a port from 0 to 65535";
const NUMBER: &str = "a whole number";
const DURATION: &str = "a duration such as 10s or 1m30s";
const SWITCH: &str = "true or false";
const NAME: &str = "a name";
const PATHS: &str = "a comma-separated list of stdout, stderr or files";
const GATES: &str = "comma-separated Name=true or Name=false";

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn not_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn memory_limit(text: &str) -> Option<Option<u64>> {
    let bytes: i64 = text.parse().ok()?;
    Some(u64::try_from(bytes).ok().filter(|bytes| *bytes > 0))
}

fn cpu_requests(text: &str) -> Option<u32> {
    let millicores: i64 = text.parse().ok()?;
    if millicores <= 0 { Some(CPU_REQUESTS_MILLICORES_DEFAULT) } else { u32::try_from(millicores).ok() }
}

/// The spellings of yes and no that manifests for the reference may use.
fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn paths(text: &str) -> Option<Vec<String>> {
    let paths: Vec<String> =
        text.split(',').map(str::trim).filter(|path| !path.is_empty()).map(ToOwned::to_owned).collect();
    (!paths.is_empty()).then_some(paths)
}

fn log_level(text: &str) -> Option<LogLevel> {
    match text {
        "debug" => Some(LogLevel::Debug),
        "" | "info" => Some(LogLevel::Info),
        "error" => Some(LogLevel::Error),
        _ => None,
    }
}

fn preference_policy(text: &str) -> Option<PreferencePolicy> {
    match text {
        "Respect" => Some(PreferencePolicy::Respect),
        "Ignore" => Some(PreferencePolicy::Ignore),
        _ => None,
    }
}

fn min_values_policy(text: &str) -> Option<MinValuesPolicy> {
    match text {
        "Strict" => Some(MinValuesPolicy::Strict),
        "BestEffort" => Some(MinValuesPolicy::BestEffort),
        _ => None,
    }
}

/// The defaults with the listed gates changed, and the names that are not known.
fn feature_gates(text: &str) -> Option<(FeatureGates, Vec<String>)> {
    let mut gates = FeatureGates::default();
    let mut unknown = Vec::new();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let value = truth(value.trim())?;
        match gates.by_name(name.trim()) {
            Some(gate) => *gate = value,
            None => unknown.push(name.trim().to_owned()),
        }
    }
    Some((gates, unknown))
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
