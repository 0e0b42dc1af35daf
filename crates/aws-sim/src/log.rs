//! What was asked and answered.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use crate::{AwsError, DescribeRequest, FleetAnswer, FleetRequest, InstanceId, StateChange};

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Launch instances.
    CreateFleet,
    /// Look at instances.
    DescribeInstances,
    /// End instances.
    TerminateInstances,
    /// Tag instances.
    CreateTags,
    /// Look at subnets.
    DescribeSubnets,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::CreateFleet, Self::DescribeInstances, Self::TerminateInstances, Self::CreateTags, Self::DescribeSubnets];
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// A call with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Launch instances.
    CreateFleet(FleetRequest),
    /// Look at instances.
    DescribeInstances(DescribeRequest),
    /// End instances.
    TerminateInstances(Vec<InstanceId>),
    /// Tag instances.
    CreateTags {
        /// The instances.
        ids: Vec<InstanceId>,
        /// The tags.
        tags: BTreeMap<String, String>,
    },
    /// Look at subnets.
    DescribeSubnets,
}

impl Call {
    /// The kind of call.
    pub fn action(&self) -> Action {
        match self {
            Self::CreateFleet(_) => Action::CreateFleet,
            Self::DescribeInstances(_) => Action::DescribeInstances,
            Self::TerminateInstances(_) => Action::TerminateInstances,
            Self::CreateTags { .. } => Action::CreateTags,
            Self::DescribeSubnets => Action::DescribeSubnets,
        }
    }
}

/// What came of a call that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A fleet, and whether it was there already under the same token.
    Fleet {
        /// The answer.
        answer: FleetAnswer,
        /// Whether this was a repetition.
        repeated: bool,
    },
    /// So many things were described.
    Described(usize),
    /// Instances were told to end.
    Ending(Vec<StateChange>),
    /// Instances were tagged.
    Tagged,
}

/// A call and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// When.
    pub at: Timestamp,
    /// The call.
    pub call: Call,
    /// What was done; `None` when the call was refused before anything was done.
    pub outcome: Option<Outcome>,
    /// What the caller saw, when that was an error. With an outcome beside it, the answer was lost on its way.
    pub error: Option<AwsError>,
}
