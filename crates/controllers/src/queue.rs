//! The work queue: ordered by time, then arrival, then key.

mod shared;

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

pub(crate) use shared::{Load, SharedQueue, WeakQueue};

use crate::work::Work;

/// Work that is due at some time. Each key is queued at most once and runs at most once at a time.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    ordered: BTreeSet<(Instant, u64, Work)>,
    queued: BTreeMap<Work, (Instant, u64)>,
    running: BTreeSet<Work>,
    failures: BTreeMap<Work, u32>,
    arrivals: u64,
}

impl WorkQueue {
    /// Queues work, or brings it forward; a later time than the one already set changes nothing.
    pub(crate) fn add(&mut self, work: Work, due: Instant) {
        if self.queued.get(&work).is_none_or(|(already, _)| due < *already) {
            self.set(work, due);
        }
    }

    /// Queues work unless it is queued or running: work that backs off is not hurried.
    pub(crate) fn offer(&mut self, work: Work, due: Instant) {
        if !self.queued.contains_key(&work) && !self.running.contains(&work) {
            self.set(work, due);
        }
    }

    /// Queues work for exactly this time, be it later than before.
    pub(crate) fn set(&mut self, work: Work, due: Instant) {
        if let Some((before, arrival)) = self.queued.remove(&work) {
            self.ordered.remove(&(before, arrival, work.clone()));
        }
        self.arrivals += 1;
        self.queued.insert(work.clone(), (due, self.arrivals));
        self.ordered.insert((due, self.arrivals, work));
    }

    /// When the next work is due; work that is running waits for its own end.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.ordered.iter().find(|(_, _, work)| !self.running.contains(work)).map(|(due, _, _)| *due)
    }

    /// Takes the next due work and marks it as running.
    pub(crate) fn start(&mut self, now: Instant) -> Option<Work> {
        let ready = self.ordered.iter().take_while(|(due, _, _)| *due <= now);
        let (due, arrival, work) = ready.into_iter().find(|(_, _, work)| !self.running.contains(work))?.clone();
        self.ordered.remove(&(due, arrival, work.clone()));
        self.queued.remove(&work);
        self.running.insert(work.clone());
        Some(work)
    }

    /// Marks work as done and forgets its failures.
    pub(crate) fn finish(&mut self, work: &Work) {
        self.running.remove(work);
        self.failures.remove(work);
    }

    /// Marks work as failed; answers how often in a row.
    pub(crate) fn fail(&mut self, work: &Work) -> u32 {
        self.running.remove(work);
        let failures = self.failures.entry(work.clone()).or_insert(0);
        *failures = failures.saturating_add(1);
        *failures
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::ClaimName;

    use super::*;

    fn claim(name: &str) -> Work {
        Work::Claim(ClaimName::new(name))
    }

    #[tokio::test(start_paused = true)]
    async fn work_runs_by_time_then_arrival_and_once_per_key() {
        let now = Instant::now();
        let later = now + Duration::from_secs(5);
        let mut queue = WorkQueue::default();
        queue.add(claim("late"), later);
        queue.add(claim("b"), now);
        queue.add(claim("a"), now);
        queue.add(claim("b"), later);
        assert_eq!([queue.start(now), queue.start(now), queue.start(now)], [Some(claim("b")), Some(claim("a")), None]);
        queue.add(claim("a"), now);
        assert_eq!(queue.start(now), None, "`a` is still running");
        queue.finish(&claim("a"));
        assert_eq!(queue.start(now), Some(claim("a")));
        assert_eq!(queue.next_due(), Some(later));
    }

    #[tokio::test(start_paused = true)]
    async fn offered_work_does_not_hurry_work_that_backs_off() {
        let now = Instant::now();
        let mut queue = WorkQueue::default();
        queue.add(claim("a"), now + Duration::from_secs(5));
        queue.offer(claim("a"), now);
        queue.offer(claim("b"), now);
        assert_eq!([queue.start(now), queue.start(now)], [Some(claim("b")), None]);
        queue.offer(claim("b"), now);
        queue.finish(&claim("b"));
        assert_eq!(queue.start(now), None, "`b` was running when it was offered");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_count_until_success() {
        let mut queue = WorkQueue::default();
        assert_eq!([queue.fail(&claim("a")), queue.fail(&claim("a"))], [1, 2]);
        queue.finish(&claim("a"));
        assert_eq!(queue.fail(&claim("a")), 1);
    }
}
