//! Rules that a plan broke.

use std::fmt;

use model::{
    HostPort, PlaceId, PodKey, PoolName, Price, ResourceName, Shortfall, Taint, Text, TypeName, format_quantity,
};

use super::Replay;
use crate::Objection;

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
    /// The sequence names a placed pod more or less often than once, or one that is not placed.
    NotInSequence {
        /// The pod.
        pod: PodKey,
        /// How often it is named.
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
    /// A pod is put where a volume of it may turn out to be out of reach.
    VolumeElsewhere {
        /// The pod.
        pod: PodKey,
        /// Where it is put.
        target: Target,
    },
    /// A pod is put where a host port is taken.
    PortTaken {
        /// The pod.
        pod: PodKey,
        /// Where it is put.
        target: Target,
        /// The port.
        port: HostPort,
    },
    /// More volumes are put on a node than it can attach.
    TooManyVolumes {
        /// Where they are put.
        target: Target,
        /// The driver.
        driver: Text,
        /// How many volumes there would be.
        wanted: usize,
        /// The most there can be.
        limit: u32,
    },
    /// The demands of a promised node and those of the pods that are put there do not go together.
    PromiseBroken {
        /// The place.
        place: PlaceId,
    },
    /// The kube-scheduler would reject a pod where it was planned, when its turn comes.
    Rejected {
        /// The pod.
        pod: PodKey,
        /// Where it is put.
        target: Target,
        /// What the nodes turned into.
        replay: Replay,
        /// The first objection.
        objection: Objection,
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
    /// A claim lists more types than a provider takes.
    TooManyTypes {
        /// The claim's place in the plan.
        claim: usize,
        /// How many it lists.
        count: usize,
    },
    /// The types of a claim have too few different values for a label.
    TooFewValues {
        /// The claim's place in the plan.
        claim: usize,
        /// The label.
        key: Text,
        /// How many are demanded.
        wanted: u32,
        /// How many there are.
        found: usize,
    },
    /// A capacity reservation is promised to more claims than it has instances left.
    ReservationOverdrawn {
        /// The reservation.
        id: Text,
        /// How many claims could use it.
        claims: u32,
        /// How many instances are left.
        left: u32,
    },
    /// The plan's bound is above the plan's own price.
    BoundAbovePrice {
        /// The bound.
        bound: Price,
        /// The price.
        price: Price,
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
            Self::NotInSequence { pod, times } => write!(formatter, "{pod} has its turn {times} times"),
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
            Self::VolumeElsewhere { pod, target } => write!(formatter, "{pod} may not reach its volumes from {target}"),
            Self::PortTaken { pod, target, port } => {
                write!(formatter, "{pod} wants the taken host port {} on {target}", port.port)
            }
            Self::TooManyVolumes { target, driver, wanted, limit } => {
                write!(formatter, "{target} would attach {wanted} of {limit} volumes of {driver}")
            }
            Self::PromiseBroken { place } => write!(formatter, "{place} cannot turn into a node for all of its pods"),
            Self::Rejected { pod, target, replay, objection } => {
                write!(formatter, "{pod} is rejected by {target} in the {replay} replay: {objection}")
            }
            Self::Overfull { target, shortfall } => write!(formatter, "{target} is too small, {shortfall}"),
            Self::RequestsTooSmall { claim, shortfall } => {
                write!(formatter, "claim {claim} asks for less than its pods, {shortfall}")
            }
            Self::TypesOutOfOrder { claim } => write!(formatter, "claim {claim}: types do not come cheapest first"),
            Self::WrongPrice { claim, stated, reckoned } => {
                write!(formatter, "claim {claim} costs {reckoned}, not {stated}")
            }
            Self::TooManyTypes { claim, count } => write!(formatter, "claim {claim} lists {count} types"),
            Self::TooFewValues { claim, key, wanted, found } => {
                write!(formatter, "claim {claim} leaves {found} of {wanted} values for {key}")
            }
            Self::ReservationOverdrawn { id, claims, left } => {
                write!(formatter, "reservation {id} is promised {claims} times with {left} left")
            }
            Self::BoundAbovePrice { bound, price } => write!(formatter, "the bound {bound} is above the price {price}"),
            Self::LimitCrossed { pool, resource, used, limit } => {
                let (used, limit) = (format_quantity(resource, *used), format_quantity(resource, *limit));
                write!(formatter, "pool {pool} may come to use {used} of {limit} {resource}")
            }
            Self::WrongReason { pod, pool } => write!(formatter, "{pod}: no proper reason of pool {pool}"),
            Self::NeedlesslyRefused { pod, pool } => write!(formatter, "{pod} would have fit a node of pool {pool}"),
        }
    }
}
