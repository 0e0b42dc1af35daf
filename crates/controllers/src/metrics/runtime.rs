//! The machinery under the reconcilers: work queue and leadership. The names are those of the libraries that the
//! reference is built on; dashboards for controllers know them.

use std::time::Duration;

use super::Metrics;
use super::table::families;

const RECONCILE_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];
const QUEUE_SECONDS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];

families! {
    /// Metrics of the machinery.
    RuntimeMetrics {
        reconciles: Counter ["controller", "result"]
            "controller_runtime_reconcile_total", "Passes over one key, by result";
        reconcile_errors: Counter ["controller"]
            "controller_runtime_reconcile_errors_total", "Passes over one key that failed";
        reconcile_panics: Counter ["controller"]
            "controller_runtime_reconcile_panics_total", "Passes over one key that ended in a panic";
        reconcile_seconds: Histogram ["controller"]
            "controller_runtime_reconcile_time_seconds" in RECONCILE_SECONDS, "Duration of passes over one key";
        queue_seconds: Histogram ["name", "controller"]
            "workqueue_queue_duration_seconds" in QUEUE_SECONDS, "How long a key that was due waited for its pass";
        work_seconds: Histogram ["name", "controller"]
            "workqueue_work_duration_seconds" in QUEUE_SECONDS, "Duration of passes over one key";
        retries: Counter ["name", "controller"]
            "workqueue_retries_total", "Keys that were added to the queue for later";
        is_leader: Gauge ["name"]
            "leader_election_master_status", "Whether this process holds the Lease";
    }
    computed {
        WORKERS_MAX: Gauge ["controller"]
            "controller_runtime_max_concurrent_reconciles", "Passes that may run at once; all controllers share them";
        WORKERS: Gauge ["controller"]
            "controller_runtime_active_workers", "Passes that run now";
        QUEUE_DEPTH: Gauge ["name", "controller", "priority"]
            "workqueue_depth", "Keys that are due and wait for a pass";
        QUEUE_ADDS: Counter ["name", "controller"]
            "workqueue_adds_total", "Keys that were added to the queue";
        UNFINISHED: Gauge ["name", "controller"]
            "workqueue_unfinished_work_seconds", "For how long the passes that run now have been running, summed up";
        LONGEST: Gauge ["name", "controller"]
            "workqueue_longest_running_processor_seconds", "For how long the longest pass has been running";
    }
    later {}
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassResult {
    Success,
    RequeueAfter,
    Requeue,
    Error,
    Panic,
}

impl PassResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Requeue => "requeue",
            Self::Error | Self::Panic => "error",
        }
    }
}

impl Metrics {
    /// A pass over one key that is over.
    pub(crate) fn reconciled(&self, controller: &'static str, result: PassResult, took: Duration) {
        let runtime = &self.runtime;
        runtime.reconciles.inc([controller, result.as_str()]);
        if result.as_str() == "error" {
            runtime.reconcile_errors.inc([controller]);
        }
        if result == PassResult::Panic {
            runtime.reconcile_panics.inc([controller]);
        }
        if matches!(result, PassResult::RequeueAfter | PassResult::Requeue | PassResult::Error | PassResult::Panic) {
            runtime.retries.inc([controller, controller]);
        }
        runtime.reconcile_seconds.observe([controller], took.as_secs_f64());
        runtime.work_seconds.observe([controller, controller], took.as_secs_f64());
    }

    /// A pass over one key that begins, and how long the key has been due.
    pub(crate) fn reconciling(&self, controller: &'static str, waited: Duration) {
        self.runtime.queue_seconds.observe([controller, controller], waited.as_secs_f64());
    }
}
