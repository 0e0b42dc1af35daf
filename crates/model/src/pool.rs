//! Pools: the rules by which new nodes may be made.

use std::sync::Arc;

use crate::{InstanceType, PoolName, Requirements, Resources, Taint};

/// A NodePool that may be used for new nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Name.
    pub name: PoolName,
    /// Pools with a higher weight are tried first.
    pub weight: i32,
    /// What the template demands: its requirements and labels, the pool's and the node class's label.
    pub requirements: Requirements,
    /// Taints of new nodes; startup taints are gone by the time pods arrive.
    pub taints: Vec<Taint>,
    /// The most that the pool may use; a resource that is not named is unlimited.
    pub limits: Resources,
    /// What nodes and claims of the pool use already, `nodes` among it.
    pub in_use: Resources,
    /// The types its provider sells, with everything the provider knows about them.
    pub types: Arc<[Arc<InstanceType>]>,
}
