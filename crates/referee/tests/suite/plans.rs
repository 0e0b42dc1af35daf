//! Plans as text, made by hand, to be judged.
//!
//! ```text
//! claim POOL TYPE|TYPE [zone=a] [capacity=spot] [price=0.2] [relaxed]: POD POD     (price reckoned unless said)
//! place node/n1: POD
//! nowhere [reasonless]: POD
//! bound 0.3
//! sequence POD POD                                                  (in the order of appearance unless said)
//! ```

use std::sync::Arc;

use model::{
    ClaimName, InstanceType, NodeName, Nomination, PlaceId, Plan, PlannedClaim, PodKey, Pool, PoolRefusal, Price,
    Refusal, Requirement, Requirements, ResourceName, Resources, Shortfall, Snapshot, TypeFit, TypeGap, TypeName,
    TypeSearch, Unplaced, labels,
};

/// Reads a plan for a snapshot.
pub(crate) fn read(snapshot: &Snapshot, text: &str) -> Plan {
    let mut plan = Plan { revision: snapshot.revision, ..Plan::default() };
    let mut sequence = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, pods) = line.split_once(": ").unwrap_or((line, ""));
        let keys: Vec<PodKey> = pods.split_whitespace().map(|name| key(snapshot, name)).collect();
        let words: Vec<&str> = head.trim_end_matches(':').split_whitespace().collect();
        if matches!(words[0], "claim" | "place") {
            plan.sequence.extend(keys.clone());
        }
        match words.as_slice() {
            ["claim", pool, types, rest @ ..] => plan.claims.push(claim(snapshot, pool, types, rest, keys)),
            ["place", place] => plan.nominations.push(Nomination { place: place_id(place), pods: keys }),
            ["nowhere", rest @ ..] => plan.unplaced.push(unplaced(snapshot, keys, rest.is_empty())),
            ["bound", dollars] => plan.bound = Price::from_dollars(dollars.parse().unwrap()),
            ["sequence", names @ ..] => sequence = Some(names.iter().map(|name| key(snapshot, name)).collect()),
            _ => panic!("`{line}` is no line of a plan"),
        }
    }
    plan.sequence = sequence.unwrap_or(plan.sequence);
    plan
}

fn key(snapshot: &Snapshot, name: &str) -> PodKey {
    let known = snapshot.pending.iter().find(|pod| &*pod.key.name == name);
    known.map_or_else(|| PodKey::new("default", name), |pod| pod.key.clone())
}

fn place_id(text: &str) -> PlaceId {
    match text.split_once('/').unwrap() {
        ("node", name) => PlaceId::Node(NodeName::new(name)),
        (_, name) => PlaceId::Claim(ClaimName::new(name)),
    }
}

fn claim(snapshot: &Snapshot, pool: &str, types: &str, words: &[&str], pods: Vec<PodKey>) -> PlannedClaim {
    let found: Option<&Pool> = snapshot.pools.iter().map(AsRef::as_ref).find(|known| known.name.as_str() == pool);
    let mut requirements = found.map_or_else(Requirements::none, |pool| pool.requirements.clone());
    let (mut price, mut min_values_relaxed) = (None, false);
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("zone", zones) => requirements.add(labels::ZONE, Requirement::any_of(zones.split('|'))),
            ("capacity", kind) => requirements.add(labels::CAPACITY_TYPE, Requirement::is(kind)),
            ("price", dollars) => price = Some(Price::from_dollars(dollars.parse().unwrap())),
            ("relaxed", _) => min_values_relaxed = true,
            _ => panic!("`{word}` is no word of a claim"),
        }
    }
    let types: Arc<[TypeName]> = types.split('|').filter(|name| !name.is_empty()).map(TypeName::new).collect();
    let listed = |kind: &&InstanceType| types.contains(&kind.name);
    let kinds = found.into_iter().flat_map(|pool| pool.types.iter()).map(AsRef::as_ref).filter(listed);
    let cheapest = kinds.filter_map(|kind| kind.cheapest_price(&requirements)).min();
    let mut requests = Resources::none();
    let wanted = snapshot.pending.iter().filter(|pod| pods.contains(&pod.key));
    wanted.for_each(|pod| requests.add(&pod.class.requests));
    PlannedClaim {
        pool: model::PoolName::new(pool),
        requirements: Arc::new(requirements),
        price: price.or(cheapest).unwrap_or(Price::ZERO),
        types,
        requests,
        min_values_relaxed,
        pods,
    }
}

/// With a reason of every pool, whether it is true or not.
fn unplaced(snapshot: &Snapshot, pods: Vec<PodKey>, reasons: bool) -> Unplaced {
    let shortfall = Shortfall { resource: ResourceName::cpu(), wanted: 1, available: 0 };
    let gap = TypeGap::of([TypeFit { labels: true, size: false, sale: true }]);
    let search = Box::new(TypeSearch::new(gap, Requirements::none(), Resources::none()));
    let refuse = |pool: &Arc<Pool>| PoolRefusal {
        pool: pool.name.clone(),
        refusal: Refusal::NoTypeLargeEnough { search: search.clone(), shortfall: shortfall.clone() },
    };
    let refusals = if reasons { snapshot.pools.iter().map(refuse).collect() } else { Vec::new() };
    let class = snapshot.pending.iter().find(|pod| pods.contains(&pod.key)).unwrap().class.clone();
    Unplaced { class, pods, refusals, places: Vec::new() }
}
