//! Tables of arguments and environments, and what they mean.

use std::time::Duration;

use super::super::flags::COMMON_FLAGS;
use super::{
    DefaultSpread, FeatureGates, Flag, LogLevel, MinValuesPolicy, Mode, Options, OptionsError, PreferencePolicy,
    Program,
};

const PROGRAM: Program = Program {
    name: "karpenter-test",
    version: "1.2.3",
    about: "Launches nodes for pods",
    provider_flags: &[Flag {
        name: "instance-types-file-path",
        environment: "INSTANCE_TYPES_FILE_PATH",
        default: "",
        heading: "Provider",
        help: "Instance types to offer",
    }],
};

/// Reads arguments (split at spaces) in an environment of `NAME=value` items.
fn read(arguments: &str, environment: &[&str]) -> Result<Options, OptionsError> {
    let lookup = |name: &str| {
        environment.iter().find_map(|item| {
            item.split_once('=').filter(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
        })
    };
    Options::from_args(&PROGRAM, arguments.split_whitespace().map(ToOwned::to_owned), &lookup)
}

fn invalid(arguments: &str, environment: &[&str]) -> String {
    match read(arguments, environment) {
        Err(error @ OptionsError::InvalidValue { .. }) => error.to_string(),
        other => panic!("`{arguments}` {environment:?}: {other:?}"),
    }
}

/// Flag, variable, default, another value, and the field that the other value gives.
const SETTINGS: [(&str, &str, &str, &str, &str); 25] = [
    ("metrics-port", "METRICS_PORT", "8080", "9000", "metrics_port: 9000,"),
    ("health-probe-port", "HEALTH_PROBE_PORT", "8081", "0", "health_probe_port: 0,"),
    ("enable-profiling", "ENABLE_PROFILING", "false", "true", "enable_profiling: true,"),
    ("karpenter-service", "KARPENTER_SERVICE", "", "front", "karpenter_service: \"front\","),
    ("kube-client-qps", "KUBE_CLIENT_QPS", "200", "50", "kube_client_qps: 50,"),
    ("kube-client-burst", "KUBE_CLIENT_BURST", "300", "60", "kube_client_burst: 60,"),
    ("observe", "OBSERVE", "false", "true", "mode: Observe,"),
    ("disable-leader-election", "DISABLE_LEADER_ELECTION", "false", "true", "disable_leader_election: true,"),
    (
        "leader-election-name",
        "LEADER_ELECTION_NAME",
        "karpenter-leader-election",
        "other",
        "leader_election_name: \"other\",",
    ),
    ("leader-election-namespace", "LEADER_ELECTION_NAMESPACE", "", "apart", "leader_election_namespace: \"apart\","),
    ("disable-controller-warmup", "DISABLE_CONTROLLER_WARMUP", "true", "false", "disable_controller_warmup: false,"),
    (
        "disable-cluster-state-observability",
        "DISABLE_CLUSTER_STATE_OBSERVABILITY",
        "false",
        "true",
        "disable_cluster_state_observability: true,",
    ),
    ("memory-limit", "MEMORY_LIMIT", "-1", "1024", "memory_limit_bytes: Some(1024),"),
    ("cpu-requests", "CPU_REQUESTS", "1000", "2500", "cpu_requests_millicores: 2500,"),
    ("log-level", "LOG_LEVEL", "info", "debug", "log_level: Debug,"),
    ("log-output-paths", "LOG_OUTPUT_PATHS", "stdout", "stderr,/l", "log_output_paths: [\"stderr\", \"/l\"],"),
    ("log-error-output-paths", "LOG_ERROR_OUTPUT_PATHS", "stderr", "/e", "log_error_output_paths: [\"/e\"],"),
    ("batch-max-duration", "BATCH_MAX_DURATION", "10s", "1m30s", "batch_max_duration: 90s,"),
    ("batch-idle-duration", "BATCH_IDLE_DURATION", "1s", "250ms", "batch_idle_duration: 250ms,"),
    ("preference-policy", "PREFERENCE_POLICY", "Respect", "Ignore", "preference_policy: Ignore,"),
    ("min-values-policy", "MIN_VALUES_POLICY", "Strict", "BestEffort", "min_values_policy: BestEffort,"),
    ("ignore-dra-requests", "IGNORE_DRA_REQUESTS", "true", "false", "ignore_dra_requests: false,"),
    (
        "scheduler-config",
        "SCHEDULER_CONFIG",
        "",
        r#"{"podTopologySpread":{"defaultConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}]}}"#,
        "scheduler_config: DefaultSpread { hard: [], soft: [SpreadConstraint { topology_key: \"zone\",",
    ),
    (
        "feature-gates",
        "FEATURE_GATES",
        "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false,NodeOverlay=false,StaticCapacity=false,\
         CapacityBuffer=false,TerminateFirstDrift=false,TerminateFirstRepair=false,PodDeletionCostManagement=false",
        "NodeOverlay=true",
        "node_overlay: true,",
    ),
    ("legacy-node-repair", "LEGACY_NODE_REPAIR", "false", "true", "legacy_node_repair: true,"),
];

/// CFG-01: every flag has its variable and default, and both reach the options.
#[test]
fn every_flag_has_its_variable_and_default() {
    let plain = read("", &[]).unwrap();
    assert_eq!(COMMON_FLAGS.len(), SETTINGS.len());
    for (name, environment, default, other, field) in SETTINGS {
        let flag = COMMON_FLAGS.iter().find(|flag| flag.name == name).unwrap_or_else(|| panic!("no flag {name}"));
        assert_eq!((flag.environment, flag.default), (environment, default), "{name}");
        assert_eq!(read(&format!("--{name}={default}"), &[]).unwrap(), plain, "{name} set to its default");
        let by_flag = read(&format!("--{name} {other}"), &[]).unwrap();
        let by_environment = read("", &[&format!("{environment}={other}")]).unwrap();
        assert_ne!(by_flag, plain, "{name}");
        assert_eq!(by_flag, by_environment, "{name}");
        let printed = format!("{by_flag:?}");
        assert!(printed.contains(field), "{name}: {printed}");
    }
}

/// CFG-01: the defaults, typed.
#[test]
fn defaults_are_those_of_the_reference() {
    let options = read("", &[]).unwrap();
    assert_eq!(
        options,
        Options {
            metrics_port: 8080,
            health_probe_port: 8081,
            enable_profiling: false,
            karpenter_service: String::new(),
            kube_client_qps: 200,
            kube_client_burst: 300,
            mode: Mode::Act,
            disable_leader_election: false,
            leader_election_name: "karpenter-leader-election".into(),
            leader_election_namespace: "kube-system".into(),
            disable_controller_warmup: true,
            disable_cluster_state_observability: false,
            memory_limit_bytes: None,
            cpu_requests_millicores: 1000,
            log_level: LogLevel::Info,
            log_output_paths: vec!["stdout".into()],
            log_error_output_paths: vec!["stderr".into()],
            batch_max_duration: Duration::from_secs(10),
            batch_idle_duration: Duration::from_secs(1),
            preference_policy: PreferencePolicy::Respect,
            min_values_policy: MinValuesPolicy::Strict,
            ignore_dra_requests: true,
            scheduler_config: DefaultSpread::default(),
            feature_gates: FeatureGates::default(),
            unknown_feature_gates: vec![],
            legacy_node_repair: false,
            system_namespace: "kube-system".into(),
            kubeconfig: None,
            provider_settings: [("instance-types-file-path", String::new())].into(),
        }
    );
}

/// CFG-01: a text in the environment counts as it is, be it empty: what has to be one of several words is then wrong.
#[test]
fn an_empty_variable_is_not_absent() {
    for (variable, wanted) in
        [("PREFERENCE_POLICY", "Respect or Ignore"), ("MIN_VALUES_POLICY", "Strict or BestEffort")]
    {
        let expected = format!("`` is not a value for `{variable}`: want {wanted}");
        assert_eq!(invalid("", &[&format!("{variable}=")]), expected);
    }
}

/// CFG-02: a flag beats the environment, and a malformed variable counts as absent.
#[test]
fn flag_beats_environment_and_malformed_environment_is_absent() {
    assert_eq!(read("--metrics-port 1", &["METRICS_PORT=2"]).unwrap().metrics_port, 1);
    assert_eq!(read("", &["METRICS_PORT=2"]).unwrap().metrics_port, 2);
    let plain = read("", &[]).unwrap();
    let malformed = [
        "METRICS_PORT=http",
        "METRICS_PORT=",
        "HEALTH_PROBE_PORT=65536",
        "ENABLE_PROFILING=yes",
        "KUBE_CLIENT_QPS=1.5",
        "KUBE_CLIENT_BURST=many",
        "MEMORY_LIMIT=1Gi",
        "CPU_REQUESTS=500m",
        "BATCH_MAX_DURATION=10",
        "BATCH_IDLE_DURATION=-1s",
        "IGNORE_DRA_REQUESTS=maybe",
        "LEGACY_NODE_REPAIR=on",
    ];
    for item in malformed {
        assert_eq!(read("", &[item]).unwrap(), plain, "{item}");
    }
    assert!(read("", &["ENABLE_PROFILING=1"]).unwrap().enable_profiling);
}

/// CFG-02: no yes or no in the environment is so malformed that the process does not start.
#[test]
fn malformed_switches_in_the_environment_are_absent() {
    let plain = read("", &[]).unwrap();
    let switches = COMMON_FLAGS.iter().filter(|flag| matches!(flag.default, "true" | "false"));
    let variables: Vec<&str> = switches.map(|flag| flag.environment).collect();
    assert_eq!(variables.len(), 7, "{variables:?}");
    for variable in variables {
        for value in ["yes", ""] {
            let item = format!("{variable}={value}");
            assert_eq!(read("", &[&item]).as_ref(), Ok(&plain), "{item}");
        }
    }
}

/// CFG-02: a malformed flag aborts, even beside a good variable.
#[test]
fn malformed_flags_abort() {
    let cases = [
        ("--metrics-port http", "`http` is not a value for `--metrics-port`: want a port from 0 to 65535"),
        ("--health-probe-port=65536", "`65536` is not a value for `--health-probe-port`: want a port from 0 to 65535"),
        ("--enable-profiling=1", "`1` is not a value for `--enable-profiling`: want true or false"),
        ("--enable-profiling True", "`True` is not a value for `--enable-profiling`: want true or false"),
        ("--enable-profiling --log-level", "`--log-level` is not a value for `--enable-profiling`: want true or false"),
        ("--kube-client-qps x", "`x` is not a value for `--kube-client-qps`: want a whole number"),
        (
            "--batch-max-duration 10",
            "`10` is not a value for `--batch-max-duration`: want a duration such as 10s or 1m30s",
        ),
    ];
    for (arguments, message) in cases {
        assert_eq!(invalid(arguments, &["METRICS_PORT=1", "ENABLE_PROFILING=true"]), message);
    }
}

/// CFG-03: a wrong level or policy aborts wherever it comes from.
#[test]
fn wrong_level_and_policies_abort() {
    let cases = [
        ("log-level", "LOG_LEVEL", "verbose", "debug, info or error"),
        ("preference-policy", "PREFERENCE_POLICY", "respect", "Respect or Ignore"),
        ("min-values-policy", "MIN_VALUES_POLICY", "Lenient", "Strict or BestEffort"),
    ];
    for (flag, variable, value, wanted) in cases {
        assert_eq!(
            invalid(&format!("--{flag} {value}"), &[]),
            format!("`{value}` is not a value for `--{flag}`: want {wanted}")
        );
        assert_eq!(
            invalid("", &[&format!("{variable}={value}")]),
            format!("`{value}` is not a value for `{variable}`: want {wanted}")
        );
    }
    assert_eq!(read("--log-level=", &[]).unwrap().log_level, LogLevel::Info);
    assert_eq!(read("--log-level=error", &["LOG_LEVEL=verbose"]).unwrap().log_level, LogLevel::Error);
}

/// CFG-04: gates that are not listed keep their defaults, and unknown ones change nothing.
#[test]
fn feature_gates_override_in_part() {
    let defaults = FeatureGates::default();
    let cases = [
        ("", defaults),
        ("NodeRepair=true", FeatureGates { node_repair: true, ..defaults }),
        ("ReservedCapacity=false", FeatureGates { reserved_capacity: false, ..defaults }),
        (
            "SpotToSpotConsolidation=true,StaticCapacity=1,",
            FeatureGates { spot_to_spot_consolidation: true, static_capacity: true, ..defaults },
        ),
        ("CapacityBuffer=true,Levitation=true", FeatureGates { capacity_buffer: true, ..defaults }),
        ("NodeOverlay=true,NodeOverlay=false", defaults),
    ];
    for (text, gates) in cases {
        assert_eq!(read(&format!("--feature-gates={text}"), &[]).unwrap().feature_gates, gates, "{text}");
        assert_eq!(read("", &[&format!("FEATURE_GATES={text}")]).unwrap().feature_gates, gates, "{text}");
    }
    let spaced = read("", &["FEATURE_GATES= NodeRepair=true, CapacityBuffer = true , Levitation=true"]).unwrap();
    assert_eq!(spaced.feature_gates, FeatureGates { node_repair: true, capacity_buffer: true, ..defaults });
    assert_eq!(spaced.unknown_feature_gates, ["Levitation"]);
    assert_eq!(read("--feature-gates=Levitation=true", &[]).unwrap().unknown_feature_gates, ["Levitation"]);
    assert_eq!(
        invalid("", &["FEATURE_GATES=NodeRepair"]),
        "`NodeRepair` is not a value for `FEATURE_GATES`: want comma-separated Name=true or Name=false"
    );
    invalid("--feature-gates NodeRepair=perhaps", &[]);
}

/// CFG-09: the flag and the three gates that came with 1.15.
#[test]
fn newer_flag_and_gates_are_off_by_default() {
    let options = read("", &[]).unwrap();
    let FeatureGates { terminate_first_drift, terminate_first_repair, pod_deletion_cost_management, .. } =
        options.feature_gates;
    assert_eq!(
        [options.legacy_node_repair, terminate_first_drift, terminate_first_repair, pod_deletion_cost_management],
        [false; 4]
    );
    assert!(read("--legacy-node-repair true", &[]).unwrap().legacy_node_repair);
    assert!(read("", &["LEGACY_NODE_REPAIR=true"]).unwrap().legacy_node_repair);
    let gates = |text: &str| read(&format!("--feature-gates={text}"), &[]).unwrap().feature_gates;
    let defaults = FeatureGates::default();
    assert_eq!(gates("TerminateFirstDrift=true"), FeatureGates { terminate_first_drift: true, ..defaults });
    assert_eq!(gates("TerminateFirstRepair=true"), FeatureGates { terminate_first_repair: true, ..defaults });
    assert_eq!(
        gates("PodDeletionCostManagement=true"),
        FeatureGates { pod_deletion_cost_management: true, ..defaults }
    );
}

#[test]
fn one_dash_is_as_good_as_two() {
    for arguments in ["-metrics-port 9", "-metrics-port=9", "--metrics-port 9", "--metrics-port 8 -metrics-port 9"] {
        assert_eq!(read(arguments, &[]).unwrap().metrics_port, 9, "{arguments}");
    }
    assert_eq!(read("--memory-limit -1", &[]).unwrap().memory_limit_bytes, None);
    assert_eq!(read("-cpu-requests -5", &[]).unwrap().cpu_requests_millicores, 1000);
}

#[test]
fn unknown_arguments_are_errors_with_a_hint() {
    let cases = [
        ("--metrics-prt 9", "unknown argument `--metrics-prt`", Some("did you mean `--metrics-port`?")),
        ("-log-levle=debug", "unknown argument `--log-levle`", Some("did you mean `--log-level`?")),
        ("--zzz", "unknown argument `--zzz`", Some("run with `--help` to see every flag")),
        ("stray", "unknown argument `stray`", Some("run with `--help` to see every flag")),
        ("--metrics-port", "flag `--metrics-port` needs a value", None),
    ];
    for (arguments, message, hint) in cases {
        let error = read(arguments, &[]).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, hint), "{arguments}");
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn namespace_and_client_configuration_come_from_the_environment() {
    let options = read("", &["SYSTEM_NAMESPACE=karpenter", "KUBECONFIG=/k"]).unwrap();
    assert_eq!(
        (options.system_namespace.as_str(), options.leader_election_namespace.as_str()),
        ("karpenter", "karpenter")
    );
    assert_eq!(options.kubeconfig.as_deref(), Some("/k"));
    let apart = read("--leader-election-namespace apart", &["SYSTEM_NAMESPACE=karpenter"]).unwrap();
    assert_eq!((apart.system_namespace.as_str(), apart.leader_election_namespace.as_str()), ("karpenter", "apart"));
    assert_eq!(read("", &["SYSTEM_NAMESPACE=", "KUBECONFIG="]).unwrap(), read("", &[]).unwrap());
}

/// CFG-01: a provider's own flags are read like the common ones.
#[test]
fn provider_flags_are_read() {
    let path = |arguments, environment: &[&str]| {
        read(arguments, environment).unwrap().provider_setting("instance-types-file-path").map(ToOwned::to_owned)
    };
    assert_eq!(path("", &[]).as_deref(), Some(""));
    assert_eq!(path("", &["INSTANCE_TYPES_FILE_PATH=/a"]).as_deref(), Some("/a"));
    assert_eq!(path("--instance-types-file-path /b", &["INSTANCE_TYPES_FILE_PATH=/a"]).as_deref(), Some("/b"));
    assert_eq!(read("", &[]).unwrap().provider_setting("region"), None);
}

#[test]
fn help_lists_every_flag_with_its_variable_and_default() {
    for arguments in ["--help", "-help", "-h"] {
        let error = read(arguments, &[]).unwrap_err();
        assert_eq!(error.exit_code(), 0);
        let OptionsError::Information { text } = error else { panic!("{error:?}") };
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for flag in COMMON_FLAGS.iter().chain(PROGRAM.provider_flags) {
            let default = if flag.default.is_empty() { "\"\"" } else { flag.default };
            for part in [
                format!("--{} <VALUE>", flag.name),
                format!("{} [env: {}] [default: {default}]", flag.help, flag.environment),
                format!("{}:", flag.heading),
            ] {
                assert!(words.contains(&part), "{part} in {words}");
            }
        }
    }
}

/// CFG-05: wherever it comes from, a configuration that the scheduler would refuse ends the start.
#[test]
fn a_wrong_scheduler_config_is_refused() {
    let config = r#"{"podTopologySpread":{"defaultConstraints":[{"maxSkew":0}]}}"#;
    let expected =
        "validating scheduler config, podTopologySpread.defaultConstraints[0].maxSkew must be greater than 0";
    let by_flag = read(&format!("--scheduler-config {config}"), &[]).unwrap_err();
    assert_eq!(by_flag.to_string(), format!("`--scheduler-config`: {expected}"));
    let by_environment = read("", &[&format!("SCHEDULER_CONFIG={config}")]).unwrap_err();
    assert_eq!(by_environment.to_string(), format!("`SCHEDULER_CONFIG`: {expected}"));
    assert_eq!((by_flag.exit_code(), by_flag.hint()), (2, None));
    let unknown = read("--scheduler-config {podSpread:{}}", &[]).unwrap_err();
    assert!(unknown.to_string().contains("decoding scheduler config, "), "{unknown}");
}

#[test]
fn version_is_told() {
    let error = read("--version", &[]).unwrap_err();
    assert_eq!(error, OptionsError::Information { text: "karpenter-test 1.2.3\n".into() });
}

#[test]
fn settings_without_effect_are_named_when_they_were_changed() {
    let changed =
        |arguments: &str, environment: &[&str]| read(arguments, environment).unwrap().without_effect(&PROGRAM);
    assert_eq!(changed("", &[]), Vec::<&str>::new());
    assert_eq!(changed("--metrics-port=9000", &["IGNORE_DRA_REQUESTS=false"]), ["ignore-dra-requests"]);
    assert_eq!(
        changed(
            "--feature-gates=ReservedCapacity=false,NodeOverlay=true,CapacityBuffer=true,PodDeletionCostManagement=true",
            &["PREFERENCE_POLICY=Ignore"]
        ),
        Vec::<&str>::new()
    );
    assert_eq!(
        changed("--feature-gates=NodeRepair=true --enable-profiling=true --kube-client-qps=5", &[]),
        ["feature-gates"]
    );
}

/// A flag that stands alone is meant; whatever follows is the next argument.
#[test]
fn observe_may_stand_alone() {
    let table = [
        ("--observe", Mode::Observe),
        ("--observe --metrics-port 9", Mode::Observe),
        ("--observe true", Mode::Observe),
        ("--observe=true", Mode::Observe),
        ("--observe false", Mode::Act),
        ("", Mode::Act),
    ];
    for (arguments, mode) in table {
        assert_eq!(read(arguments, &[]).unwrap().mode, mode, "{arguments}");
    }
}

/// Contradictions end the start with one error that names them all, wherever the settings come from.
#[test]
fn contradictions_are_told_at_once() {
    let table = [
        ("--metrics-port 9 --health-probe-port 9", "`--metrics-port` and `--health-probe-port` are both 9"),
        ("--kube-client-burst 0", "`--kube-client-burst` must be at least 1 while `--kube-client-qps` limits requests"),
        ("--batch-idle-duration 11s", "`--batch-idle-duration` is longer than `--batch-max-duration`"),
        (
            "--feature-gates TerminateFirstRepair=true,NodeRepair=true --legacy-node-repair true",
            "the feature gate `TerminateFirstRepair` does not go with `--legacy-node-repair`",
        ),
        (
            "--observe --disable-controller-warmup false",
            "`--observe` writes nothing, so it cannot warm up for a Lease: leave `--disable-controller-warmup` on",
        ),
    ];
    for (arguments, message) in table {
        let error = read(arguments, &[]).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.exit_code()), (message, 2), "{arguments}");
    }
    let both = read("--kube-client-burst 0", &["BATCH_IDLE_DURATION=1m"]).unwrap_err();
    assert_eq!(both.to_string().split("; ").count(), 2, "{both}");
    for fine in ["--metrics-port 0 --health-probe-port 0", "--kube-client-qps 0 --kube-client-burst 0"] {
        read(fine, &[]).unwrap();
    }
}
