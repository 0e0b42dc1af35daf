//! What the reference does not tell.

use super::Metrics;
use super::table::families;

families! {
    /// Metrics that only this controller has.
    OwnMetrics {
        build: Gauge ["version", "goversion", "goarch", "commit"] "karpenter_build_info", "What is running";
        malformed_objects: Counter ["kind"]
            "karpenter_watch_malformed_objects_total", "Objects of a watch that could not be read";
        evictions_held_back: Counter ["reason"]
            "karpenter_pods_evictions_held_back_total",
            "Evictions that disruption budgets refused, by whether that can ever change";
        decisions: Counter ["decision", "nodepool"]
            "karpenter_observe_decisions_total",
            "What would have been done if the process did not only observe: claims created or deleted";
    }
    computed {}
    later {}
}

/// Why the eviction API refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldBack {
    /// The pod's budget allows no eviction now.
    BudgetExhausted,
    /// The pod's budget can never allow one.
    BudgetNeverAllows,
    /// The pod has several budgets, which the API does not support.
    SeveralBudgets,
}

impl HeldBack {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::BudgetExhausted => "budget_exhausted",
            Self::BudgetNeverAllows => "budget_never_allows",
            Self::SeveralBudgets => "several_budgets",
        }
    }
}

impl Metrics {
    pub(crate) fn eviction_held_back(&self, cause: HeldBack) {
        self.own.evictions_held_back.inc([cause.as_str()]);
    }

    pub(crate) fn malformed(&self, kind: &'static str) {
        self.own.malformed_objects.inc([kind]);
    }
}
