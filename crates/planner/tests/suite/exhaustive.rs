//! Plans of small clusters against the best there are.

use std::cmp::Ordering;
use std::ops::Range;

use model::Price;
use planner::PlaceConfig;

use crate::brute::{Cost, Outcome, best};
use crate::chance::{Size, cluster, cluster_with_preference};
use crate::scenario::{Scenario, planned_unjudged};

/// So many failures are told before the rest is only counted.
const TOLD_MAX: usize = 3;

/// What a run over many seeds found.
#[derive(Default)]
struct Tally {
    tried: usize,
    too_large: usize,
    failures: Vec<String>,
}

impl Tally {
    /// Panics with the first failures, each ready to become a scenario.
    #[track_caller]
    fn settle(self, too_large_percent_max: usize) {
        let Self { tried, too_large, failures } = self;
        let told: Vec<&str> = failures.iter().take(TOLD_MAX).map(String::as_str).collect();
        assert!(failures.is_empty(), "{} of {tried} failed\n\n{}", failures.len(), told.join("\n\n"));
        assert!(too_large * 100 <= tried * too_large_percent_max, "{too_large} of {tried} were too large to try out");
    }
}

fn each(seeds: Range<u64>, size: Size, judge: impl Fn(&Scenario) -> Result<(), Option<String>>) -> Tally {
    each_of(seeds, |seed| cluster(seed, size), judge)
}

fn each_of(
    seeds: Range<u64>,
    cluster: impl Fn(u64) -> String,
    judge: impl Fn(&Scenario) -> Result<(), Option<String>>,
) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let text = cluster(seed);
        let scenario = Scenario::parse(&text);
        tally.tried += 1;
        match judge(&scenario) {
            Ok(()) => {}
            Err(None) => tally.too_large += 1,
            Err(Some(failure)) => tally.failures.push(format!("seed {seed}\n{text}\n{failure}")),
        }
    }
    tally
}

fn referee_says(scenario: &Scenario, plan: &model::Plan) -> Result<(), Option<String>> {
    let violations: Vec<String> =
        referee::audit(&scenario.snapshot, plan).iter().map(|violation| format!("violation: {violation}")).collect();
    if violations.is_empty() {
        return Ok(());
    }
    Err(Some(format!("planned:\n{}\n{}", scenario.render(plan), violations.join("\n"))))
}

/// No legal plan is better.
fn is_best(scenario: &Scenario) -> Result<(), Option<String>> {
    let config = PlaceConfig::default();
    let plan = planned_unjudged(scenario);
    referee_says(scenario, &plan)?;
    let cost = Cost::of(&scenario.snapshot, &plan, config.node_overhead);
    match best(&scenario.snapshot, config.node_overhead, Some(&cost)) {
        Outcome::NothingBetter => Ok(()),
        Outcome::TooLarge => Err(None),
        Outcome::Better(found) => {
            let (price, less) = (cost.price, found.cost.price);
            let planned = scenario.render(&plan);
            Err(Some(format!("planned, {price} with overhead:\n{planned}\nbetter, {less}:\n{}", found.text)))
        }
    }
}

/// No legal plan that places as many pods costs less than the bound, and the bound is not above the plan.
fn is_bounded(scenario: &Scenario) -> Result<(), Option<String>> {
    let plan = planned_unjudged(scenario);
    referee_says(scenario, &plan)?;
    let bounded = Cost { price: plan.bound, ..Cost::of(&scenario.snapshot, &plan, Price::ZERO) };
    match best(&scenario.snapshot, Price::ZERO, Some(&bounded)) {
        Outcome::NothingBetter => Ok(()),
        Outcome::TooLarge => Err(None),
        Outcome::Better(found) if found.cost.compare_unplaced(&bounded) == Ordering::Less => Ok(()),
        Outcome::Better(found) => {
            let planned = scenario.render(&plan);
            Err(Some(format!("bound {}, planned:\n{planned}\nbelow the bound:\n{}", plan.bound, found.text)))
        }
    }
}

const TEN: Size = Size { pods_min: 2, pods_max: 10, limits: true, volumes: true };

#[test]
fn up_to_ten_pods_are_planned_as_well_as_can_be() {
    each(0..600, TEN, is_best).settle(2);
}

#[test]
fn up_to_ten_pods_without_limits_are_planned_as_well_as_can_be() {
    each(10_000..10_600, Size { limits: false, ..TEN }, is_best).settle(2);
}

#[test]
fn no_legal_plan_of_a_few_pods_costs_less_than_the_bound() {
    each(100_000..109_000, Size { pods_min: 1, pods_max: 6, ..TEN }, is_bounded).settle(1);
}

#[test]
fn no_legal_plan_of_up_to_ten_pods_costs_less_than_the_bound() {
    each(20_000..21_000, TEN, is_bounded).settle(2);
}

#[test]
fn no_legal_plan_that_prefers_a_dear_pool_costs_less_than_the_bound() {
    each_of(50_000..60_000, cluster_with_preference, is_bounded).settle(2);
}

#[test]
fn plans_for_eleven_to_fourteen_pods_are_within_their_gap() {
    each(30_000..30_060, Size { pods_min: 11, pods_max: 14, limits: true, volumes: true }, is_bounded).settle(25);
}

/// Nodes that are full have no part in what is tried: a few pods are planned as well, and for as little work, in a cluster
/// of a thousand of them.
#[test]
fn full_nodes_cost_the_search_nothing() {
    let few = "type a cpu=3 mem=12Gi a:0.1301
         type b cpu=5 mem=20Gi a:0.2103
         type c cpu=8 mem=32Gi a:0.3307
         pool default
         node roomy cpu=4 mem=16Gi used.cpu=1 label=zone=a
         pod web*4 cpu=1900m mem=5Gi
         pod api*4 cpu=1300m mem=7Gi
         pod job*5 cpu=900m spread=host/1";
    let full: Vec<String> =
        (0..1_000).map(|index| format!("node full{index} cpu=4 mem=16Gi used.cpu=3900m label=zone=a")).collect();
    let alone = planned_unjudged(&Scenario::parse(few));
    let crowded = planned_unjudged(&Scenario::parse(&format!("{few}\n{}", full.join("\n"))));
    assert_eq!((alone.price(), alone.claims.len()), (crowded.price(), crowded.claims.len()));
    // Each is looked at a few times: by each class, in every reading.
    let looks = 20 * full.len() as u64;
    assert!(crowded.steps <= alone.steps + looks, "{} steps instead of {}", crowded.steps, alone.steps);
}
