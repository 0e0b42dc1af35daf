//! Counting the pods of a Job so that each counts once, whenever it is deleted.
//!
//! A pod that ended is first listed as uncounted in the status, then released (its finalizer is removed), and then
//! counted: a crash between any two of these steps neither loses nor repeats it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;

use super::job::{is_tracked, pod_index};
use crate::pods::{is_deleting, is_finished, phase, time, uid};

/// How many pods of a Job ended, and how.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Counted for good.
    pub(crate) succeeded: i32,
    pub(crate) failed: i32,
    /// Ended, but not yet released.
    uncounted_succeeded: BTreeSet<String>,
    uncounted_failed: BTreeSet<String>,
    /// Indexes that pods completed and the status does not have yet.
    pub(crate) newly_completed: BTreeSet<i32>,
}

impl Tally {
    pub(crate) fn all_succeeded(&self) -> i32 {
        self.succeeded + count(self.uncounted_succeeded.len())
    }

    pub(crate) fn all_failed(&self) -> i32 {
        self.failed + count(self.uncounted_failed.len())
    }

    pub(crate) fn is_uncounted(&self, uid: &str) -> bool {
        self.uncounted_succeeded.contains(uid) || self.uncounted_failed.contains(uid)
    }

    pub(crate) fn has_uncounted(&self) -> bool {
        !(self.uncounted_succeeded.is_empty() && self.uncounted_failed.is_empty())
    }

    pub(crate) fn uncounted_text(&self) -> UncountedTerminatedPods {
        let list =
            |uids: &BTreeSet<String>| Some(uids.iter().cloned().collect::<Vec<_>>()).filter(|all| !all.is_empty());
        UncountedTerminatedPods { failed: list(&self.uncounted_failed), succeeded: list(&self.uncounted_succeeded) }
    }
}

/// Reads the tally off the status and the pods.
pub(crate) fn count_pods(job: &Job, pods: &[&Pod]) -> Tally {
    let status = job.status.clone().unwrap_or_default();
    let noted = status.uncounted_terminated_pods.unwrap_or_default();
    let held: BTreeSet<&str> = pods.iter().filter(|pod| is_tracked(pod)).map(|pod| uid(&pod.metadata)).collect();
    let mut tally =
        Tally { succeeded: status.succeeded.unwrap_or(0), failed: status.failed.unwrap_or(0), ..Tally::default() };
    for uid in noted.succeeded.into_iter().flatten() {
        if held.contains(uid.as_str()) {
            tally.uncounted_succeeded.insert(uid);
        } else {
            tally.succeeded += 1;
        }
    }
    for uid in noted.failed.into_iter().flatten() {
        if held.contains(uid.as_str()) {
            tally.uncounted_failed.insert(uid);
        } else {
            tally.failed += 1;
        }
    }
    let done = parse_indexes(status.completed_indexes.as_deref().unwrap_or(""));
    for pod in pods.iter().filter(|pod| is_tracked(pod) && (is_finished(pod) || is_orphaned(pod))) {
        let uid = uid(&pod.metadata).to_owned();
        if tally.is_uncounted(&uid) {
            continue;
        }
        if phase(pod) != "Succeeded" {
            tally.uncounted_failed.insert(uid);
            continue;
        }
        match pod_index(pod) {
            Some(index) if done.contains(&index) || !tally.newly_completed.insert(index) => {}
            _ => {
                tally.uncounted_succeeded.insert(uid);
            }
        }
    }
    tally
}

/// A pod that was deleted before it was bound never ends; nobody else would let it go.
fn is_orphaned(pod: &Pod) -> bool {
    is_deleting(pod) && crate::pods::node_name(pod).is_none()
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// When the Job ended, if it has.
pub(crate) fn finished(job: &Job) -> Option<Timestamp> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ends = |condition: &&JobCondition| matches!(condition.type_.as_str(), "Complete" | "Failed");
    let end = conditions.iter().filter(ends).find(|condition| condition.status == "True")?;
    end.last_transition_time.as_ref().map(|time| time.0)
}

/// Sets a condition; what is already so keeps its time.
pub(crate) fn condition(
    conditions: &mut Vec<JobCondition>,
    (kind, status): (&str, &str),
    (reason, message): (&str, &str),
    now: Timestamp,
) {
    let known = conditions.iter().position(|known| known.type_ == kind);
    if known.is_some_and(|index| conditions[index].status == status) {
        return;
    }
    let condition = JobCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(time(now)),
        last_transition_time: Some(time(now)),
    };
    match known {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
}

/// Reads `0-2,5`.
pub(crate) fn parse_indexes(text: &str) -> BTreeSet<i32> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<i32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Writes `0-2,5`; two neighbours are written one by one, as the real controller does.
pub(crate) fn indexes_text(indexes: &BTreeSet<i32>) -> String {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for index in indexes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let text = |(first, last): &(i32, i32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_in_runs() {
        for text in ["", "0", "0,1", "0-2", "0-2,5", "1,3,5-9"] {
            assert_eq!(indexes_text(&parse_indexes(text)), text);
        }
    }
}
