//! What the planner answers.

use std::sync::Arc;

use crate::{
    PlaceId, PlaceRefusal, PodClass, PodKey, PoolName, PoolRefusal, Price, Requirements, Resources, Revision, TypeName,
};

/// A new node to launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedClaim {
    /// The pool it is made from.
    pub pool: PoolName,
    /// What the node must satisfy: the pool's demands narrowed by those of its pods.
    pub requirements: Arc<Requirements>,
    /// The types it may become, cheapest first.
    pub types: Arc<[TypeName]>,
    /// What its pods and daemons ask for.
    pub requests: Resources,
    /// The price of the cheapest type.
    pub price: Price,
    /// Whether the pool's demand for a variety of types was lowered to what there is.
    pub min_values_relaxed: bool,
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
    /// The reasons of nodes that are there or on their way, alike ones together.
    pub places: Vec<PlaceRefusal>,
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
    /// All placed pods in an order in which the kube-scheduler accepts each where it was planned.
    pub sequence: Vec<PodKey>,
    /// No plan that places these pods by the same rules costs less per hour than this.
    pub bound: Price,
    /// How much searching it took, in counted steps: the same on every machine.
    pub steps: u64,
    /// Whether the steps ran out before the search ended; what the plan says holds all the same.
    pub interrupted: bool,
}

impl Plan {
    /// What the new nodes cost per hour, each bought as its cheapest type.
    pub fn price(&self) -> Price {
        self.claims.iter().map(|claim| claim.price).sum()
    }

    /// By what part of its price the plan may be dearer than the cheapest one, at most.
    pub fn gap(&self) -> f64 {
        let price = self.price().dollars();
        if price > 0.0 { ((price - self.bound.dollars()) / price).max(0.0) } else { 0.0 }
    }
}
