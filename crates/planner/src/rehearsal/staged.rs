//! A cluster in which a plan has come about: the nodes are there, and nobody is on them yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    AttachLimits, BoundPods, ClaimName, PendingPod, Place, PlaceId, Plan, PlannedClaim, PodKey, Pool, Purpose,
    ResourceName, Resources, Snapshot, Stage,
};

/// The snapshot after a plan, with seats for everybody whom the plan places, and nobody else.
///
/// Claims become nodes of their cheapest type.
pub(super) fn as_planned(snapshot: &Snapshot, plan: &Plan) -> Snapshot {
    let nominated: BTreeMap<&PlaceId, &Vec<PodKey>> =
        plan.nominations.iter().map(|nomination| (&nomination.place, &nomination.pods)).collect();
    let taken = snapshot.places.iter().filter(|place| nominated.contains_key(&place.id)).cloned();
    let mut places: Vec<Arc<Place>> = taken.collect();
    let mut seats: BTreeMap<PodKey, PlaceId> = BTreeMap::new();
    let mut take = |id: &PlaceId, pods: &[PodKey]| seats.extend(pods.iter().map(|pod| (pod.clone(), id.clone())));
    nominated.into_iter().for_each(|(id, pods)| take(id, pods));
    for (number, claim) in plan.claims.iter().enumerate() {
        let place = node_of(snapshot, claim, number);
        take(&place.id, &claim.pods);
        places.push(Arc::new(place));
    }
    let is_seated = |key: &PodKey| seats.contains_key(key);
    let pending = snapshot.pending.iter().filter(|pod| pod.purpose == Purpose::Work && is_seated(&pod.key));
    Snapshot {
        revision: snapshot.revision,
        vocabulary: Arc::clone(&snapshot.vocabulary),
        pools: snapshot.pools.clone(),
        places,
        pending: pending.cloned().collect(),
        bound: snapshot.bound.clone(),
        namespaces: Arc::clone(&snapshot.namespaces),
        daemons: snapshot.daemons.clone(),
        seats,
    }
}

/// The question what more to buy when a plan is carried out: nothing is there but what pools may still grow by.
pub(super) fn beside(snapshot: &Snapshot, plan: &Plan, pending: Vec<PendingPod>) -> Snapshot {
    let grown = |pool: &Arc<Pool>| {
        let claims = plan.claims.iter().filter(|claim| claim.pool == pool.name);
        let in_use = claims.fold(pool.in_use.clone(), |in_use, claim| in_use.plus(&largest(pool, claim)));
        Arc::new(Pool { in_use, ..Pool::clone(pool) })
    };
    Snapshot {
        pools: snapshot.pools.iter().map(grown).collect(),
        places: Vec::new(),
        seats: BTreeMap::new(),
        bound: BoundPods::default(),
        pending,
        revision: snapshot.revision,
        vocabulary: Arc::clone(&snapshot.vocabulary),
        namespaces: Arc::clone(&snapshot.namespaces),
        daemons: snapshot.daemons.clone(),
    }
}

/// What a claim may add to its pool, whichever of its types it becomes.
fn largest(pool: &Pool, claim: &PlannedClaim) -> Resources {
    let mut largest = Resources::none().with(ResourceName::nodes(), 1);
    for kind in pool.types.iter().filter(|kind| claim.types.contains(&kind.name)) {
        for (name, amount) in kind.capacity.iter() {
            largest.set(name.clone(), amount.max(largest.get(name)));
        }
    }
    largest
}

fn node_of(snapshot: &Snapshot, claim: &PlannedClaim, number: usize) -> Place {
    let pool = snapshot.pools.iter().find(|pool| pool.name == claim.pool);
    let cheapest = claim.types.first();
    let kind = pool.and_then(|pool| pool.types.iter().find(|kind| Some(&kind.name) == cheapest));
    Place {
        id: PlaceId::Claim(ClaimName::new(format!("planned-{number}"))),
        pool: Some(claim.pool.clone()),
        // Labels that depend on the machine are not known before it is there.
        stage: Stage::Promised,
        requirements: claim.requirements.as_ref().clone(),
        taints: pool.map(|pool| pool.taints.clone()).unwrap_or_default(),
        allocatable: kind.map(|kind| kind.allocatable.clone()).unwrap_or_default(),
        used: Resources::none(),
        used_by_daemons: Resources::none(),
        host_ports: Vec::new(),
        attached: BTreeSet::new(),
        attach_limits: AttachLimits::new(),
    }
}
