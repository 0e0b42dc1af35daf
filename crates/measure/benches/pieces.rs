//! Time and allocations of the planner's pieces: `cargo bench -p measure`.
//!
//! The planner has one door, so each bench is a snapshot in which one piece does nearly all of the work.
#![allow(clippy::unwrap_used, reason = "the scenarios are made here")]

mod made;

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher};
use measure::{Cluster, Scenario};
use model::Snapshot;
use planner::{PlaceConfig, place};

#[global_allocator]
static HEAP: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// Each iteration gets a snapshot of its own and has to come to the same plan.
fn check(bencher: Bencher<'_, '_>, scenario: &Scenario, steps_max: Option<u64>) {
    let cluster = Cluster::of(scenario).unwrap();
    let mut config = cluster.config;
    config.steps_max = steps_max.unwrap_or(PlaceConfig::default().steps_max);
    let snapshot = || cluster.snapshot(cluster.pending());
    let first = place(&snapshot(), &config);
    let items = ItemsCount::new(snapshot().pending.len());
    bencher.counter(items).with_inputs(snapshot).bench_refs(|snapshot: &mut Snapshot| {
        let plan = place(snapshot, &config);
        assert!(plan.price() == first.price() && plan.steps == first.steps, "one input has one plan");
        plan
    });
}

/// Many pods, few sizes, one type: finding out which pods are equal.
#[divan::bench(args = [1_000, 20_000])]
fn classes(bencher: Bencher<'_, '_>, pods: u32) {
    check(bencher, &made::mixed(made::one_type(), pods, made::Naming::Each), None);
}

/// Few pods, each with a demand of its own, many types: finding out what each may use.
#[divan::bench(args = [1, 40])]
fn menus(bencher: Bencher<'_, '_>, pods: u32) {
    check(bencher, &made::demanding(pods), None);
}

/// Twelve sizes of pods and many types, no search: the relaxed problem and the first packing.
#[divan::bench]
fn relaxed(bencher: Bencher<'_, '_>) {
    check(bencher, &made::mixed(made::catalogue(), 5_000, made::Naming::Replicas), Some(0));
}

/// The same with all the steps that production takes.
#[divan::bench]
fn packed(bencher: Bencher<'_, '_>) {
    check(bencher, &made::mixed(made::catalogue(), 5_000, made::Naming::Replicas), None);
}

/// Nodes with pods, nearly full: finding room, and counting who is where.
#[divan::bench(args = [100, 1_000])]
fn existing(bencher: Bencher<'_, '_>, nodes: u32) {
    check(bencher, &made::existing(nodes), None);
}
