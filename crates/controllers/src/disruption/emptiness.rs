//! Empty nodes, and what keeps them. Pure.

use std::fmt;
use std::sync::Arc;

use api::lower::NodeFacts;
use api::node_claim::conditions;
use api::{ConditionStatus, NodeClaim, labels};
use jiff::Timestamp;
use model::{PodKey, PoolName};
use state::{Cluster, Tracked};

use super::budget::Census;
use crate::lifecycle::{labels_of, name_of};

/// An empty node whose quiet time is over.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) claim: Arc<NodeClaim>,
    pub(super) node: Arc<NodeFacts>,
    /// Why it stays nevertheless.
    pub(super) blocker: Option<Blocker>,
}

/// What keeps an empty node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Blocker {
    /// Pods are on their way to it.
    Nominated,
    /// Its owner asked for it.
    NodeProtected,
    /// A pod on it, be it a daemon, asked for it.
    PodProtected { pod: PodKey },
}

impl fmt::Display for Blocker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nominated => formatter.write_str("Node is nominated for a pending pod"),
            Self::NodeProtected => {
                formatter.write_str("Disruption is blocked through the \"karpenter.sh/do-not-disrupt\" annotation")
            }
            Self::PodProtected { pod } => {
                write!(formatter, "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod={pod})")
            }
        }
    }
}

/// Nodes of ours that are usable, quiet for long enough, and run nothing that would need another node.
pub(super) fn candidates(cluster: &Cluster, now: Timestamp) -> Vec<Candidate> {
    let joined = cluster.tracked().filter_map(|tracked| match tracked {
        Tracked::Joined(claim, node) => Some((claim, node)),
        Tracked::Claimed(_) | Tracked::Foreign(_) => None,
    });
    joined
        .filter(|(claim, node)| is_quiet(cluster, claim, node))
        .map(|(claim, node)| {
            let blocker = blocker(cluster, &claim, &node, now);
            Candidate { claim, node, blocker }
        })
        .collect()
}

fn is_quiet(cluster: &Cluster, claim: &Arc<NodeClaim>, node: &NodeFacts) -> bool {
    let pool = PoolName::new(labels_of(claim).pool.as_str());
    let is_dynamic = cluster.pool(&pool).is_some_and(|pool| pool.spec.replicas.is_none());
    let is_going = claim.metadata.deletion_timestamp.is_some() || node.deletion.is_some();
    let is_empty = !cluster.pods_on(&node.name).any(|pod| pod.is_reschedulable());
    is_dynamic
        && !is_going
        && is_empty
        && node.is_labelled(labels::INITIALIZED)
        && is_true(claim, conditions::CONSOLIDATABLE)
}

fn is_true(claim: &NodeClaim, type_: &str) -> bool {
    let conditions = claim.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|found| found.type_ == type_ && found.status == ConditionStatus::True)
}

fn blocker(cluster: &Cluster, claim: &Arc<NodeClaim>, node: &NodeFacts, now: Timestamp) -> Option<Blocker> {
    if cluster.is_nominated(&name_of(claim), &node.name, now) {
        return Some(Blocker::Nominated);
    }
    if node.annotations.get(labels::DO_NOT_DISRUPT).is_some_and(|value| value == "true") {
        return Some(Blocker::NodeProtected);
    }
    let protected = |pod: &&Arc<api::lower::PodFacts>| pod.is_active() && pod.protection.is_active(now);
    cluster.pods_on(&node.name).find(protected).map(|pod| Blocker::PodProtected { pod: pod.key.clone() })
}

/// Counts a pool's nodes for its budgets.
pub(super) fn census(cluster: &Cluster, pool: &PoolName) -> Census {
    let mut census = Census::default();
    let nodes: Vec<(Arc<NodeClaim>, Arc<NodeFacts>)> = cluster
        .tracked()
        .filter_map(|tracked| match tracked {
            Tracked::Joined(claim, node) => Some((claim, node)),
            Tracked::Claimed(_) | Tracked::Foreign(_) => None,
        })
        .collect();
    let counts = |claim: &NodeClaim, node: &NodeFacts| {
        labels_of(claim).pool == pool.as_str()
            && node.is_labelled(labels::INITIALIZED)
            && !is_true(claim, conditions::INSTANCE_TERMINATING)
    };
    for (claim, node) in nodes.iter().filter(|(claim, node)| counts(claim, node)) {
        census.nodes += 1;
        let is_going = claim.metadata.deletion_timestamp.is_some() || node.deletion.is_some();
        census.disrupted += usize::from(is_going || !node.is_ready);
    }
    census
}
