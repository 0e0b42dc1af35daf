//! Pools: whether they can be used, what they hash to, and what they have running.

mod health;
mod stamp;

use std::time::Duration;

use api::condition::ConditionSubject;
use api::lower::NodeClassReadiness;
use api::node_pool::{NodePoolStatus, conditions};
use api::validation::{self, VALIDATION_FAILED};
use api::{ConditionSet, NodeClaim, NodePool};
use model::{PoolName, ResourceName};

pub(crate) use health::{Health, Registration};

use crate::context::Context;
use crate::lifecycle::{believed, labels_of, left_of};
use crate::merge::status_patch;
use crate::provisioning::quantities;
use crate::static_capacity;
use crate::work::{Next, Outcome, Work};
use crate::write::{self, WriteError};

/// What a pool has running is written at most this often: a hundred nodes that come at once are one piece of news.
const COUNT_AGAIN: Duration = Duration::from_secs(1);

/// Judges one pool and writes what changed.
pub(crate) async fn reconcile(context: &Context, name: &PoolName) -> Outcome {
    let Some(pool) = context.cluster().pool(name).cloned() else {
        context.notes().forget_pool(name);
        return Ok(Next::OnChange);
    };
    static_capacity::wake(context, name, &pool);
    if pool.metadata.deletion_timestamp.is_none() {
        stamp::stamp(context, name, &pool).await?;
    }
    let status = judge(context, name, &pool);
    if pool.status.as_ref() == Some(&status) {
        return Ok(Next::OnChange);
    }
    if let Some(left) = counting_pause(context, name, pool.status.as_ref(), &status) {
        return Ok(Next::After(left));
    }
    let patch = status_patch(pool.metadata.resource_version.as_deref(), pool.status.as_ref(), &status);
    match write::patch_pool_status(context, name, &patch).await {
        Ok(()) => {}
        // The hash was stamped a moment ago, or somebody edits: the newer object wakes us again.
        Err(WriteError::Conflict { .. }) => return Ok(Next::BackOff),
        Err(error) => return Err(error.into()),
    }
    let now = context.now();
    context.notes().counted.insert(name.clone(), now);
    let becomes_ready = !is_ready(&pool) && has_ready(&status);
    let is_wanted = || {
        let cluster = context.cluster();
        // Where all pools are new, a plan for the first that is judged would not know the better ones.
        cluster.wants_room() && cluster.pools().all(|(_, pool)| is_judged(pool))
    };
    if becomes_ready && is_wanted() {
        context.request(Work::Provision);
    }
    Ok(Next::OnChange)
}

/// How long numbers have to wait because others were written a moment ago; nothing if there is more to say.
fn counting_pause(
    context: &Context,
    name: &PoolName,
    stored: Option<&NodePoolStatus>,
    status: &NodePoolStatus,
) -> Option<Duration> {
    let counted = NodePoolStatus { nodes: status.nodes, resources: status.resources.clone(), ..stored?.clone() };
    let last = context.notes().counted.get(name).copied().filter(|_| counted == *status)?;
    let now = context.now();
    left_of(COUNT_AGAIN, believed(last, now)?, now)
}

/// Whether a pool can be used.
pub(crate) fn is_ready(pool: &NodePool) -> bool {
    pool.status.as_ref().is_some_and(has_ready)
}

fn is_judged(pool: &NodePool) -> bool {
    let stated = pool.status.iter().flat_map(|status| &status.conditions).flatten();
    stated.into_iter().any(|found| found.type_ == conditions::READY)
}

fn has_ready(status: &NodePoolStatus) -> bool {
    let mut stated = status.conditions.iter().flatten();
    stated.any(|found| found.type_ == conditions::READY && found.status == api::ConditionStatus::True)
}

/// Notes how a node that should have joined fared. The pool says so in its next status.
pub(crate) fn record_registration(context: &Context, claim: &NodeClaim, outcome: Registration) {
    let name = PoolName::new(labels_of(claim).pool.as_str());
    let Some(pool) = context.cluster().pool(&name).cloned() else { return };
    let owners = claim.metadata.owner_references.iter().flatten();
    if !owners.into_iter().any(|owner| owner.kind == "NodePool" && Some(&owner.uid) == pool.metadata.uid.as_ref()) {
        return;
    }
    context.notes().health_of(&name, &pool).record(outcome);
    context.request(Work::Pool(name));
}

fn judge(context: &Context, name: &PoolName, pool: &NodePool) -> NodePoolStatus {
    let now = context.now();
    let cluster = context.cluster();
    let running = cluster.running_capacity(name);
    let reference = &pool.spec.template.spec.node_class_ref;
    let class = cluster.node_class(&reference.kind, &reference.name).cloned();
    let mut status = pool.status.clone().unwrap_or_default();
    status.nodes = running.get(&ResourceName::nodes());
    status.resources = Some(quantities(&running));
    let observed = status.node_class_observed_generation;
    if let Some(class) = &class {
        status.node_class_observed_generation = Some(class.generation);
    }
    let subject = ConditionSubject {
        generation: pool.metadata.generation.unwrap_or(0),
        created_at: pool.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0),
        deleting: pool.metadata.deletion_timestamp.is_some(),
        now,
    };
    let stored = status.conditions.get_or_insert_default();
    let mut set = ConditionSet::open(stored, conditions::TYPES, subject);
    match validation::validate_node_pool(&pool.spec.template, &context.provider.vocabulary()).message() {
        None => set.set_true(conditions::VALIDATION_SUCCEEDED),
        Some(faults) => set.set_false(conditions::VALIDATION_SUCCEEDED, VALIDATION_FAILED, &faults),
    };
    class_condition(&mut set, class.as_ref().map(|class| &class.readiness));
    if class.is_some() {
        let judged = health::condition_of(pool).and_then(|condition| condition.observed_generation);
        let has_changed = observed != status.node_class_observed_generation || judged != pool.metadata.generation;
        context.notes().health_of(name, pool).write(&mut set, has_changed);
    }
    status
}

fn class_condition(set: &mut ConditionSet<'_>, readiness: Option<&NodeClassReadiness>) {
    let condition = conditions::NODE_CLASS_READY;
    match readiness {
        None => set.set_false(condition, "NodeClassNotFound", "NodeClass not found on cluster"),
        Some(NodeClassReadiness::Ready) => set.set_true(condition),
        Some(NodeClassReadiness::Terminating) => {
            set.set_false(condition, "NodeClassTerminating", "NodeClass is Terminating")
        }
        Some(NodeClassReadiness::Unknown) => {
            set.set_false(condition, "NodeClassReadinessUnknown", "Node Class Readiness Unknown")
        }
        Some(NodeClassReadiness::NotReady { reason, message }) => set.set_false(condition, reason, message),
    };
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// API-45: the words for each state of a NodeClass; its own reason is passed through.
    #[test]
    fn a_pool_says_what_is_wrong_with_its_class() {
        let not_ready = NodeClassReadiness::NotReady { reason: "NoSubnets".to_owned(), message: "none".to_owned() };
        let table = [
            (None, "False NodeClassNotFound: NodeClass not found on cluster"),
            (Some(NodeClassReadiness::Ready), "True NodeClassReady: "),
            (Some(NodeClassReadiness::Terminating), "False NodeClassTerminating: NodeClass is Terminating"),
            (Some(NodeClassReadiness::Unknown), "False NodeClassReadinessUnknown: Node Class Readiness Unknown"),
            (Some(not_ready), "False NoSubnets: none"),
        ];
        for (readiness, expected) in table {
            let mut stored = Vec::new();
            let epoch = Timestamp::UNIX_EPOCH;
            let subject = ConditionSubject { generation: 1, created_at: epoch, deleting: false, now: epoch };
            class_condition(&mut ConditionSet::open(&mut stored, conditions::TYPES, subject), readiness.as_ref());
            let found = stored.iter().find(|found| found.type_ == conditions::NODE_CLASS_READY).unwrap();
            assert_eq!(format!("{:?} {}: {}", found.status, found.reason, found.message), expected);
        }
    }
}
