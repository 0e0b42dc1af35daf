//! Pods that need a place: those that wait, and those whose node is going.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::lower::PodFacts;
use jiff::Timestamp;
use model::{NodeName, PendingGroup, PodClass, PodKey};

use crate::cluster::{Cluster, Tracked};

impl Cluster {
    /// Pods that the scheduler could not place and that we may plan for.
    pub fn waiting(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.waiting.iter().filter_map(|key| self.pods.get(key))
    }

    /// Pods on nodes that are going which can be moved now, so that their new node is ready when they are evicted.
    pub fn moving(&self, now: Timestamp) -> impl Iterator<Item = &Arc<PodFacts>> {
        let leaving = self.tracked().filter_map(|tracked| match tracked {
            Tracked::Joined(claim, node) => {
                let going = claim.metadata.deletion_timestamp.is_some() || node.deletion.is_some();
                going.then(|| node.name.clone())
            }
            Tracked::Claimed(_) | Tracked::Foreign(_) => None,
        });
        let nodes: Vec<NodeName> = leaving.collect();
        nodes
            .into_iter()
            .flat_map(|node| self.pods_on(&node).collect::<Vec<_>>())
            .filter(move |pod| self.can_move(pod, now))
    }

    fn can_move(&self, pod: &PodFacts, now: Timestamp) -> bool {
        let budgets: Vec<_> = self.budgets_of(pod).collect();
        let spared = |budget: &&&Arc<api::lower::BudgetFacts>| {
            budget.allows_none_ever && (pod.is_ready || !budget.spares_only_healthy)
        };
        let held = budgets.len() > 1 || budgets.iter().any(|budget| spared(&budget));
        pod.is_reschedulable() && !pod.protection.is_active(now) && !held
    }

    /// All pods that need a place, equal ones together, oldest first.
    pub(crate) fn demand(&self, now: Timestamp) -> Vec<PendingGroup> {
        let mut groups: BTreeMap<*const PodClass, (Arc<PodClass>, Vec<&Arc<PodFacts>>)> = BTreeMap::new();
        for pod in self.waiting().chain(self.moving(now)).filter(|pod| pod.faults.is_empty()) {
            let group = groups.entry(Arc::as_ptr(&pod.class)).or_insert_with(|| (Arc::clone(&pod.class), Vec::new()));
            group.1.push(pod);
        }
        // Addresses only tell classes apart; the order that anybody sees is that of the classes themselves.
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by(|left, right| left.0.cmp(&right.0));
        let finish = |(class, mut pods): (Arc<PodClass>, Vec<&Arc<PodFacts>>)| {
            pods.sort_by(|left, right| (left.created, &left.key).cmp(&(right.created, &right.key)));
            let pods: Vec<PodKey> = pods.into_iter().map(|pod| pod.key.clone()).collect();
            PendingGroup { class, pods }
        };
        groups.into_iter().map(finish).collect()
    }
}
