//! A case's nodes and running pods on the API server.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use model::{NodeName, PendingPod};
use serde_json::json;

use crate::case::{Case, Machine};
use crate::objects;

/// Whether new nodes take pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cordon {
    /// None does.
    All,
    /// All do.
    None,
}

/// What a case stands on.
pub(crate) struct Bench {
    pub(crate) pods: Api<Pod>,
    pub(crate) nodes: Api<Node>,
    case: String,
}

impl Bench {
    /// Makes the namespace, the nodes that are there and those that are planned, and the pods that run.
    pub(crate) async fn set_up(client: &Client, case: &Case, cordon: Cordon) -> Result<Self> {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": case.name}}))?;
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await.context("make the namespace")?;
        let bench = Self {
            pods: Api::namespaced(client.clone(), &case.name),
            nodes: Api::all(client.clone()),
            case: case.name.clone(),
        };
        let mut guests: BTreeMap<String, i64> = BTreeMap::new();
        let mut running = Vec::new();
        for (index, (kind, counts)) in case.snapshot().bound.iter().enumerate() {
            for (node, count) in counts {
                let node: &NodeName = node;
                let node = case.real_name(node);
                *guests.entry(node.clone()).or_default() += i64::from(*count);
                for number in 0..*count {
                    running.push(objects::running(kind, &format!("running-{index}-{number}-{node}"), &node)?);
                }
            }
        }
        let machines: Vec<&Machine> = case.existing.iter().chain(&case.planned).collect();
        bench.add_nodes(&machines, &guests, cordon).await?;
        try_join_all(running.iter().map(|pod| async { bench.pods.create(&PostParams::default(), pod).await }))
            .await
            .context("make the running pods")?;
        Ok(bench)
    }

    /// Makes nodes and waits until they are as ready as they will be.
    pub(crate) async fn add_nodes(
        &self,
        machines: &[&Machine],
        guests: &BTreeMap<String, i64>,
        cordon: Cordon,
    ) -> Result<()> {
        let cordoned = cordon == Cordon::All;
        let node =
            |machine: &&Machine| objects::node(machine, guests.get(&machine.name).copied().unwrap_or(0), cordoned);
        let nodes: Vec<Node> = machines.iter().map(node).collect::<Result<_>>()?;
        try_join_all(nodes.iter().map(|node| async { self.nodes.create(&PostParams::default(), node).await }))
            .await
            .context("make the nodes")?;
        let names: BTreeSet<&str> = machines.iter().map(|machine| machine.name.as_str()).collect();
        let ready = |node: &Node| e2e::seen::is_ready_node(node) && lifecycle_taints(node) == usize::from(cordoned);
        let settled = |seen: &e2e::Seen<Node>| names.iter().all(|name| seen.get(*name).is_some_and(ready));
        e2e::wait_for(self.nodes.clone(), "nodes to be ready", settled).await?;
        Ok(())
    }

    /// Cordons a node, or lifts it and waits until its taint is gone.
    pub(crate) async fn cordon(&self, node: &str, cordoned: bool) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": cordoned}}));
        self.nodes.patch(node, &PatchParams::default(), &patch).await.context("cordon a node")?;
        if cordoned {
            return Ok(());
        }
        e2e::wait_until("a node to be open", async || {
            let found = self.nodes.get(node).await.ok()?;
            (lifecycle_taints(&found) == 0).then_some(())
        })
        .await
    }

    pub(crate) async fn create(&self, pod: &PendingPod) -> Result<()> {
        let pod = objects::pending(pod)?;
        self.pods.create(&PostParams::default(), &pod).await.context("make a pod")?;
        Ok(())
    }

    /// Removes what was made.
    pub(crate) async fn clear(self) -> Result<()> {
        self.pods.delete_collection(&DeleteParams::default().grace_period(0), &ListParams::default()).await?;
        let mine = ListParams::default().labels(&format!("agreement={}", self.case));
        self.nodes.delete_collection(&DeleteParams::default(), &mine).await?;
        Ok(())
    }
}

/// How many taints the control plane itself keeps on a node: not ready yet, or cordoned.
fn lifecycle_taints(node: &Node) -> usize {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.filter(|taint| taint.key.starts_with("node.kubernetes.io/")).count()
}

/// The node that a pod is bound to.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// What the scheduler said when it found no node.
pub(crate) fn complaint(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?;
    found.message.as_deref()
}
