//! `cargo xtask sim`: fault seeds, for as long as one likes.

use std::path::Path;

use anyhow::Result;

use crate::cargo::{cargo, succeed};

/// Runs stories with faults in virtual time and checks that every rule holds.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct SimArgs {
    /// --minutes M, --seeds N or --seed S; --help lists them all.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the runner and hands the arguments on: the simulation is no part of this tool.
pub(crate) fn run(root: &Path, args: &SimArgs) -> Result<()> {
    let mut command = cargo(root)?;
    command.args(["run", "--quiet", "--package", "world", "--bin", "fault-seeds", "--"]);
    succeed(command.args(&args.arguments))
}
