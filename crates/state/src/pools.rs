//! Pools as the planner sees them, and what their nodes use.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{Condition, ConditionStatus, NodeClaim, NodePool, labels, lower};
use model::{Pool, PoolName, Requirement, Requirements, ResourceName, Resources};

use crate::cluster::Cluster;

impl Cluster {
    /// Pools that may make nodes: ours, ready, not going, not of fixed size, and with something for sale.
    pub(crate) fn planned_pools(&self) -> Vec<Arc<Pool>> {
        let usable = self.pools.iter().filter(|(_, pool)| is_usable(pool));
        usable.filter_map(|(name, pool)| self.planned_pool(name, pool)).map(Arc::new).collect()
    }

    fn planned_pool(&self, name: &PoolName, pool: &NodePool) -> Option<Pool> {
        let types = self.types.get(name).filter(|types| !types.is_empty())?;
        let spec = &pool.spec.template.spec;
        Some(Pool {
            name: name.clone(),
            weight: pool.spec.weight.unwrap_or(0),
            requirements: self.vocabulary.all_meant(template_requirements(name, pool)),
            taints: lower::taints(spec.taints.iter().flatten()),
            limits: pool.spec.limits.as_ref().map(lower::resources).unwrap_or_default(),
            in_use: self.claimed_capacity(name),
            types: Arc::clone(types),
        })
    }

    /// What every node of a pool satisfies, whatever its pods want.
    pub fn template_requirements(&self, name: &PoolName) -> Option<Requirements> {
        let pool = self.pools.get(name)?;
        Some(self.vocabulary.all_meant(template_requirements(name, pool)))
    }

    /// What a pool's claims hold or may come to hold. A claim whose machine is not known yet counts as the largest
    /// it may become, and one that is going counts until it is gone: that is why limits are never overshot.
    pub fn claimed_capacity(&self, pool: &PoolName) -> Resources {
        let mut sum = Resources::none().with(ResourceName::nodes(), 0);
        let Some(holdings) = self.ledger.of(pool) else { return sum };
        sum.add(&holdings.launched);
        for claim in holdings.promised.iter().filter_map(|name| self.claims.get(name)) {
            sum.add(&self.largest(claim, pool));
            sum.add(&Resources::none().with(ResourceName::nodes(), 1));
        }
        sum
    }

    /// Whether a pool's claims hold, or may come to hold, more than the pool may use.
    ///
    /// No plan does that. But a claim that a dead process asked for may appear after its successor has planned.
    pub fn is_over_limits(&self, pool: &PoolName) -> bool {
        let limits = self.pools.get(pool).and_then(|pool| pool.spec.limits.as_ref()).map(lower::resources);
        let claimed = self.claimed_capacity(pool);
        limits.is_some_and(|limits| limits.iter().any(|(name, limit)| claimed.get(name) > limit))
    }

    fn largest(&self, claim: &NodeClaim, pool: &PoolName) -> Resources {
        let requirements = self.vocabulary.all_meant(lower::requirements(&claim.spec.requirements));
        let allowed = requirements.get(labels::INSTANCE_TYPE);
        let mut largest = Resources::none();
        for kind in self.types.get(pool).into_iter().flat_map(|types| types.iter()) {
            if allowed.is_none_or(|allowed| allowed.admits(kind.name.as_str())) {
                largest.raise_to(&kind.capacity);
            }
        }
        largest
    }

    /// What a pool has running, for its status: claims that have an instance and are not going.
    pub fn running_capacity(&self, pool: &PoolName) -> Resources {
        let base = ["cpu", "memory", "pods", "ephemeral-storage", "nodes"];
        let mut sum: Resources = base.iter().map(|name| (ResourceName::new(*name), 0)).collect();
        sum.add(&self.ledger.of(pool).map(|holdings| holdings.staying.clone()).unwrap_or_default());
        sum
    }
}

fn is_usable(pool: &NodePool) -> bool {
    let ready = |condition: &Condition| condition.type_ == "Ready" && condition.status == ConditionStatus::True;
    let conditions = pool.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_ready = conditions.is_some_and(|conditions| conditions.iter().any(ready));
    is_ready && pool.spec.replicas.is_none() && pool.metadata.deletion_timestamp.is_none()
}

/// What every node of a pool satisfies: the template's requirements and labels, and the labels of pool and class.
fn template_requirements(name: &PoolName, pool: &NodePool) -> Requirements {
    let template = &pool.spec.template;
    let mut requirements = lower::requirements(&template.spec.requirements);
    requirements.add_all(&template_labels(name, pool));
    let class = &template.spec.node_class_ref;
    requirements.add(&labels::node_class_label(&class.group, &class.kind), Requirement::is(class.name.as_str()));
    requirements
}

/// The labels that every node of a pool gets, as far as its template and its name say.
pub(crate) fn template_labels(name: &PoolName, pool: &NodePool) -> Requirements {
    let mut requirements = Requirements::none().with(labels::NODE_POOL, Requirement::is(name.text()));
    for (key, value) in own_labels(pool).into_iter().flatten() {
        requirements.add(key, Requirement::is(value.as_str()));
    }
    requirements
}

/// The labels of a pool's template.
pub(crate) fn own_labels(pool: &NodePool) -> Option<&BTreeMap<String, String>> {
    pool.spec.template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref())
}
