//! Load on a real control plane, and what it does to any controller that provides nodes there.
//!
//! Everything is seen from outside: through the API server, its audit log, the process table and the controller's own
//! metrics endpoint. This program knows no type of ours, and runs the Go program and ours alike.

#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

mod audit;
mod bed;
mod floor;
mod manifests;
mod observer;
mod processes;
mod table;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use bed::{Bed, Contender, Figures};
use manifests::Story;
use table::Measured;

/// Measures controllers under load on a control plane of their own, one after the other.
///
/// Pods wait before the controller starts. Each story is told on a fresh control plane for each controller in turn, and
/// once more without any: the nodes of the first controller are all there at once then, and what is left is the time of
/// the API server, the kube-scheduler and KWOK (`floor`). The table shows medians, and ratios to the last controller.
#[derive(Debug, Parser)]
struct Arguments {
    /// A controller, as NAME=PROGRAM. It gets KUBECONFIG, METRICS_PORT and HEALTH_PROBE_PORT from the environment.
    #[arg(long = "controller", value_name = "NAME=PROGRAM", required = true)]
    controllers: Vec<Contender>,
    /// So many pods of 30 Deployments, with 20 NodePools.
    #[arg(long, value_name = "PODS", num_args = 0.., default_values_t = [1000, 3000])]
    many: Vec<u32>,
    /// The same, but half of the Deployments say something about where their pods run.
    #[arg(long, value_name = "PODS", num_args = 0.., default_values_t = [1000])]
    choosy: Vec<u32>,
    /// So many pods that each want a node for themselves.
    #[arg(long, value_name = "PODS", num_args = 0.., default_values_t = [300])]
    alone: Vec<u32>,
    /// How often each story is told to each controller.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// The folder with the custom resource definitions, one YAML file each.
    #[arg(long, value_name = "DIR")]
    definitions: PathBuf,
}

/// The name of the telling without a controller.
const FLOOR: &str = "floor";

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let stories: Vec<Story> = arguments
        .many
        .iter()
        .map(|pods| Story::Many { pods: *pods })
        .chain(arguments.choosy.iter().map(|pods| Story::Choosy { pods: *pods }))
        .chain(arguments.alone.iter().map(|pods| Story::Alone { pods: *pods }))
        .collect();
    ensure!(!stories.is_empty(), "there is nothing to do without --many, --choosy and --alone");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start a runtime")?;
    let mut measured: Vec<Measured> = Vec::new();
    for story in &stories {
        for run in 1..=arguments.runs {
            let told = |name: &str, figures: Figures| {
                eprintln!("{}", table::line(&figures));
                Measured { story: *story, contender: name.to_owned(), figures }
            };
            let mut nodes = None;
            for contender in &arguments.controllers {
                eprintln!("{story}: {} ({run} of {})", contender.name, arguments.runs);
                let (figures, made) = runtime.block_on(Bed::tell(contender, *story, &arguments.definitions))?;
                measured.push(told(&contender.name, figures));
                nodes.get_or_insert(made);
            }
            eprintln!("{story}: {FLOOR} ({run} of {})", arguments.runs);
            let nodes = nodes.unwrap_or_default();
            let figures = runtime.block_on(Bed::tell_floor(&nodes, *story, &arguments.definitions))?;
            measured.push(told(FLOOR, figures));
        }
    }
    let controllers = arguments.controllers.iter().map(|contender| contender.name.as_str());
    let names: Vec<&str> = [FLOOR].into_iter().chain(controllers).collect();
    print!("{}", table::page(&stories, &names, &measured));
    Ok(())
}
