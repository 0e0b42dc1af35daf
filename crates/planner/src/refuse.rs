//! Why a pool makes no node for a pod.

use std::cmp::Reverse;

use model::{
    Attempt, Mismatch, PoolRefusal, Refusal, Requirements, Resources, Shortfall, Undefined, Vocabulary,
    first_untolerated,
};

use crate::place::Demand;
use crate::pools::{PoolView, TypeView};

/// The first reason, in the order in which a new node is checked, why this pool takes none of these pods.
pub(crate) fn refusal(pool: &PoolView<'_>, demand: &Demand<'_>, vocabulary: &Vocabulary) -> PoolRefusal {
    let Attempt { requirements, tolerations } = demand.attempt;
    let refusal = if let Some(taint) = first_untolerated(&pool.pool.taints, tolerations) {
        Refusal::Untolerated { taint: taint.clone() }
    } else if let Err(mismatch) = pool.requirements.satisfy(requirements, Undefined::MayBeGiven(vocabulary)) {
        Refusal::Incompatible { mismatch }
    } else {
        among_types(pool, &pool.requirements.and(requirements), demand.requests)
    };
    PoolRefusal { pool: pool.pool.name.clone(), refusal }
}

/// Why the pool's own demands leave it without any type.
pub(crate) fn barrenness(pool: &PoolView<'_>) -> PoolRefusal {
    let refusal = among_types(pool, &pool.requirements, &Resources::none());
    PoolRefusal { pool: pool.pool.name.clone(), refusal }
}

fn among_types(pool: &PoolView<'_>, requirements: &Requirements, requests: &Resources) -> Refusal {
    let labelled = |view: &&TypeView<'_>| view.kind.requirements.intersect(requirements).is_ok();
    let labelled: Vec<&TypeView<'_>> = pool.types.iter().filter(labelled).collect();
    if labelled.is_empty() {
        let closest = closest_mismatch(&pool.types, requirements);
        return closest.map_or(Refusal::NoOffering, |mismatch| Refusal::NoTypeWithLabels { mismatch });
    }
    let holds = |view: &&&TypeView<'_>| requests.fit_into(&view.room).is_ok();
    let holding: Vec<&TypeView<'_>> = labelled.iter().filter(holds).copied().collect();
    // Without requests it is the pool that is asked about, and then size is no reason.
    if holding.is_empty() && !requests.is_empty() {
        let largest = largest_shortfall(&labelled, requests);
        return largest.map_or(Refusal::NoOffering, |shortfall| Refusal::NoTypeLargeEnough { shortfall });
    }
    let sold = holding.into_iter().filter(|view| view.kind.cheapest_price(requirements).is_some());
    smallest_excess(pool, sold).map_or(Refusal::NoOffering, |shortfall| Refusal::LimitReached { shortfall })
}

/// Of the type that parts on the fewest labels, the first of them; types are in the order of their names.
fn closest_mismatch(types: &[TypeView<'_>], requirements: &Requirements) -> Option<Mismatch> {
    let mismatches = |view: &TypeView<'_>| -> Vec<Mismatch> {
        let single = |(key, requirement): (&model::Text, &model::Requirement)| {
            view.kind.requirements.intersect(&Requirements::none().with(key, requirement.clone())).err()
        };
        requirements.iter().filter_map(single).collect()
    };
    let closest = types.iter().map(mismatches).min_by_key(Vec::len);
    closest.and_then(|mismatches| mismatches.into_iter().next())
}

/// Of the type that lacks the fewest resources, and of those has the most, what it lacks first.
fn largest_shortfall(types: &[&TypeView<'_>], requests: &Resources) -> Option<Shortfall> {
    let lacking = |view: &&TypeView<'_>| {
        let shortfall = requests.fit_into(&view.room).err()?;
        let short = requests.iter().filter(|(name, wanted)| *wanted > view.room.get(name).max(0)).count();
        Some((short, shortfall.resource.clone(), Reverse(shortfall.available), shortfall))
    };
    types.iter().filter_map(lacking).min().map(|(_, _, _, shortfall)| shortfall)
}

/// Of the type that comes closest to what the pool's limits leave, by what it exceeds it.
fn smallest_excess<'t>(pool: &PoolView<'_>, types: impl Iterator<Item = &'t TypeView<'t>>) -> Option<Shortfall> {
    let excess = |view: &TypeView<'_>| pool.limits.admit(&view.footprint, &Resources::none()).err();
    types.filter_map(excess).min_by_key(|shortfall| (shortfall.resource.clone(), shortfall.wanted))
}
