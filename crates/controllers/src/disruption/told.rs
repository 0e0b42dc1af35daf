//! What disruption tells: budgets, candidates, decisions.

use std::time::Duration;

use api::NodePool;
use api::node_pool::DisruptionReason;
use model::PoolName;

use super::budget::{self, Census};
use crate::context::Context;
use crate::metrics::Metrics;

/// What a pool without any budget may lose at once, as the reference tells it.
const UNBOUNDED: usize = 2_147_483_647;

/// The reason in the labels of a metric, and the way of looking.
const EMPTY: &str = "empty";
const DELETE: &str = "delete";

/// Every reason for which budgets can be asked, as labels spell it.
const REASONS: [(DisruptionReason, &str); 4] = [
    (DisruptionReason::Underutilized, "underutilized"),
    (DisruptionReason::Empty, EMPTY),
    (DisruptionReason::Drifted, "drifted"),
    (DisruptionReason::Unhealthy, "unhealthy"),
];

/// What each pool may lose now, and what it is losing already.
#[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^53")]
pub(super) fn budgets<'a>(context: &Context, pools: impl IntoIterator<Item = (&'a PoolName, &'a NodePool, Census)>) {
    let now = context.now();
    let mut allowed = Vec::new();
    let mut consuming = Vec::new();
    for (name, pool, census) in pools {
        for (reason, label) in REASONS {
            let labels = [name.to_string(), label.to_owned()];
            let room = budget::allowed(pool, reason, &census, now).min(UNBOUNDED);
            allowed.push((labels.clone(), room as f64));
            consuming.push((labels, census.disrupted as f64));
        }
    }
    context.metrics.pools.allowed_disruptions.replace(allowed);
    context.metrics.pools.nodes_consuming_budgets.replace(consuming);
}

/// A look for empty nodes that is over.
#[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^53")]
pub(super) fn looked(metrics: &Metrics, eligible: usize, took: Duration) {
    metrics.voluntary.eligible_nodes.set([EMPTY], eligible as f64);
    metrics.voluntary.evaluation_seconds.observe([EMPTY, EMPTY], took.as_secs_f64());
}

/// A node that was ended because it is empty.
pub(super) fn ended(metrics: &Metrics, pool: &str) {
    metrics.voluntary.decisions.inc([DELETE, EMPTY, EMPTY]);
    metrics.voluntary.decisions_by_pool.inc([pool, DELETE, EMPTY, EMPTY]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Build, Naming};

    /// MET-01: reasons in labels are in lower case, and all that budgets can be asked for are told.
    #[test]
    fn reasons_are_told_in_lower_case() {
        let told = REASONS.map(|(reason, label)| format!("{reason:?} {label}"));
        assert_eq!(told, ["Underutilized underutilized", "Empty empty", "Drifted drifted", "Unhealthy unhealthy"]);
    }

    /// OBS-01, MET-01: a look and a decision, each under its reason and the way of looking.
    #[test]
    fn looks_and_decisions_are_counted() {
        let word = |text: &str| text.to_owned();
        let build = Build { version: word("v"), goversion: word("g"), goarch: word("a"), commit: word("c") };
        let metrics = Metrics::new(&build, Naming::default());
        looked(&metrics, 7, Duration::from_secs(3));
        ended(&metrics, "web");
        let text = metrics.scrape();
        for line in [
            r#"eligible_nodes{reason="empty"} 7"#,
            r#"decision_evaluation_duration_seconds_sum{reason="empty",consolidation_type="empty"} 3"#,
            r#"decisions_total{decision="delete",reason="empty",consolidation_type="empty"} 1"#,
            r#"decisions_by_nodepool_total{nodepool="web",decision="delete",reason="empty",consolidation_type="empty"} 1"#,
        ] {
            let line = format!("karpenter_voluntary_disruption_{line}");
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
