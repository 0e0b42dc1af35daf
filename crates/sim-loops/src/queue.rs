//! The work queue: ordered by time, then arrival, then key.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::key::Task;

/// Work that is due at some time; each task is queued at most once, for the earliest time anyone asked for.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    ordered: BTreeSet<(Timestamp, u64, Task)>,
    queued: BTreeMap<Task, (Timestamp, u64)>,
    arrivals: u64,
}

impl WorkQueue {
    /// Queues a task, or brings it forward; a later time than the one already set changes nothing.
    pub(crate) fn add(&mut self, task: Task, due: Timestamp) {
        if let Some((before, arrival)) = self.queued.get(&task).copied() {
            if before <= due {
                return;
            }
            self.ordered.remove(&(before, arrival, task.clone()));
        }
        self.arrivals += 1;
        self.queued.insert(task.clone(), (due, self.arrivals));
        self.ordered.insert((due, self.arrivals, task));
    }

    /// When the task is due, if it is queued.
    pub(crate) fn due_of(&self, task: &Task) -> Option<Timestamp> {
        self.queued.get(task).map(|(due, _)| *due)
    }

    /// When the next task is due.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.ordered.first().map(|(due, _, _)| *due)
    }

    /// Takes the next task that is due.
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<Task> {
        if self.next_due()? > now {
            return None;
        }
        let (_, _, task) = self.ordered.pop_first()?;
        self.queued.remove(&task);
        Some(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn tasks_come_by_time_then_arrival_and_never_twice() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let set = |name: &str| Task::ReplicaSet(Key::new("default", name));
        let mut queue = WorkQueue::default();
        queue.add(set("late"), at(9));
        queue.add(set("b"), at(5));
        queue.add(set("a"), at(5));
        queue.add(set("late"), at(12));
        queue.add(set("a"), at(3));
        let mut taken = Vec::new();
        while let Some(task) = queue.take(at(20)) {
            taken.push(task);
        }
        assert_eq!(taken, [set("a"), set("b"), set("late")]);
        assert_eq!(queue.next_due(), None);
    }
}
