//! The way of a pod: from unschedulable to running, and back to nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use api::NodeClaim;
use e2e::seen::{condition, is_ready, is_running, is_unschedulable};
use e2e::{Bed, Controller, ControllerSettings, Seen, Target, Wait};
use e2e::{inflate, kwok_node_class, node_pool, wait_for, wait_until};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, ResourceExt};

e2e::cluster_tests! {
    inflate_comes_and_goes,
    a_budget_holds_a_drain_back,
    deleting_a_claim_moves_its_pods,
    a_full_plan_needs_no_second_round,
    startup_taints_hold_initialization,
    a_late_node_joins_although_the_controller_was_killed,
}

/// Four CPUs hold three pods of one CPU; nodes go a second after their last pod, all at once.
const SMALL: &str = "      - key: karpenter.kwok.sh/instance-cpu
        operator: In
        values: [\"4\"]
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: 1s
    budgets:
    - nodes: 100%
";

async fn started<B: Bed>(bed: &B, extra: &str) -> Result<B::Controller> {
    bed.apply(&[kwok_node_class("default"), node_pool("default", extra)].join("---\n")).await?;
    // On a busy machine the pods of one Deployment may be found unschedulable over more than a second; the tests count
    // the nodes of one batch.
    let settings = ControllerSettings::default().with("BATCH_IDLE_DURATION", "3s");
    bed.start_controller("controller", &settings).await
}

fn all_running(count: usize) -> impl Fn(&Seen<Pod>) -> bool {
    move |pods| pods.len() == count && pods.values().all(is_running)
}

fn node_of(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}

/// The whole way: 0, 10, 0.
///
/// OBS-11: events come from the source `karpenter`. PROV-34, PROV-41: a daemon's share is asked for once. API-52: the
/// hash version. TERM-24: a foreign node stays as it is. PROV-56: owner, labels and annotations.
async fn inflate_comes_and_goes(bed: &impl Bed) -> Result<()> {
    let controller = started(bed, SMALL).await?;
    let foreign = bed.add_foreign_node().await?;
    bed.apply(DAEMON).await?;
    bed.apply(&inflate(0)).await?;
    bed.scale("inflate", 10).await?;
    wait_for(bed.pods(), "ten running pods", all_running(10)).await?;
    let claims =
        wait_for(bed.claims(), "ready claims", |claims| claims.len() == 4 && claims.values().all(is_ready)).await?;
    let nodes = wait_for(bed.nodes(), "initialized nodes", |nodes| {
        nodes.values().filter(|node| node.labels().contains_key("karpenter.sh/initialized")).count() == 4
    })
    .await?;
    let pool = wait_for(bed.pools(), "the pool's count", |pools| {
        pools["default"].status.as_ref().is_some_and(|status| status.nodes == 4)
    })
    .await?
    .remove("default")
    .context("the pool")?;

    for (name, claim) in &claims {
        assert!(name.starts_with("default-"), "{name}");
        assert_eq!(claim.owner_references()[0].name, "default");
        for key in ["karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version"] {
            assert_eq!(claim.annotations().get(key), pool.annotations().get(key), "{key}");
        }
        assert_eq!(claim.annotations()["karpenter.sh/nodepool-hash-version"], "v3");
        let requests =
            claim.spec.resources.as_ref().and_then(|resources| resources.requests.clone()).context("requests")?;
        assert!(["3100m", "1100m"].contains(&requests["cpu"].0.as_str()), "pods and daemon: {requests:?}");
        let node_name = claim.status.as_ref().and_then(|status| status.node_name.clone()).context("a node name")?;
        let node = &nodes[&node_name];
        for (key, value) in [("karpenter.sh/nodepool", "default"), ("karpenter.sh/registered", "true")] {
            assert_eq!(node.labels().get(key).map(String::as_str), Some(value));
        }
        assert_eq!(node.labels().get("karpenter.sh/capacity-type"), claim.labels().get("karpenter.sh/capacity-type"));
        assert!(node.labels()["node.kubernetes.io/instance-type"].ends_with("-4x-amd64-linux"), "{:?}", node.labels());
        assert_eq!(node.finalizers(), ["karpenter.sh/termination"]);
        assert_eq!(node.owner_references()[0].uid, claim.uid().context("a uid")?);
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        assert!(taints.is_empty(), "{taints:?}");
    }
    if let Some(table) = bed.kubectl(&["get", "nodes", "-L", "node.kubernetes.io/instance-type"])? {
        assert_eq!(table.matches("-4x-amd64-linux").count(), 4, "{table}");
    }
    wait_for(bed.events(), "a nomination by karpenter", |events| events.values().any(is_nomination)).await?;

    bed.scale("inflate", 0).await?;
    wait_for(bed.claims(), "no claims", |claims| claims.is_empty()).await?;
    wait_for(bed.nodes(), "only the foreign node", |nodes| nodes.len() == 1).await?;
    bed.check_foreign_node(&foreign).await?;
    let metrics = controller.metrics().await?;
    for line in [
        "karpenter_nodeclaims_created_total{reason=\"provisioned\",nodepool=\"default\",min_values_relaxed=\"false\"} 4",
        "karpenter_nodeclaims_disrupted_total{reason=\"empty\",nodepool=\"default\",capacity_type=\"spot\",consolidation_policy=\"\",termination_mode=\"graceful\"} 4",
        "karpenter_cluster_state_synced 1",
    ] {
        assert!(metrics.contains(line), "`{line}` is missing in\n{metrics}");
    }
    controller.stop().await
}

fn is_nomination(event: &Event) -> bool {
    let is_ours = event.source.as_ref().and_then(|source| source.component.as_deref()) == Some("karpenter");
    let message = event.message.as_deref().unwrap_or_default();
    is_ours
        && event.reason.as_deref() == Some("Nominated")
        && message.starts_with("Pod should schedule on: nodeclaim/default-")
}

/// It runs on our nodes and not on the foreign one.
const DAEMON: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: agent
  namespace: kube-system
spec:
  selector:
    matchLabels:
      app: agent
  template:
    metadata:
      labels:
        app: agent
    spec:
      containers:
      - name: main
        image: registry.k8s.io/pause:3.10
        resources:
          requests:
            cpu: 100m
";

/// TERM-01, TERM-02, TERM-07: a budget holds a drain back for as long as it lasts, and nobody is evicted meanwhile.
async fn a_budget_holds_a_drain_back(bed: &impl Bed) -> Result<()> {
    let controller = started(bed, SMALL).await?;
    bed.apply(&inflate(2)).await?;
    let before = wait_for(bed.pods(), "two running pods", all_running(2)).await?;
    bed.apply(BUDGET).await?;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(bed.client(), "default");
    wait_for(budgets, "a budget that counts", |budgets| {
        let status = budgets.get("inflate").and_then(|budget| budget.status.as_ref());
        status.and_then(|status| status.observed_generation) == Some(1)
    })
    .await?;
    let node = before.values().map(node_of).next().context("a node")?;
    bed.delete(Target::Node(&node), Wait::No).await?;

    let tainted = |nodes: &Seen<Node>| {
        let taints = nodes.get(&node).and_then(|node| node.spec.as_ref()).and_then(|spec| spec.taints.clone());
        taints.unwrap_or_default().iter().any(|taint| taint.key == "karpenter.sh/disrupted")
    };
    let nodes = wait_for(bed.nodes(), "the disrupted taint", tainted).await?;
    let goes_too = |claims: &Seen<NodeClaim>| {
        let is_of_node =
            |claim: &&NodeClaim| claim.status.as_ref().and_then(|status| status.node_name.as_ref()) == Some(&node);
        claims.values().find(is_of_node).is_some_and(|claim| claim.metadata.deletion_timestamp.is_some())
    };
    wait_for(bed.claims(), "a claim that goes with its node", goes_too).await?;
    let label = nodes[&node].labels().get("node.kubernetes.io/exclude-from-external-load-balancers");
    assert_eq!(label.map(String::as_str), Some("karpenter"));
    let refused = |metrics: &str| -> Option<u64> {
        let line =
            metrics.lines().find(|line| line.starts_with("karpenter_pods_eviction_requests_total{code=\"429\"}"))?;
        line.rsplit(' ').next()?.parse().ok().filter(|count| *count >= 6)
    };
    wait_until("evictions that the budget refused", async || refused(&controller.metrics().await.ok()?)).await?;
    let held = bed.pods().list(&kube::api::ListParams::default()).await?;
    let uids = |pods: Vec<Pod>| pods.into_iter().filter_map(|pod| pod.uid()).collect::<BTreeSet<_>>();
    assert_eq!(uids(held.items), uids(before.into_values().collect()), "nobody was evicted");
    wait_for(bed.events(), "the event", |events| {
        events.values().any(|event| {
            let message = event.message.as_deref().unwrap_or_default();
            message.starts_with("Failed to drain node, evicting pod violates a PDB (Pod=default/inflate-")
        })
    })
    .await?;

    bed.delete(Target::Budget("inflate"), Wait::UntilGone).await?;
    wait_for(bed.nodes(), "the node's end", |nodes| !nodes.contains_key(&node)).await?;
    wait_for(bed.claims(), "one claim", |claims| claims.len() == 1 && claims.values().all(is_ready)).await?;
    wait_for(bed.pods(), "two running pods", all_running(2)).await?;
    Ok(())
}

const BUDGET: &str = "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: inflate
  namespace: default
spec:
  minAvailable: 2
  selector:
    matchLabels:
      app: inflate
";

/// TERM-02, LIFE-19, PROV-09: deleting a claim moves its pods to a new node that was made for them, then all is gone.
async fn deleting_a_claim_moves_its_pods(bed: &impl Bed) -> Result<()> {
    let _controller = started(bed, SMALL).await?;
    bed.apply(&inflate(3)).await?;
    let before = wait_for(bed.pods(), "three running pods", all_running(3)).await?;
    let claims =
        wait_for(bed.claims(), "a ready claim", |claims| claims.len() == 1 && claims.values().all(is_ready)).await?;
    let (name, _) = claims.first_key_value().context("a claim")?;
    bed.delete(Target::Claim(name), Wait::UntilGone).await?;
    let after = wait_for(bed.pods(), "three other running pods", |pods| {
        all_running(3)(pods) && pods.keys().all(|pod| !before.contains_key(pod))
    })
    .await?;
    let old: BTreeSet<String> = before.values().map(node_of).collect();
    assert!(after.values().all(|pod| !old.contains(&node_of(pod))), "{old:?}");
    wait_for(bed.nodes(), "the old node's end", |nodes| {
        nodes.len() == 1 && nodes.keys().all(|node| !old.contains(node))
    })
    .await?;
    Ok(())
}

/// LIFE-11, LIFE-15, PROV-25: startup taints do not keep pods from getting a node, hold initialization until
/// somebody takes them away, and do not come back.
async fn startup_taints_hold_initialization(bed: &impl Bed) -> Result<()> {
    let _controller = started(
        bed,
        "      startupTaints:
      - key: example.com/agent
        effect: NoSchedule
",
    )
    .await?;
    bed.apply(&inflate(1)).await?;
    let waiting = "Unknown StartupTaintsExist: StartupTaint \"example.com/agent:NoSchedule\" still exists";
    let claims = wait_for(bed.claims(), "a claim that waits for its startup taint", |claims| {
        claims.values().any(|claim| condition(claim, "Initialized").as_deref() == Some(waiting))
    })
    .await?;
    let claim = claims.values().next().context("a claim")?;
    let node = claim.status.as_ref().and_then(|status| status.node_name.clone()).context("a node")?;
    bed.untaint(&node, "example.com/agent").await?;
    wait_for(bed.claims(), "an initialized claim", |claims| claims.len() == 1 && claims.values().all(is_ready)).await?;
    wait_for(bed.pods(), "a running pod", all_running(1)).await?;
    let taints = bed.nodes().get(&node).await?.spec.and_then(|spec| spec.taints).unwrap_or_default();
    assert!(taints.is_empty(), "{taints:?}");
    Ok(())
}

/// KWOK-06: the node joins after the class's delay, even if the controller that launched it is dead by then.
async fn a_late_node_joins_although_the_controller_was_killed(bed: &impl Bed) -> Result<()> {
    let class = format!("{}spec:\n  nodeRegistrationDelay: 8s\n", kwok_node_class("default"));
    bed.apply(&[class, node_pool("default", SMALL), inflate(1)].join("---\n")).await?;
    let settings = ControllerSettings::default().with("DISABLE_LEADER_ELECTION", "true");
    let first = bed.start_controller("first", &settings).await?;
    let launched = wait_for(bed.claims(), "a launched claim", |claims| {
        claims.values().any(|claim| condition(claim, "Launched").is_some_and(|text| text.starts_with("True")))
    })
    .await?;
    first.kill().await?;
    assert!(bed.nodes().list(&kube::api::ListParams::default()).await?.items.is_empty(), "the node is still to come");
    let _second = bed.start_controller("second", &settings).await?;
    let claims = wait_for(bed.claims(), "a ready claim", |claims| claims.values().all(is_ready)).await?;
    assert_eq!(claims.keys().collect::<Vec<_>>(), launched.keys().collect::<Vec<_>>(), "the same claim, no other");
    wait_for(bed.pods(), "a running pod", all_running(1)).await?;
    Ok(())
}

/// Two nodes hold four pods if the large one gets what the small one leaves. The scheduler, which takes pods in the order in
/// which they came, would spread them so that the large one finds room nowhere: its seat is kept.
async fn a_full_plan_needs_no_second_round(bed: &impl Bed) -> Result<()> {
    for (name, cpu) in [("small", "900m"), ("one", "1900m"), ("two", "1900m"), ("large", "2900m")] {
        let pod = format!(
            "apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: default
spec:
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
    resources:
      requests:
        cpu: {cpu}
"
        );
        bed.apply(&pod).await?;
        wait_for(bed.pods(), "a pod that waits", |pods| pods.get(name).is_some_and(is_unschedulable)).await?;
        // Times of creation are told in seconds.
        bed.endure(Duration::from_millis(1100), Duration::from_millis(1100)).await;
    }
    let controller = started(bed, SMALL).await?;
    let pods = wait_for(bed.pods(), "four running pods", all_running(4)).await?;
    assert_eq!(node_of(&pods["small"]), node_of(&pods["large"]));
    assert_eq!(node_of(&pods["one"]), node_of(&pods["two"]));
    let metrics = controller.metrics().await?;
    let created = metrics.lines().filter(|line| line.starts_with("karpenter_nodeclaims_created_total{"));
    let created: f64 = created.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
    assert!((created - 2.0).abs() < 0.5, "{created} claims");
    controller.stop().await
}
