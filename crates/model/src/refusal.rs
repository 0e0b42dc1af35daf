//! Why a pod gets no node. Data, with one sentence each that names the fix.

use std::collections::BTreeSet;
use std::fmt;

use crate::{
    HostPort, Mismatch, PoolName, Requirement, ResourceName, Rule, Stage, Taint, Text, TypeGap, TypeSearch,
    format_quantity,
};

/// A resource of which there is too little.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shortfall {
    /// The resource.
    pub resource: ResourceName,
    /// What was asked for.
    pub wanted: i64,
    /// What there is.
    pub available: i64,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, wanted, available } = self;
        let (wanted, available) = (format_quantity(resource, *wanted), format_quantity(resource, *available));
        write!(formatter, "{resource}: {wanted} wanted, {available} there")
    }
}

/// How pods of one selection are spread over the domains of a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spreading {
    /// The label.
    pub key: Text,
    /// The most by which a domain may exceed the emptiest.
    pub max_skew: u32,
    /// The domains that the pod may use or that count, with how many selected pods each has.
    pub domains: Vec<(Text, u32)>,
}

impl fmt::Display for Spreading {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, max_skew, domains } = self;
        let counts: Vec<String> = domains.iter().map(|(value, count)| format!("{value}: {count}")).collect();
        write!(formatter, "key={key}, maxSkew={max_skew} (counts = {})", counts.join(", "))
    }
}

/// A label of which too few different values are left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotony {
    /// The label.
    pub key: Text,
    /// How many values the pool demands.
    pub wanted: u32,
    /// How many there are.
    pub found: u32,
}

/// A reason why a pod gets no node of a pool, or no place on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// The pod states rules that are not planned.
    UnplannedRules {
        /// Those rules.
        rules: BTreeSet<Rule>,
    },
    /// The pod does not tolerate a taint.
    Untolerated {
        /// The taint.
        taint: Taint,
    },
    /// The labels that the pod demands and those of the pool or node do not go together.
    Incompatible {
        /// Where they part.
        mismatch: Mismatch,
    },
    /// A volume of the pod cannot be reached from there.
    VolumeElsewhere {
        /// Where volume and node part.
        mismatch: Mismatch,
    },
    /// More volumes than can be attached.
    TooManyVolumes {
        /// The driver.
        driver: Text,
        /// How many volumes there would be.
        wanted: u32,
        /// The most there can be.
        limit: u32,
    },
    /// Another pod has the host port.
    PortTaken {
        /// The port.
        port: HostPort,
    },
    /// No instance type of the pool has the demanded labels.
    NoTypeWithLabels {
        /// What was sought, and what was missing.
        search: Box<TypeSearch>,
        /// Where the type that came closest parts.
        mismatch: Mismatch,
    },
    /// No instance type is large enough.
    NoTypeLargeEnough {
        /// What was sought, and what was missing.
        search: Box<TypeSearch>,
        /// What the largest compatible type lacks.
        shortfall: Shortfall,
    },
    /// The node has too little left.
    TooFull {
        /// What it lacks first.
        shortfall: Shortfall,
    },
    /// Types would fit, but none of them is for sale with the demanded zone and capacity type.
    NoOffering {
        /// What was sought, and what was missing.
        search: Box<TypeSearch>,
        /// Zones in which a type that fits is for sale.
        zones_for_sale: BTreeSet<Text>,
        /// What was asked for instead, if the zone was the matter.
        zones_wanted: Option<Box<Requirement>>,
    },
    /// The pool's limit leaves no room for any type that would fit.
    LimitReached {
        /// What the smallest fitting type would need and what is left.
        shortfall: Shortfall,
    },
    /// Every domain within reach has too many such pods already.
    SpreadTooUneven {
        /// The constraint and the counts.
        spreading: Spreading,
    },
    /// No domain within reach has a pod that this one wants to be near.
    NobodyToJoin {
        /// The label that makes the domains.
        key: Text,
    },
    /// Every domain within reach has a pod that this one wants to be away from, or that wants it to be away.
    Repelled {
        /// The label that makes the domains.
        key: Text,
    },
    /// Too few different types, zones or other values are left to meet the pool's `minValues`.
    TooFewValues {
        /// The labels.
        labels: Vec<Monotony>,
    },
    /// Reserved capacity fits, but this round has already given all of it away; the next round will know more.
    ReservationsTaken,
    /// Only reserved capacity fits, and all of it is in use.
    ReservationsFull,
    /// The search ended before this pod's turn.
    NotReached,
}

impl Refusal {
    /// Whether the pod should simply be tried again, without a word to anybody.
    pub fn is_deferral(&self) -> bool {
        matches!(self, Self::ReservationsTaken | Self::ReservationsFull | Self::NotReached)
    }
}

fn joined(texts: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|text| text.to_string()).collect();
    match texts.as_slice() {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnplannedRules { rules } => write!(
                formatter,
                "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter ({})",
                joined(rules)
            ),
            Self::Untolerated { taint } => {
                write!(formatter, "did not tolerate taint {taint}; add a toleration to the pod or use another NodePool")
            }
            Self::Incompatible { mismatch } => write!(formatter, "incompatible requirements, {mismatch}"),
            Self::VolumeElsewhere { mismatch } => {
                write!(
                    formatter,
                    "a volume of the pod cannot be reached, {mismatch}; allow its zone or move the volume"
                )
            }
            Self::TooManyVolumes { driver, wanted, limit } => write!(
                formatter,
                "would exceed volume limit for all instance type options, provisioner={driver}, volume-count={wanted}, volume-limit={limit}"
            ),
            Self::PortTaken { port } => {
                let HostPort { address, protocol, port } = port;
                let address = if address.is_empty() { "0.0.0.0" } else { address };
                let protocol = if protocol.is_empty() { "TCP" } else { protocol };
                write!(formatter, "host port {address}:{port}/{protocol} is taken; free it or use another port")
            }
            Self::NoTypeWithLabels { search, mismatch } => {
                write!(formatter, "{}, {mismatch}, {}", search.gap, search.sought())
            }
            Self::NoTypeLargeEnough { search, shortfall } => {
                write!(formatter, "{}, {shortfall}, {}", search.gap, search.sought())?;
                let is_huge = shortfall.resource.is_cpu() && shortfall.wanted >= 1_000_000_000;
                let typo = is_huge && search.gap == TypeGap::Size;
                formatter.write_str(if typo { " (CPU request >= 1 Million, m vs M typo?)" } else { "" })
            }
            Self::TooFull { shortfall } => write!(formatter, "too little room, {shortfall}"),
            Self::NoOffering { search, zones_for_sale, zones_wanted } => {
                write!(formatter, "{}", search.gap)?;
                if let Some(wanted) = zones_wanted {
                    write!(formatter, ", zone {wanted} was wanted, for sale are {}", joined(zones_for_sale))?;
                }
                write!(formatter, ", {}", search.sought())
            }
            Self::LimitReached { shortfall } => write!(
                formatter,
                "all available instance types exceed limits for nodepool, {shortfall}; raise spec.limits or free capacity"
            ),
            Self::SpreadTooUneven { spreading } => write!(
                formatter,
                "unsatisfiable topology constraint for topology spread, {spreading}; raise maxSkew or allow more domains"
            ),
            Self::NobodyToJoin { key } => write!(
                formatter,
                "unsatisfiable topology constraint for pod affinity, key={key}; no reachable domain has a pod that the affinity selects"
            ),
            Self::Repelled { key } => write!(
                formatter,
                "unsatisfiable topology constraint for pod anti-affinity, key={key}; every reachable domain has a pod that excludes this one"
            ),
            Self::TooFewValues { labels } => {
                let one = |lack: &Monotony| format!("{} ({} of {})", lack.key, lack.found, lack.wanted);
                let labels = joined(labels.iter().map(one));
                write!(
                    formatter,
                    "minValues requirement is not met for label(s) {labels}; lower minValues or allow more types"
                )
            }
            Self::ReservationsTaken => {
                formatter.write_str("compatible reserved offerings are all taken by other nodes of this round")
            }
            Self::ReservationsFull => formatter
                .write_str("all compatible reserved offerings are full and no on-demand or spot fallback is available"),
            Self::NotReached => formatter.write_str("the search was stopped before this pod's turn"),
        }
    }
}

/// A pool with its reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolRefusal {
    /// The pool.
    pub pool: PoolName,
    /// The reason.
    pub refusal: Refusal,
}

impl fmt::Display for PoolRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "nodepool \"{}\": {}", self.pool, self.refusal)
    }
}

/// Nodes of one stage and pool that share a kind of reason, with the reason of the one that came closest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceRefusal {
    /// How far they have come.
    pub stage: Stage,
    /// Their pool; foreign nodes have none.
    pub pool: Option<PoolName>,
    /// How many there are.
    pub count: usize,
    /// The reason.
    pub refusal: Refusal,
}

impl fmt::Display for PlaceRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Ready => "ready",
            Stage::Joining => "joining",
            Stage::Promised => "promised",
            Stage::Going => "going",
        };
        let owner = self.pool.as_ref().map_or_else(|| "of no pool".to_owned(), |pool| format!("of {pool}"));
        write!(formatter, "{} {stage} node(s) {owner}: {}", self.count, self.refusal)
    }
}
