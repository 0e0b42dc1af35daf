//! Puts load on the controllers in virtual time and measures what they need; `cargo xtask load --sim` calls it.
#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use world::load::{Instruments, LoadSettings, page, run, window_heading, window_line};

/// A large and busy cluster in virtual time: what the controllers need for it in real time and memory.
///
/// Prints a line for every few virtual minutes, then the whole report in Markdown, and fails if a demand is missed.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask load --sim", bin_name = "cargo xtask load --sim")]
struct Arguments {
    /// Nodes at the beginning
    #[arg(long, default_value_t = 5_000)]
    nodes: usize,
    /// Pods at the beginning
    #[arg(long, default_value_t = 150_000)]
    pods: usize,
    /// Changes of pods a second of virtual time
    #[arg(long, default_value_t = 1_000)]
    changes: u64,
    /// Virtual minutes of changes
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Virtual minutes of one line
    #[arg(long, default_value_t = 5)]
    window: u64,
    /// Pods that wait at the last start; 0 leaves it out
    #[arg(long, default_value_t = 15_000)]
    pending: usize,
    /// Where chance comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every demand was met.
fn measure(arguments: &Arguments) -> Result<bool> {
    let Arguments { nodes, pods, changes, minutes, window, pending, seed } = *arguments;
    let settings = LoadSettings { seed, nodes, pods, changes, minutes, window_minutes: window, pending };
    let instruments = Instruments { elapsed, processor, resident_bytes, heap };
    let began = Instant::now();
    let mut is_first = true;
    let report = run(&settings, instruments, &mut |window| {
        if std::mem::take(&mut is_first) {
            println!("{}", window_heading());
        }
        println!("{}", window_line(window));
    })?;
    println!("\n{}", page(&report));
    println!("The whole run took {:.0} s.", began.elapsed().as_secs_f64());
    Ok(report.missed().is_empty())
}

fn elapsed() -> Duration {
    static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGINNING.elapsed()
}

/// Time of all processors that the system counted for this process; zero where it does not tell.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may contain anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * MILLISECONDS_PER_TICK)
}

/// A hundred ticks a second, on every Linux there is.
const MILLISECONDS_PER_TICK: u64 = 10;

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kibibytes = line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}

/// Naming this crate anywhere gives the whole program its allocator, so that it is named in no library.
fn heap(work: &mut dyn FnMut()) -> i64 {
    allocation_counter::measure(work).bytes_current
}
