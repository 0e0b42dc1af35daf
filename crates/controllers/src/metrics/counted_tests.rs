//! What is counted, under which labels.

use super::*;

fn metrics() -> Metrics {
    let word = |text: &str| text.to_owned();
    let build = Build { version: word("v"), goversion: word("g"), goarch: word("a"), commit: word("c") };
    Metrics::new(&build, Naming::default())
}

/// Every value that counting leaves behind, bounds of histograms aside.
fn counted(count: impl Fn(&Metrics)) -> Vec<String> {
    let metrics = metrics();
    let before = metrics.scrape();
    count(&metrics);
    let text = metrics.scrape();
    let is_news = |line: &&str| !line.starts_with('#') && !line.contains("_bucket{") && !before.contains(*line);
    text.lines().filter(is_news).map(|line| line.replacen("karpenter_", "", 1)).collect()
}

fn claim() -> ClaimLabels {
    ClaimLabels { pool: "web".to_owned(), zone: "a".to_owned(), capacity_type: "spot".to_owned() }
}

type Count = fn(&Metrics);

/// OBS-01, MET-01: what became of claims, nodes and pods is counted under its own name, and each label says what it is
/// called after.
#[test]
fn labels_say_what_they_are_called_after() {
    let table: [(Count, &[&str]); 9] = [
        (
            |metrics| metrics.claim_created("web", false),
            &[r#"nodeclaims_created_total{reason="provisioned",nodepool="web",min_values_relaxed="false"} 1"#],
        ),
        (
            |metrics| metrics.claim_created("web", true),
            &[r#"nodeclaims_created_total{reason="provisioned",nodepool="web",min_values_relaxed="true"} 1"#],
        ),
        (
            |metrics| metrics.claim_disrupted("empty", claim(), "graceful"),
            &[
                r#"nodeclaims_disrupted_total{reason="empty",nodepool="web",capacity_type="spot",consolidation_policy="",termination_mode="graceful"} 1"#,
            ],
        ),
        (
            |metrics| metrics.pods_disrupted("expired", claim(), "eventual", 3),
            &[
                r#"pods_disruption_initiated_total{reason="expired",nodepool="web",capacity_type="spot",consolidation_policy="",termination_mode="eventual"} 3"#,
            ],
        ),
        (
            |metrics| metrics.claim_terminated(claim()),
            &[r#"nodeclaims_terminated_total{nodepool="web",capacity_type="spot",zone="a"} 1"#],
        ),
        (|metrics| metrics.node_created(claim()), &[r#"nodes_created_total{nodepool="web",zone="a"} 1"#]),
        (|metrics| metrics.node_terminated(claim()), &[r#"nodes_terminated_total{nodepool="web",zone="a"} 1"#]),
        (|metrics| metrics.node_drained(claim()), &[r#"nodes_drained_total{nodepool="web"} 1"#]),
        (|metrics| metrics.eviction_answered(429), &[r#"pods_eviction_requests_total{code="429"} 1"#]),
    ];
    for (count, expected) in table {
        assert_eq!(counted(count), expected);
    }
}

/// OBS-01: what the solver left over, by kind and zone of waiting.
#[test]
fn pods_without_a_place_are_told_by_kind() {
    let found = counted(|metrics| {
        metrics.pods_unplaced(3, 5);
        metrics.state(7, true);
    });
    let expected = [
        "scheduler_ignored_pods_count 5",
        r#"scheduler_unschedulable_pods_count{controller="provisioner"} 3"#,
        "cluster_state_node_count 7",
        "cluster_state_synced 1",
    ];
    assert_eq!(found, expected);
}

/// OBS-01: how passes end, by controller; what is tried again counts as a retry, and a panic as an error too.
#[test]
fn passes_are_counted_by_result() {
    let table = [
        (PassResult::Success, "success", ""),
        (PassResult::RequeueAfter, "requeue_after", "retries"),
        (PassResult::Requeue, "requeue", "retries"),
        (PassResult::Error, "error", "errors retries"),
        (PassResult::Panic, "error", "errors panics retries"),
    ];
    for (result, word, more) in table {
        let metrics = metrics();
        metrics.reconciled("lane", result, std::time::Duration::from_secs(2));
        let text = metrics.scrape();
        let has = |line: &str| text.lines().any(|found| found == line);
        assert!(
            has(&format!(r#"controller_runtime_reconcile_total{{controller="lane",result="{word}"}} 1"#)),
            "{word}"
        );
        assert!(has(r#"controller_runtime_reconcile_time_seconds_sum{controller="lane"} 2"#));
        assert!(has(r#"workqueue_work_duration_seconds_sum{name="lane",controller="lane"} 2"#));
        let also = [
            ("errors", r#"controller_runtime_reconcile_errors_total{controller="lane"} 1"#),
            ("panics", r#"controller_runtime_reconcile_panics_total{controller="lane"} 1"#),
            ("retries", r#"workqueue_retries_total{name="lane",controller="lane"} 1"#),
        ];
        let found: Vec<&str> = also.iter().filter(|(_, line)| has(line)).map(|(name, _)| *name).collect();
        assert_eq!(found.join(" "), more, "{word}");
    }
}
