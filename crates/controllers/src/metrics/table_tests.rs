use std::collections::BTreeSet;

use super::*;

/// The metrics of the reference by name, type and labels; those of conditions follow below. What the table misnames is
/// exported and expected under the wrong name alike, so that only a second list can tell.
const REFERENCE: &str = "
karpenter_build_info gauge version goversion goarch commit
karpenter_scheduler_scheduling_duration_seconds histogram controller
karpenter_scheduler_queue_depth gauge controller scheduling_id
karpenter_scheduler_unfinished_work_seconds gauge controller scheduling_id
karpenter_scheduler_ignored_pods_count gauge
karpenter_scheduler_unschedulable_pods_count gauge controller
karpenter_scheduler_pending_pods_by_effective_zone_count gauge controller zone
karpenter_cluster_state_node_count gauge
karpenter_cluster_state_synced gauge
karpenter_cluster_state_unsynced_time_seconds gauge
karpenter_cluster_utilization_percent gauge resource_type
karpenter_nodes_allocatable gauge node_name phase managed resource_type {well-known}
karpenter_nodes_total_pod_requests gauge node_name phase managed resource_type {well-known}
karpenter_nodes_total_pod_limits gauge node_name phase managed resource_type {well-known}
karpenter_nodes_total_daemon_requests gauge node_name phase managed resource_type {well-known}
karpenter_nodes_total_daemon_limits gauge node_name phase managed resource_type {well-known}
karpenter_nodes_system_overhead gauge node_name phase managed resource_type {well-known}
karpenter_nodes_current_lifetime_seconds gauge node_name phase managed {well-known}
karpenter_nodes_created_total counter nodepool zone
karpenter_nodes_terminated_total counter nodepool zone
karpenter_nodes_drained_total counter nodepool
karpenter_nodes_termination_duration_seconds summary nodepool
karpenter_nodes_lifetime_duration_seconds histogram nodepool
karpenter_nodes_reboots_total counter result
karpenter_nodes_reboot_duration_seconds histogram result
karpenter_nodes_reboot_recovery_duration_seconds histogram
karpenter_nodeclaims_created_total counter reason nodepool min_values_relaxed
karpenter_nodeclaims_terminated_total counter nodepool capacity_type zone
karpenter_nodeclaims_disrupted_total counter reason nodepool capacity_type consolidation_policy termination_mode
karpenter_nodeclaims_instance_termination_duration_seconds histogram nodepool
karpenter_nodeclaims_termination_duration_seconds histogram nodepool
karpenter_nodeclaims_unhealthy_disrupted_total counter condition nodepool capacity_type image_id termination_mode
karpenter_nodepools_limit gauge resource_type nodepool
karpenter_nodepools_usage gauge resource_type nodepool
karpenter_nodepools_cost_total gauge nodepool
karpenter_nodepools_cost_tracker_errors_total counter nodepool
karpenter_nodepools_allowed_disruptions gauge nodepool reason
karpenter_nodepools_nodes_consuming_budgets gauge nodepool reason
karpenter_pods_state gauge name namespace owner node scheduled phase ready managed \
    nodepool zone arch capacity_type instance_type
karpenter_pods_startup_duration_seconds summary
karpenter_pods_unstarted_time_seconds gauge name namespace
karpenter_pods_unbound_time_seconds gauge name namespace dynamic_resources
karpenter_pods_bound_duration_seconds histogram dynamic_resources
karpenter_pods_provisioning_bound_duration_seconds histogram dynamic_resources
karpenter_pods_provisioning_startup_duration_seconds histogram
karpenter_pods_provisioning_unbound_time_seconds gauge name namespace dynamic_resources
karpenter_pods_provisioning_unstarted_time_seconds gauge name namespace
karpenter_pods_provisioning_scheduling_undecided_time_seconds gauge name namespace
karpenter_pods_scheduling_decision_duration_seconds histogram
karpenter_pods_disruption_initiated_total counter reason nodepool capacity_type consolidation_policy termination_mode
karpenter_pods_eviction_requests_total counter code
karpenter_pods_drained_total counter reason
karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes gauge nodepool
karpenter_pod_deletion_cost_pod_annotation_writes_total counter result
karpenter_voluntary_disruption_decision_evaluation_duration_seconds histogram reason consolidation_type
karpenter_voluntary_disruption_decisions_total counter decision reason consolidation_type
karpenter_voluntary_disruption_decisions_by_nodepool_total counter nodepool decision reason consolidation_type
karpenter_voluntary_disruption_terminate_first_decisions_total counter nodepool reason terminate_first_reason
karpenter_voluntary_disruption_eligible_nodes gauge reason
karpenter_voluntary_disruption_consolidation_timeouts_total counter consolidation_type
karpenter_voluntary_disruption_failed_validations_total counter consolidation_type
karpenter_voluntary_disruption_queue_failures_total counter decision reason consolidation_type
karpenter_consolidation_score histogram decision nodepool policy
karpenter_consolidation_moves_total counter decision nodepool policy
karpenter_cloudprovider_duration_seconds histogram controller method provider
karpenter_cloudprovider_errors_total counter controller method provider error nodepool
controller_runtime_reconcile_total counter controller result
controller_runtime_reconcile_errors_total counter controller
controller_runtime_reconcile_panics_total counter controller
controller_runtime_reconcile_time_seconds histogram controller
controller_runtime_max_concurrent_reconciles gauge controller
controller_runtime_active_workers gauge controller
workqueue_depth gauge name controller priority
workqueue_adds_total counter name controller
workqueue_queue_duration_seconds histogram name controller
workqueue_work_duration_seconds histogram name controller
workqueue_unfinished_work_seconds gauge name controller
workqueue_longest_running_processor_seconds gauge name controller
workqueue_retries_total counter name controller
leader_election_master_status gauge name
client_go_request_total counter code method
client_go_request_duration_seconds histogram verb group version kind subresource
process_cpu_seconds_total counter
process_resident_memory_bytes gauge
";

/// Which objects have metrics of their conditions: their kind in the name, and the labels that only they have. The
/// names without a kind are the older ones.
const CONDITIONS: [(&str, &str); 5] = [
    ("nodeclaim_", "{NodeClass} karpenter_sh_nodepool"),
    ("nodepool_", ""),
    ("node_", "{NodeClass} karpenter_sh_nodepool karpenter_sh_initialized"),
    ("capacitybuffer_", ""),
    ("", "group kind"),
];

fn of_conditions((kind, own): (&str, &str)) -> [String; 6] {
    [
        format!("operator_{kind}status_condition_count gauge namespace name type status reason {own}"),
        format!("operator_{kind}status_condition_current_status_seconds gauge namespace name type status reason {own}"),
        format!("operator_{kind}status_condition_transitions_total counter type status reason {own}"),
        format!("operator_{kind}status_condition_transition_seconds histogram type status to_status {own}"),
        format!("operator_{kind}termination_current_time_seconds gauge namespace name {own}"),
        format!("operator_{kind}termination_duration_seconds histogram {own}"),
    ]
}

/// OBS-01, OBS-03, OBS-04, MET-01: the table has every metric of the reference by its name, with its type and labels.
#[test]
fn the_table_has_every_metric_of_the_reference() {
    // The order of labels means nothing.
    let written = |name: &str, kind: &str, labels: &[&str]| {
        let labels: BTreeSet<&str> = labels.iter().copied().collect();
        format!("{name} {kind} {labels:?}")
    };
    let ours: BTreeSet<String> = table().map(|row| written(row.name, &row.kind.to_string(), row.labels)).collect();
    let lines = REFERENCE.lines().filter(|line| !line.is_empty()).map(ToOwned::to_owned);
    for line in lines.chain(CONDITIONS.into_iter().flat_map(of_conditions)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(ours.contains(&written(words[0], words[1], &words[2..])), "{line}");
    }
}

/// OBS-01: values fall between the bounds that dashboards were made for: how many there are, the first and the last.
#[test]
fn histograms_have_the_bounds_of_the_reference() {
    let table = [
        ("karpenter_scheduler_scheduling_duration_seconds", 45, 0.005, 600.0),
        ("karpenter_pods_bound_duration_seconds", 45, 0.005, 600.0),
        ("karpenter_pods_provisioning_bound_duration_seconds", 45, 0.005, 600.0),
        ("karpenter_pods_provisioning_startup_duration_seconds", 45, 0.005, 600.0),
        ("karpenter_pods_scheduling_decision_duration_seconds", 45, 0.005, 600.0),
        ("karpenter_voluntary_disruption_decision_evaluation_duration_seconds", 45, 0.005, 600.0),
        ("karpenter_nodes_lifetime_duration_seconds", 21, 900.0, 2_592_000.0),
        ("karpenter_nodeclaims_instance_termination_duration_seconds", 11, 1.0, 1024.0),
        ("karpenter_nodeclaims_termination_duration_seconds", 12, 1.0, 2048.0),
        ("karpenter_nodes_reboot_duration_seconds", 8, 10.0, 1280.0),
        ("karpenter_nodes_reboot_recovery_duration_seconds", 8, 10.0, 1280.0),
        ("karpenter_consolidation_score", 8, 0.1, 10.0),
        ("karpenter_cloudprovider_duration_seconds", 11, 0.005, 10.0),
        ("operator_nodeclaim_status_condition_transition_seconds", 15, 0.5, 8192.0),
        ("operator_nodeclaim_termination_duration_seconds", 15, 0.5, 8192.0),
    ];
    for (name, count, first, last) in table {
        let row = table_row(name);
        let Kind::Histogram(bounds) = row.kind else { panic!("{name} is a {}", row.kind) };
        assert_eq!((bounds.len(), bounds.first(), bounds.last()), (count, Some(&first), Some(&last)), "{name}");
    }
}

fn table_row(name: &str) -> &'static Row {
    table().find(|row| row.name == name).unwrap_or_else(|| panic!("there is no {name}"))
}

/// Names are unique, counters say that they are totals, and every row says what it tells.
#[test]
fn the_table_is_well_formed() {
    let mut names = BTreeSet::new();
    for row in table() {
        assert!(names.insert(row.name), "{} twice", row.name);
        assert!(row.kind != Kind::Counter || row.name.ends_with("_total"), "{}", row.name);
        assert!(!row.help.is_empty(), "{}", row.name);
        let labels: BTreeSet<_> = row.labels.iter().collect();
        assert_eq!(labels.len(), row.labels.len(), "{}", row.name);
        if let Kind::Histogram(bounds) = row.kind {
            assert!(bounds.is_sorted() && !bounds.is_empty(), "{}", row.name);
        }
    }
}
