//! Scenarios and what the planner makes of them.

use expect_test::Expect;
use model::Plan;
use planner::{MinValuesPolicy, PlaceConfig, PreferencePolicy, ReservationPolicy, place};

use crate::checker::judge;
pub(crate) use crate::language::Scenario;

/// Compares the plan for a scenario with what is expected of it, and lets the referee judge the plan.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "expect![..] reads better at the call sites without a reference")]
pub(crate) fn check(text: &str, expected: Expect) {
    expected.assert_eq(&planned(text));
}

/// The plan for a scenario, as text.
#[track_caller]
pub(crate) fn planned(text: &str) -> String {
    let scenario = Scenario::parse(text);
    scenario.render(&plan(&scenario))
}

/// The plan for a scenario, judged by the referee.
#[track_caller]
pub(crate) fn plan(scenario: &Scenario) -> Plan {
    let plan = planned_unjudged(scenario);
    judge(&scenario.snapshot, &plan);
    plan
}

/// The plan for a scenario, for those who judge for themselves.
pub(crate) fn planned_unjudged(scenario: &Scenario) -> Plan {
    place(&scenario.snapshot, &config(scenario))
}

/// What the `options` lines of a scenario set; everything else is as by default.
pub(crate) fn config(scenario: &Scenario) -> PlaceConfig {
    let mut config = PlaceConfig::default();
    for (name, value) in &scenario.options {
        match (name.as_str(), value.as_str()) {
            ("preferences", "respect") => config.preferences = PreferencePolicy::Respect,
            ("preferences", "ignore") => config.preferences = PreferencePolicy::Ignore,
            ("min-values", "strict") => config.min_values = MinValuesPolicy::Strict,
            ("min-values", "best-effort") => config.min_values = MinValuesPolicy::BestEffort,
            ("reservations", "ignored") => config.reservations = ReservationPolicy::Ignored,
            ("reservations", "strict") => config.reservations = ReservationPolicy::Strict,
            ("reservations", "fallback") => config.reservations = ReservationPolicy::Fallback,
            ("steps", steps) => config.steps_max = steps.parse().unwrap(),
            ("types", types) => config.types_per_claim_max = types.parse().unwrap(),
            _ => panic!(
                "unknown option {name}={value}: there are preferences=respect|ignore, min-values=strict|best-effort, \
                 reservations=ignored|strict|fallback, steps= and types="
            ),
        }
    }
    config
}
