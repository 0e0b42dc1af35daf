//! Pods: where they are, and how long they waited for what.

use super::Metrics;
use super::claims::ClaimLabels;
use super::table::{SECONDS, families};

families! {
    /// Metrics of pods that are fed as things happen.
    PodMetrics {
        startup_seconds: Summary []
            "karpenter_pods_startup_duration_seconds",
            "Time from the creation of a pod until it was ready; quantiles are those of the newest 1024";
        bound_seconds: Histogram ["dynamic_resources"]
            "karpenter_pods_bound_duration_seconds" in SECONDS,
            "Time from the creation of a pod until it was bound to a node";
        provisioning_bound_seconds: Histogram ["dynamic_resources"]
            "karpenter_pods_provisioning_bound_duration_seconds" in SECONDS,
            "Time from the first plan that had a place for a pod until it was bound";
        provisioning_startup_seconds: Histogram []
            "karpenter_pods_provisioning_startup_duration_seconds" in SECONDS,
            "Time from the first plan that had a place for a pod until it was ready";
        scheduling_decision_seconds: Histogram []
            "karpenter_pods_scheduling_decision_duration_seconds" in SECONDS,
            "Time from when a waiting pod was first seen until the first plan that said something about it";
        disruption_initiated: Counter
            ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"]
            "karpenter_pods_disruption_initiated_total",
            "Pods that have to move because the controller ended their NodeClaim, by why and how";
        evictions: Counter ["code"]
            "karpenter_pods_eviction_requests_total", "Evictions asked for, by HTTP code of the answer";
        drained: Counter ["reason"]
            "karpenter_pods_drained_total", "Pods that were evicted or deleted from nodes on their way out, by why";
    }
    computed {
        STATE: Gauge [
            "name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type",
            "instance_type", "phase", "ready", "managed"
        ]
            "karpenter_pods_state", "Every pod, with where and how it is in the labels";
        UNSTARTED: Gauge ["name", "namespace"]
            "karpenter_pods_unstarted_time_seconds", "Time since the creation of a pod that is not ready yet";
        UNBOUND: Gauge ["name", "namespace", "dynamic_resources"]
            "karpenter_pods_unbound_time_seconds", "Time since the creation of a pod that is not bound yet";
        PROVISIONING_UNBOUND: Gauge ["name", "namespace", "dynamic_resources"]
            "karpenter_pods_provisioning_unbound_time_seconds",
            "Time since the first plan that had a place for a pod that is not bound yet";
        PROVISIONING_UNSTARTED: Gauge ["name", "namespace"]
            "karpenter_pods_provisioning_unstarted_time_seconds",
            "Time since the first plan that had a place for a pod that is not ready yet";
        UNDECIDED: Gauge ["name", "namespace"]
            "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
            "Time since a waiting pod was first seen that no plan has said anything about yet";
    }
    later {}
}

impl Metrics {
    pub(crate) fn eviction_answered(&self, code: u16) {
        self.pods.evictions.inc([&code.to_string()]);
    }

    /// Pods that have to move because their claim is ended.
    #[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^53")]
    pub(crate) fn pods_disrupted(&self, reason: &str, claim: ClaimLabels, termination_mode: &str, pods: usize) {
        let ClaimLabels { pool, zone: _, capacity_type } = claim;
        self.pods.disruption_initiated.add([reason, &pool, &capacity_type, "", termination_mode], pods as f64);
    }
}
