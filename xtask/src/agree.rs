//! `cargo xtask agree`: plans of made-up clusters against the real kube-scheduler, for as many seeds as one likes.

use std::path::Path;

use anyhow::Result;

use crate::cargo::{cargo, succeed};

/// Plans made-up clusters, makes the planned nodes on a real control plane, and lets the real kube-scheduler judge.
#[derive(Debug, clap::Args)]
pub(crate) struct AgreeArgs {
    /// How many clusters to try.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first seed; a seed is the same cluster on every machine.
    #[arg(long, default_value_t = 1)]
    first: u64,
}

/// Runs the test of the test command with other numbers.
pub(crate) fn run(root: &Path, args: &AgreeArgs) -> Result<()> {
    let mut command = cargo(root)?;
    command
        .args(["test", "--quiet", "--package", "e2e", "--test", "agreement", "--", "--nocapture"])
        .env("KARPENTER_AGREEMENT_SEED", args.first.to_string())
        .env("KARPENTER_AGREEMENT_COUNT", args.seeds.to_string());
    succeed(&mut command)
}
