//! Lives and ends of claims that no pool stands behind, where the API server has a say.

use anyhow::{Context, Result};
use e2e::seen::{condition, is_ready, is_running};
use e2e::{Bed, Controller, ControllerSettings, Seen, Target, Wait, kwok_node_class, wait_for, wait_until};
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};

e2e::cluster_tests! {
    volumes_and_odd_quantities_hold_nobody_for_ever,
    two_budgets_hold_a_drain_back,
    a_life_ends_by_itself,
}

/// A claim of two CPUs; `extra` is appended to its spec, indented by two.
fn claim(name: &str, extra: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: {name}
spec:
  nodeClassRef:
    group: karpenter.kwok.sh
    kind: KWOKNodeClass
    name: default
  requirements:
  - key: node.kubernetes.io/instance-type
    operator: In
    values: [c-2x-amd64-linux]
{extra}"
    )
}

async fn started<B: Bed>(bed: &B, claims: &[String]) -> Result<(B::Controller, String)> {
    bed.apply(&kwok_node_class("default")).await?;
    bed.apply(&claims.join("---\n")).await?;
    let controller = bed.start_controller("controller", &ControllerSettings::default()).await?;
    let ready =
        wait_for(bed.claims(), "ready claims", |seen| seen.len() == claims.len() && seen.values().all(is_ready))
            .await?;
    let first = ready.values().next().context("a claim")?;
    Ok((controller, first.status.as_ref().and_then(|status| status.node_name.clone()).context("a node")?))
}

fn says(message: &str) -> impl Fn(&Seen<Event>) -> bool {
    let message = message.to_owned();
    move |events| events.values().any(|event| event.message.as_deref() == Some(&message))
}

/// TERM-17, LIFE-30: an attached volume holds the end of a node until it is detached. Amounts in an odd form are left as
/// they are, so every write to the claim is accepted.
async fn volumes_and_odd_quantities_hold_nobody_for_ever(bed: &impl Bed) -> Result<()> {
    let odd = "  terminationGracePeriod: 3600s
  resources:
    requests:
      cpu: 1000m
      memory: 0.5Gi
";
    let (_controller, node) = started(bed, &[claim("solo", odd)]).await?;
    bed.apply(&format!(
        "apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata:
  name: left-behind
spec:
  attacher: example.com
  nodeName: {node}
  source:
    persistentVolumeName: data
"
    ))
    .await?;
    bed.delete(Target::Claim("solo"), Wait::No).await?;
    let awaited = "Unknown AwaitingVolumeDetachment: AwaitingVolumeDetachment";
    wait_for(bed.claims(), "a claim that waits for its volume", |claims| {
        claims.values().any(|claim| condition(claim, "VolumesDetached").as_deref() == Some(awaited))
    })
    .await?;
    let message = "Awaiting deletion of bound volumeattachments (left-behind)";
    wait_for(bed.events(), "the event", says(message)).await?;
    let attachments: Api<VolumeAttachment> = Api::all(bed.client());
    attachments.delete("left-behind", &DeleteParams::default()).await?;
    wait_for(bed.claims(), "the claim's end", |claims| claims.is_empty()).await?;
    wait_for(bed.nodes(), "the node's end", |nodes| nodes.is_empty()).await?;
    Ok(())
}

const POD_WITH_TWO_BUDGETS: &str = "apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: default
  labels:
    app: web
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: one
  namespace: default
spec:
  minAvailable: 0
  selector:
    matchLabels:
      app: web
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: two
  namespace: default
spec:
  minAvailable: 0
  selector:
    matchLabels:
      app: web
";

/// TERM-08, TERM-10: the API server evicts no pod with two budgets, and says so in a success; with one it does.
async fn two_budgets_hold_a_drain_back(bed: &impl Bed) -> Result<()> {
    let (controller, _) = started(bed, &[claim("solo", "")]).await?;
    bed.apply(POD_WITH_TWO_BUDGETS).await?;
    let runs = |pods: &Seen<Pod>| pods.len() == 1 && pods.values().all(is_running);
    let before = wait_for(bed.pods(), "a running pod", runs).await?;
    bed.delete(Target::Claim("solo"), Wait::No).await?;
    let message = "Failed to drain node, eviction does not support multiple PDBs (Pod=default/web)";
    wait_for(bed.events(), "the event", says(message)).await?;
    let refused = |metrics: &str| -> Option<u64> {
        let name = "karpenter_pods_evictions_held_back_total{reason=\"several_budgets\"}";
        let line = metrics.lines().find(|line| line.starts_with(name))?;
        line.rsplit(' ').next()?.parse().ok().filter(|count| *count >= 4)
    };
    wait_until("repeated refusals", async || refused(&controller.metrics().await.ok()?)).await?;
    assert_eq!(bed.pods().get("web").await?.uid(), before["web"].uid(), "nobody was evicted");
    bed.delete(Target::Budget("two"), Wait::UntilGone).await?;
    wait_for(bed.claims(), "the claim's end", |claims| claims.is_empty()).await?;
    wait_for(bed.pods(), "the pod's end", |pods| pods.is_empty()).await?;
    Ok(())
}

/// LIFE-25: a claim goes when its life is over; one that lives longer stays.
async fn a_life_ends_by_itself(bed: &impl Bed) -> Result<()> {
    let claims = [claim("long", "  expireAfter: Never\n"), claim("short", "  expireAfter: 20s\n")];
    bed.apply(&kwok_node_class("default")).await?;
    bed.apply(&claims.join("---\n")).await?;
    let _controller = bed.start_controller("controller", &ControllerSettings::default()).await?;
    wait_for(bed.claims(), "the end of the short life", |claims| {
        claims.keys().eq(["long"]) && claims.values().all(is_ready)
    })
    .await?;
    wait_for(bed.nodes(), "one node", |nodes| nodes.len() == 1).await?;
    Ok(())
}
