//! Nodes: what they have, what runs on them, how long they live.

use super::Metrics;
use super::claims::ClaimLabels;
use super::table::{WELL_KNOWN, families};

const MINUTE: f64 = 60.0;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;
const LIFETIME_SECONDS: &[f64] = &[
    15.0 * MINUTE,
    30.0 * MINUTE,
    45.0 * MINUTE,
    HOUR,
    2.0 * HOUR,
    4.0 * HOUR,
    6.0 * HOUR,
    8.0 * HOUR,
    10.0 * HOUR,
    12.0 * HOUR,
    16.0 * HOUR,
    20.0 * HOUR,
    DAY,
    2.0 * DAY,
    3.0 * DAY,
    5.0 * DAY,
    10.0 * DAY,
    15.0 * DAY,
    20.0 * DAY,
    25.0 * DAY,
    30.0 * DAY,
];
const REBOOT_SECONDS: &[f64] = &[10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0];

families! {
    /// Metrics of Nodes that are fed as things happen.
    NodeMetrics {
        created: Counter ["nodepool", "zone"]
            "karpenter_nodes_created_total", "Nodes that registered";
        terminated: Counter ["nodepool", "zone"]
            "karpenter_nodes_terminated_total", "Nodes that the controller brought to their end";
        drained: Counter ["nodepool"]
            "karpenter_nodes_drained_total", "Nodes that were drained";
        termination_seconds: Summary ["nodepool"]
            "karpenter_nodes_termination_duration_seconds",
            "Time from the deletion of a Node until its finalizer went; quantiles are those of the newest 1024";
        lifetime_seconds: Histogram ["nodepool"]
            "karpenter_nodes_lifetime_duration_seconds" in LIFETIME_SECONDS,
            "Time from the creation of a Node until it was gone";
    }
    computed {
        ALLOCATABLE: Gauge [WELL_KNOWN, "node_name", "phase", "managed", "resource_type"]
            "karpenter_nodes_allocatable", "What pods may use of a node";
        TOTAL_POD_REQUESTS: Gauge [WELL_KNOWN, "node_name", "phase", "managed", "resource_type"]
            "karpenter_nodes_total_pod_requests", "What the pods of a node request, DaemonSet pods included";
        TOTAL_POD_LIMITS: Gauge [WELL_KNOWN, "node_name", "phase", "managed", "resource_type"]
            "karpenter_nodes_total_pod_limits", "What the pods of a node are limited to, DaemonSet pods included";
        TOTAL_DAEMON_REQUESTS: Gauge [WELL_KNOWN, "node_name", "phase", "managed", "resource_type"]
            "karpenter_nodes_total_daemon_requests", "What the DaemonSet pods of a node request";
        TOTAL_DAEMON_LIMITS: Gauge [WELL_KNOWN, "node_name", "phase", "managed", "resource_type"]
            "karpenter_nodes_total_daemon_limits", "What the DaemonSet pods of a node are limited to";
        SYSTEM_OVERHEAD: Gauge [WELL_KNOWN, "node_name", "phase", "managed", "resource_type"]
            "karpenter_nodes_system_overhead", "What a node has beyond what pods may use";
        CURRENT_LIFETIME: Gauge [WELL_KNOWN, "node_name", "phase", "managed"]
            "karpenter_nodes_current_lifetime_seconds", "Age of a node";
    }
    later {
        5: Counter ["result"] "karpenter_nodes_reboots_total", "Reboots that ended, by how";
        5: Histogram ["result"] "karpenter_nodes_reboot_duration_seconds" in REBOOT_SECONDS,
            "Time from the request of a reboot to its end";
        5: Histogram [] "karpenter_nodes_reboot_recovery_duration_seconds" in REBOOT_SECONDS,
            "Time from the issue of a reboot until the node was ready again";
    }
}

impl Metrics {
    pub(crate) fn node_created(&self, claim: ClaimLabels) {
        let ClaimLabels { pool, zone, capacity_type: _ } = claim;
        self.nodes.created.inc([&pool, &zone]);
    }

    pub(crate) fn node_terminated(&self, claim: ClaimLabels) {
        let ClaimLabels { pool, zone, capacity_type: _ } = claim;
        self.nodes.terminated.inc([&pool, &zone]);
    }

    pub(crate) fn node_drained(&self, claim: ClaimLabels) {
        self.nodes.drained.inc([&claim.pool]);
    }
}
