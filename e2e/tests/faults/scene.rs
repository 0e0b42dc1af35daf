//! What the stories begin with, and what they wait for.

use anyhow::{Context, Result, bail, ensure};
use e2e::outside::Outside;
use e2e::seen::{is_running, is_unschedulable};
use e2e::{Bed, ControllerSettings, Seen, inflate, kwok_node_class, node_pool, wait_for};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;

/// Nodes of four CPUs, each of which holds three pods of one CPU; three of them at most. Nothing is taken away, so that
/// whatever is there too many stays to be seen.
const POOL: &str = "      - key: karpenter.kwok.sh/instance-cpu
        operator: In
        values: [\"4\"]
  limits:
    cpu: \"12\"
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: Never
";

/// One pod at a time.
const BUDGET: &str = "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: inflate
  namespace: default
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app: inflate
";

/// An observer, a class, a pool with limits and a budget.
pub(crate) async fn set(bed: &impl Bed) -> Result<Outside> {
    set_with(bed, &kwok_node_class("default")).await
}

/// The same with another class.
pub(crate) async fn set_with(bed: &impl Bed, class: &str) -> Result<Outside> {
    let outside = Outside::watch(&bed.client()).await?;
    bed.apply(&[class, &node_pool("default", POOL), BUDGET].join("---\n")).await?;
    Ok(outside)
}

/// A controller that leads at once, and need not wait for the lease of one that died.
pub(crate) fn alone() -> ControllerSettings {
    ControllerSettings::default().with("DISABLE_LEADER_ELECTION", "true")
}

/// Asks for pods and waits until the scheduler has found no place for them: one batch, whatever the machine's pace.
pub(crate) async fn ask_for_pods(bed: &impl Bed, count: usize) -> Result<()> {
    bed.apply(&inflate(u32::try_from(count)?)).await?;
    let wait = |pods: &Seen<Pod>| pods.len() == count && pods.values().all(is_unschedulable);
    wait_for(bed.pods(), "pods that wait", wait).await?;
    Ok(())
}

/// Asks for another number of pods and waits until the scheduler has looked at all of them.
pub(crate) async fn scale(bed: &impl Bed, count: usize) -> Result<()> {
    bed.scale("inflate", u32::try_from(count)?).await?;
    let looked_at = |pod: &Pod| is_running(pod) || is_unschedulable(pod);
    wait_for(bed.pods(), "pods", |pods| pods.len() == count && pods.values().all(looked_at)).await?;
    Ok(())
}

/// Waits until so many pods run and no other is there.
pub(crate) async fn all_run(bed: &impl Bed, count: usize) -> Result<Seen<Pod>> {
    let run = |pods: &Seen<Pod>| pods.len() == count && pods.values().all(is_running);
    wait_for(bed.pods(), "all pods to run", run).await
}

/// The node of some pod.
pub(crate) fn node_of_any(pods: &Seen<Pod>) -> Result<String> {
    let node = pods.values().find_map(|pod| pod.spec.as_ref()?.node_name.clone());
    node.context("a running pod has a node")
}

/// Waits until a drain has begun, and the scheduler has said whether there is a node for a pod that takes another's place.
/// A scheduler that could not say it keeps silent for five minutes, and to every autoscaler such a pod is none that waits.
pub(crate) async fn is_draining(bed: &impl Bed, before: &Seen<Pod>) -> Result<()> {
    let is_answered =
        |pod: &Pod| is_unschedulable(pod) || pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let is_new = |pods: &Seen<Pod>| pods.iter().any(|(name, pod)| !before.contains_key(name) && is_answered(pod));
    wait_for(bed.pods(), "a pod that takes another's place", is_new).await?;
    Ok(())
}

/// Waits until evictions are counted again: Kubernetes' own controllers take their time, too, to come back after the API
/// server did.
pub(crate) async fn budget_counts(bed: &impl Bed) -> Result<()> {
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(bed.client(), "default");
    let allows = |budget: &PodDisruptionBudget| {
        budget.status.as_ref().is_some_and(|status| status.disruptions_allowed.unwrap_or_default() > 0)
    };
    wait_for(budgets, "a budget that allows an eviction", |budgets| budgets.values().any(allows)).await?;
    Ok(())
}

/// Waits until a node is gone.
pub(crate) async fn node_is_gone(bed: &impl Bed, node: &str) -> Result<()> {
    wait_for(bed.nodes(), "the end of a node", |nodes| !nodes.contains_key(node)).await?;
    Ok(())
}

/// Fails unless the observer has seen nothing wrong, and just so many claims from the beginning.
pub(crate) async fn check_claims(outside: &Outside, count: usize) -> Result<()> {
    let claims = outside.verdict().await?;
    ensure!(claims.len() == count, "there should have been {count} claims; there were {claims:?}");
    Ok(())
}

/// Tells a story while something else goes on that ends only with an error.
pub(crate) async fn during<T>(
    background: impl Future<Output = Result<()>>,
    story: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        ended = background => {
            ended?;
            bail!("what should have gone on came to an end")
        }
        told = story => told,
    }
}
