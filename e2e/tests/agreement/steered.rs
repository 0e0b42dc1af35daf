//! Steered: every pod in the plan's order, with every node but the planned one cordoned.
//!
//! Cordoned nodes are still there, so that spread constraints count them.

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::DeleteParams;
use model::PodKey;

use crate::bench::{Bench, complaint, is_of_others, node_of, reasons};
use crate::case::Case;

/// A pod that was created while the kube-scheduler had not heard of a cordon yet is tried again so many times.
const TRIES_MAX: usize = 5;

pub(crate) async fn run(bench: &Bench<'_>, case: &Case) -> Result<()> {
    let nodes: Vec<String> = bench.list::<Node>().await?.iter().map(ResourceExt::name_any).collect();
    try_join_all(nodes.iter().map(|node| bench.cordon(node, true))).await?;
    let mut open: Option<&str> = None;
    for key in &case.plan.sequence {
        let pod = case.pods.get(key).with_context(|| format!("{key} is planned, but not pending"))?;
        let seats = &case.carried_out.seats;
        let target = seats.get(key).with_context(|| format!("{key} is in the sequence, but has no place"))?;
        if open != Some(target.as_str()) {
            if let Some(previous) = open {
                bench.cordon(previous, true).await?;
            }
            bench.cordon(target, false).await?;
            open = Some(target.as_str());
        }
        seat(bench, key, pod, target).await?;
    }
    Ok(())
}

async fn seat(bench: &Bench<'_>, key: &PodKey, pod: &Pod, target: &str) -> Result<()> {
    let (pods, name) = (bench.pods_of(&key.namespace), &*key.name);
    for _ in 0..TRIES_MAX {
        bench.create_local(std::slice::from_ref(pod)).await?;
        let answered =
            |pod: &Pod| node_of(pod).is_some() || complaint(pod).is_some_and(|text| objection(text).is_some());
        let what = format!("{key} to be bound to {target}");
        let seen = e2e::wait_for(pods.clone(), &what, |seen| seen.get(name).is_some_and(answered)).await?;
        let found = seen.get(name).context("the pod is there")?;
        match (node_of(found), complaint(found)) {
            (Some(node), _) if node == target => return Ok(()),
            (None, text) => bail!("{target} rejects {key}: {}", text.unwrap_or_default()),
            (Some(_), _) => {
                pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
                e2e::wait_for(pods.clone(), "a pod to be gone", |seen| !seen.contains_key(name)).await?;
            }
        }
    }
    bail!("{key} is not bound to {target} although all others are cordoned")
}

/// The first reason that speaks against the one node that is open: all others are cordoned or of other clusters.
///
/// A complaint without any comes from a kube-scheduler that has not heard yet that the node is open, or that the pod's
/// volumes are there. It tries again.
fn objection(complaint: &str) -> Option<&str> {
    let is_early = |reason: &str| reason.contains("persistentvolumeclaim") || reason.contains("unbound immediate");
    reasons(complaint).find(|reason| !is_of_others(reason) && !is_early(reason))
}
