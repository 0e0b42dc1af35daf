//! What a claim asks for, in the planner's words.

use api::{NodeClaim, lower};
use model::{Requirement, Requirements, Resources};

/// The claim's requirements.
pub(crate) fn requirements(claim: &NodeClaim) -> Requirements {
    lower::requirements(&claim.spec.requirements)
}

/// The claim's labels as requirements.
pub(crate) fn label_requirements(claim: &NodeClaim) -> Requirements {
    let mut requirements = Requirements::none();
    for (key, value) in claim.metadata.labels.iter().flatten() {
        requirements.add(key, Requirement::is(value.as_str()));
    }
    requirements
}

/// What the node must at least have.
pub(crate) fn requests(claim: &NodeClaim) -> Resources {
    let requests = claim.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    requests.map(lower::resources).unwrap_or_default()
}

/// The claim's name; empty for a claim that the API server has not seen.
pub(crate) fn name(claim: &NodeClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

/// The pool the claim belongs to; empty for a claim that stands alone.
pub(crate) fn pool(claim: &NodeClaim) -> &str {
    let labels = claim.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(api::labels::NODE_POOL)).map_or("", String::as_str)
}
