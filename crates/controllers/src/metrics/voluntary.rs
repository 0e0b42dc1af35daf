//! Voluntary disruption: what was looked at, decided and done.

use super::table::{SECONDS, families};

const SCORES: &[f64] = &[0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0];

families! {
    /// Metrics of voluntary disruption.
    VoluntaryMetrics {
        evaluation_seconds: Histogram ["reason", "consolidation_type"]
            "karpenter_voluntary_disruption_decision_evaluation_duration_seconds" in SECONDS,
            "Duration of one look for nodes to disrupt";
        decisions: Counter ["decision", "reason", "consolidation_type"]
            "karpenter_voluntary_disruption_decisions_total", "Decisions to disrupt that were carried out";
        decisions_by_pool: Counter ["nodepool", "decision", "reason", "consolidation_type"]
            "karpenter_voluntary_disruption_decisions_by_nodepool_total",
            "Decisions to disrupt that were carried out, once for each pool with a candidate";
        eligible_nodes: Gauge ["reason"]
            "karpenter_voluntary_disruption_eligible_nodes", "Nodes that could be disrupted at the last look";
    }
    computed {}
    later {
        5: Counter ["consolidation_type"] "karpenter_voluntary_disruption_consolidation_timeouts_total",
            "Looks for consolidation that ran out of steps";
        5: Counter ["consolidation_type"] "karpenter_voluntary_disruption_failed_validations_total",
            "Decisions that no longer held when they were looked at again";
        5: Counter ["decision", "reason", "consolidation_type"]
            "karpenter_voluntary_disruption_queue_failures_total", "Decisions that could not be carried out";
        5: Counter ["nodepool", "reason", "terminate_first_reason"]
            "karpenter_voluntary_disruption_terminate_first_decisions_total",
            "Decisions to end a node before its replacement is there";
        5: Histogram ["decision", "nodepool", "policy"] "karpenter_consolidation_score" in SCORES,
            "How much a move saves for how much it disturbs";
        5: Counter ["decision", "nodepool", "policy"] "karpenter_consolidation_moves_total",
            "Moves that were weighed, by verdict";
    }
}
