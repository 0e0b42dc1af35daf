//! Which nodes should lose their pods first when their owners scale down. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::lower::{ControllerKind, NodeFacts, PodFacts};
use api::node_claim::conditions;
use api::node_pool::DisruptionReason;
use api::{ConditionStatus, NodeClaim, labels};
use jiff::Timestamp;
use model::{InstanceType, PodKey, PoolName};
use state::{Cluster, Tracked};

use crate::disruption::budget::{self, Census};
use crate::disruption::candidate::candidate;
use crate::disruption::cost::{DeletionCosts, price, reschedule_cost, savings_ratio};
use crate::disruption::emptiness::censuses;

/// Nodes whose pods are written about in one round, those that are going aside: with thirty pods each, that is a write
/// for every forty milliseconds of a minute.
const NODES_MAX: usize = 50;
/// Of pods on nodes that are going.
const FIRST: i32 = i32::MIN;

/// What a pod's annotation should say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// This.
    Cost(i32),
    /// Nothing: there should be none.
    Nothing,
}

impl Wanted {
    /// Whether a pod says so already.
    pub(super) fn is_said_by(self, pod: &PodFacts) -> bool {
        let said = pod.costs.as_ref().and_then(|costs| costs.deletion.as_deref());
        match self {
            Self::Cost(cost) => said.is_some_and(|said| said == cost.to_string()),
            Self::Nothing => said.is_none(),
        }
    }
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// It is going anyway.
    Going,
    /// It no longer looks as its pool wants it to.
    Drifted,
    /// It may be consolidated.
    Ordinary,
    /// Nobody wants it gone, or nobody may.
    Cleared,
}

struct Member {
    node: Arc<NodeFacts>,
    pool: PoolName,
    ratio: f64,
    group: Group,
}

/// Nodes of ours with what their pods should say: those that are going, then those that are ranked, best first, then
/// those whose pods should say nothing.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    going: Vec<(Arc<NodeFacts>, PoolName)>,
    ranked: Vec<(Arc<NodeFacts>, PoolName)>,
    cleared: Vec<(Arc<NodeFacts>, PoolName)>,
}

/// Ranks all nodes of ours: drifted ones before others, within these the largest savings first, and as many of each pool
/// as its budgets would let go.
pub(super) fn rank(cluster: &Cluster, now: Timestamp) -> Ranking {
    let mut members: Vec<Member> = cluster.tracked().filter_map(|machine| member(cluster, &machine, now)).collect();
    members
        .sort_by(|left, right| right.ratio.total_cmp(&left.ratio).then_with(|| left.node.name.cmp(&right.node.name)));
    let mut ranking = Ranking::default();
    let mut overflowing = Vec::new();
    for (group, reason) in
        [(Group::Drifted, DisruptionReason::Drifted), (Group::Ordinary, DisruptionReason::Underutilized)]
    {
        let mut allowed = Allowance::new(cluster, reason, now);
        for member in members.iter().filter(|member| member.group == group) {
            let place = (Arc::clone(&member.node), member.pool.clone());
            if allowed.takes(&member.pool) { ranking.ranked.push(place) } else { overflowing.push(place) }
        }
    }
    let of = |group: Group| {
        let own = members.iter().filter(move |member| member.group == group);
        own.map(|member| (Arc::clone(&member.node), member.pool.clone()))
    };
    ranking.going = of(Group::Going).collect();
    ranking.cleared = of(Group::Cleared).chain(overflowing).collect();
    ranking
}

/// How many nodes of each pool may still go for one reason.
struct Allowance<'a> {
    cluster: &'a Cluster,
    reason: DisruptionReason,
    now: Timestamp,
    censuses: BTreeMap<PoolName, Census>,
    left: BTreeMap<PoolName, usize>,
}

impl<'a> Allowance<'a> {
    fn new(cluster: &'a Cluster, reason: DisruptionReason, now: Timestamp) -> Self {
        Self { cluster, reason, now, censuses: censuses(cluster), left: BTreeMap::new() }
    }

    /// Whether one more node of the pool may go; if so it is counted.
    fn takes(&mut self, pool: &PoolName) -> bool {
        let Self { cluster, reason, now, censuses, left } = self;
        let left = left.entry(pool.clone()).or_insert_with(|| {
            let census = censuses.get(pool).copied().unwrap_or_default();
            cluster.pool(pool).map_or(0, |pool| budget::allowed(pool, *reason, &census, *now))
        });
        let takes = *left > 0;
        *left = left.saturating_sub(1);
        takes
    }
}

fn member(cluster: &Cluster, machine: &Tracked, now: Timestamp) -> Option<Member> {
    let Tracked::Joined(claim, node) = machine else { return None };
    let pool = PoolName::new(node.labels.get(labels::NODE_POOL).map_or("", String::as_str));
    let kinds = kinds_of(cluster, node, &pool);
    let pods = cluster.pods_on(&node.name).map(Arc::as_ref);
    let ratio = savings_ratio(price(&node.labels, &kinds), reschedule_cost(pods, DeletionCosts::Ours));
    let group = if is_going(claim, node) { Group::Going } else { group(cluster, machine, !kinds.is_empty(), now) };
    Some(Member { node: Arc::clone(node), pool, ratio, group })
}

/// What a node is; a type that is sold with more room here than there is listed for each.
fn kinds_of<'a>(cluster: &'a Cluster, node: &NodeFacts, pool: &PoolName) -> Vec<&'a InstanceType> {
    let name = node.labels.get(labels::INSTANCE_TYPE);
    let types = cluster.types(pool).into_iter().flat_map(|types| types.iter()).map(Arc::as_ref);
    types.filter(|kind| Some(kind.name.as_str()) == name.map(String::as_str)).collect()
}

fn is_going(claim: &NodeClaim, node: &NodeFacts) -> bool {
    let is_tainted =
        || node.stored_taints.iter().any(|taint| taint.key == labels::DISRUPTED_TAINT && taint.effect == "NoSchedule");
    claim.metadata.deletion_timestamp.is_some() || node.deletion.is_some() || is_tainted()
}

fn group(cluster: &Cluster, machine: &Tracked, is_kind_known: bool, now: Timestamp) -> Group {
    let Ok(candidate) = candidate(cluster, machine, now) else { return Group::Cleared };
    let is_priced = is_kind_known || !candidate.node.labels.contains_key(labels::INSTANCE_TYPE);
    if !is_priced || cluster.pods_on(&candidate.node.name).any(|pod| is_pinned(pod)) {
        return Group::Cleared;
    }
    let spec = &candidate.pool.spec;
    if spec.replicas.is_none() && is_drifted(&candidate.claim) {
        return Group::Drifted;
    }
    match spec.disruption.consolidate_after.as_duration() {
        Some(_) => Group::Ordinary,
        None => Group::Cleared,
    }
}

fn is_drifted(claim: &NodeClaim) -> bool {
    let conditions = claim.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut found = conditions.into_iter().flatten().filter(|found| found.type_ == conditions::DRIFTED);
    found.any(|found| found.status == ConditionStatus::True)
}

/// A pod that nobody would make anew elsewhere keeps its node; those of the system are made by the system.
fn is_pinned(pod: &PodFacts) -> bool {
    use ControllerKind::{DaemonSet, Job, ReplicaSet};
    let is_made_anew = pod.controller.as_ref().is_some_and(|maker| matches!(maker.kind, ReplicaSet | Job | DaemonSet));
    !is_made_anew && &*pod.key.namespace != "kube-system"
}

/// A pod whose annotation may have to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) pod: PodKey,
    pub(super) uid: String,
    pub(super) wanted: Wanted,
}

/// What one round writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) writes: Vec<Write>,
    /// Nodes that are written about, by pool.
    pub(super) nodes: BTreeMap<PoolName, usize>,
}

/// The writes of one round: of all nodes that are going, and of a bounded number of others, those that are ranked first.
/// A node on which every pod says what it should costs nothing.
pub(super) fn round(cluster: &Cluster, ranking: &Ranking) -> Round {
    let mut round = Round::default();
    for (node, pool) in &ranking.going {
        round.add(cluster, node, pool, Wanted::Cost(FIRST));
    }
    let last = i32::try_from(ranking.ranked.len()).unwrap_or(i32::MAX);
    let ranked = ranking.ranked.iter().zip(-last..).map(|(place, cost)| (place, Wanted::Cost(cost)));
    let cleared = ranking.cleared.iter().map(|place| (place, Wanted::Nothing));
    let mut left = NODES_MAX;
    for ((node, pool), wanted) in ranked.chain(cleared) {
        if left == 0 {
            break;
        }
        left -= usize::from(round.add(cluster, node, pool, wanted));
    }
    round
}

impl Round {
    /// Adds the pods of a node, if one of them has to change. Only a ReplicaSet reads the annotation of its pods.
    fn add(&mut self, cluster: &Cluster, node: &NodeFacts, pool: &PoolName, wanted: Wanted) -> bool {
        let is_of_replica_set = |pod: &&Arc<PodFacts>| {
            pod.controller.as_ref().is_some_and(|maker| maker.kind == ControllerKind::ReplicaSet)
        };
        let pods: Vec<&Arc<PodFacts>> = cluster.pods_on(&node.name).filter(is_of_replica_set).collect();
        if pods.iter().all(|pod| wanted.is_said_by(pod)) {
            return false;
        }
        let write = |pod: &&Arc<PodFacts>| Write { pod: pod.key.clone(), uid: pod.uid.to_string(), wanted };
        self.writes.extend(pods.iter().map(write));
        *self.nodes.entry(pool.clone()).or_insert(0) += 1;
        true
    }
}

#[cfg(test)]
#[path = "ranking_tests.rs"]
mod tests;
