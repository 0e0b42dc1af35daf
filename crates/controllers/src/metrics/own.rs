//! What the reference does not tell.

use super::Metrics;
use super::table::families;

families! {
    /// Metrics that only this controller has.
    OwnMetrics {
        build: Gauge ["version", "goversion", "goarch", "commit"] "karpenter_build_info", "What is running";
        malformed_objects: Counter ["kind"]
            "karpenter_watch_malformed_objects_total", "Objects of a watch that could not be read";
        decisions: Counter ["decision", "nodepool"]
            "karpenter_observe_decisions_total",
            "What would have been done if the process did not only observe: claims created or deleted";
    }
    computed {}
    later {}
}

impl Metrics {
    pub(crate) fn malformed(&self, kind: &'static str) {
        self.own.malformed_objects.inc([kind]);
    }
}
