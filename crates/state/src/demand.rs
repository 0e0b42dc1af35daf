//! Pods that need a place: those that wait, those whose node is going, and those that stand for room to keep free.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::lower::{BudgetFacts, PodFacts, PodFault};
use jiff::Timestamp;
use model::{BoundPods, NodeName, PendingPod, Purpose};

use crate::cluster::{Cluster, Tracked};
use crate::default_spread::Spreader;

impl Cluster {
    /// Pods that the scheduler could not place and that we may plan for.
    pub fn waiting(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.waiting.iter().filter_map(|key| self.pods.get(key))
    }

    /// Why a pod cannot be planned; empty for pods that can.
    pub fn faults_of(&self, pod: &PodFacts) -> BTreeSet<PodFault> {
        let mut faults = pod.faults.clone();
        faults.extend(self.storage.resolve(pod).err());
        faults
    }

    /// Pods on nodes that are going which can be moved now, so that their new node is ready when they are evicted.
    pub(crate) fn moving(&self, machines: &[Tracked], now: Timestamp) -> Vec<&Arc<PodFacts>> {
        let going = machines.iter().filter_map(going_node);
        going.flat_map(|node| self.pods_on(node)).filter(|pod| self.can_move(pod, now)).collect()
    }

    fn can_move(&self, pod: &PodFacts, now: Timestamp) -> bool {
        let spared = |budget: &BudgetFacts| budget.allows_none_ever && (pod.is_ready || !budget.spares_only_healthy);
        let budgets: Vec<_> = self.budgets_of(pod).collect();
        let held = budgets.len() > 1 || budgets.iter().any(|budget| spared(budget));
        pod.is_reschedulable() && !pod.protection.is_active(now) && !held
    }

    /// All pods that need a place and can be planned, and the pods that run elsewhere. A pod that has to move is not
    /// counted where it still is: the rules of others will meet it at its new place.
    pub(crate) fn demand(&self, machines: &[Tracked], now: Timestamp) -> Demand {
        let mut demand = Demand { pending: Vec::with_capacity(self.waiting.len()), bound: self.bound.clone() };
        let mut spreader = Spreader::new(&self.groupings);
        let mut pending = |pod: &PodFacts| {
            let volumes = self.storage.resolve(pod).ok().filter(|_| pod.faults.is_empty())?;
            Some(PendingPod {
                key: pod.key.clone(),
                created: pod.created.as_second(),
                class: spreader.class_of(pod),
                labels: Arc::clone(&pod.kind.labels),
                volumes,
                purpose: Purpose::Work,
            })
        };
        demand.pending.extend(self.waiting().filter_map(|pod| pending(pod)));
        for pod in self.moving(machines, now) {
            let Some(moved) = pending(pod) else { continue };
            demand.pending.push(moved);
            if let Some(node) = pod.node.as_ref().filter(|node| pod.is_active() && self.nodes.contains_key(*node)) {
                demand.bound.take(&pod.kind, node);
            }
        }
        demand.pending.extend(self.headroom_pods());
        demand
    }
}

/// Who needs a place, and who has one.
pub(crate) struct Demand {
    pub(crate) pending: Vec<PendingPod>,
    pub(crate) bound: BoundPods,
}

/// The node of a machine of ours that is going.
fn going_node(machine: &Tracked) -> Option<&NodeName> {
    match machine {
        Tracked::Joined(claim, node) => {
            let going = claim.metadata.deletion_timestamp.is_some() || node.deletion.is_some();
            going.then_some(&node.name)
        }
        Tracked::Claimed(_) | Tracked::Foreign(_) => None,
    }
}
