//! What there is to do, and how it went.

use std::time::Duration;

use model::{BufferKey, ClaimName, NodeName, PodKey, PoolName};

use state::Wake;

use crate::write::WriteError;

/// What the hub is told between two rounds.
#[derive(Clone, Debug)]
pub(crate) enum Signal {
    /// The state says that something should be looked at.
    Woken(Wake),
    /// A reconciler asks for work on another key, now.
    Wanted(Work),
    /// A reconciler sees that there is work on another key; if that is queued already, its time stands.
    Offered(Work),
}

/// How many passes of a controller may be under way at once where others may have `width`. Claims wait for the provider
/// most of the time.
pub(crate) fn at_once_max(controller: &str, width: usize) -> usize {
    if controller == LIFECYCLE { 4 * width } else { width }
}

const LIFECYCLE: &str = "nodeclaim.lifecycle";

/// One thing to look at. Work on one key never runs twice at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Work {
    /// Find places for waiting pods.
    Provision,
    /// Look for nodes that are no longer needed.
    Disrupt,
    /// Look for claims whose instance is gone.
    Collect,
    /// Bring a claim forward, or to its end.
    Claim(ClaimName),
    /// Bring a node to its end.
    Node(NodeName),
    /// Judge a pool and count its nodes.
    Pool(PoolName),
    /// Make the claims that a static pool lacks.
    ScaleUp(PoolName),
    /// End the claims that a static pool has too many.
    ScaleDown(PoolName),
    /// Judge overlays.
    Overlays,
    /// Find out what a buffer asks for.
    Buffer(BufferKey),
    /// Say which nodes should lose their pods first.
    RankPods,
    /// Write a pod's deletion cost.
    Annotate(PodKey, String),
    /// Evict a pod from a node that is going.
    Evict(PodKey, String),
    /// End a pod whose node's time is up. A key of its own: no budget that made an eviction back off matters any more.
    ForceOut(PodKey, String),
    /// Ask what machines cost.
    Price,
}

impl Work {
    /// The name in logs and metrics.
    pub(crate) fn controller(&self) -> &'static str {
        match self {
            Self::Provision => "provisioner",
            Self::Disrupt => "disruption",
            Self::Collect => "nodeclaim.garbagecollection",
            Self::Claim(_) => LIFECYCLE,
            Self::Node(_) => "node.termination",
            Self::Pool(_) => "nodepool.readiness",
            Self::ScaleUp(_) => "static.provisioning",
            Self::ScaleDown(_) => "static.deprovisioning",
            Self::Overlays => "nodeoverlay.controller",
            Self::Buffer(_) => "capacitybuffer",
            Self::RankPods => "pod.deletioncost",
            Self::Annotate(..) => "pod.deletioncost.queue",
            Self::Evict(..) | Self::ForceOut(..) => "eviction-queue",
            Self::Price => "state.pricing",
        }
    }

    /// A pass that takes longer is given up and tried again: a provider or an API server that never answers must not
    /// hold a place in the lane for ever. Only a plan takes as long as it takes.
    pub(crate) fn time_max(&self) -> Option<Duration> {
        match self {
            Self::Provision | Self::Disrupt => None,
            _ => Some(Duration::from_secs(120)),
        }
    }

    /// Whether it thinks about what should be, rather than carry out what was decided. Only this runs in a process that
    /// observes: there, others carry out.
    pub(crate) fn is_planning(&self) -> bool {
        matches!(self, Self::Provision | Self::Disrupt | Self::Price)
    }

    /// How long to wait after the given number of failures in a row.
    pub(crate) fn back_off(&self, failures: u32) -> Duration {
        let (first, most) = match self {
            Self::Evict(..) | Self::ForceOut(..) | Self::Annotate(..) | Self::Node(_) => {
                (Duration::from_millis(100), Duration::from_secs(10))
            }
            _ => (Duration::from_secs(1), Duration::from_secs(60)),
        };
        first.saturating_mul(1_u32 << failures.saturating_sub(1).min(16)).min(most)
    }
}

/// How long to wait after the n-th conflict in a row.
pub(crate) fn after_conflict(failures: u32) -> Duration {
    let (first, most) = (Duration::from_millis(50), Duration::from_secs(2));
    first.saturating_mul(1_u32 << failures.saturating_sub(1).min(16)).min(most)
}

tokio::task_local! {
    /// The controller whose pass is running.
    static CONTROLLER: &'static str;
}

/// Runs a pass under the name of its controller.
pub(crate) fn named<F: Future>(controller: &'static str, pass: F) -> impl Future<Output = F::Output> {
    CONTROLLER.scope(controller, pass)
}

/// The controller whose pass is running; nothing outside of passes.
pub(crate) fn current_controller() -> &'static str {
    CONTROLLER.try_with(|controller| *controller).unwrap_or_default()
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// When something changes.
    OnChange,
    /// After this long, or when something changes.
    After(Duration),
    /// Soon, after a pause that grows with each try.
    BackOff,
}

impl Next {
    /// The sooner of two.
    pub(crate) fn sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::BackOff, _) | (_, Self::BackOff) => Self::BackOff,
            (Self::OnChange, other) => other,
            (own, Self::OnChange) => own,
            (Self::After(own), Self::After(other)) => Self::After(own.min(other)),
        }
    }
}

/// Why a pass over one key failed. It is tried again with back-off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Cloud(#[from] cloud::CloudError),
    #[error("launch failed: {0}")]
    Launch(#[from] cloud::LaunchError),
    #[error("the solve did not finish")]
    Unsolved,
    #[error("the annotation {key} says `{text}`, which is no time")]
    UnreadableTime { key: &'static str, text: String },
    #[error("the pass took too long and was given up")]
    TimedOut,
    #[error("the pass ended in a panic, which is a bug")]
    Panicked,
}

pub(crate) type Outcome = Result<Next, WorkError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_its_bound() {
        let seconds: Vec<u64> = [1, 2, 3, 7, 40].map(|n| Work::Provision.back_off(n).as_secs()).to_vec();
        assert_eq!(seconds, [1, 2, 4, 60, 60]);
    }
}
