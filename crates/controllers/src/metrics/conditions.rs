//! Status conditions and terminations of objects, by kind. The names without a kind are older ones that dashboards may
//! still ask for.

use super::table::{DEFAULT_SECONDS, NODE_CLASS, families};

const SECONDS: &[f64] =
    &[0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0];

families! {
    /// Metrics of status conditions and terminations that are fed as they happen.
    ConditionMetrics {
        claim_transitions: Counter ["type", "status", "reason", NODE_CLASS, "karpenter_sh_nodepool"]
            "operator_nodeclaim_status_condition_transitions_total", "Changes of a NodeClaim's conditions";
        claim_transition_seconds: Histogram ["type", "status", "to_status", NODE_CLASS, "karpenter_sh_nodepool"]
            "operator_nodeclaim_status_condition_transition_seconds" in SECONDS,
            "For how long a NodeClaim's condition had the status that it left";
        claim_termination_seconds: Histogram [NODE_CLASS, "karpenter_sh_nodepool"]
            "operator_nodeclaim_termination_duration_seconds" in SECONDS,
            "Time from the deletion of a NodeClaim until it was gone";
        pool_transitions: Counter ["type", "status", "reason"]
            "operator_nodepool_status_condition_transitions_total", "Changes of a NodePool's conditions";
        pool_transition_seconds: Histogram ["type", "status", "to_status"]
            "operator_nodepool_status_condition_transition_seconds" in SECONDS,
            "For how long a NodePool's condition had the status that it left";
        pool_termination_seconds: Histogram []
            "operator_nodepool_termination_duration_seconds" in SECONDS,
            "Time from the deletion of a NodePool until it was gone";
        node_transitions: Counter
            ["type", "status", "reason", NODE_CLASS, "karpenter_sh_nodepool", "karpenter_sh_initialized"]
            "operator_node_status_condition_transitions_total", "Changes of a Node's conditions";
        node_transition_seconds: Histogram
            ["type", "status", "to_status", NODE_CLASS, "karpenter_sh_nodepool", "karpenter_sh_initialized"]
            "operator_node_status_condition_transition_seconds" in SECONDS,
            "For how long a Node's condition had the status that it left";
        node_termination_seconds: Histogram [NODE_CLASS, "karpenter_sh_nodepool", "karpenter_sh_initialized"]
            "operator_node_termination_duration_seconds" in SECONDS,
            "Time from the deletion of a Node until it was gone";
        buffer_transitions: Counter ["type", "status", "reason"]
            "operator_capacitybuffer_status_condition_transitions_total", "Changes of a CapacityBuffer's conditions";
        buffer_transition_seconds: Histogram ["type", "status", "to_status"]
            "operator_capacitybuffer_status_condition_transition_seconds" in SECONDS,
            "For how long a CapacityBuffer's condition had the status that it left";
        buffer_termination_seconds: Histogram []
            "operator_capacitybuffer_termination_duration_seconds" in SECONDS,
            "Time from the deletion of a CapacityBuffer until it was gone";
        transitions: Counter ["type", "status", "reason", "group", "kind"]
            "operator_status_condition_transitions_total", "Changes of an object's conditions; deprecated";
        transition_seconds: Histogram ["type", "status", "to_status", "group", "kind"]
            "operator_status_condition_transition_seconds" in DEFAULT_SECONDS,
            "For how long an object's condition had the status that it left; deprecated";
        termination_seconds: Histogram ["group", "kind"]
            "operator_termination_duration_seconds" in DEFAULT_SECONDS,
            "Time from the deletion of an object until it was gone; deprecated";
    }
    computed {
        CLAIM_COUNT: Gauge ["namespace", "name", "type", "status", "reason", NODE_CLASS, "karpenter_sh_nodepool"]
            "operator_nodeclaim_status_condition_count", "Every condition of every NodeClaim";
        CLAIM_CURRENT: Gauge ["namespace", "name", "type", "status", "reason", NODE_CLASS, "karpenter_sh_nodepool"]
            "operator_nodeclaim_status_condition_current_status_seconds",
            "For how long a NodeClaim's condition has had its status";
        CLAIM_TERMINATING: Gauge ["namespace", "name", NODE_CLASS, "karpenter_sh_nodepool"]
            "operator_nodeclaim_termination_current_time_seconds", "For how long a NodeClaim has been going";
        POOL_COUNT: Gauge ["namespace", "name", "type", "status", "reason"]
            "operator_nodepool_status_condition_count", "Every condition of every NodePool";
        POOL_CURRENT: Gauge ["namespace", "name", "type", "status", "reason"]
            "operator_nodepool_status_condition_current_status_seconds",
            "For how long a NodePool's condition has had its status";
        POOL_TERMINATING: Gauge ["namespace", "name"]
            "operator_nodepool_termination_current_time_seconds", "For how long a NodePool has been going";
        NODE_COUNT: Gauge [
            "namespace", "name", "type", "status", "reason", NODE_CLASS, "karpenter_sh_nodepool",
            "karpenter_sh_initialized"
        ]
            "operator_node_status_condition_count", "Every condition of every Node";
        NODE_CURRENT: Gauge [
            "namespace", "name", "type", "status", "reason", NODE_CLASS, "karpenter_sh_nodepool",
            "karpenter_sh_initialized"
        ]
            "operator_node_status_condition_current_status_seconds",
            "For how long a Node's condition has had its status";
        NODE_TERMINATING: Gauge ["namespace", "name", NODE_CLASS, "karpenter_sh_nodepool", "karpenter_sh_initialized"]
            "operator_node_termination_current_time_seconds", "For how long a Node has been going";
        BUFFER_COUNT: Gauge ["namespace", "name", "type", "status", "reason"]
            "operator_capacitybuffer_status_condition_count", "Every condition of every CapacityBuffer";
        BUFFER_CURRENT: Gauge ["namespace", "name", "type", "status", "reason"]
            "operator_capacitybuffer_status_condition_current_status_seconds",
            "For how long a CapacityBuffer's condition has had its status";
        BUFFER_TERMINATING: Gauge ["namespace", "name"]
            "operator_capacitybuffer_termination_current_time_seconds", "For how long a CapacityBuffer has been going";
        COUNT: Gauge ["namespace", "name", "type", "status", "reason", "group", "kind"]
            "operator_status_condition_count", "Every condition of every object; deprecated";
        CURRENT: Gauge ["namespace", "name", "type", "status", "reason", "group", "kind"]
            "operator_status_condition_current_status_seconds",
            "For how long an object's condition has had its status; deprecated";
        TERMINATING: Gauge ["namespace", "name", "group", "kind"]
            "operator_termination_current_time_seconds", "For how long an object has been going; deprecated";
    }
    later {}
}
