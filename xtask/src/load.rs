//! `cargo xtask load`: the controller and the Go program under load on the real control plane, in turns; with `--sim`, our
//! controllers in virtual time in a cluster that no machine could hold otherwise.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::cargo::{cargo, succeed, target_folder};
use crate::go_programs::build_go;

/// The Go program with the KWOK provider, by the name of its package.
const PEER_PACKAGE: &str = "sigs.k8s.io/karpenter/kwok";
const DEFINITIONS: &str = "charts/karpenter-kwok/crds";

/// Measures the controller and the Go program under load on the real control plane (needs go).
///
/// Prints a table in Markdown with the ratios. Everything is seen from outside: through the API server, its audit log,
/// the process table and the metrics endpoint. With `--sim` first, a large cluster in virtual time instead.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct LoadArgs {
    /// --many PODS..., --choosy PODS..., --alone PODS..., --runs N, --controller NAME=PROGRAM for one more; or --sim, then
    /// --nodes N, --pods N, --changes PER_SECOND, --minutes M, --pending PODS; --help (or --sim --help) lists them all.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds both programs as users build them, and hands the arguments on to the program that measures.
pub(crate) fn run(root: &Path, args: &LoadArgs) -> Result<()> {
    if let Some((first, rest)) = args.arguments.split_first()
        && first == "--sim"
    {
        return simulate(root, rest);
    }
    let peer = build_go(root, PEER_PACKAGE, "karpenter-kwok-peer")?;
    succeed(release(root)?.args(["build", "--release", "--package", "karpenter-kwok"]))?;
    let ours = target_folder(root)?.join("release/karpenter-kwok");
    let mut command = release(root)?;
    command.args(["run", "--quiet", "--release", "--package", "load", "--"]);
    command.arg("--definitions").arg(root.join(DEFINITIONS));
    command.arg("--controller").arg(format!("ours={}", ours.display()));
    command.arg("--controller").arg(format!("peer={}", peer.display()));
    succeed(command.args(&args.arguments))
}

/// Cargo for programs as users build theirs; what measures beside them is to take little of their processors.
fn release(root: &Path) -> Result<Command> {
    let mut command = cargo(root)?;
    command.env_remove("RUSTC_WORKSPACE_WRAPPER");
    Ok(command)
}

/// Builds the program that measures in virtual time, and hands the arguments on.
fn simulate(root: &Path, arguments: &[String]) -> Result<()> {
    let mut command = release(root)?;
    command.args(["run", "--quiet", "--release", "--package", "world", "--bin", "simulated-load", "--"]);
    succeed(command.args(arguments))
}
