//! The commands of this repository, run as `cargo xtask <command>`.
#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

mod agree;
mod bench;
mod bless;
mod cargo;
mod catalogue;
mod cluster;
mod compatibility;
mod deny;
mod go_programs;
mod house;
mod load;
mod openapi;
mod picture;
mod protobuf;
mod rows;
mod sim;
mod test;
mod test_programs;
mod tiers;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "The commands of this repository")]
struct Arguments {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Debug, Subcommand)]
enum XtaskCommand {
    /// Runs everything that must hold before a change is merged; this is what CI runs.
    Test(test::TestArgs),
    /// Rewrites expected outputs and generated files to what the code now produces; review the difference.
    Bless,
    /// Builds the programs of the real control plane and prints where they are.
    ControlPlane,
    /// Runs a control plane with the KWOK controller until Ctrl-C, to play with.
    Cluster,
    /// Takes the schemas of built-in kinds from the real API server for the embedded one.
    Openapi,
    /// Takes the protobuf field numbers of built-in kinds from the published Go modules (needs go).
    Protobuf,
    /// Makes the table of EC2 facts anew from published packages (needs python3, pip and go).
    Catalogue,
    Sim(sim::SimArgs),
    Bench(bench::BenchArgs),
    Agree(agree::AgreeArgs),
    Load(load::LoadArgs),
    /// Runs the demo and draws what it prints as `docs/demo.svg`.
    Picture,
    Rows(rows::RowsArgs),
    Compatibility(compatibility::CompatibilityArgs),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &XtaskCommand) -> Result<()> {
    let root = repository_root()?;
    match command {
        XtaskCommand::Test(args) => test::run(&root, args),
        XtaskCommand::Bless => bless::run(&root),
        XtaskCommand::ControlPlane => tools::run(),
        XtaskCommand::Cluster => cluster::run(&root),
        XtaskCommand::Openapi => openapi::run(&root),
        XtaskCommand::Protobuf => protobuf::run(&root),
        XtaskCommand::Catalogue => catalogue::run(&root),
        XtaskCommand::Sim(args) => sim::run(&root, args),
        XtaskCommand::Bench(args) => bench::run(&root, args),
        XtaskCommand::Agree(args) => agree::run(&root, args),
        XtaskCommand::Load(args) => load::run(&root, args),
        XtaskCommand::Picture => picture::run(&root),
        XtaskCommand::Rows(args) => rows::run(&root, args),
        XtaskCommand::Compatibility(args) => compatibility::run(&root, args),
    }
}

/// The folder of the workspace. Cargo names this package's folder when it runs the program; a program started by hand
/// falls back to where it was compiled.
fn repository_root() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = PathBuf::from(package).join("..");
    root.canonicalize().with_context(|| format!("find the repository at `{}`", root.display()))
}
