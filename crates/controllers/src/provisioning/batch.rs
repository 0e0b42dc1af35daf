//! The batch window: a burst of pods is planned together.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{BufferKey, NodeName, PodKey};
use tokio::time::Instant;

/// Why there is something to plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trigger {
    /// A pod waits.
    Pod(PodKey),
    /// A buffer wants other room than before, or is gone.
    Buffer(BufferKey),
    /// Pods came to a node on which room was kept.
    RoomTaken(NodeName),
}

/// Collects waiting pods until none is new for a while, or until it has taken long enough.
#[derive(Debug)]
pub(crate) struct Batch {
    idle: Duration,
    max: Duration,
    opened: Option<Instant>,
    seen: BTreeSet<Trigger>,
}

impl Batch {
    pub(crate) fn new(idle: Duration, max: Duration) -> Self {
        Self { idle, max, opened: None, seen: BTreeSet::new() }
    }

    /// There is something to plan. Answers when the window closes now, or nothing if that was known in this window.
    pub(crate) fn add(&mut self, trigger: Trigger, now: Instant) -> Option<Instant> {
        if !self.seen.insert(trigger) {
            return None;
        }
        let opened = *self.opened.get_or_insert(now);
        Some((now + self.idle).min(opened + self.max))
    }

    /// Closes the window; pods that still wait open another.
    pub(crate) fn close(&mut self, now: Instant) -> Instant {
        self.opened = None;
        self.seen.clear();
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(pod: &str) -> Trigger {
        Trigger::Pod(PodKey::new("default", pod))
    }

    fn seconds(from: Instant, at: Option<Instant>) -> Option<f64> {
        at.map(|at| at.duration_since(from).as_secs_f64())
    }

    /// PROV-01, PROV-02: each new pod extends the window by the idle time, up to its maximum; a pod seen before does not.
    #[tokio::test(start_paused = true)]
    async fn the_window_closes_when_idle_or_full() {
        let start = Instant::now();
        let mut batch = Batch::new(Duration::from_secs(1), Duration::from_secs(10));
        let table = [
            ("a", 0.0, Some(1.0)),
            ("b", 0.5, Some(1.5)),
            ("a", 0.9, None),
            ("c", 1.4, Some(2.4)),
            ("d", 9.7, Some(10.0)),
        ];
        for (pod, at, closes) in table {
            let now = start + Duration::from_secs_f64(at);
            assert_eq!(seconds(start, batch.add(waiting(pod), now)), closes, "{pod} at {at}");
        }
        batch.close(start + Duration::from_secs(10));
        let later = start + Duration::from_secs(20);
        assert_eq!(seconds(start, batch.add(waiting("a"), later)), Some(21.0), "a new window");
    }
}
