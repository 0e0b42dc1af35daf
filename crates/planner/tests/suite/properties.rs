//! What holds for every plan, tried on made-up clusters.

use model::Plan;
use planner::{PlaceConfig, place};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, proptest};
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use crate::checker::judge;
use crate::scenario::Scenario;

/// A line with one word out of each slot; the empty word stands for none.
fn line(slots: &[&'static [&'static str]]) -> impl Strategy<Value = String> + use<> {
    let words: Vec<_> = slots.iter().map(|slot| select(*slot)).collect();
    words.prop_map(|words| words.join(" "))
}

/// So many lines of a kind, each with a name of its own.
fn lines(
    kind: &'static str,
    most: usize,
    slots: &[&'static [&'static str]],
) -> impl Strategy<Value = Vec<String>> + use<> {
    let named = move |lines: Vec<String>| {
        let name = |(index, line)| format!("{kind} {kind}{index}{line}");
        lines.into_iter().enumerate().map(name).collect()
    };
    vec(line(slots), 0..=most).prop_map(named)
}

const LABELS: &[&str] = &["", "label=team=x", "label=team=y"];
const TAINTS: &[&str] = &["", "", "", "taint=hard=1:NoSchedule", "taint=soft=1:PreferNoSchedule"];
const SELECT: &[&str] = &["", "", "select=zone=a", "select=arch=arm64", "select=team=x", "affinity=team:NotIn:x"];
const OR: &[&str] = &["", "", "or=zone:In:b", "affinity=zone:In:b|c or=team:In:y", "affinity=capacity:In:on-demand"];
const PREFER: &[&str] = &["", "", "prefer=10:zone:In:c", "prefer=20:team:In:y prefer=5:zone:NotIn:a"];
const TOLERATE: &[&str] = &["", "", "tolerate=hard", "tolerate=soft"];

fn cluster() -> impl Strategy<Value = Vec<String>> {
    let types = lines(
        "type",
        5,
        &[
            &[""],
            &["cpu=1 mem=2Gi", "cpu=2 mem=8Gi", "cpu=4 mem=8Gi", "cpu=8 mem=32Gi overhead.cpu=100m"],
            &["", "arch=arm64", "pods=3"],
            &["a:0.10", "a:0.11 b:0.10", "b:0.25 c:0.20", "!a:0.05 c:0.40", "a:0.33"],
            &["", "spot:a:0.04", "spot:b:0.12 !spot:c:0.01"],
        ],
    );
    let pools = lines(
        "pool",
        3,
        &[
            &[""],
            &["", "weight=1", "weight=7"],
            &["", "", "limit.cpu=9", "limit.cpu=16 used.cpu=5", "limit.mem=20Gi", "limit.cpu=4 used.cpu=6"],
            &["", "", "limit.nodes=2", "limit.nodes=3 used.nodes=3"],
            &["", "require=zone:In:a|b", "require=team:In:x|y", "require=arch:In:amd64", "label=team=x"],
            TAINTS,
        ],
    );
    let place = |kind| {
        let used = &["", "used.cpu=1", "used.cpu=500m daemons.cpu=100m", "used.cpu=5"];
        let zone = &["label=zone=a", "label=zone=b", ""];
        lines(kind, 2, &[&[""], &["cpu=2 mem=4Gi", "cpu=4 mem=8Gi pods=4"], used, zone, LABELS, TAINTS])
    };
    let daemons = lines("daemon", 2, &[&[""], &["cpu=100m", "mem=1Gi"], &["", "select=arch=amd64"], TOLERATE]);
    let pods = lines(
        "pod",
        6,
        &[
            &["*1", "*2", "*3", "*9", "*40"],
            &["cpu=100m", "cpu=700m", "cpu=1", "cpu=2500m mem=1Gi", "mem=3Gi", "cpu=9"],
            &["", "priority=5", "priority=-1"],
            SELECT,
            OR,
            PREFER,
            TOLERATE,
        ],
    );
    (types, pools, place("node"), place("joining"), place("claim"), daemons, pods).prop_map(
        |(types, pools, nodes, joining, claims, daemons, pods)| {
            [types, pools, nodes, joining, claims, daemons, pods].concat()
        },
    )
}

fn plan(lines: &[String], config: &PlaceConfig) -> (Scenario, Plan) {
    let scenario = Scenario::parse(&lines.join("\n"));
    let plan = place(&scenario.snapshot, config);
    (scenario, plan)
}

/// The same cases on every machine; a failure prints the lines of its cluster, ready to become a scenario.
fn repeatable() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..repeatable() })]

    /// Capacity, taints, requirements, limits, and every pod exactly once.
    #[test]
    fn every_plan_obeys_every_rule(lines in cluster()) {
        let (scenario, plan) = plan(&lines, &PlaceConfig::default());
        judge(&scenario.snapshot, &plan);
    }

    /// A search without any steps left gives a dearer plan, not a wrong one.
    #[test]
    fn a_plan_without_search_obeys_every_rule(lines in cluster()) {
        let config = PlaceConfig { steps_max: 0, types_per_claim_max: 2, ..PlaceConfig::default() };
        let (scenario, plan) = plan(&lines, &config);
        judge(&scenario.snapshot, &plan);
    }

    /// Equal clusters give equal plans, in whatever order they are told.
    #[test]
    fn the_order_of_lists_does_not_matter(
        (lines, shuffled) in cluster().prop_flat_map(|lines| (Just(lines.clone()), Just(lines).prop_shuffle())),
    ) {
        let config = PlaceConfig::default();
        assert_eq!(plan(&lines, &config).1, plan(&shuffled, &config).1);
    }
}
