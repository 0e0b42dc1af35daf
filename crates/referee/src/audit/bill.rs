//! What a plan costs and what it uses up: prices, the variety that pools demand, limits, reservations and the bound.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CapacityType, InstanceType, Offering, Plan, PlannedClaim, Pool, Price, Requirement, ResourceName, Snapshot, Text,
    labels,
};

use super::{PoolView, Violation};

/// As many types as a provider takes in one call.
const TYPES_MAX: usize = 600;

/// Types come cheapest first, and the claim's price is that of the first. `prices` are those of its types.
pub(super) fn prices(index: usize, claim: &PlannedClaim, prices: &[Price]) -> Vec<Violation> {
    let disorder = (!prices.is_sorted()).then_some(Violation::TypesOutOfOrder { claim: index });
    let cheapest = prices.iter().min().filter(|cheapest| **cheapest != claim.price);
    let wrong =
        cheapest.map(|reckoned| Violation::WrongPrice { claim: index, stated: claim.price, reckoned: *reckoned });
    let count = claim.types.len();
    let many = (count > TYPES_MAX).then_some(Violation::TooManyTypes { claim: index, count });
    disorder.into_iter().chain(wrong).chain(many).collect()
}

/// As many different values are left as the claim says, and the claim says no less than its pool unless it was relaxed.
pub(super) fn variety(index: usize, claim: &PlannedClaim, view: &PoolView<'_>) -> Vec<Violation> {
    if !view.pool.requirements.iter().any(|(_, wanted)| wanted.min_values().is_some()) {
        return Vec::new();
    }
    let kinds: Vec<&InstanceType> = claim.types.iter().flat_map(|name| view.kinds(name)).copied().collect();
    let demanded = |(key, of_pool): (&Text, &Requirement)| {
        let of_claim = claim.requirements.get(key);
        let stated = of_claim.and_then(Requirement::min_values);
        let wanted = if claim.min_values_relaxed { stated? } else { of_pool.min_values().max(stated)? };
        let found = distinct_values(&kinds, key, of_claim.unwrap_or(of_pool));
        let lacking = found < usize::try_from(wanted).unwrap_or(usize::MAX);
        lacking.then(|| Violation::TooFewValues { claim: index, key: key.clone(), wanted, found })
    };
    view.pool.requirements.iter().filter_map(demanded).collect()
}

fn distinct_values(kinds: &[&InstanceType], key: &str, admitted: &Requirement) -> usize {
    let of_kinds = kinds.iter().filter_map(|kind| kind.requirements.get(key));
    let values = of_kinds.flat_map(Requirement::values).filter(|value| admitted.admits(value));
    values.collect::<BTreeSet<_>>().len()
}

/// The pool stays within its limits even when every claim becomes the largest type it lists.
pub(super) fn limits(pool: &Pool, plan: &Plan) -> Vec<Violation> {
    let claims: Vec<&PlannedClaim> = plan.claims.iter().filter(|claim| claim.pool == pool.name).collect();
    if claims.is_empty() || pool.limits.is_empty() {
        return Vec::new();
    }
    let most = |claim: &&PlannedClaim, name: &ResourceName| {
        let listed: BTreeSet<_> = claim.types.iter().collect();
        let kinds = pool.types.iter().filter(|kind| listed.contains(&kind.name));
        kinds.map(|kind| kind.capacity.get(name)).max().unwrap_or(0)
    };
    let judge = |(name, limit): (&ResourceName, i64)| {
        let one = |claim: &&PlannedClaim| if *name == ResourceName::nodes() { 1 } else { most(claim, name) };
        let used = pool.in_use.get(name) + claims.iter().map(one).sum::<i64>();
        let crossed = Violation::LimitCrossed { pool: pool.name.clone(), resource: name.clone(), used, limit };
        (used > limit).then_some(crossed)
    };
    pool.limits.iter().filter_map(judge).collect()
}

/// No reservation is promised more often than it has instances left, each claim counted for all it could use.
pub(super) fn reservations(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let Some(label) = snapshot.vocabulary.reservation_label() else { return Vec::new() };
    let reserved = |offering: &&Offering| offering.available && offering.capacity_type() == CapacityType::Reserved;
    let id = |offering: &Offering| offering.requirements.get(label)?.single_value().cloned();
    let mut left: BTreeMap<Text, u32> = BTreeMap::new();
    for offering in snapshot.pools.iter().flat_map(|pool| pool.types.iter()).flat_map(|kind| &kind.offerings) {
        let (Some(id), Some(capacity), true) = (id(offering), offering.reservation_capacity, reserved(&offering))
        else {
            continue;
        };
        left.entry(id).and_modify(|least| *least = (*least).min(capacity)).or_insert(capacity);
    }
    let mut promised: BTreeMap<Text, u32> = BTreeMap::new();
    for claim in plan.claims.iter().filter(|claim| is_reserved(claim)) {
        let pool = snapshot.pools.iter().filter(|pool| pool.name == claim.pool);
        let kinds = pool.flat_map(|pool| pool.types.iter()).filter(|kind| claim.types.contains(&kind.name));
        let offerings = kinds.flat_map(|kind| kind.offerings_for(&claim.requirements));
        let ids: BTreeSet<Text> = offerings.filter(reserved).filter_map(id).collect();
        ids.into_iter().for_each(|id| *promised.entry(id).or_default() += 1);
    }
    let judge = |(id, claims): (Text, u32)| {
        let left = left.get(&id).copied().unwrap_or(0);
        (claims > left).then_some(Violation::ReservationOverdrawn { id, claims, left })
    };
    promised.into_iter().filter_map(judge).collect()
}

/// Whether a claim may only become reserved capacity.
fn is_reserved(claim: &PlannedClaim) -> bool {
    let wanted = claim.requirements.get(labels::CAPACITY_TYPE).and_then(Requirement::single_value);
    wanted.is_some_and(|value| &**value == CapacityType::Reserved.as_str())
}

/// The bound is below what the plan itself costs.
pub(super) fn bound(plan: &Plan, price: Price) -> Option<Violation> {
    (plan.bound > price).then_some(Violation::BoundAbovePrice { bound: plan.bound, price })
}
