//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The seed of a run that names none.
const SEED: u64 = 7;

/// How often a scenario is planned if nobody says so.
const RUNS: u16 = 5;

/// Everything that can be asked for.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(
    name = "kubectl-karpenter",
    version,
    about = "Shows what Karpenter does, and why",
    after_help = "In a clone of the repository, `cargo demo` is short for `kubectl-karpenter demo`."
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be done.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Command {
    /// Plays a story on an embedded cluster, in virtual time, and shows what happens.
    ///
    /// Everything runs in this process: a Kubernetes API with scheduler, kubelets and workload controllers, a cloud, and
    /// the controllers themselves. Nothing outside is touched. The exit code is 0 if no pod is left pending (and, for
    /// the built-in story, no node is left), 2 if the story cannot be read, and 1 otherwise.
    Demo(DemoArguments),

    /// Plans the scenarios in files and tells what it took: time, memory, price, and how far that is from the cheapest.
    ///
    /// The files are those of the comparison with the Go scheduler (format: bench/README.md). Times run from the pods
    /// and nodes to the plan; reading the file does not count. The exit code is 0 if every plan obeys every rule, 1 if
    /// one does not, and 2 if a file cannot be read.
    Bench(BenchArguments),
}

/// How to play a story.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct DemoArguments {
    /// Plays the story in this YAML file instead of the built-in one (format: docs/scenarios.md).
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,

    /// Decides everything that is left to chance; the same seed gives the same story, byte for byte.
    #[arg(long, value_name = "N", default_value_t = SEED)]
    pub seed: u64,

    /// Prints one JSON object per line; the last one is the summary.
    #[arg(long)]
    pub json: bool,

    /// After the story goes on in real time and serves the API to kubectl, until Ctrl-C.
    #[arg(long)]
    pub serve: bool,

    /// With --serve: how many times faster than real time the cluster lives.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "serve", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub speed: u32,

    /// With --serve: the port on the loopback interface; by default one that is free.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true, requires = "serve")]
    pub port: u16,

    /// With --serve: the kubeconfig to write.
    #[arg(long, value_name = "FILE", default_value = "karpenter-demo.kubeconfig", requires = "serve")]
    pub kubeconfig: PathBuf,
}

/// How to measure the planner.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct BenchArguments {
    /// Scenario files.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// How often each scenario is planned; the median counts.
    #[arg(long, value_name = "N", default_value_t = RUNS, value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: u16,

    /// Prints one JSON object for each file.
    #[arg(long)]
    pub json: bool,

    /// Leaves out the check of every rule for every pod, which takes long where pods are many.
    #[arg(long)]
    pub no_audit: bool,

    /// With --json: leaves out the list of claims and that of used nodes.
    #[arg(long)]
    pub no_detail: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_bench_needs_a_file_and_a_run() {
        for (line, is_fine) in [
            ("bench a.json", true),
            ("bench a.json b.json --runs 3 --json --no-audit --no-detail", true),
            ("bench", false),
            ("bench a.json --runs 0", false),
        ] {
            let words = ["kubectl-karpenter"].into_iter().chain(line.split_whitespace());
            assert_eq!(Arguments::try_parse_from(words).is_ok(), is_fine, "{line}");
        }
    }

    #[test]
    fn options_of_serving_need_serve() {
        for (line, is_fine) in [
            ("demo", true),
            ("demo --seed 12 --json", true),
            ("demo --serve --speed 10 --port 8001", true),
            ("demo --speed 10", false),
            ("demo --serve --speed 0", false),
            ("demo --seed soon", false),
            ("demo --sed 1", false),
            ("", false),
        ] {
            let words = ["kubectl-karpenter"].into_iter().chain(line.split_whitespace());
            assert_eq!(Arguments::try_parse_from(words).is_ok(), is_fine, "{line}");
        }
    }
}
