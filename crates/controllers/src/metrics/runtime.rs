//! The machinery under the reconcilers: work queue, API client, leadership. The names are those of the libraries that
//! the reference is built on; dashboards for controllers know them.

use super::Metrics;
use super::table::families;

families! {
    /// Metrics of the machinery.
    RuntimeMetrics {
        reconciles: Counter ["controller", "result"]
            "controller_runtime_reconcile_total", "Passes over one key, by result";
    }
    computed {}
    later {}
}

impl Metrics {
    pub(crate) fn reconciled(&self, controller: &'static str, result: &'static str) {
        self.runtime.reconciles.inc([controller, result]);
    }
}
