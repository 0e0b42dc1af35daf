//! Rules that a plan broke.

use std::fmt;

use model::{PlaceId, PodKey, PoolName, Price, ResourceName, Shortfall, Taint, TypeName, format_quantity};

/// Where a plan puts pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A place that is there or on its way.
    Place(PlaceId),
    /// The claim at this place in the plan, bought as this type.
    Claim {
        /// Its place in the plan.
        index: usize,
        /// The type.
        kind: TypeName,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(id) => id.fmt(formatter),
            Self::Claim { index, kind } => write!(formatter, "claim {index} as {kind}"),
        }
    }
}

/// A rule that a plan broke.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// A pod is placed or refused more or less often than once.
    NotOnce {
        /// The pod.
        pod: PodKey,
        /// How often it appears.
        times: usize,
    },
    /// A pod that was not pending appears.
    UnknownPod {
        /// The pod.
        pod: PodKey,
    },
    /// A place that is not in the snapshot is used.
    UnknownPlace {
        /// The place.
        place: PlaceId,
    },
    /// A claim is made from a pool that is not in the snapshot.
    UnknownPool {
        /// The pool.
        pool: PoolName,
    },
    /// A claim lists a type that its pool does not have.
    UnknownType {
        /// The claim's place in the plan.
        claim: usize,
        /// The type.
        kind: TypeName,
    },
    /// A claim lists a type that cannot be bought as the claim demands.
    NotForSale {
        /// The claim's place in the plan.
        claim: usize,
        /// The type.
        kind: TypeName,
    },
    /// A claim has no pods or no types.
    Pointless {
        /// The claim's place in the plan.
        claim: usize,
    },
    /// A pod is put where it does not tolerate a taint.
    Untolerated {
        /// The pod.
        pod: PodKey,
        /// Where it is put.
        target: Target,
        /// The taint.
        taint: Taint,
    },
    /// A pod is put where its node selector or affinity may turn out not to hold.
    LabelsUnmet {
        /// The pod.
        pod: PodKey,
        /// Where it is put.
        target: Target,
    },
    /// Pods and daemons do not fit.
    Overfull {
        /// Where they are put.
        target: Target,
        /// What is lacking.
        shortfall: Shortfall,
    },
    /// The requests of a claim do not cover its pods.
    RequestsTooSmall {
        /// The claim's place in the plan.
        claim: usize,
        /// What is lacking.
        shortfall: Shortfall,
    },
    /// The types of a claim do not come cheapest first.
    TypesOutOfOrder {
        /// The claim's place in the plan.
        claim: usize,
    },
    /// The price of a claim is not that of its cheapest type.
    WrongPrice {
        /// The claim's place in the plan.
        claim: usize,
        /// What the plan says.
        stated: Price,
        /// What it is.
        reckoned: Price,
    },
    /// A pool could use more than its limit, should every claim become its largest type.
    LimitCrossed {
        /// The pool.
        pool: PoolName,
        /// The resource.
        resource: ResourceName,
        /// What it could come to use.
        used: i64,
        /// The limit.
        limit: i64,
    },
    /// A refused pod lacks the reason of a pool, or names a pool's limit where there is none.
    WrongReason {
        /// One of the pods.
        pod: PodKey,
        /// The pool.
        pool: PoolName,
    },
    /// A refused pod would have fit a new node of a pool without limits.
    NeedlesslyRefused {
        /// One of the pods.
        pod: PodKey,
        /// The pool.
        pool: PoolName,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOnce { pod, times } => write!(formatter, "{pod} appears {times} times"),
            Self::UnknownPod { pod } => write!(formatter, "{pod} is not pending"),
            Self::UnknownPlace { place } => write!(formatter, "{place} does not exist"),
            Self::UnknownPool { pool } => write!(formatter, "pool {pool} does not exist"),
            Self::UnknownType { claim, kind } => write!(formatter, "claim {claim}: its pool has no type {kind}"),
            Self::NotForSale { claim, kind } => write!(formatter, "claim {claim}: {kind} cannot be bought"),
            Self::Pointless { claim } => write!(formatter, "claim {claim} has no pods or no types"),
            Self::Untolerated { pod, target, taint } => {
                write!(formatter, "{pod} does not tolerate {taint} of {target}")
            }
            Self::LabelsUnmet { pod, target } => write!(formatter, "{pod} may not match the labels of {target}"),
            Self::Overfull { target, shortfall } => write!(formatter, "{target} is too small, {shortfall}"),
            Self::RequestsTooSmall { claim, shortfall } => {
                write!(formatter, "claim {claim} asks for less than its pods, {shortfall}")
            }
            Self::TypesOutOfOrder { claim } => write!(formatter, "claim {claim}: types do not come cheapest first"),
            Self::WrongPrice { claim, stated, reckoned } => {
                write!(formatter, "claim {claim} costs {reckoned}, not {stated}")
            }
            Self::LimitCrossed { pool, resource, used, limit } => {
                let (used, limit) = (format_quantity(resource, *used), format_quantity(resource, *limit));
                write!(formatter, "pool {pool} may come to use {used} of {limit} {resource}")
            }
            Self::WrongReason { pod, pool } => write!(formatter, "{pod}: no proper reason of pool {pool}"),
            Self::NeedlesslyRefused { pod, pool } => write!(formatter, "{pod} would have fit a node of pool {pool}"),
        }
    }
}
