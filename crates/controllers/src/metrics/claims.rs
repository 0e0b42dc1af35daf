//! NodeClaims: how many came, went, and why.

use super::Metrics;
use super::table::families;

const INSTANCE_SECONDS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
const CLAIM_SECONDS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0];

families! {
    /// Metrics of NodeClaims.
    ClaimMetrics {
        created: Counter ["reason", "nodepool", "min_values_relaxed"]
            "karpenter_nodeclaims_created_total",
            "NodeClaims created, by why, by NodePool, and by whether its minValues were relaxed";
        disrupted: Counter ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"]
            "karpenter_nodeclaims_disrupted_total",
            "NodeClaims that the controller ended, by why and how";
        terminated: Counter ["nodepool", "capacity_type", "zone"]
            "karpenter_nodeclaims_terminated_total",
            "NodeClaims that are gone";
        instance_termination_seconds: Histogram ["nodepool"]
            "karpenter_nodeclaims_instance_termination_duration_seconds" in INSTANCE_SECONDS,
            "Time from the first request to end an instance until the provider no longer knew it";
        termination_seconds: Histogram ["nodepool"]
            "karpenter_nodeclaims_termination_duration_seconds" in CLAIM_SECONDS,
            "Time from the deletion of a NodeClaim until it was gone";
    }
    computed {}
    later {
        5: Counter ["condition", "nodepool", "capacity_type", "image_id", "termination_mode"]
            "karpenter_nodeclaims_unhealthy_disrupted_total",
            "NodeClaims that were repaired, by the node condition that called for it";
    }
}

/// Where a claim came from, for labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimLabels {
    pub(crate) pool: String,
    pub(crate) zone: String,
    pub(crate) capacity_type: String,
}

impl Metrics {
    pub(crate) fn claim_created(&self, pool: &str, min_values_relaxed: bool) {
        let relaxed = if min_values_relaxed { "true" } else { "false" };
        self.claims.created.inc(["provisioned", pool, relaxed]);
    }

    pub(crate) fn claim_disrupted(&self, reason: &str, claim: ClaimLabels, termination_mode: &str) {
        let ClaimLabels { pool, zone: _, capacity_type } = claim;
        self.claims.disrupted.inc([reason, &pool, &capacity_type, "", termination_mode]);
    }

    pub(crate) fn claim_terminated(&self, claim: ClaimLabels) {
        let ClaimLabels { pool, zone, capacity_type } = claim;
        self.claims.terminated.inc([&pool, &capacity_type, &zone]);
    }
}
