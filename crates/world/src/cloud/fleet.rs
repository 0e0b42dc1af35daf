//! From a claim to a fleet request: what may be bought, and what is told to the cloud about it.

use std::collections::{BTreeMap, BTreeSet};

use api::NodeClaim;
use aws_sim::{AllocationStrategy, CapacityType, FleetRequest, Override};
use cloud::{InstanceTypes, LaunchRequest};
use model::{InstanceType, Price, Requirements, labels};

/// Tags of instances.
pub mod tags {
    /// The claim.
    pub const CLAIM: &str = "karpenter.sh/nodeclaim";
    /// The claim's pool.
    pub const POOL: &str = "karpenter.sh/nodepool";
    /// The launch.
    pub const LAUNCH: &str = "karpenter.sh/launch-id";
    /// The claim's class.
    pub const NODE_CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
}

/// A fleet is offered this many types at most, cheapest first: enough choice for the cloud, few enough for one call.
const TYPES_MAX: usize = 60;

/// What a claim may be launched as; `None` if nothing of it is for sale.
pub(super) fn request(
    launch: &LaunchRequest,
    types: &InstanceTypes,
    requirements: &Requirements,
) -> Option<FleetRequest> {
    let candidates = candidates(types, requirements);
    let spot = model::CapacityType::Spot;
    let is_spot = candidates.iter().any(|candidate| candidate.capacity_type == spot);
    let capacity_type = if is_spot { spot } else { model::CapacityType::OnDemand };
    let mut fitting: Vec<Candidate> =
        candidates.into_iter().filter(|candidate| candidate.capacity_type == capacity_type).collect();
    fitting.sort_by(|one, other| {
        (one.price, &one.type_name, &one.zone).cmp(&(other.price, &other.type_name, &other.zone))
    });
    let mut kept: BTreeSet<String> = BTreeSet::new();
    fitting.retain(|candidate| {
        kept.contains(&candidate.type_name) || (kept.len() < TYPES_MAX && kept.insert(candidate.type_name.clone()))
    });
    if fitting.is_empty() {
        return None;
    }
    Some(FleetRequest {
        client_token: Some(launch.id.to_string()),
        capacity_type: if is_spot { CapacityType::Spot } else { CapacityType::OnDemand },
        allocation_strategy: if is_spot {
            AllocationStrategy::PriceCapacityOptimized
        } else {
            AllocationStrategy::LowestPrice
        },
        overrides: fitting.into_iter().map(|candidate| Override::new(candidate.type_name, candidate.zone)).collect(),
        count: 1,
        tags: tags_of(&launch.claim, launch.id.as_str()),
        dry_run: false,
    })
}

fn tags_of(claim: &NodeClaim, launch: &str) -> BTreeMap<String, String> {
    let label = |key: &str| claim.metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
    let pairs = [
        (tags::CLAIM, claim.metadata.name.clone().unwrap_or_default()),
        (tags::POOL, label(labels::NODE_POOL).unwrap_or_default()),
        (tags::LAUNCH, launch.to_owned()),
        (tags::NODE_CLASS, claim.spec.node_class_ref.name.clone()),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// One way to buy what a claim asks for.
#[derive(Clone, Debug)]
struct Candidate {
    type_name: String,
    zone: String,
    capacity_type: model::CapacityType,
    price: Price,
}

fn candidates(types: &InstanceTypes, requirements: &Requirements) -> Vec<Candidate> {
    let fits = |kind: &&std::sync::Arc<InstanceType>| kind.requirements.intersect(requirements).is_ok();
    let ways = types.iter().filter(fits).flat_map(|kind| {
        kind.offerings_for(requirements).filter_map(|offering| {
            Some(Candidate {
                type_name: kind.name.to_string(),
                zone: offering.zone()?.to_string(),
                capacity_type: offering.capacity_type(),
                price: offering.price,
            })
        })
    });
    ways.collect()
}
