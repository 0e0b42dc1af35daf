//! What can go wrong at a provider.

use std::time::Duration;

/// What the controllers do after a failed launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Delete the claim; its pods are planned anew, and the provider no longer offers what ran out.
    Replan,
    /// Try the same claim again after a while.
    Retry {
        /// A pause the provider asked for; otherwise back-off decides.
        after: Option<Duration>,
    },
}

/// A launch that did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// Nobody sells what the claim allows.
    #[error("insufficient capacity, {message}")]
    InsufficientCapacity {
        /// What was tried.
        message: String,
    },
    /// The NodeClass cannot be used.
    #[error("NodeClassRef not ready, {message}")]
    NodeClassNotReady {
        /// What is wrong with it.
        message: String,
    },
    /// The provider asks for a slower pace.
    #[error("throttled, {message}")]
    Throttled {
        /// The provider's words.
        message: String,
        /// The pause it asked for.
        after: Option<Duration>,
    },
    /// A refusal with a reason of its own, shown in the `Launched` condition.
    #[error("{message}")]
    Refused {
        /// A word in CamelCase for the condition's reason.
        reason: String,
        /// The provider's words.
        message: String,
    },
    /// Anything else.
    #[error("{message}")]
    Failed {
        /// The provider's words.
        message: String,
    },
}

impl LaunchError {
    /// What to do about it.
    pub fn next(&self) -> Next {
        match self {
            Self::InsufficientCapacity { .. } | Self::NodeClassNotReady { .. } => Next::Replan,
            Self::Throttled { after, .. } => Next::Retry { after: *after },
            Self::Refused { .. } | Self::Failed { .. } => Next::Retry { after: None },
        }
    }

    /// The reason for the `Launched` condition while the launch is retried.
    pub fn condition_reason(&self) -> &str {
        match self {
            Self::Refused { reason, .. } => reason,
            _ => "LaunchFailed",
        }
    }

    /// The value of the metric label `reason` when the claim is given up.
    pub fn metric_reason(&self) -> &'static str {
        match self {
            Self::InsufficientCapacity { .. } => "insufficient_capacity",
            Self::NodeClassNotReady { .. } => "nodeclass_not_ready",
            Self::Throttled { .. } | Self::Refused { .. } | Self::Failed { .. } => "launch_failed",
        }
    }
}

/// Any other call that failed; it is tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{attempt}: {message}")]
pub struct CloudError {
    /// What was attempted, for example `list instances`.
    pub attempt: &'static str,
    /// What the provider said.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CP-01: what each failure means for its claim, and the names under which people see it.
    #[test]
    fn errors_say_what_comes_next() {
        let message = || "m".to_owned();
        let pause = Some(Duration::from_secs(3));
        let (again, later) = (Next::Retry { after: None }, Next::Retry { after: pause });
        let table = [
            (
                LaunchError::InsufficientCapacity { message: message() },
                Next::Replan,
                ["insufficient capacity, m", "LaunchFailed", "insufficient_capacity"],
            ),
            (
                LaunchError::NodeClassNotReady { message: message() },
                Next::Replan,
                ["NodeClassRef not ready, m", "LaunchFailed", "nodeclass_not_ready"],
            ),
            (
                LaunchError::Throttled { message: message(), after: pause },
                later,
                ["throttled, m", "LaunchFailed", "launch_failed"],
            ),
            (
                LaunchError::Refused { reason: "SubnetsFull".to_owned(), message: message() },
                again.clone(),
                ["m", "SubnetsFull", "launch_failed"],
            ),
            (LaunchError::Failed { message: message() }, again, ["m", "LaunchFailed", "launch_failed"]),
        ];
        for (error, next, names) in table {
            assert_eq!(error.next(), next, "{error:?}");
            assert_eq!([&error.to_string(), error.condition_reason(), error.metric_reason()], names, "{error:?}");
        }
    }
}
