//! What the planner answers.

use std::sync::Arc;

use crate::{PlaceId, PodClass, PodKey, PoolName, PoolRefusal, Price, Requirements, Resources, Revision, TypeName};

/// A new node to launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedClaim {
    /// The pool it is made from.
    pub pool: PoolName,
    /// What the node must satisfy: the pool's demands narrowed by those of its pods.
    pub requirements: Requirements,
    /// The types it may become, cheapest first.
    pub types: Vec<TypeName>,
    /// What its pods and daemons ask for.
    pub requests: Resources,
    /// The price of the cheapest type.
    pub price: Price,
    /// The pods it is made for.
    pub pods: Vec<PodKey>,
}

/// Pods that will fit a place that is there or on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nomination {
    /// The place.
    pub place: PlaceId,
    /// The pods.
    pub pods: Vec<PodKey>,
}

/// Pods of one class that fit nowhere, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// Their class.
    pub class: Arc<PodClass>,
    /// The pods.
    pub pods: Vec<PodKey>,
    /// The reason of each pool, in the order in which pools were tried.
    pub refusals: Vec<PoolRefusal>,
}

/// The answer for one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The snapshot's revision.
    pub revision: Revision,
    /// New nodes.
    pub claims: Vec<PlannedClaim>,
    /// Uses of what is there.
    pub nominations: Vec<Nomination>,
    /// What fits nowhere.
    pub unplaced: Vec<Unplaced>,
    /// Pools that can make no node at all, and why.
    pub barren_pools: Vec<PoolRefusal>,
}

impl Plan {
    /// What the new nodes cost per hour, each bought as its cheapest type.
    pub fn price(&self) -> Price {
        self.claims.iter().map(|claim| claim.price).sum()
    }
}
