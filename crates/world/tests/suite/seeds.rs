//! Two hundred seeds keep every rule.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use world::seeds::{RunSettings, Tally, render, run};

const SEEDS: u64 = 200;

#[test]
fn two_hundred_seeds_keep_every_rule() {
    let next = AtomicU64::new(0);
    let tally = Mutex::new(Tally::default());
    let broken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= SEEDS {
                        return;
                    }
                    let report = run(seed, &RunSettings::default()).unwrap();
                    tally.lock().unwrap_or_else(PoisonError::into_inner).add(&report);
                    let lines = report.violations.iter().map(|violation| format!("seed {seed}: {violation}"));
                    broken.lock().unwrap_or_else(PoisonError::into_inner).extend(lines);
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    println!("{}empty cells: {:?}", render(&tally), tally.empty_cells());
    assert!(tally.unknown_effects().is_empty(), "without a row in effect.rs: {:?}", tally.unknown_effects());
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "replay with `cargo xtask sim --seed N`:\n{}", broken.join("\n"));
}
