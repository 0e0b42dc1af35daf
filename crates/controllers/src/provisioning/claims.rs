//! The NodeClaim that a planned claim becomes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::node_claim::ResourceRequirements;
use api::{DurationText, NodeClaim, NodeClaimSpec, NodePool, ResourceList, hash, labels, lower};
use cloud::LAUNCH_ID;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use model::{
    InstanceType, Operator, OverlayMarks, PlannedClaim, Requirement, Requirements, Resources, Vocabulary,
    format_quantity,
};

/// What a claim gets that neither plan nor pool says.
pub(crate) struct Defaults {
    /// The identity of its launch.
    pub(crate) launch_id: String,
    /// How long its node may take to drain where the pool does not say.
    pub(crate) grace: Option<DurationText>,
}

/// What a claim says beyond its pool's template.
pub(crate) struct Particulars {
    /// What its node must be like: the template's requirements among it.
    pub(crate) requirements: Requirements,
    /// What its node must at least have; nothing if the provider may decide.
    pub(crate) requests: Option<Resources>,
    /// Annotations besides those that every claim has.
    pub(crate) annotations: Vec<(&'static str, String)>,
    /// Decides on values that requirements leave open.
    pub(crate) seed: u64,
    /// What neither says.
    pub(crate) defaults: Defaults,
}

/// What was for sale when a claim was planned.
pub(super) struct Sold<'a> {
    /// The types of the pool.
    pub(super) types: &'a [Arc<InstanceType>],
    /// What overlays changed about the planned ones.
    pub(super) marks: OverlayMarks,
}

/// Writes down a planned claim.
pub(super) fn draft(
    planned: &PlannedClaim,
    pool: &NodePool,
    Sold { types, marks }: Sold<'_>,
    vocabulary: &Vocabulary,
    defaults: Defaults,
) -> NodeClaim {
    let overlaid = [(labels::PRICE_OVERLAY_APPLIED, marks.price), (labels::CAPACITY_OVERLAY_APPLIED, marks.capacity)];
    let overlaid = overlaid.into_iter().filter(|(_, applied)| *applied).map(|(key, _)| (key, "true".to_owned()));
    let relaxed = (labels::MIN_VALUES_RELAXED, planned.min_values_relaxed.to_string());
    let particulars = Particulars {
        requirements: launch_requirements(planned, types),
        requests: Some(planned.requests.clone()),
        annotations: [relaxed].into_iter().chain(overlaid).collect(),
        seed: seed(planned),
        defaults,
    };
    from_template(pool, vocabulary, particulars)
}

/// A claim as its pool's template has it. The pool is the one that the decision was made from, so that its hash is
/// frozen here; the finalizer and the launch id are there from the first moment, so that no launch can go unnoticed.
pub(crate) fn from_template(pool: &NodePool, vocabulary: &Vocabulary, particulars: Particulars) -> NodeClaim {
    let Particulars { requirements, requests, annotations: own, seed, defaults } = particulars;
    let Defaults { launch_id, grace } = defaults;
    let template = &pool.spec.template;
    let pool_name = pool.metadata.name.clone().unwrap_or_default();
    let spec = NodeClaimSpec {
        taints: template.spec.taints.clone(),
        startup_taints: template.spec.startup_taints.clone(),
        requirements: lower::to_requirements(&requirements),
        resources: requests.map(|requests| ResourceRequirements { requests: Some(quantities(&requests)) }),
        node_class_ref: template.spec.node_class_ref.clone(),
        termination_grace_period: template.spec.termination_grace_period.clone().or(grace),
        expire_after: template.spec.expire_after.clone(),
    };
    let mut claim = NodeClaim::new("", spec);
    let metadata = template.metadata.as_ref();
    let mut annotations = metadata.and_then(|metadata| metadata.annotations.clone()).unwrap_or_default();
    annotations.insert(labels::NODE_POOL_HASH.to_owned(), hash::node_pool_hash(template));
    annotations.insert(labels::NODE_POOL_HASH_VERSION.to_owned(), hash::HASH_VERSION.to_owned());
    annotations.insert(LAUNCH_ID.to_owned(), launch_id);
    annotations.extend(own.into_iter().map(|(key, value)| (key.to_owned(), value)));
    claim.metadata.name = None;
    claim.metadata.generate_name = Some(format!("{pool_name}-"));
    claim.metadata.labels = Some(claim_labels(pool, &requirements, vocabulary, seed));
    claim.metadata.annotations = Some(annotations);
    claim.metadata.finalizers = Some(vec![labels::TERMINATION_FINALIZER.to_owned()]);
    claim.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "karpenter.sh/v1".to_owned(),
        kind: "NodePool".to_owned(),
        name: pool_name,
        uid: pool.metadata.uid.clone().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    }]);
    claim
}

/// The plan's requirements with the types it may become, and only those capacity types that are for sale for them.
fn launch_requirements(planned: &PlannedClaim, types: &[Arc<InstanceType>]) -> Requirements {
    let listed: BTreeSet<&str> = planned.types.iter().map(|name| name.as_str()).collect();
    let chosen = types.iter().filter(|kind| listed.contains(kind.name.as_str()));
    let offered = chosen.flat_map(|kind| kind.offerings_for(&planned.requirements));
    let capacity_types: BTreeSet<&str> = offered.map(|offering| offering.capacity_type().as_str()).collect();
    let mut requirements = Requirements::clone(&planned.requirements);
    requirements.add(labels::INSTANCE_TYPE, Requirement::any_of(listed));
    requirements.add(labels::CAPACITY_TYPE, Requirement::any_of(capacity_types));
    requirements.remove(labels::HOSTNAME);
    requirements
}

/// The template's labels, those of pool and class, and one value for each custom label that the node must have.
fn claim_labels(
    pool: &NodePool,
    requirements: &Requirements,
    vocabulary: &Vocabulary,
    seed: u64,
) -> BTreeMap<String, String> {
    let template = &pool.spec.template;
    let mut claim_labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
    for (key, requirement) in requirements.iter().filter(|(key, _)| !vocabulary.is_well_known(key)) {
        if let Some(value) = concrete_value(requirement, seed) {
            claim_labels.entry(key.to_string()).or_insert(value);
        }
    }
    let class = &template.spec.node_class_ref;
    claim_labels.insert(labels::NODE_POOL.to_owned(), pool.metadata.name.clone().unwrap_or_default());
    claim_labels.insert(labels::node_class_label(&class.group, &class.kind), class.name.clone());
    claim_labels
}

/// A value that the requirement admits: the first listed one, or an integer that follows from the seed.
fn concrete_value(requirement: &Requirement, seed: u64) -> Option<String> {
    match requirement.operator() {
        Operator::DoesNotExist => None,
        Operator::In => requirement.values().next().map(ToString::to_string),
        _ => {
            let (lower, upper) = requirement.bounds();
            // A label's value cannot begin with a minus sign.
            let lower = lower.unwrap_or(0).max(0);
            let upper = upper.unwrap_or(i64::MAX).min(lower.saturating_add(i64::from(u32::MAX)));
            let width = (upper - lower).checked_add(1).filter(|width| *width > 0)?;
            let seed = i64::try_from(seed >> 1).ok()?;
            let candidates = (0..width.min(CANDIDATES_MAX)).map(|step| lower + (seed % width + step) % width);
            candidates.map(|value| value.to_string()).find(|value| requirement.admits(value))
        }
    }
}

/// More excluded values than a requirement can list.
const CANDIDATES_MAX: i64 = 1000;

/// A hash of the pool and the pods: equal plans give equal labels on every machine.
fn seed(planned: &PlannedClaim) -> u64 {
    let pods = planned.pods.iter().map(ToString::to_string);
    let text: String = [planned.pool.to_string()].into_iter().chain(pods).collect();
    seed_of(&text)
}

/// FNV-1a.
pub(crate) fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Amounts as the API server writes them.
pub(crate) fn quantities(resources: &Resources) -> ResourceList {
    let quantity =
        |(name, amount): (&model::ResourceName, i64)| (name.to_string(), Quantity(format_quantity(name, amount)));
    resources.iter().map(quantity).collect()
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
