//! The solve: how long, how much, how good.

use std::collections::BTreeMap;

use model::Plan;

use super::Metrics;
use super::table::{SECONDS, families};
use crate::provisioning::EffectiveZone;

/// The controller that asks for solves.
const PROVISIONER: &str = "provisioner";
const STEPS: &[f64] = &[1e2, 1e3, 1e4, 1e5, 1e6, 5e6, 1e7, 2e7, 5e7];

families! {
    /// Metrics of solves.
    SchedulerMetrics {
        solve_seconds: Histogram ["controller"]
            "karpenter_scheduler_scheduling_duration_seconds" in SECONDS, "Duration of one solve";
        ignored_pods: Gauge []
            "karpenter_scheduler_ignored_pods_count", "Waiting pods that cannot be planned";
        unschedulable_pods: Gauge ["controller"]
            "karpenter_scheduler_unschedulable_pods_count", "Waiting pods that fit nowhere";
        pending_pods_by_zone: Gauge ["controller", "zone"]
            "karpenter_scheduler_pending_pods_by_effective_zone_count", "Waiting pods by the zone they can be in";
        first_claim_seconds: Histogram []
            "karpenter_provisioner_first_claim_duration_seconds" in SECONDS,
            "Time from the end of the batch window to the first NodeClaim";
        planned_price: Gauge []
            "karpenter_provisioner_planned_price", "Price of all planned nodes of the last pass in dollars per hour";
        price_bound: Gauge []
            "karpenter_scheduler_planned_price_bound",
            "What the planned nodes of the last pass cost at least, however planned, in dollars per hour";
        price_gap: Gauge []
            "karpenter_scheduler_planned_price_gap",
            "By what part of its price the last plan may be dearer than the cheapest one, at most";
        search_steps: Histogram []
            "karpenter_scheduler_search_steps" in STEPS, "Counted steps of the search for one plan";
    }
    computed {
        QUEUE_DEPTH: Gauge ["controller", "scheduling_id"]
            "karpenter_scheduler_queue_depth", "Pods that the solve under way has to place";
        UNFINISHED_WORK: Gauge ["controller", "scheduling_id"]
            "karpenter_scheduler_unfinished_work_seconds", "For how long the solve under way has been running";
    }
    later {}
}

#[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^53")]
impl Metrics {
    pub(crate) fn solved(&self, seconds: f64, plan: &Plan) {
        let scheduler = &self.scheduler;
        scheduler.solve_seconds.observe([PROVISIONER], seconds);
        scheduler.planned_price.set([], plan.price().dollars());
        scheduler.price_bound.set([], plan.bound.dollars());
        scheduler.price_gap.set([], plan.gap());
        scheduler.search_steps.observe([], plan.steps as f64);
    }

    pub(crate) fn first_claim_after(&self, seconds: f64) {
        self.scheduler.first_claim_seconds.observe([], seconds);
    }

    pub(crate) fn pods_unplaced(&self, unschedulable: usize, ignored: usize) {
        self.scheduler.unschedulable_pods.set([PROVISIONER], unschedulable as f64);
        self.scheduler.ignored_pods.set([], ignored as f64);
    }

    /// Zones that no pod waits for any more are no longer told of.
    pub(crate) fn pods_by_zone(&self, counts: &BTreeMap<EffectiveZone, usize>) {
        let told = counts.iter().map(|(zone, count)| ([PROVISIONER.to_owned(), zone.to_string()], *count as f64));
        self.scheduler.pending_pods_by_zone.replace(told);
    }
}
