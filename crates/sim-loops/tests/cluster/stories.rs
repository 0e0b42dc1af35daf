//! Small stories on a virtual clock: objects in, time passes, a picture out.

use crate::common::{Cluster, deployment, node};
use expect_test::expect;
use serde_json::json;
use sim_loops::Order;

#[tokio::test(start_paused = true)]
async fn a_deployment_runs_on_nodes_that_became_ready() {
    let cluster = Cluster::instant();
    cluster.apply(&deployment("web", 3, "1"));
    cluster.pass(1.0).await;
    expect!["pod web#1 - Pending x3"].assert_eq(&cluster.show());
    cluster.nodes(&["n1 2 a", "n2 2 b"]);
    cluster.pass(3.0).await;
    expect![[r#"
        node n1 ready=True
        node n2 ready=True
        pod web#1 n1 Running ready x2
        pod web#1 n2 Running ready"#]]
    .assert_eq(&cluster.show());
    expect![[r#"
        FailedScheduling 3
        NodeReady 2
        ScalingReplicaSet 1
        Scheduled 3
        Started 3"#]]
    .assert_eq(&cluster.events());
}

#[tokio::test(start_paused = true)]
async fn a_deployment_scales_down_and_goes() {
    let cluster = Cluster::instant();
    cluster.nodes(&["n1 4 a", "n2 4 b"]);
    cluster.apply(&deployment("web", 4, "1"));
    cluster.pass(3.0).await;
    cluster.scale("web", 1);
    cluster.pass(60.0).await;
    expect![[r#"
        node n1 ready=True
        node n2 ready=True
        pod web#1 n1 Running ready"#]]
    .assert_eq(&cluster.show());
    cluster.delete("/apis/apps/v1/namespaces/default/deployments/web");
    cluster.pass(60.0).await;
    expect![[r#"
        node n1 ready=True
        node n2 ready=True"#]]
    .assert_eq(&cluster.show());
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_replaces_pods_within_its_limits() {
    let cluster = Cluster::instant();
    cluster.nodes(&["n1 8 a"]);
    cluster.apply(&deployment("web", 4, "1"));
    cluster.pass(5.0).await;
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    cluster.apply(&deployment("web", 4, "1").replace("pause:1", "pause:2"));
    cluster.pass(60.0).await;
    expect![[r#"
        node n1 ready=True
        pod web#2 n1 Running ready x4"#]]
    .assert_eq(&cluster.show());
    let status = cluster.get(path)["status"].clone();
    let summary = format!(
        "updated {} ready {} available {} of {}; {} {}",
        status["updatedReplicas"],
        status["readyReplicas"],
        status["availableReplicas"],
        status["replicas"],
        status["conditions"][0]["reason"],
        status["conditions"][1]["reason"],
    );
    expect![[r#"updated 4 ready 4 available 4 of 4; "MinimumReplicasAvailable" "NewReplicaSetAvailable""#]]
        .assert_eq(&summary);
}

#[tokio::test(start_paused = true)]
async fn a_recreated_deployment_waits_for_the_old_pods() {
    let cluster = Cluster::start(3, sim_loops::Pace::default());
    cluster.nodes(&["n1 8 a"]);
    let recreate = deployment("web", 2, "1").replace("  replicas", "  strategy: {type: Recreate}\n  replicas");
    cluster.apply(&recreate);
    cluster.pass(30.0).await;
    cluster.apply(&recreate.replace("pause:1", "pause:2"));
    let mut most = 0;
    for _ in 0..600 {
        cluster.pass(0.1).await;
        most = most.max(cluster.items("/api/v1/pods").len());
    }
    assert_eq!(most, 2);
    expect![[r#"
        node n1 ready=True
        pod web#2 n1 Running ready x2"#]]
    .assert_eq(&cluster.show());
}

#[tokio::test(start_paused = true)]
async fn a_machine_boots_falls_silent_and_loses_its_pods() {
    let cluster = Cluster::instant();
    cluster.order(Order::Boot(Box::new(node("n1 4 a", false))));
    cluster.apply(&deployment("web", 2, "1"));
    cluster.pass(5.0).await;
    expect![[r#"
        node n1 ready=True
        pod web#1 n1 Running ready x2"#]]
    .assert_eq(&cluster.show());
    cluster.order(Order::Silence("n1".to_owned()));
    cluster.pass(39.0).await;
    expect![[r#"
        node n1 ready=True
        pod web#1 n1 Running ready x2"#]]
    .assert_eq(&cluster.show());
    cluster.pass(2.0).await;
    expect![[r#"
        node n1 ready=Unknown unreachable:NoSchedule unreachable:NoExecute
        pod web#1 n1 Running x2"#]]
    .assert_eq(&cluster.show());
    cluster.order(Order::Speak("n1".to_owned()));
    cluster.pass(1.0).await;
    expect![[r#"
        node n1 ready=True
        pod web#1 n1 Running ready x2"#]]
    .assert_eq(&cluster.show());
    cluster.order(Order::PowerOff("n1".to_owned()));
    cluster.pass(350.0).await;
    expect![[r#"
        node n1 ready=Unknown unreachable:NoSchedule unreachable:NoExecute
        pod web#1 - Pending x2
        pod web#1 n1 Running deleting x2"#]]
    .assert_eq(&cluster.show());
    cluster.delete("/api/v1/nodes/n1");
    cluster.pass(39.0).await;
    assert!(cluster.show().contains("deleting"), "{}", cluster.show());
    cluster.pass(2.0).await;
    expect!["pod web#1 - Pending x2"].assert_eq(&cluster.show());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_nobody_reports_for_becomes_unknown() {
    let cluster = Cluster::instant();
    let mut foreign = json!(node("n1 4 a", false));
    foreign["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    cluster.must("POST", "/api/v1/nodes", "application/json", &foreign);
    cluster.pass(39.0).await;
    expect!["node n1 ready=True"].assert_eq(&cluster.show());
    cluster.pass(2.0).await;
    expect!["node n1 ready=Unknown unreachable:NoSchedule unreachable:NoExecute"].assert_eq(&cluster.show());
}

#[tokio::test(start_paused = true)]
async fn cordon_and_no_execute_taints() {
    let cluster = Cluster::instant();
    cluster.nodes(&["n1 4 a", "n2 4 b"]);
    cluster.apply(&deployment("web", 2, "1"));
    cluster.pass(3.0).await;
    cluster.patch("/api/v1/nodes/n1", json!({"spec": {"unschedulable": true}}));
    cluster.pass(1.0).await;
    cluster.patch("/api/v1/nodes/n2", json!({"spec": {"taints": [{"key": "team", "effect": "NoExecute"}]}}));
    cluster.pass(60.0).await;
    expect![[r#"
        node n1 ready=True unschedulable:NoSchedule
        node n2 ready=True team:NoExecute
        pod web#1 - Pending
        pod web#1 n1 Running ready"#]]
    .assert_eq(&cluster.show());
}

const DAEMON: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
      - {name: main, image: agent:1}
";

#[tokio::test(start_paused = true)]
async fn a_daemon_runs_on_every_node() {
    let cluster = Cluster::instant();
    cluster.apply(DAEMON);
    cluster.nodes(&["n1 4 a", "n2 4 b"]);
    cluster.pass(5.0).await;
    expect![[r#"
        node n1 ready=True
        node n2 ready=True
        pod agent n1 Running ready
        pod agent n2 Running ready"#]]
    .assert_eq(&cluster.show());
    cluster.patch("/api/v1/nodes/n1", json!({"spec": {"unschedulable": true}}));
    cluster.delete("/api/v1/nodes/n2");
    cluster.apply(&DAEMON.replace("agent:1", "agent:2"));
    cluster.pass(60.0).await;
    expect![[r#"
        node n1 ready=True unschedulable:NoSchedule
        pod agent n1 Running ready"#]]
    .assert_eq(&cluster.show());
    let status = cluster.get("/apis/apps/v1/namespaces/default/daemonsets/agent")["status"].clone();
    let summary = format!(
        "desired {} current {} updated {} available {}",
        status["desiredNumberScheduled"],
        status["currentNumberScheduled"],
        status["updatedNumberScheduled"],
        status["numberAvailable"]
    );
    expect!["desired 1 current 1 updated 1 available 1"].assert_eq(&summary);
}

const STATEFUL: &str = "apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: default}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: main, image: db:1}
";

#[tokio::test(start_paused = true)]
async fn stateful_pods_come_in_order_and_are_replaced_from_the_top() {
    let cluster = Cluster::start(5, sim_loops::Pace::default());
    cluster.nodes(&["n1 4 a"]);
    cluster.pass(20.0).await;
    cluster.apply(STATEFUL);
    let mut order = Vec::new();
    let mut see = |cluster: &Cluster| {
        for pod in cluster.items("/api/v1/pods") {
            let seen =
                format!("{} {}", pod["metadata"]["name"].as_str().unwrap(), pod["spec"]["containers"][0]["image"]);
            if !order.contains(&seen) {
                order.push(seen);
            }
        }
    };
    for step in 0..600 {
        cluster.pass(0.1).await;
        see(&cluster);
        if step == 300 {
            cluster.apply(&STATEFUL.replace("db:1", "db:2"));
        }
    }
    expect![[r#"
        db-0 "db:1"
        db-1 "db:1"
        db-2 "db:1"
        db-2 "db:2"
        db-1 "db:2"
        db-0 "db:2""#]]
    .assert_eq(&order.join("\n"));
    cluster.patch("/apis/apps/v1/namespaces/default/statefulsets/db", json!({"spec": {"replicas": 1}}));
    cluster.pass(30.0).await;
    expect![[r#"
        node n1 ready=True
        pod db-0 n1 Running ready"#]]
    .assert_eq(&cluster.show());
    let status = cluster.get("/apis/apps/v1/namespaces/default/statefulsets/db")["status"].clone();
    assert_eq!(status["currentRevision"], status["updateRevision"]);
}

fn job(name: &str, annotations: &str, spec: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: default}}
spec:
  {spec}
  template:
    metadata: {{annotations: {annotations}}}
    spec:
      restartPolicy: Never
      containers:
      - {{name: main, image: work:1}}
"
    )
}

#[tokio::test(start_paused = true)]
async fn jobs_complete_and_fail() {
    let cluster = Cluster::instant();
    cluster.nodes(&["n1 8 a"]);
    cluster.apply(&job("good", "{sim.karpenter.sh/run-for: 30s}", "completions: 3\n  parallelism: 2"));
    cluster.apply(&job("bad", "{sim.karpenter.sh/exit-code: '1'}", "backoffLimit: 2"));
    cluster.apply(&job("indexed", "{}", "completions: 4\n  parallelism: 4\n  completionMode: Indexed"));
    cluster.pass(35.0).await;
    let show = |cluster: &Cluster| {
        let jobs = cluster.items("/apis/batch/v1/jobs");
        let line = |job: &serde_json::Value| {
            let status = &job["status"];
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let conditions: Vec<&str> = conditions.iter().map(|it| it["type"].as_str().unwrap()).collect();
            format!(
                "{} active {} succeeded {} failed {} indexes {} {}",
                job["metadata"]["name"].as_str().unwrap(),
                status["active"],
                status["succeeded"],
                status["failed"],
                status["completedIndexes"],
                conditions.join(","),
            )
        };
        jobs.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        bad active null succeeded null failed 3 indexes null FailureTarget,Failed
        good active 1 succeeded 2 failed null indexes null 
        indexed active null succeeded 4 failed null indexes "0-3" SuccessCriteriaMet,Complete"#]]
    .assert_eq(&show(&cluster));
    cluster.pass(120.0).await;
    expect![[r#"
        bad active null succeeded null failed 3 indexes null FailureTarget,Failed
        good active null succeeded 3 failed null indexes null SuccessCriteriaMet,Complete
        indexed active null succeeded 4 failed null indexes "0-3" SuccessCriteriaMet,Complete"#]]
    .assert_eq(&show(&cluster));
}

#[tokio::test(start_paused = true)]
async fn budgets_count_what_may_be_evicted() {
    let cluster = Cluster::instant();
    cluster.nodes(&["n1 8 a"]);
    cluster.apply(&deployment("web", 4, "1"));
    let budget = |name: &str, rule: &str| {
        format!(
            "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: {name}, namespace: default}}
spec: {{{rule}, selector: {{matchLabels: {{app: web}}}}}}
"
        )
    };
    cluster.apply(&budget("half", "minAvailable: 50%"));
    cluster.apply(&budget("most", "minAvailable: 4"));
    cluster.apply(&budget("third", "maxUnavailable: 30%"));
    cluster.pass(5.0).await;
    let show = |cluster: &Cluster| {
        let budgets = cluster.items("/apis/policy/v1/poddisruptionbudgets");
        let line = |budget: &serde_json::Value| {
            let status = &budget["status"];
            format!(
                "{} expected {} desired {} healthy {} allowed {} {}",
                budget["metadata"]["name"].as_str().unwrap(),
                status["expectedPods"],
                status["desiredHealthy"],
                status["currentHealthy"],
                status["disruptionsAllowed"],
                status["conditions"][0]["reason"],
            )
        };
        budgets.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        half expected 4 desired 2 healthy 4 allowed 2 "SufficientPods"
        most expected 4 desired 4 healthy 4 allowed 0 "InsufficientPods"
        third expected 4 desired 2 healthy 4 allowed 2 "SufficientPods""#]]
    .assert_eq(&show(&cluster));
    cluster.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/most");
    cluster.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/half");
    let mut codes = Vec::new();
    for pod in cluster.items("/api/v1/pods").iter().take(3) {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let body =
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}});
        let path = format!("/api/v1/namespaces/default/pods/{name}/eviction");
        codes.push(cluster.call("POST", &path, "application/json", &body).0.to_string());
    }
    expect!["201 201 429"].assert_eq(&codes.join(" "));
    cluster.pass(60.0).await;
    expect![[r#"third expected 4 desired 2 healthy 4 allowed 2 "SufficientPods""#]].assert_eq(&show(&cluster));
}

#[tokio::test(start_paused = true)]
async fn an_unschedulable_pod_says_why_and_is_tried_again() {
    let cluster = Cluster::instant();
    cluster.nodes(&["n1 2 a"]);
    cluster.pass(1.0).await;
    cluster.apply(&deployment("web", 1, "3"));
    cluster.pass(1.0).await;
    let pod = cluster.items("/api/v1/pods")[0].clone();
    let condition = pod["status"]["conditions"][0].clone();
    expect![[r#""False" "Unschedulable" "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.""#]].assert_eq(&format!("{} {} {}", condition["status"], condition["reason"], condition["message"]));
    cluster.nodes(&["n2 4 a"]);
    cluster.pass(15.0).await;
    expect![[r#"
        node n1 ready=True
        node n2 ready=True
        pod web#1 n2 Running ready"#]]
    .assert_eq(&cluster.show());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_its_content_with_it() {
    let cluster = Cluster::instant();
    cluster.nodes(&["n1 2 a"]);
    cluster.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}");
    cluster.pass(1.0).await;
    assert_eq!(cluster.items("/api/v1/namespaces/shop/serviceaccounts").len(), 1);
    cluster.apply(&deployment("web", 2, "100m").replace("namespace: default", "namespace: shop"));
    cluster.pass(5.0).await;
    assert_eq!(cluster.items("/api/v1/namespaces/shop/pods").len(), 2);
    cluster.delete("/api/v1/namespaces/shop");
    cluster.pass(60.0).await;
    assert_eq!(cluster.call("GET", "/api/v1/namespaces/shop", "application/json", &json!(null)).0, 404);
    assert_eq!(cluster.items("/api/v1/pods").len(), 0);
}
