//! Whether pods were refused for good reasons.

use std::collections::{BTreeMap, BTreeSet};

use model::{PendingPod, Plan, Pool, PoolName, Refusal, Requirement, Snapshot, Text, Unplaced};

use super::{Auditor, Violation};

impl Auditor<'_> {
    /// Refused pods have a reason for every pool, and no pool that has only itself to ask could have taken one of them.
    pub(super) fn refusals(&self, plan: &Plan) -> Vec<Violation> {
        if plan.interrupted {
            return Vec::new();
        }
        plan.unplaced.iter().flat_map(|unplaced| self.refusal(unplaced)).collect()
    }

    fn refusal(&self, unplaced: &Unplaced) -> Vec<Violation> {
        let refused = self.known(&unplaced.pods);
        let (Some(pod), true) = (refused.first(), unplaced.class.unplanned_rules.is_empty()) else {
            return Vec::new();
        };
        let reasons: BTreeMap<&PoolName, &Refusal> =
            unplaced.refusals.iter().map(|refusal| (&refusal.pool, &refusal.refusal)).collect();
        let reserved = |reason: &&Refusal| matches!(reason, Refusal::ReservationsTaken | Refusal::ReservationsFull);
        let deferred = reasons.values().any(reserved);
        let wrong = |pool: &&Pool| match reasons.get(&pool.name) {
            None => !deferred,
            // The plan would say that it was interrupted.
            Some(Refusal::NotReached) => true,
            Some(Refusal::LimitReached { .. }) => pool.limits.is_empty(),
            Some(_) => false,
        };
        let pools = || self.snapshot.pools.iter().map(AsRef::as_ref);
        let wrong =
            pools().filter(wrong).map(|pool| Violation::WrongReason { pod: pod.key.clone(), pool: pool.name.clone() });
        let mut violations: Vec<Violation> = wrong.collect();
        let mut seen = BTreeSet::new();
        let kinds: Vec<&PendingPod> =
            refused.iter().copied().filter(|pod| seen.insert((&pod.volumes, &pod.labels))).collect();
        let alone = |pod: &&PendingPod| !deferred && !has_neighbour_rules(self.snapshot, pod);
        for pod in kinds.into_iter().filter(alone) {
            let taker = pools().find(|pool| is_free_to_take(pool) && self.could_take(pool, pod));
            violations.extend(
                taker.map(|pool| Violation::NeedlesslyRefused { pod: pod.key.clone(), pool: pool.name.clone() }),
            );
        }
        violations
    }
}

/// Whether nothing but a pod's own demands can keep it from a new node of the pool.
fn is_free_to_take(pool: &Pool) -> bool {
    let is_plain = |(_, requirement): (&Text, &Requirement)| requirement.min_values().is_none();
    let reserved = |kind: &model::InstanceType| {
        kind.offerings.iter().any(|offering| offering.capacity_type() == model::CapacityType::Reserved)
    };
    pool.limits.is_empty() && pool.requirements.iter().all(is_plain) && !pool.types.iter().any(|kind| reserved(kind))
}

/// Whether other pods have a say in where the pod may go.
fn has_neighbour_rules(snapshot: &Snapshot, pod: &PendingPod) -> bool {
    let own = !pod.class.spread.is_empty() || !pod.class.affinity.is_empty() || !pod.class.anti_affinity.is_empty();
    let of_pending = snapshot.pending.iter().flat_map(|other| &other.class.anti_affinity);
    let of_bound = snapshot.bound.iter().flat_map(|(kind, _)| &kind.anti_affinity);
    own || of_pending.chain(of_bound).any(|term| term.selector.matches(&pod.labels))
}
