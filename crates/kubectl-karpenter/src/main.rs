//! `kubectl-karpenter`, also run as `kubectl karpenter` once it is on the path.

use std::process::ExitCode;

use clap::Parser;
use kubectl_karpenter::arguments::{Arguments, Command};
use kubectl_karpenter::{bench, demo};
use measure::Memory;

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let ended = match &command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Bench(arguments) => bench::run(arguments, counted),
    };
    match ended {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code)
        }
    }
}

/// Does some work and counts what it takes of the heap. Naming this crate anywhere gives the whole program its allocator,
/// so that it is named in no library.
fn counted(work: &mut dyn FnMut()) -> Memory {
    let counted = allocation_counter::measure(work);
    Memory {
        allocated_bytes: counted.bytes_total,
        allocations: counted.count_total,
        base_bytes: 0,
        peak_bytes: counted.bytes_max,
    }
}
