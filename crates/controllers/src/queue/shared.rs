//! The work queue as others see it: what there is to do, for how long it has waited, and what is under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::WorkQueue;
use crate::work::Work;

/// A queue that can be looked at while the hub works on it. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct SharedQueue(Arc<Mutex<Inner>>);

/// The same queue for somebody who does not keep it.
#[derive(Clone, Debug)]
pub(crate) struct WeakQueue(Weak<Mutex<Inner>>);

impl WeakQueue {
    /// The queue, if anybody still works on it.
    pub(crate) fn upgrade(&self) -> Option<SharedQueue> {
        self.0.upgrade().map(SharedQueue)
    }
}

#[derive(Debug)]
struct Inner {
    queue: WorkQueue,
    /// When queued work is due.
    due: BTreeMap<Work, Instant>,
    running: BTreeMap<Work, Pass>,
    /// Keys that were queued so far, by controller.
    added: BTreeMap<&'static str, u64>,
}

/// A pass that is under way.
#[derive(Clone, Copy, Debug)]
struct Pass {
    began: Instant,
    waited: Duration,
}

/// What a controller has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Keys that were queued so far.
    pub(crate) added: u64,
    /// Keys that are due and wait.
    pub(crate) due: u64,
    /// Passes that run.
    pub(crate) running: u64,
    /// For how long they have, summed up.
    pub(crate) unfinished: Duration,
    /// For how long the first of them has.
    pub(crate) longest: Duration,
}

impl SharedQueue {
    /// See [`WorkQueue::new`].
    pub(crate) fn new(width: usize) -> Self {
        let (due, running, added) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(Inner { queue: WorkQueue::new(width), due, running, added })))
    }

    /// See [`WorkQueue::width`].
    pub(crate) fn width(&self) -> usize {
        self.lock().queue.width()
    }

    /// See [`WorkQueue::add`].
    pub(crate) fn add(&self, work: Work, due: Instant) {
        self.lock().queueing(work, |queue, work| queue.add(work, due));
    }

    /// See [`WorkQueue::offer`].
    pub(crate) fn offer(&self, work: Work, due: Instant) {
        self.lock().queueing(work, |queue, work| queue.offer(work, due));
    }

    /// See [`WorkQueue::set`].
    pub(crate) fn set(&self, work: Work, due: Instant) {
        self.lock().queueing(work, |queue, work| queue.set(work, due));
    }

    /// See [`WorkQueue::next_due`].
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.lock().queue.next_due()
    }

    /// See [`WorkQueue::start`].
    pub(crate) fn start(&self, now: Instant) -> Option<Work> {
        let mut inner = self.lock();
        let work = inner.queue.start(now)?;
        let due = inner.due.remove(&work).unwrap_or(now);
        inner.running.insert(work.clone(), Pass { began: now, waited: now.duration_since(due) });
        Some(work)
    }

    /// See [`WorkQueue::finish`].
    pub(crate) fn finish(&self, work: &Work) {
        let mut inner = self.lock();
        inner.running.remove(work);
        inner.queue.finish(work);
    }

    /// See [`WorkQueue::fail`].
    pub(crate) fn fail(&self, work: &Work) -> u32 {
        let mut inner = self.lock();
        inner.running.remove(work);
        inner.queue.fail(work)
    }

    /// For how long work that is running had been due before it started.
    pub(crate) fn waited(&self, work: &Work) -> Duration {
        self.lock().running.get(work).map_or(Duration::ZERO, |pass| pass.waited)
    }

    /// For how long work has been running.
    pub(crate) fn running_for(&self, work: &Work, now: Instant) -> Duration {
        self.lock().running.get(work).map_or(Duration::ZERO, |pass| now.duration_since(pass.began))
    }

    /// What each controller has to do.
    pub(crate) fn loads(&self, now: Instant) -> BTreeMap<&'static str, Load> {
        let inner = self.lock();
        let mut loads: BTreeMap<&'static str, Load> = BTreeMap::new();
        for (controller, added) in &inner.added {
            loads.entry(controller).or_default().added = *added;
        }
        for (work, _) in inner.due.iter().filter(|(_, due)| **due <= now) {
            loads.entry(work.controller()).or_default().due += 1;
        }
        for (work, pass) in &inner.running {
            let load = loads.entry(work.controller()).or_default();
            let length = now.duration_since(pass.began);
            load.running += 1;
            load.unfinished += length;
            load.longest = load.longest.max(length);
        }
        loads
    }

    /// For a look from outside.
    pub(crate) fn downgrade(&self) -> WeakQueue {
        WeakQueue(Arc::downgrade(&self.0))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn queueing(&mut self, work: Work, change: impl FnOnce(&mut WorkQueue, Work)) {
        change(&mut self.queue, work.clone());
        if let Some((due, _)) = self.queue.queued.get(&work) {
            let controller = work.controller();
            if self.due.insert(work, *due).is_none() {
                *self.added.entry(controller).or_default() += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::ClaimName;

    use super::*;

    fn claim(name: &str) -> Work {
        Work::Claim(ClaimName::new(name))
    }

    /// OBS-01: the queue tells what there is to do, what waits and what runs for how long.
    #[tokio::test(start_paused = true)]
    async fn the_queue_tells_what_there_is_to_do() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let queue = SharedQueue::new(2);
        for (name, due) in [("a", 0), ("b", 0), ("c", 1), ("later", 60)] {
            queue.add(claim(name), after(due));
        }
        queue.add(claim("c"), after(2));
        assert_eq!([queue.start(after(3)), queue.start(after(5))], [Some(claim("a")), Some(claim("b"))]);
        assert_eq!([queue.waited(&claim("b")), queue.waited(&claim("c"))], [Duration::from_secs(5), Duration::ZERO]);
        assert_eq!(queue.running_for(&claim("a"), after(10)), Duration::from_secs(7));
        let seconds = Duration::from_secs;
        let load = Load { added: 4, due: 1, running: 2, unfinished: seconds(12), longest: seconds(7) };
        assert_eq!(queue.loads(after(10)), BTreeMap::from([("nodeclaim.lifecycle", load)]));
        let weak = queue.downgrade();
        drop(queue);
        assert!(weak.upgrade().is_none());
    }
}
