//! The controller with the provider that only pretends: what end-to-end tests run, and people who want to try.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::ExitCode;
use std::sync::Arc;

use cloud::InstanceTypes;
use controllers::clock::{Clock, SystemClock};
use controllers::metrics::Build;
use controllers::process::{
    Calls, Flag, LogSettings, Options, OptionsError, Outputs, Program, connect, json_layer, threads,
};
use controllers::run::{self, Wiring};
use futures::FutureExt;
use karpenter_kwok::{KwokProvider, instance_types, instance_types_file, resume_launches};
use tracing_subscriber::layer::SubscriberExt;

const TYPES_FILE: &str = "instance-types-file-path";

const PROGRAM: Program = Program {
    name: "karpenter-kwok",
    version: env!("CARGO_PKG_VERSION"),
    about: "Karpenter with nodes that only pretend to exist",
    provider_flags: &[Flag {
        name: TYPES_FILE,
        environment: "INSTANCE_TYPES_FILE_PATH",
        default: "",
        heading: "KWOK provider",
        help: "JSON file with the instance types to sell instead of the built-in ones",
    }],
};

/// The revision that a release build is told.
const COMMIT: &str = match option_env!("KARPENTER_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

fn main() -> ExitCode {
    let environment = |name: &str| std::env::var(name).ok();
    let options = match Options::from_args(&PROGRAM, std::env::args().skip(1), &environment) {
        Ok(options) => options,
        Err(error) => return refuse(&error),
    };
    let ended = start_logging(&options).map_err(Box::from).and_then(|()| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads(options.cpu_requests_millicores))
            .enable_all()
            .build()?;
        let ended = runtime.block_on(controller(options));
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", PROGRAM.name);
            ExitCode::FAILURE
        }
    }
}

/// Help and version go to standard output, everything else to standard error.
#[expect(clippy::print_stdout, reason = "help is what was asked for")]
fn refuse(error: &OptionsError) -> ExitCode {
    if error.exit_code() == 0 {
        println!("{error}");
    } else {
        eprintln!("{}: {error}", PROGRAM.name);
        error.hint().iter().for_each(|hint| eprintln!("hint: {hint}"));
    }
    ExitCode::from(error.exit_code())
}

fn start_logging(options: &Options) -> std::io::Result<()> {
    let settings = LogSettings {
        level: options.log_level,
        commit: COMMIT.chars().take(7).collect(),
        own_crates: &["controllers", "karpenter_kwok", "cloud", "planner", "state", "api"],
    };
    let outputs = Outputs::open(&options.log_output_paths, &options.log_error_output_paths)?;
    let layer = json_layer(settings, outputs, || SystemClock.now());
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::set_global_default(subscriber).map_err(std::io::Error::other)
}

async fn controller(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    for gate in &options.unknown_feature_gates {
        tracing::info!(gate, "ignoring a feature gate that does not exist");
    }
    for setting in options.without_effect(&PROGRAM) {
        tracing::info!(setting, "this setting has no effect in this version");
    }
    let types = read_types(options.provider_setting(TYPES_FILE).unwrap_or_default())?;
    let calls = Calls::new(&options);
    let client = calls.client(connect(options.kubeconfig.as_deref()).await?);
    let provider = Arc::new(KwokProvider::new(client.clone(), types));
    let resuming = resume_launches(client.clone(), Arc::clone(&provider), || SystemClock.now()).boxed();
    let build = Build {
        version: PROGRAM.version.to_owned(),
        goversion: "rust".to_owned(),
        goarch: std::env::consts::ARCH.to_owned(),
        commit: COMMIT.to_owned(),
    };
    let host_name = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    run::run(Wiring {
        options,
        client,
        calls,
        provider,
        build,
        host_name: host_name.map_or_else(|| PROGRAM.name.to_owned(), |name| name.trim().to_owned()),
        process_id: random_word(),
        on_leading: resuming,
    })
    .await?;
    Ok(())
}

fn read_types(path: &str) -> Result<InstanceTypes, Box<dyn std::error::Error>> {
    if path.is_empty() {
        return Ok(instance_types::built_in().into());
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("read instance types from `{path}`: {error}"))?;
    let types = instance_types_file::parse(&text).map_err(|error| format!("instance types in `{path}`: {error}"))?;
    Ok(types.into())
}

/// Sixteen letters that no other process draws: the standard library seeds its hashers from the system's randomness.
fn random_word() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KWOK-09: what is in the file is sold instead of the built-in types; one that cannot be read is told by its name.
    #[test]
    fn a_file_stands_in_for_the_built_in_types() {
        let path = std::env::temp_dir().join(format!("karpenter-kwok-types-{}.json", std::process::id()));
        let path = path.to_str().unwrap();
        let read = || {
            let names = |types: InstanceTypes| types.iter().map(|kind| kind.name.to_string()).collect::<Vec<_>>();
            read_types(path).map(names).map_err(|error| error.to_string())
        };
        assert!(read().unwrap_err().starts_with(&format!("read instance types from `{path}`: ")));
        let offering = serde_json::json!({"Price": 1, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
        ]});
        let entry = serde_json::json!({"name": "m5.large", "architecture": "amd64", "operatingSystems": ["linux"],
            "resources": {"cpu": "2", "memory": "8Gi"}, "offerings": [offering]});
        for (text, expected) in [
            (serde_json::json!([entry]).to_string(), Ok(vec!["m5.large".to_owned()])),
            ("[]".to_owned(), Ok(Vec::new())),
        ] {
            std::fs::write(path, text).unwrap();
            assert_eq!(read(), expected);
        }
        std::fs::write(path, "[7]").unwrap();
        assert!(read().unwrap_err().starts_with(&format!("instance types in `{path}`: ")));
        std::fs::remove_file(path).unwrap();
        assert_eq!(read_types("").unwrap().len(), 144);
    }
}
