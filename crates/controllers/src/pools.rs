//! Pools: whether they can be used, what they hash to, and what they have running.

use api::condition::ConditionSubject;
use api::lower::NodeClassReadiness;
use api::node_pool::{NodePoolStatus, conditions};
use api::validation::{self, VALIDATION_FAILED};
use api::{ConditionSet, NodePool, hash, labels};
use model::{PoolName, ResourceName};
use serde_json::json;

use crate::context::Context;
use crate::merge::status_patch;
use crate::provisioning::quantities;
use crate::work::{Next, Outcome, Work};
use crate::write::{self, WriteError};

/// Judges one pool and writes what changed.
pub(crate) async fn reconcile(context: &Context, name: &PoolName) -> Outcome {
    let Some(pool) = context.cluster().pool(name).cloned() else { return Ok(Next::OnChange) };
    if pool.metadata.deletion_timestamp.is_none() {
        stamp_hash(context, name, &pool).await?;
    }
    let status = judge(context, name, &pool);
    if pool.status.as_ref() == Some(&status) {
        return Ok(Next::OnChange);
    }
    let was_ready = is_ready(pool.status.as_ref());
    let patch = status_patch(pool.metadata.resource_version.as_deref(), pool.status.as_ref(), &status);
    match write::patch_pool_status(context, name, &patch).await {
        Ok(()) => {}
        // The hash was stamped a moment ago, or somebody edits: the newer object wakes us again.
        Err(WriteError::Conflict { .. }) => return Ok(Next::BackOff),
        Err(error) => return Err(error.into()),
    }
    if !was_ready && is_ready(Some(&status)) && context.cluster().wants_room() {
        context.request(Work::Provision);
    }
    Ok(Next::OnChange)
}

fn is_ready(status: Option<&NodePoolStatus>) -> bool {
    let conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|found| found.type_ == conditions::READY && found.status == api::ConditionStatus::True)
}

/// Keeps the template's hash beside the pool, so that nodes made from an older template can be told.
async fn stamp_hash(context: &Context, name: &PoolName, pool: &NodePool) -> Result<(), WriteError> {
    let stamp = [
        (labels::NODE_POOL_HASH, hash::node_pool_hash(&pool.spec.template)),
        (labels::NODE_POOL_HASH_VERSION, hash::HASH_VERSION.to_owned()),
    ];
    let stored = pool.metadata.annotations.clone().unwrap_or_default();
    if stamp.iter().all(|(key, value)| stored.get(*key) == Some(value)) {
        return Ok(());
    }
    let annotations: serde_json::Map<_, _> =
        stamp.map(|(key, value)| (key.to_owned(), json!(value))).into_iter().collect();
    write::patch_pool(context, name, &json!({"metadata": {"annotations": annotations}})).await
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
    status.node_class_observed_generation = class.as_ref().map(|class| class.generation);
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
