//! Why a pod gets no node. Data, with one sentence each that names the fix.

use std::collections::BTreeSet;
use std::fmt;

use crate::{Mismatch, PoolName, ResourceName, Rule, Taint, format_quantity};

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

/// A reason why a pool makes no node for a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// The pod states rules that are not planned yet.
    UnplannedRules {
        /// Those rules.
        rules: BTreeSet<Rule>,
    },
    /// The pod does not tolerate a taint of the pool.
    Untolerated {
        /// The taint.
        taint: Taint,
    },
    /// The pod's labels and the pool's do not go together.
    Incompatible {
        /// Where they part.
        mismatch: Mismatch,
    },
    /// No instance type of the pool has the demanded labels.
    NoTypeWithLabels {
        /// Where the type that came closest parts.
        mismatch: Mismatch,
    },
    /// No instance type is large enough.
    NoTypeLargeEnough {
        /// What the largest compatible type lacks.
        shortfall: Shortfall,
    },
    /// Types would fit, but none of them is for sale with the demanded zone and capacity type.
    NoOffering,
    /// The pool's limit leaves no room for any type that would fit.
    LimitReached {
        /// What the smallest fitting type would need and what is left.
        shortfall: Shortfall,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnplannedRules { rules } => {
                let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
                write!(formatter, "the pod has {}, which this version does not plan yet", rules.join(" and "))
            }
            Self::Untolerated { taint } => {
                write!(formatter, "did not tolerate taint {taint}; add a toleration to the pod or use another NodePool")
            }
            Self::Incompatible { mismatch } => write!(formatter, "incompatible requirements, {mismatch}"),
            Self::NoTypeWithLabels { mismatch } => {
                write!(formatter, "no instance type met the scheduling requirements, {mismatch}")
            }
            Self::NoTypeLargeEnough { shortfall } => {
                write!(formatter, "no instance type has enough resources, {shortfall}")?;
                let typo = shortfall.resource.is_cpu() && shortfall.wanted >= 1_000_000_000;
                formatter.write_str(if typo { " (CPU request >= 1 Million, m vs M typo?)" } else { "" })
            }
            Self::NoOffering => formatter
                .write_str("no instance type has an available offering in the allowed zones and capacity types"),
            Self::LimitReached { shortfall } => write!(
                formatter,
                "all available instance types exceed limits for nodepool, {shortfall}; raise spec.limits or free capacity"
            ),
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
