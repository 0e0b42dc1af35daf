//! NodePools: what they hold, may hold, cost, and may lose at once.

use super::table::families;

families! {
    /// Metrics of NodePools that are fed as things happen.
    PoolMetrics {
        allowed_disruptions: Gauge ["nodepool", "reason"]
            "karpenter_nodepools_allowed_disruptions", "Nodes that budgets allow to disrupt now";
        nodes_consuming_budgets: Gauge ["nodepool", "reason"]
            "karpenter_nodepools_nodes_consuming_budgets", "Nodes that count against budgets now";
        deletion_cost_pending: Gauge ["nodepool"]
            "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes",
            "Nodes of a pool whose pods wait for their deletion cost";
        deletion_cost_writes: Counter ["result"]
            "karpenter_pod_deletion_cost_pod_annotation_writes_total",
            "Deletion costs written to pods, by what became of the write";
        cost_tracker_errors: Counter ["nodepool"]
            "karpenter_nodepools_cost_tracker_errors_total", "Times the price of a pool's nodes could not be told";
    }
    computed {
        LIMIT: Gauge ["resource_type", "nodepool"] "karpenter_nodepools_limit", "What a pool may hold";
        USAGE: Gauge ["resource_type", "nodepool"] "karpenter_nodepools_usage", "What a pool holds";
        COST: Gauge ["nodepool"] "karpenter_nodepools_cost_total",
            "Price of a pool's nodes per hour, NodeOverlays included; no bill";
    }
    later {}
}
