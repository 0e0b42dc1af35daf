//! Runs fault seeds and says what they covered; `cargo xtask sim` calls it.
#![allow(clippy::print_stdout, reason = "a command line tool speaks on standard output")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use world::FaultPlan;
use world::seeds::{Report, RunSettings, Tally, render, run, shrink};

/// Runs stories with faults in virtual time and checks that every rule holds.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask sim", bin_name = "cargo xtask sim")]
struct Arguments {
    /// Runs seeds for this many minutes of real time
    #[arg(long, conflicts_with_all = ["seeds", "seed"])]
    minutes: Option<u64>,
    /// Runs this many seeds
    #[arg(long, conflicts_with = "seed")]
    seeds: Option<u64>,
    /// Runs one seed
    #[arg(long)]
    seed: Option<u64>,
    /// The first seed
    #[arg(long, default_value_t = 0, conflicts_with = "seed")]
    first: u64,
    /// Another fault plan than the drawn one, as a failing run prints it
    #[arg(long, requires = "seed")]
    plan: Option<FaultPlan>,
    /// Prints the writes to objects with this in their name
    #[arg(long, requires = "seed")]
    trace: Option<String>,
    /// Prints the hash of every run's whole API history
    #[arg(long)]
    hashes: bool,
}

/// Without a wish.
const SEEDS: u64 = 200;

fn main() -> ExitCode {
    match run_all(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every rule held.
fn run_all(arguments: &Arguments) -> Result<bool> {
    let settings =
        RunSettings { plan: arguments.plan.clone(), trace: arguments.trace.clone(), ..RunSettings::default() };
    if let Some(seed) = arguments.seed {
        let report = run(seed, &settings)?;
        println!("seed {seed}: {} calls, {} virtual minutes", report.calls, report.elapsed.as_secs() / 60);
        println!("plan: {}", report.plan);
        println!("hash: {:016x}", report.hash);
        report.trace.iter().for_each(|line| println!("{line}"));
        report.violations.iter().for_each(|violation| println!("broken: {violation}"));
        return Ok(report.violations.is_empty());
    }
    let started = Instant::now();
    let limit = arguments.minutes.map(|minutes| Duration::from_secs(minutes * 60));
    let count = if limit.is_some() { u64::MAX } else { arguments.seeds.unwrap_or(SEEDS) };
    let mut tally = Tally::default();
    for seed in (arguments.first..).take(usize::try_from(count).unwrap_or(usize::MAX)) {
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            break;
        }
        let report = run(seed, &settings)?;
        if arguments.hashes {
            println!("seed {seed} {:016x}", report.hash);
        }
        if !report.violations.is_empty() {
            explain(&report, &settings)?;
            return Ok(false);
        }
        tally.add(&report);
        if tally.seeds.is_multiple_of(50) {
            eprintln!("{} seeds, {:.0} s", tally.seeds, started.elapsed().as_secs_f64());
        }
    }
    summary(&tally, arguments.first, started.elapsed());
    Ok(true)
}

fn summary(tally: &Tally, first: u64, elapsed: Duration) {
    let hours = tally.elapsed.as_secs() / 3600;
    let last = (first + tally.seeds).saturating_sub(1);
    println!(
        "seeds {first} to {last}: {hours} virtual hours, {} API calls, {:.0} s",
        tally.calls,
        elapsed.as_secs_f64()
    );
    print!("{}", render(tally));
    let empty = tally.empty_cells();
    println!("empty cells: {}", if empty.is_empty() { "none".to_owned() } else { empty.join(", ") });
}

/// Says what broke, and the shortest way to see it again.
fn explain(report: &Report, settings: &RunSettings) -> Result<()> {
    let Report { seed, plan, violations, .. } = report;
    println!("seed {seed} broke {} rules under the plan\n  {plan}", violations.len());
    violations.iter().take(5).for_each(|violation| println!("  {violation}"));
    println!("again: cargo xtask sim --seed {seed}");
    println!("making the plan smaller ...");
    let smaller = shrink(report, settings)?;
    println!("  {}", smaller.plan);
    smaller.violations.iter().take(5).for_each(|violation| println!("  {violation}"));
    println!("again: cargo xtask sim --seed {seed} --plan '{}'", smaller.plan);
    Ok(())
}
