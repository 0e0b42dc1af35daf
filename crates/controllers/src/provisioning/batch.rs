//! The batch window: a burst of pods is planned together.

use std::collections::BTreeSet;
use std::time::Duration;

use model::PodKey;
use tokio::time::Instant;

/// Collects waiting pods until none is new for a while, or until it has taken long enough.
#[derive(Debug)]
pub(crate) struct Batch {
    idle: Duration,
    max: Duration,
    opened: Option<Instant>,
    seen: BTreeSet<PodKey>,
}

impl Batch {
    pub(crate) fn new(idle: Duration, max: Duration) -> Self {
        Self { idle, max, opened: None, seen: BTreeSet::new() }
    }

    /// A pod waits. Answers when the window closes now, or nothing if the pod was seen in this window before.
    pub(crate) fn add(&mut self, pod: PodKey, now: Instant) -> Option<Instant> {
        if !self.seen.insert(pod) {
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
            assert_eq!(seconds(start, batch.add(PodKey::new("default", pod), now)), closes, "{pod} at {at}");
        }
        batch.close(start + Duration::from_secs(10));
        let later = start + Duration::from_secs(20);
        assert_eq!(seconds(start, batch.add(PodKey::new("default", "a"), later)), Some(21.0), "a new window");
    }
}
