//! How long things take: ranges, and the draw within them.

use std::time::Duration;

use jiff::SignedDuration;

/// A range of durations; both ends are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
}

impl Span {
    /// A range in milliseconds.
    pub const fn millis(min: u64, max: u64) -> Self {
        Self { min: Duration::from_millis(min), max: Duration::from_millis(max) }
    }
}

/// Which core events the loops write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventDetail {
    /// Nothing: for large clusters in which nobody reads events.
    None,
    /// What people look for: scheduling and its failures, started containers, evictions, scaled sets, failed creations.
    #[default]
    Few,
    /// Everything a real cluster writes for these steps: also pulled and created containers, and each pod a set makes.
    All,
}

/// How long each step takes, and how much is said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Scheduling one pod.
    pub scheduler: Span,
    /// From a change to the reaction of a controller.
    pub controller: Span,
    /// From the power-on of a machine to the creation of its Node object.
    pub node_registration: Span,
    /// From the registration of a node to its being ready.
    pub node_readiness: Span,
    /// From the binding of a pod to its running.
    pub pod_start: Span,
    /// How long a pod takes to stop, if its grace period is not over earlier.
    pub pod_stop: Span,
    /// How long a pod that is not restarted runs, unless the annotation [`crate::RUN_FOR_ANNOTATION`] says it.
    pub job_run: Span,
    /// From a deletion to the collection of what depended on it.
    pub garbage_collection: Span,
    /// Which events are written.
    pub events: EventDetail,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            scheduler: Span::millis(1, 20),
            controller: Span::millis(5, 100),
            node_registration: Span::millis(200, 2_000),
            node_readiness: Span::millis(1_000, 8_000),
            pod_start: Span::millis(500, 3_000),
            pod_stop: Span::millis(200, 3_000),
            job_run: Span::millis(10_000, 60_000),
            garbage_collection: Span::millis(100, 1_000),
            events: EventDetail::Few,
        }
    }
}

impl Pace {
    /// Nothing takes any time but the runs of Jobs, which take a second.
    pub fn instant() -> Self {
        let none = Span::millis(0, 0);
        Self {
            scheduler: none,
            controller: none,
            node_registration: none,
            node_readiness: none,
            pod_start: none,
            pod_stop: none,
            job_run: Span::millis(1_000, 1_000),
            garbage_collection: none,
            events: EventDetail::Few,
        }
    }
}

/// A step whose length depends on who takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    NodeRegistration,
    NodeReadiness,
    PodStart,
    PodStop,
    JobRun,
}

/// The pace together with the seed: the same step of the same object always takes equally long, whoever asks.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    pub(crate) seed: u64,
    pub(crate) pace: Pace,
}

impl Draws {
    /// The length of a step for the object of this identity.
    pub(crate) fn length(&self, step: Step, identity: &str) -> SignedDuration {
        let (span, salt) = match step {
            Step::NodeRegistration => (self.pace.node_registration, 1),
            Step::NodeReadiness => (self.pace.node_readiness, 2),
            Step::PodStart => (self.pace.pod_start, 3),
            Step::PodStop => (self.pace.pod_stop, 4),
            Step::JobRun => (self.pace.job_run, 5),
        };
        let mut rng = fastrand::Rng::with_seed(self.seed ^ fingerprint(identity.as_bytes()).wrapping_mul(salt * 2 + 1));
        draw(&mut rng, span)
    }

    /// A number that belongs to an identity, for addresses and the like.
    pub(crate) fn number(&self, identity: &str) -> u64 {
        self.seed ^ fingerprint(identity.as_bytes())
    }
}

/// A duration of whole milliseconds within a range: the grain of the timers.
pub(crate) fn draw(rng: &mut fastrand::Rng, span: Span) -> SignedDuration {
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let (min, max) = (millis(span.min), millis(span.max));
    SignedDuration::from_millis(if max <= min { min } else { rng.i64(min..=max) })
}

/// FNV-1a over bytes, in 64 bits.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_takes_equally_long_whenever_it_is_asked_for() {
        let draws = Draws { seed: 7, pace: Pace::default() };
        let first = draws.length(Step::PodStart, "uid-1");
        assert_eq!(first, draws.length(Step::PodStart, "uid-1"));
        assert_ne!(first, draws.length(Step::PodStart, "uid-2"));
        assert_ne!(first, Draws { seed: 8, pace: Pace::default() }.length(Step::PodStart, "uid-1"));
    }

    #[test]
    fn draws_stay_within_their_range() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..1_000 {
            let drawn = draw(&mut rng, Span::millis(5, 7)).as_millis();
            assert!((5..=7).contains(&drawn));
        }
    }
}
