//! `kubectl-karpenter`, also run as `kubectl karpenter` once it is on the path.

use std::process::ExitCode;

use clap::Parser;
use kubectl_karpenter::arguments::{Arguments, Command};
use kubectl_karpenter::demo;

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let ended = match &command {
        Command::Demo(arguments) => demo::run(arguments),
    };
    match ended {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code)
        }
    }
}
