//! What the controller holds in memory about the cluster.

use super::Metrics;
use super::table::families;

families! {
    /// Metrics of the state in memory.
    ClusterMetrics {
        nodes: Gauge [] "karpenter_cluster_state_node_count", "Nodes in memory";
        synced: Gauge [] "karpenter_cluster_state_synced", "Whether everything was listed once";
    }
    computed {
        UNSYNCED: Gauge [] "karpenter_cluster_state_unsynced_time_seconds",
            "For how long the state has been incomplete; nothing once it is complete";
        UTILIZATION: Gauge ["resource_type"] "karpenter_cluster_utilization_percent",
            "How much of what pods may use of all nodes they request";
    }
    later {}
}

impl Metrics {
    #[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^53")]
    pub(crate) fn state(&self, nodes: usize, synced: bool) {
        self.cluster.nodes.set([], nodes as f64);
        self.cluster.synced.set([], f64::from(u8::from(synced)));
    }
}
