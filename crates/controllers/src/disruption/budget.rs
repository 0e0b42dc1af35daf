//! How many nodes of a pool may go now. Pure.

use api::NodePool;
use api::node_pool::{Budget, DisruptionReason};
use chrono::{DateTime, Utc};
use croner::Cron;
use jiff::{SignedDuration, Timestamp};

/// A pool's nodes, and those of them that are unavailable already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) nodes: usize,
    pub(crate) disrupted: usize,
}

/// The number of nodes that the tightest budget lets go now for a reason. A budget that cannot be read allows none: whoever
/// wrote it wanted a brake.
pub(crate) fn allowed(pool: &NodePool, reason: DisruptionReason, census: &Census, now: Timestamp) -> usize {
    let budgets = &pool.spec.disruption.budgets;
    let limits = budgets.iter().map(|budget| limit(budget, reason, census.nodes, now));
    let unreadable = limits.clone().any(|limit| limit == Limit::Unreadable);
    if unreadable {
        return 0;
    }
    let tightest = limits.filter_map(|limit| match limit {
        Limit::Nodes(nodes) => Some(nodes),
        Limit::None | Limit::Unreadable => None,
    });
    tightest.min().unwrap_or(usize::MAX).saturating_sub(census.disrupted)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    None,
    Nodes(usize),
    Unreadable,
}

fn limit(budget: &Budget, reason: DisruptionReason, nodes: usize, now: Timestamp) -> Limit {
    let (Some(is_active), Some(count)) = (is_active(budget, now), count(&budget.nodes, nodes)) else {
        return Limit::Unreadable;
    };
    let applies = budget.reasons.as_ref().is_none_or(|reasons| reasons.contains(&reason));
    if applies && is_active { Limit::Nodes(count) } else { Limit::None }
}

/// A number, or a share of the pool rounded up.
fn count(text: &str, nodes: usize) -> Option<usize> {
    match text.strip_suffix('%') {
        None => text.parse().ok(),
        Some(percent) => percent.parse::<usize>().ok().map(|percent| (nodes * percent).div_ceil(100)),
    }
}

/// Active for `duration` after each hit of the schedule, in UTC; always without a schedule.
fn is_active(budget: &Budget, now: Timestamp) -> Option<bool> {
    let (schedule, duration) = match (&budget.schedule, &budget.duration) {
        (None, None) => return Some(true),
        (Some(schedule), Some(duration)) => (schedule, duration),
        _ => return None,
    };
    let schedule: Cron = schedule.parse().ok()?;
    let began = now.checked_sub(SignedDuration::try_from(duration.as_duration()).ok()?).ok()?;
    let hit = schedule.find_next_occurrence(&utc(began)?, false).ok()?;
    Some(hit <= utc(now)?)
}

/// The schedule's crate counts in its own calendar type.
fn utc(time: Timestamp) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(time.as_second(), 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(budgets: serde_json::Value, nodes: usize, disrupted: usize, now: &str) -> usize {
        let pool: NodePool = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
            "spec": {"disruption": {"budgets": budgets},
                "template": {"spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}}}},
        }))
        .unwrap();
        allowed(&pool, DisruptionReason::Empty, &Census { nodes, disrupted }, now.parse().unwrap())
    }

    /// BUDG-01, BUDG-02, BUDG-03, BUDG-08: shares round up, the tightest wins, reasons select, nothing is negative.
    #[test]
    fn the_tightest_budget_that_applies_wins() {
        let noon = "2026-03-04T12:00:00Z";
        let table = [
            (json!([{"nodes": "10%"}]), 15, 0, 2),
            (json!([{"nodes": "10%"}, {"nodes": "1"}]), 15, 0, 1),
            (json!([{"nodes": "3"}]), 15, 2, 1),
            (json!([{"nodes": "1"}]), 15, 2, 0),
            (json!([{"nodes": "0", "reasons": ["Drifted"]}]), 15, 0, usize::MAX),
            (json!([{"nodes": "0", "reasons": ["Empty", "Drifted"]}]), 15, 0, 0),
            (json!([{"nodes": "0", "reasons": []}]), 15, 0, usize::MAX),
            (json!([]), 15, 3, usize::MAX - 3),
            (json!([{"nodes": "100%"}]), 7, 0, 7),
        ];
        for (budgets, nodes, disrupted, expected) in table {
            assert_eq!(check(budgets.clone(), nodes, disrupted, noon), expected, "{budgets}");
        }
    }

    /// BUDG-04: active for the duration after each hit, in UTC.
    #[test]
    fn scheduled_budgets_are_active_after_each_hit() {
        let nights = || json!([{"nodes": "0", "schedule": "0 22 * * *", "duration": "8h"}]);
        let table = [
            ("2026-03-04T21:59:00Z", usize::MAX),
            ("2026-03-04T22:00:00Z", 0),
            ("2026-03-05T05:59:00Z", 0),
            ("2026-03-05T06:00:00Z", usize::MAX),
        ];
        for (now, expected) in table {
            assert_eq!(check(nights(), 5, 0, now), expected, "{now}");
        }
        let daily = json!([{"nodes": "0", "schedule": "@daily", "duration": "10m"}]);
        assert_eq!(check(daily, 5, 0, "2026-03-05T00:05:00Z"), 0);
    }

    /// BUDG-05: a budget that cannot be read stops everything, whatever its reasons.
    #[test]
    fn an_unreadable_budget_allows_nothing() {
        let broken = json!([{"nodes": "5", "schedule": "61 * * * *", "duration": "1h", "reasons": ["Drifted"]}]);
        assert_eq!(check(broken, 5, 0, "2026-03-05T00:05:00Z"), 0);
    }
}
