//! The work queue: ordered by time, then arrival, then key.
//!
//! Each controller has a lane with room for so many passes at once. A lane that is full, because a provider does not
//! answer or a budget holds, keeps nobody in another lane waiting.

mod shared;

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

pub(crate) use shared::{Load, SharedQueue, WeakQueue};

use crate::work::{Work, at_once_max};

/// When work is due, when it arrived, and what it is.
type Entry = (Instant, u64, Work);

/// Work that is due at some time. Each key is queued at most once and runs at most once at a time.
#[derive(Debug)]
pub(crate) struct WorkQueue {
    /// How many passes most lanes have room for.
    width: usize,
    lanes: BTreeMap<&'static str, Lane>,
    queued: BTreeMap<Work, (Instant, u64)>,
    running: BTreeSet<Work>,
    failures: BTreeMap<Work, u32>,
    arrivals: u64,
}

/// The work of one controller.
#[derive(Debug, Default)]
struct Lane {
    ordered: BTreeSet<Entry>,
    running: usize,
}

impl WorkQueue {
    /// An empty queue whose lanes have room for so many passes.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width,
            lanes: BTreeMap::new(),
            queued: BTreeMap::new(),
            running: BTreeSet::new(),
            failures: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// How many passes most lanes have room for.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

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
            self.lane(&work).ordered.remove(&(before, arrival, work.clone()));
        }
        self.arrivals += 1;
        self.queued.insert(work.clone(), (due, self.arrivals));
        let entry = (due, self.arrivals, work.clone());
        self.lane(&work).ordered.insert(entry);
    }

    fn lane(&mut self, work: &Work) -> &mut Lane {
        self.lanes.entry(work.controller()).or_default()
    }

    /// The next work that can start once it is due: not running itself, and its lane has room.
    fn next(&self) -> Option<&Entry> {
        self.lanes.values().filter_map(|lane| self.first_of(lane)).min()
    }

    fn first_of<'a>(&self, lane: &'a Lane) -> Option<&'a Entry> {
        let entry = lane.ordered.iter().find(|(_, _, work)| !self.running.contains(work))?;
        (lane.running < at_once_max(entry.2.controller(), self.width)).then_some(entry)
    }

    /// When the next work is due; work that is running waits for its own end, work of a full lane for that of another.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.next().map(|(due, _, _)| *due)
    }

    /// Takes the next due work and marks it as running.
    pub(crate) fn start(&mut self, now: Instant) -> Option<Work> {
        let entry = self.next().filter(|(due, _, _)| *due <= now)?.clone();
        let work = entry.2.clone();
        let lane = self.lane(&work);
        lane.ordered.remove(&entry);
        lane.running += 1;
        self.queued.remove(&work);
        self.running.insert(work.clone());
        Some(work)
    }

    /// Marks work as done and forgets its failures.
    pub(crate) fn finish(&mut self, work: &Work) {
        self.leave(work);
        self.failures.remove(work);
    }

    fn leave(&mut self, work: &Work) {
        if self.running.remove(work) {
            self.lane(work).running -= 1;
        }
    }

    /// Marks work as failed; answers how often in a row.
    pub(crate) fn fail(&mut self, work: &Work) -> u32 {
        self.leave(work);
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
        let mut queue = WorkQueue::new(2);
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
        let mut queue = WorkQueue::new(2);
        queue.add(claim("a"), now + Duration::from_secs(5));
        queue.offer(claim("a"), now);
        queue.offer(claim("b"), now);
        assert_eq!([queue.start(now), queue.start(now)], [Some(claim("b")), None]);
        queue.offer(claim("b"), now);
        queue.finish(&claim("b"));
        assert_eq!(queue.start(now), None, "`b` was running when it was offered");
    }

    /// A full lane holds nobody else up, and goes on when somebody leaves it.
    #[tokio::test(start_paused = true)]
    async fn a_full_lane_holds_nobody_else_up() {
        let now = Instant::now();
        let mut queue = WorkQueue::new(2);
        let most = at_once_max(claim("c").controller(), 2);
        for number in 0..=most {
            queue.add(claim(&format!("c{number:04}")), now);
        }
        for _ in 0..most {
            assert!(queue.start(now).is_some());
        }
        assert_eq!((queue.start(now), queue.next_due()), (None, None), "the lane is full");
        queue.add(Work::Provision, now);
        assert_eq!(queue.start(now), Some(Work::Provision));
        queue.finish(&claim("c0000"));
        assert_eq!(queue.start(now), Some(claim(&format!("c{most:04}"))));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_count_until_success() {
        let mut queue = WorkQueue::new(2);
        assert_eq!([queue.fail(&claim("a")), queue.fail(&claim("a"))], [1, 2]);
        queue.finish(&claim("a"));
        assert_eq!(queue.fail(&claim("a")), 1);
    }
}
