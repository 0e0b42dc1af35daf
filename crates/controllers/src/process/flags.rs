//! The table of flags, and how arguments and environment become texts by flag.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

use super::options::OptionsError;

/// One setting: a flag, the environment variable that may stand for it, and its value when neither is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag's name without dashes.
    pub name: &'static str,
    /// The environment variable read when the flag is absent.
    pub environment: &'static str,
    /// The value when neither is given, as one would write it.
    pub default: &'static str,
    /// The heading under which `--help` lists the flag.
    pub heading: &'static str,
    /// One line on what the setting does.
    pub help: &'static str,
}

/// The program whose arguments are read: what `--help` and `--version` say, and the flags it adds to the common ones.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The program's name as one types it.
    pub name: &'static str,
    /// The version printed by `--version`.
    pub version: &'static str,
    /// One line on what the program does.
    pub about: &'static str,
    /// The flags of the cloud provider that is compiled in.
    pub provider_flags: &'static [Flag],
}

const ENDPOINTS: &str = "Endpoints";
const CLIENT: &str = "Kubernetes client";
const LEADERSHIP: &str = "Leadership and resources";
const LOGGING: &str = "Logging";
const SCHEDULING: &str = "Scheduling";
const FEATURES: &str = "Features";

/// Declares each flag as a constant and collects them all in [`COMMON_FLAGS`], so that none can be left out.
macro_rules! common_flags {
    ($($constant:ident: $name:literal, $environment:literal, $default:literal, $heading:ident, $help:literal;)*) => {
        $(pub(super) const $constant: Flag = Flag {
            name: $name,
            environment: $environment,
            default: $default,
            heading: $heading,
            help: $help,
        };)*

        /// The flags that every provider's program has, in the order of `--help`.
        pub(super) const COMMON_FLAGS: &[Flag] = &[$($constant),*];
    };
}

common_flags! {
    METRICS_PORT: "metrics-port", "METRICS_PORT", "8080", ENDPOINTS, "Port that serves /metrics";
    HEALTH_PROBE_PORT: "health-probe-port", "HEALTH_PROBE_PORT", "8081", ENDPOINTS,
        "Port that serves /healthz and /readyz";
    ENABLE_PROFILING: "enable-profiling", "ENABLE_PROFILING", "false", ENDPOINTS,
        "Serve profiles on the metrics port";
    KARPENTER_SERVICE: "karpenter-service", "KARPENTER_SERVICE", "", ENDPOINTS,
        "Name of the service in front of the controller";
    KUBE_CLIENT_QPS: "kube-client-qps", "KUBE_CLIENT_QPS", "200", CLIENT,
        "Requests per second to the API server, smoothed";
    KUBE_CLIENT_BURST: "kube-client-burst", "KUBE_CLIENT_BURST", "300", CLIENT,
        "Requests that may be sent at once";
    OBSERVE: "observe", "OBSERVE", "false", LEADERSHIP,
        "Read, plan, log and export metrics, but write nothing: no Lease, no event, no object";
    DISABLE_LEADER_ELECTION: "disable-leader-election", "DISABLE_LEADER_ELECTION", "false", LEADERSHIP,
        "Act without holding the Lease; only safe with a single replica";
    LEADER_ELECTION_NAME: "leader-election-name", "LEADER_ELECTION_NAME", "karpenter-leader-election", LEADERSHIP,
        "Name of the Lease";
    LEADER_ELECTION_NAMESPACE: "leader-election-namespace", "LEADER_ELECTION_NAMESPACE", "", LEADERSHIP,
        "Namespace of the Lease; empty means the controller's own, SYSTEM_NAMESPACE";
    DISABLE_CONTROLLER_WARMUP: "disable-controller-warmup", "DISABLE_CONTROLLER_WARMUP", "true", LEADERSHIP,
        "Fill caches only once the Lease is held";
    DISABLE_CLUSTER_STATE_OBSERVABILITY: "disable-cluster-state-observability",
        "DISABLE_CLUSTER_STATE_OBSERVABILITY", "false", LEADERSHIP,
        "Leave out the metrics that describe cluster state";
    MEMORY_LIMIT: "memory-limit", "MEMORY_LIMIT", "-1", LEADERSHIP,
        "Memory limit of the container in bytes; not positive means none";
    CPU_REQUESTS: "cpu-requests", "CPU_REQUESTS", "1000", LEADERSHIP,
        "CPU requests of the container in thousandths of a core; scales the number of workers";
    LOG_LEVEL: "log-level", "LOG_LEVEL", "info", LOGGING, "Least level that is logged: debug, info or error";
    LOG_OUTPUT_PATHS: "log-output-paths", "LOG_OUTPUT_PATHS", "stdout", LOGGING,
        "Comma-separated places the log goes to: stdout, stderr or files";
    LOG_ERROR_OUTPUT_PATHS: "log-error-output-paths", "LOG_ERROR_OUTPUT_PATHS", "stderr", LOGGING,
        "Comma-separated places for failures of logging itself";
    BATCH_MAX_DURATION: "batch-max-duration", "BATCH_MAX_DURATION", "10s", SCHEDULING,
        "Longest time for which pending pods are gathered before they are placed";
    BATCH_IDLE_DURATION: "batch-idle-duration", "BATCH_IDLE_DURATION", "1s", SCHEDULING,
        "A batch ends when no pending pod arrived for this long";
    PREFERENCE_POLICY: "preference-policy", "PREFERENCE_POLICY", "Respect", SCHEDULING,
        "What preferred affinities and spreads mean: Respect or Ignore";
    MIN_VALUES_POLICY: "min-values-policy", "MIN_VALUES_POLICY", "Strict", SCHEDULING,
        "What minValues of a NodePool means: Strict or BestEffort";
    IGNORE_DRA_REQUESTS: "ignore-dra-requests", "IGNORE_DRA_REQUESTS", "true", SCHEDULING,
        "Leave pods with dynamic resource claims alone";
    SCHEDULER_CONFIG: "scheduler-config", "SCHEDULER_CONFIG", "", SCHEDULING,
        "Defaults of the cluster's scheduler, as YAML or JSON";
    FEATURE_GATES: "feature-gates", "FEATURE_GATES",
        "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false,NodeOverlay=false,StaticCapacity=false,\
         CapacityBuffer=false,TerminateFirstDrift=false,TerminateFirstRepair=false,PodDeletionCostManagement=false",
        FEATURES, "Comma-separated Name=true or Name=false; what is not named keeps its default";
    LEGACY_NODE_REPAIR: "legacy-node-repair", "LEGACY_NODE_REPAIR", "false", FEATURES,
        "Repair nodes by the older, forceful controller";
}

/// Flags that stand alone too, and mean `true` then.
const BARE: &[&str] = &[OBSERVE.name];

/// Reads the arguments (without the program's own name) into texts by flag name; the last of a repeated flag counts.
///
/// `--help` and `--version` come back as [`OptionsError::Information`].
pub(super) fn texts_by_flag(
    program: &Program,
    arguments: Vec<String>,
) -> Result<BTreeMap<String, String>, OptionsError> {
    let command = command(program);
    let normalised = with_values_attached(program, arguments)?;
    let matches = command.try_get_matches_from(normalised).map_err(|error| explained(&error))?;
    Ok(all_flags(program)
        .filter_map(|flag| matches.get_one::<String>(flag.name).map(|text| (flag.name.to_owned(), text.clone())))
        .collect())
}

fn all_flags(program: &Program) -> impl Iterator<Item = &'static Flag> {
    COMMON_FLAGS.iter().chain(program.provider_flags)
}

fn command(program: &Program) -> Command {
    let mut command = Command::new(program.name)
        .version(program.version)
        .about(program.about)
        .after_help("A flag wins over its environment variable, which wins over the default.")
        .no_binary_name(true)
        .args_override_self(true);
    for flag in all_flags(program) {
        let default = if flag.default.is_empty() { "\"\"" } else { flag.default };
        command = command.arg(
            Arg::new(flag.name)
                .long(flag.name)
                .value_name("VALUE")
                .action(ArgAction::Set)
                .help_heading(flag.heading)
                .help(format!("{} [env: {}] [default: {default}]", flag.help, flag.environment)),
        );
    }
    command
}

/// Rewrites `-name value`, `-name=value` and `--name value` to `--name=value`.
///
/// Manifests written for the reference use one dash or two, and a value may itself begin with a dash
/// (`--memory-limit -1`). The argument after a known flag is therefore always its value.
fn with_values_attached(program: &Program, arguments: Vec<String>) -> Result<Vec<OsString>, OptionsError> {
    let mut attached = Vec::with_capacity(arguments.len());
    let mut remaining = arguments.into_iter().peekable();
    while let Some(argument) = remaining.next() {
        let Some(name) = long_name(&argument) else {
            attached.push(argument.into());
            continue;
        };
        let has_value = remaining.peek().is_some_and(|next| matches!(next.as_str(), "true" | "false"));
        if BARE.contains(&name) && !has_value {
            attached.push(format!("--{name}=true").into());
        } else if all_flags(program).any(|flag| flag.name == name) {
            let value = remaining.next().ok_or_else(|| OptionsError::MissingValue { flag: name.to_owned() })?;
            attached.push(format!("--{name}={value}").into());
        } else {
            attached.push(format!("--{name}").into());
        }
    }
    Ok(attached)
}

/// What follows the dashes; nothing for plain words and for the one-letter flags `-h` and `-V`.
fn long_name(argument: &str) -> Option<&str> {
    let after_dash = argument.strip_prefix('-')?;
    match after_dash.strip_prefix('-') {
        Some("") => None,
        Some(name) => Some(name),
        None if after_dash.chars().count() > 1 => Some(after_dash),
        None => None,
    }
}

fn explained(error: &clap::Error) -> OptionsError {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let argument = context(ContextKind::InvalidArg).unwrap_or_default();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            OptionsError::Information { text: error.render().to_string() }
        }
        ErrorKind::UnknownArgument => {
            OptionsError::UnknownArgument { argument, similar: context(ContextKind::SuggestedArg) }
        }
        _ => OptionsError::Unreadable { argument, problem: error.kind().as_str().unwrap_or("is unusable").to_owned() },
    }
}
