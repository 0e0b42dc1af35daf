//! Launch requests and what comes back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use api::{NodeClaim, ResourceList};
use jiff::Timestamp;
use model::{ClaimName, ProviderId};

/// The claim's annotation that holds its launch id.
///
/// It is written before the first call to the provider and travels with the instance, so that a controller that was
/// killed in between finds what it started instead of starting another.
pub const LAUNCH_ID: &str = "karpenter.sh/launch-id";

/// Names one launch, for ever.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchId(String);

impl LaunchId {
    /// Wraps an id that was drawn for a claim.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id that a claim carries.
    pub fn of(claim: &NodeClaim) -> Option<Self> {
        claim.metadata.annotations.as_ref()?.get(LAUNCH_ID).map(Self::new)
    }

    /// The bare text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LaunchId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What to launch.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    /// The launch's name.
    pub id: LaunchId,
    /// The claim with its requirements, requests and NodeClass.
    pub claim: Arc<NodeClaim>,
}

/// An instance that was started for a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Launched {
    /// Its identity.
    pub provider_id: ProviderId,
    /// The image it runs.
    pub image_id: String,
    /// Labels that its node will carry.
    pub labels: BTreeMap<String, String>,
    /// Annotations for the claim.
    pub annotations: BTreeMap<String, String>,
    /// What it has.
    pub capacity: ResourceList,
    /// What pods may use of it.
    pub allocatable: ResourceList,
}

/// An instance as the provider lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its identity.
    pub provider_id: ProviderId,
    /// Where it comes from; an instance that does not say is not ours to end.
    pub origin: Option<Origin>,
}

/// Which launch made an instance, for which claim, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The launch.
    pub launch: LaunchId,
    /// The claim it was made for.
    pub claim: ClaimName,
    /// When it was started.
    pub started: Timestamp,
}

/// How far the end of an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    /// Asked for; ask again later.
    Requested,
    /// The provider no longer knows it.
    Gone,
}
