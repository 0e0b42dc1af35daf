//! Whether a machine may be disrupted at all, whoever wants to. Pure.

use std::fmt;
use std::sync::Arc;

use api::lower::{BudgetFacts, NodeFacts, Owner, PodFacts};
use api::{NodeClaim, NodePool, labels};
use jiff::Timestamp;
use model::{Effect, PodKey, PoolName, Taint, first_untolerated};
use state::{Cluster, Tracked};

use crate::lifecycle::name_of;

/// A machine that may be disrupted.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) claim: Arc<NodeClaim>,
    pub(crate) node: Arc<NodeFacts>,
    pub(crate) pool: Arc<NodePool>,
}

/// Why a machine may not be disrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// It is not ours.
    Foreign,
    /// Its node has not joined.
    NoNode,
    /// It is going already.
    Going,
    /// Its node is not registered.
    Unregistered,
    /// Its node is not usable yet.
    Uninitialized,
    /// Pods are on their way to it.
    Nominated,
    /// Its owner asked for it.
    NodeProtected,
    /// Its node says no pool.
    NoPoolLabel,
    /// Its pool is not there, or nobody knows what the pool can buy.
    NoPool { pool: PoolName },
    /// A pod on it, be it a daemon, asked for it.
    PodProtected { pod: PodKey },
    /// A disruption budget allows no eviction now.
    Budget { budget: String },
    /// The eviction API knows no way to evict a pod with several budgets.
    SeveralBudgets { budgets: Vec<String> },
}

impl fmt::Display for Blocked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => formatter.write_str("node isn't managed by karpenter"),
            Self::NoNode => formatter.write_str("nodeclaim does not have an associated node"),
            Self::Going => formatter.write_str("node is deleting or marked for deletion"),
            Self::Unregistered => formatter.write_str("node isn't initialized nor registered"),
            Self::Uninitialized => formatter.write_str("node isn't initialized"),
            Self::Nominated => formatter.write_str("node is nominated for a pending pod"),
            Self::NodeProtected => {
                write!(formatter, "disruption is blocked through the \"{}\" annotation", labels::DO_NOT_DISRUPT)
            }
            Self::NoPoolLabel => {
                write!(formatter, "node doesn't have required label (label={})", labels::NODE_POOL)
            }
            Self::NoPool { pool } => write!(formatter, "NodePool not found (NodePool={pool})"),
            Self::PodProtected { pod } => {
                write!(formatter, "pod has \"{}\" annotation (Pod={pod})", labels::DO_NOT_DISRUPT)
            }
            Self::Budget { budget } => {
                write!(formatter, "pdb prevents pod evictions (PodDisruptionBudget=[{budget}])")
            }
            Self::SeveralBudgets { budgets } => {
                let budgets = budgets.join(" ");
                write!(formatter, "eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{budgets}])")
            }
        }
    }
}

impl Blocked {
    /// The reason as a sentence, as events have it.
    pub(super) fn sentence(&self) -> String {
        let text = self.to_string();
        let mut letters = text.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }
}

/// Judges a machine by itself, then by its pods; the first reason counts.
pub(crate) fn candidate(cluster: &Cluster, machine: &Tracked, now: Timestamp) -> Result<Candidate, Blocked> {
    let candidate = by_itself(cluster, machine, now)?;
    by_its_pods(cluster, &candidate.node, now)?;
    Ok(candidate)
}

/// What speaks against disrupting a machine, whatever runs on it.
pub(crate) fn by_itself(cluster: &Cluster, machine: &Tracked, now: Timestamp) -> Result<Candidate, Blocked> {
    let (claim, node) = match machine {
        Tracked::Foreign(_) => return Err(Blocked::Foreign),
        Tracked::Claimed(_) => return Err(Blocked::NoNode),
        Tracked::Joined(claim, node) => (Arc::clone(claim), Arc::clone(node)),
    };
    if claim.metadata.deletion_timestamp.is_some() || node.deletion.is_some() {
        return Err(Blocked::Going);
    }
    if !node.is_labelled(labels::INITIALIZED) {
        let is_registered = node.is_labelled(labels::REGISTERED);
        return Err(if is_registered { Blocked::Uninitialized } else { Blocked::Unregistered });
    }
    // A node that is on its way is nominated again and again while pods wait for it: that it is not usable yet is what
    // people should read.
    if cluster.is_nominated(&name_of(&claim), &node.name, now) {
        return Err(Blocked::Nominated);
    }
    if node.annotations.get(labels::DO_NOT_DISRUPT).is_some_and(|value| value == "true") {
        return Err(Blocked::NodeProtected);
    }
    let pool = node.labels.get(labels::NODE_POOL).ok_or(Blocked::NoPoolLabel)?;
    let name = PoolName::new(pool.as_str());
    let is_sold = cluster.types(&name).is_some_and(|types| !types.is_empty());
    let pool = cluster.pool(&name).filter(|_| is_sold).cloned();
    let pool = pool.ok_or(Blocked::NoPool { pool: name })?;
    Ok(Candidate { claim, node, pool })
}

/// What the pods of a node have against its disruption. Whoever drains within a bound may leave this question out.
pub(crate) fn by_its_pods(cluster: &Cluster, node: &NodeFacts, now: Timestamp) -> Result<(), Blocked> {
    let is_protected = |pod: &&Arc<PodFacts>| pod.is_active() && pod.protection.is_active(now);
    if let Some(pod) = cluster.pods_on(&node.name).find(is_protected) {
        return Err(Blocked::PodProtected { pod: pod.key.clone() });
    }
    for pod in cluster.pods_on(&node.name).filter(|pod| is_evictable(pod, now)) {
        let budgets: Vec<&Arc<BudgetFacts>> = cluster.budgets_of(pod).collect();
        match budgets.as_slice() {
            [] => {}
            [budget] => {
                let is_spared = budget.spares_only_healthy && !pod.is_ready;
                if budget.allowed <= 0 && !is_spared {
                    return Err(Blocked::Budget { budget: name_of_budget(budget) });
                }
            }
            several => {
                let budgets = several.iter().map(|budget| name_of_budget(budget)).collect();
                return Err(Blocked::SeveralBudgets { budgets });
            }
        }
    }
    Ok(())
}

fn name_of_budget(budget: &BudgetFacts) -> String {
    format!("{}/{}", budget.namespace, budget.name)
}

/// Whether a drain would ask the eviction API for this pod.
fn is_evictable(pod: &PodFacts, now: Timestamp) -> bool {
    let disrupted = [Taint::new(labels::DISRUPTED_TAINT, "", Effect::NoSchedule)];
    let stays = first_untolerated(&disrupted, &pod.class.tolerations).is_none();
    pod.is_active() && !stays && pod.owner != Owner::Node && !pod.protection.is_active(now)
}

#[cfg(test)]
#[path = "candidate_tests.rs"]
mod tests;
