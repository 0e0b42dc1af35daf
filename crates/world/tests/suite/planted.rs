//! Mistakes that were made on purpose are found.

use controllers::planted::{Planted, PlantedBug};
use world::check::Rule;
use world::seeds::{RunSettings, run};

/// How many seeds a mistake may survive.
const SEEDS: u64 = 200;

fn is_found(bug: PlantedBug, rule: Rule) {
    let settings = RunSettings { planted: Planted::bug(bug), ..RunSettings::default() };
    let finder = (0..SEEDS).find(|seed| {
        let report = run(*seed, &settings).unwrap();
        report.violations.iter().any(|violation| violation.rule == rule)
    });
    println!("{bug:?} was found by seed {finder:?}");
    assert!(finder.is_some(), "{bug:?} survived {SEEDS} seeds");
}

#[test]
fn a_double_launch_is_found() {
    is_found(PlantedBug::DoubleLaunch, Rule::NoLaunchDoubled);
}

#[test]
fn a_forgotten_pod_is_found() {
    is_found(PlantedBug::ForgottenPod, Rule::NoPodForgotten);
}

#[test]
fn a_foreign_node_that_is_tainted_is_found() {
    is_found(PlantedBug::ForeignTaint, Rule::NoForeignNodeTouched);
}
