//! Pods that wait for a node: ready to be tried, backing off, or waiting for something to change.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use referee::PodFacts;

use crate::key::Key;
use crate::pods::{after, after_seconds, earlier};

/// After a failure a pod is not tried again before one second, doubled with each failure up to ten.
const BACK_OFF_SECONDS: i64 = 1;
const BACK_OFF_SECONDS_MAX: i64 = 10;
/// A pod that nothing woke is tried again after five minutes.
const FLUSH_SECONDS: i64 = 300;

/// A pod that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) facts: Arc<PodFacts>,
    /// Equal for pods that get the same answers.
    pub(crate) kind: u64,
    arrival: u64,
    failures: u32,
    failed_at: Option<Timestamp>,
    place: Place,
}

impl Waiting {
    pub(crate) fn new(kind: u64, facts: Arc<PodFacts>, arrival: u64) -> Self {
        Self { facts, kind, arrival, failures: 0, failed_at: None, place: Place::Active }
    }

    fn back_off_end(&self) -> Option<Timestamp> {
        let shift = self.failures.saturating_sub(1).min(8);
        let seconds = (BACK_OFF_SECONDS << shift).min(BACK_OFF_SECONDS_MAX);
        self.failed_at.map(|at| after(at, SignedDuration::from_secs(seconds)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Active,
    BackingOff(Timestamp),
    Unschedulable(Timestamp),
}

/// All pods that wait.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    pods: BTreeMap<Key, Waiting>,
    /// By priority, highest first, then by arrival.
    active: BTreeSet<(Reverse<i32>, u64, Key)>,
    backing_off: BTreeSet<(Timestamp, Key)>,
    /// With the time at which they are tried again whatever happens.
    unschedulable: BTreeSet<(Timestamp, Key)>,
}

impl Backlog {
    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.pods.contains_key(key)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Waiting> {
        self.pods.get(key)
    }

    /// The kinds of all pods that wait.
    pub(crate) fn kinds(&self) -> BTreeSet<u64> {
        self.pods.values().map(|waiting| waiting.kind).collect()
    }

    /// Adds a pod, or takes over its change: it is tried as soon as its back-off allows.
    pub(crate) fn put(&mut self, key: &Key, mut waiting: Waiting) {
        if let Some(before) = self.remove(key) {
            waiting.failures = before.failures;
            waiting.failed_at = before.failed_at;
            waiting.place = before.back_off_end().map_or(Place::Active, Place::BackingOff);
        }
        self.insert(key.clone(), waiting);
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Waiting> {
        let waiting = self.pods.remove(key)?;
        match waiting.place {
            Place::Active => self.active.remove(&(Reverse(waiting.facts.priority), waiting.arrival, key.clone())),
            Place::BackingOff(until) => self.backing_off.remove(&(until, key.clone())),
            Place::Unschedulable(until) => self.unschedulable.remove(&(until, key.clone())),
        };
        Some(waiting)
    }

    fn insert(&mut self, key: Key, waiting: Waiting) {
        match waiting.place {
            Place::Active => self.active.insert((Reverse(waiting.facts.priority), waiting.arrival, key.clone())),
            Place::BackingOff(until) => self.backing_off.insert((until, key.clone())),
            Place::Unschedulable(until) => self.unschedulable.insert((until, key.clone())),
        };
        self.pods.insert(key, waiting);
    }

    fn place(&mut self, key: &Key, place: Place) {
        if let Some(mut waiting) = self.remove(key) {
            waiting.place = place;
            self.insert(key.clone(), waiting);
        }
    }

    /// Notes that a node was looked for.
    pub(crate) fn tried(&mut self, key: &Key, now: Timestamp) {
        if let Some(mut waiting) = self.remove(key) {
            waiting.failures += 1;
            waiting.failed_at = Some(now);
            waiting.place = Place::Unschedulable(after_seconds(now, FLUSH_SECONDS));
            self.insert(key.clone(), waiting);
        }
    }

    /// Something changed that may help: every pod is tried again, after its back-off.
    pub(crate) fn wake_all(&mut self, now: Timestamp) {
        let keys: Vec<Key> = self.unschedulable.iter().map(|(_, key)| key.clone()).collect();
        for key in keys {
            let until = self.pods.get(&key).and_then(Waiting::back_off_end).filter(|until| *until > now);
            self.place(&key, until.map_or(Place::Active, Place::BackingOff));
        }
    }

    /// The pod to try now.
    pub(crate) fn next(&mut self, now: Timestamp) -> Option<Key> {
        self.ripen(now);
        self.active.first().map(|(_, _, key)| key.clone())
    }

    fn ripen(&mut self, now: Timestamp) {
        for which in [0, 1] {
            let waiting = if which == 0 { &self.backing_off } else { &self.unschedulable };
            let due: Vec<Key> =
                waiting.iter().take_while(|(until, _)| *until <= now).map(|(_, key)| key.clone()).collect();
            for key in due {
                self.place(&key, Place::Active);
            }
        }
    }

    pub(crate) fn is_anything_due(&self, now: Timestamp) -> bool {
        self.next_time(now).is_some_and(|at| at <= now) || !self.backing_off.is_empty()
    }

    /// When the next pod is to be tried: now, after a back-off, or at the latest retry.
    pub(crate) fn next_time(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.active.is_empty() {
            return Some(now);
        }
        let first = |waiting: &BTreeSet<(Timestamp, Key)>| waiting.first().map(|(until, _)| *until);
        earlier(first(&self.backing_off), first(&self.unschedulable))
    }
}

#[cfg(test)]
mod tests {
    use model::PodKey;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn waiting(name: &str, priority: i32, arrival: u64) -> Waiting {
        let mut facts = PodFacts::new(PodKey::new("default", name));
        facts.priority = priority;
        Waiting::new(0, Arc::new(facts), arrival)
    }

    #[test]
    fn pods_come_by_priority_then_arrival() {
        let mut backlog = Backlog::default();
        for (name, priority, arrival) in [("late", 0, 3), ("early", 0, 1), ("dear", 10, 2)] {
            backlog.put(&Key::new("default", name), waiting(name, priority, arrival));
        }
        let mut order = Vec::new();
        while let Some(key) = backlog.next(at(0)) {
            order.push(key.name.to_string());
            backlog.remove(&key);
        }
        assert_eq!(order, ["dear", "early", "late"]);
    }

    #[test]
    fn a_pod_that_failed_waits_for_a_change_and_its_back_off() {
        let mut backlog = Backlog::default();
        let key = Key::new("default", "p");
        backlog.put(&key, waiting("p", 0, 1));
        backlog.tried(&key, at(0));
        assert_eq!(backlog.next_time(at(0)), Some(at(300)));
        backlog.wake_all(at(0));
        assert_eq!(backlog.next_time(at(0)), Some(at(1)));
        assert_eq!(backlog.next(at(1)), Some(key.clone()));
        for _ in 0..5 {
            backlog.tried(&key, at(10));
        }
        backlog.wake_all(at(10));
        assert_eq!(backlog.next_time(at(10)), Some(at(20)));
        backlog.next(at(20));
        backlog.tried(&key, at(20));
        backlog.wake_all(at(100));
        assert_eq!(backlog.next(at(100)), Some(key));
    }
}
