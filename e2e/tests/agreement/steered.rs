//! Steered: every pod in the plan's order, with every node but the planned one cordoned.
//!
//! Cordoned nodes are still there, so that spread constraints count them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use model::{PendingPod, PodKey};

use crate::bench::{Bench, complaint, node_of};
use crate::case::Case;

/// A pod that was created while the scheduler had not heard of a cordon yet is tried again so many times.
const TRIES_MAX: usize = 5;

pub(crate) async fn run(bench: &Bench, case: &Case) -> Result<()> {
    let pods: BTreeMap<&PodKey, &PendingPod> = case.snapshot().pending.iter().map(|pod| (&pod.key, pod)).collect();
    let mut open: Option<&str> = None;
    for key in &case.plan.sequence {
        let pod = pods.get(key).with_context(|| format!("{key} is planned, but not pending"))?;
        let target = case.seats.get(key).with_context(|| format!("{key} is in the sequence, but has no place"))?;
        if open != Some(target.as_str()) {
            if let Some(previous) = open {
                bench.cordon(previous, true).await?;
            }
            bench.cordon(target, false).await?;
            open = Some(target.as_str());
        }
        seat(bench, pod, target).await?;
    }
    Ok(())
}

async fn seat(bench: &Bench, pod: &PendingPod, target: &str) -> Result<()> {
    let name = &*pod.key.name;
    for _ in 0..TRIES_MAX {
        bench.create(pod).await?;
        let answered =
            |pod: &Pod| node_of(pod).is_some() || complaint(pod).is_some_and(|text| objection(text).is_some());
        let what = format!("{name} to be bound to {target}");
        let seen = e2e::wait_for(bench.pods.clone(), &what, |seen| seen.get(name).is_some_and(answered)).await?;
        let found = seen.get(name).context("the pod is there")?;
        match (node_of(found), complaint(found)) {
            (Some(node), _) if node == target => return Ok(()),
            (None, text) => bail!("{target} rejects {name}: {}", text.unwrap_or_default()),
            (Some(_), _) => {
                bench.pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
                e2e::wait_for(bench.pods.clone(), "a pod to be gone", |seen| !seen.contains_key(name)).await?;
            }
        }
    }
    bail!("{name} is not bound to {target} although all others are cordoned")
}

/// The first reason that speaks against the one node that is open: all others are cordoned or of other seeds.
///
/// A complaint without any comes from a scheduler that has not heard yet that the node is open. It tries again.
fn objection(complaint: &str) -> Option<&str> {
    let reasons = complaint.split_once("nodes are available: ")?.1;
    let reasons = reasons.split(". ").next()?.trim_end_matches('.');
    let of_others = [
        "node(s) were unschedulable",
        "node(s) had untolerated taint",
        "node(s) didn't match Pod's node affinity/selector",
    ];
    reasons.split(", ").find(|reason| !of_others.iter().any(|other| reason.contains(other)))
}
