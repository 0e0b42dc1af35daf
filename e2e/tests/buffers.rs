//! Room that is kept free, and pods that leave first, under the role that ships.

use anyhow::{Context, Result};
use api::CapacityBuffer;
use e2e::seen::is_running;
use e2e::{Bed, Controller, ControllerSettings, Seen, inflate, kwok_node_class, node_pool, wait_for, wait_until};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, DeleteParams};
use kube::{Resource, ResourceExt};

e2e::cluster_tests! {
    room_follows_a_deployment,
    room_follows_a_pod_template,
    pods_say_who_should_leave_first,
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

async fn started<B: Bed>(bed: &B, gate: &str) -> Result<B::Controller> {
    bed.apply(&[kwok_node_class("default"), node_pool("default", SMALL)].join("---\n")).await?;
    start(bed, gate).await
}

async fn start<B: Bed>(bed: &B, gate: &str) -> Result<B::Controller> {
    let settings = ControllerSettings::default().with("BATCH_IDLE_DURATION", "3s");
    bed.start_controller("controller", &settings.with("FEATURE_GATES", &format!("{gate}=true"))).await
}

fn all_running(count: usize) -> impl Fn(&Seen<Pod>) -> bool {
    move |pods| pods.len() == count && pods.values().all(is_running)
}

fn buffers(bed: &impl Bed) -> Api<CapacityBuffer> {
    Api::namespaced(bed.client(), "default")
}

/// Whether the buffer `spare` keeps room for so many pods, and all of it is there.
fn has_room(replicas: i32) -> impl Fn(&Seen<CapacityBuffer>) -> bool {
    move |buffers| {
        let Some(status) = buffers.get("spare").and_then(|buffer| buffer.status.as_ref()) else { return false };
        let is_there = status.conditions.iter().flatten().any(|found| {
            found.type_ == "Provisioning"
                && found.reason == "FitsExistingCapacity"
                && found.message == format!("All {replicas} virtual pods fit on existing capacity")
        });
        status.replicas == Some(replicas) && is_there
    }
}

const OF_DEPLOYMENT: &str = "apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata:
  name: spare
  namespace: default
spec:
  scalableRef:
    apiGroup: apps
    kind: Deployment
    name: inflate
  percentage: 100
";

/// BUF-02, BUF-06, BUF-10, BUF-11, BUF-13: as much room as the Deployment has pods, wherever that is, until the buffer
/// is deleted.
async fn room_follows_a_deployment(bed: &impl Bed) -> Result<()> {
    let controller = started(bed, "CapacityBuffer").await?;
    bed.apply(OF_DEPLOYMENT).await?;
    let waits = |buffers: &Seen<CapacityBuffer>| {
        let status = buffers.get("spare").and_then(|buffer| buffer.status.as_ref());
        let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|found| found.reason == "ScalableRefNotFound")
    };
    wait_for(buffers(bed), "a buffer that waits for its Deployment", waits).await?;
    bed.apply(&inflate(2)).await?;
    wait_for(bed.pods(), "two running pods", all_running(2)).await?;
    wait_for(buffers(bed), "room for two", has_room(2)).await?;
    wait_for(bed.claims(), "two claims for two pods and room for two", |claims| claims.len() == 2).await?;
    bed.scale("inflate", 4).await?;
    wait_for(bed.pods(), "four running pods", all_running(4)).await?;
    wait_for(buffers(bed), "room for four", has_room(4)).await?;
    wait_for(bed.claims(), "a claim more", |claims| claims.len() == 3).await?;
    if let Some(table) = bed.kubectl(&["get", "capacitybuffers", "spare"])? {
        assert!(table.contains("buffer.x-k8s.io/active-capacity"), "{table}");
    }
    buffers(bed).delete("spare", &DeleteParams::default()).await?;
    wait_for(bed.claims(), "no claim without pods", |claims| claims.len() == 2).await?;
    bed.scale("inflate", 0).await?;
    wait_for(bed.claims(), "no claims", |claims| claims.is_empty()).await?;
    controller.stop().await
}

const OF_POD_TEMPLATE: &str = "apiVersion: v1
kind: PodTemplate
metadata:
  name: small
  namespace: default
template:
  metadata:
    labels:
      app: small
  spec:
    containers:
    - name: main
      image: registry.k8s.io/pause:3.10
      resources:
        requests:
          cpu: \"1\"
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata:
  name: spare
  namespace: default
spec:
  podTemplateRef:
    name: small
  limits:
    cpu: \"4\"
";

/// BUF-04, BUF-09, BUF-12: room for as many pods as the limits allow, on nodes that stay although they are empty.
async fn room_follows_a_pod_template(bed: &impl Bed) -> Result<()> {
    let controller = started(bed, "CapacityBuffer").await?;
    bed.apply(OF_POD_TEMPLATE).await?;
    let seen = wait_for(buffers(bed), "room for four", has_room(4)).await?;
    let status = seen["spare"].status.as_ref().context("a status")?;
    assert_eq!(status.pod_template_ref.as_ref().map(|found| found.name.as_str()), Some("small"));
    assert_eq!(status.pod_template_generation, Some(1));
    wait_for(bed.claims(), "two claims", |claims| claims.len() == 2).await?;
    let is_kept = |event: &Event| {
        event.reason.as_deref() == Some("Unconsolidatable")
            && event.message.as_deref().is_some_and(|message| message.ends_with("has buffer pods"))
    };
    wait_for(bed.events(), "events at nodes and claims", |events| {
        events.values().filter(|one| is_kept(one)).count() == 4
    })
    .await?;
    bed.apply(&OF_POD_TEMPLATE.replace("app: small", "app: tiny")).await?;
    wait_for(buffers(bed), "the next generation", |buffers| {
        buffers["spare"].status.as_ref().is_some_and(|status| status.pod_template_generation == Some(2))
    })
    .await?;
    assert_eq!(bed.claims().list(&kube::api::ListParams::default()).await?.items.len(), 2);
    controller.stop().await
}

/// PDC-01, PDC-03, PDC-05: pods of ReplicaSets get a cost, and keep their other annotations.
async fn pods_say_who_should_leave_first(bed: &impl Bed) -> Result<()> {
    let controller = started(bed, "PodDeletionCostManagement").await?;
    let annotated = inflate(4).replace(
        "        app: inflate\n    spec:",
        "        app: inflate\n      annotations:\n        own: kept\n    spec:",
    );
    bed.apply(&annotated).await?;
    let pods = wait_for(bed.pods(), "four running pods", all_running(4)).await?;
    wait_for(bed.claims(), "two claims", |claims| claims.len() == 2).await?;
    // The first round of a process is right after its start.
    controller.stop().await?;
    let controller = start(bed, "PodDeletionCostManagement").await?;
    let cost = |pod: &Pod| pod.annotations().get("controller.kubernetes.io/pod-deletion-cost").cloned();
    let seen = wait_for(bed.pods(), "costs", |pods| pods.values().all(|pod| cost(pod).is_some())).await?;
    assert!(seen.iter().all(|(name, pod)| pods[name].meta().uid == pod.meta().uid), "nobody was replaced");
    assert!(seen.values().all(|pod| pod.annotations().get("own").is_some_and(|own| own == "kept")));
    let mut by_node: Vec<(String, usize)> = Vec::new();
    for pod in seen.values() {
        let cost = cost(pod).unwrap_or_default();
        match by_node.iter_mut().find(|(known, _)| *known == cost) {
            Some((_, count)) => *count += 1,
            None => by_node.push((cost, 1)),
        }
    }
    by_node.sort();
    // The node with one pod saves as much as the one with three, and moves less.
    assert!(by_node.iter().map(|(cost, _)| cost.as_str()).eq(["-1", "-2"]), "{by_node:?}");
    // The API server shows what was written before the controller hears of it.
    let line = "karpenter_pod_deletion_cost_pod_annotation_writes_total{result=\"updated\"} 4";
    wait_until("four writes", async || {
        let metrics = controller.metrics().await.unwrap_or_default();
        metrics.contains(line).then_some(())
    })
    .await?;
    controller.stop().await
}
