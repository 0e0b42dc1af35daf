//! Jobs: pods that end, until enough of them have ended well.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use serde_json::json;

use super::job_status::{Tally, condition, count_pods, finished, indexes_text, parse_indexes};
use super::template::Maker;
use crate::caches::Caches;
use crate::key::Key;
use crate::pods::{after_seconds, annotation, is_active, is_deleting, name, phase, time, uid};
use crate::write::{Decision, JOBS, PODS, Telling, Weight, Write, delete, patch, reference, replace_status};

pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How many pods one pass makes, as in the real controller.
const BURST_PODS_MAX: i32 = 500;
const BACK_OFF_SECONDS: i64 = 10;
const BACK_OFF_SECONDS_MAX: i64 = 600;

/// A Job with what was read off it.
struct View<'a> {
    job: &'a Job,
    spec: &'a JobSpec,
    pods: Vec<&'a Pod>,
    tally: Tally,
    now: Timestamp,
}

/// How a Job ends.
enum End {
    Complete,
    Failed { reason: &'static str, message: &'static str },
}

/// Takes the next step of a Job, and brings its status up to date.
pub(crate) fn reconcile(caches: &Caches, key: &Key, now: Timestamp) -> Decision {
    let Some(job) = caches.jobs.get(key) else { return Decision::default() };
    let Some(spec) = &job.spec else { return Decision::default() };
    let pods: Vec<&Pod> = caches.pods_of(uid(&job.metadata)).map(|(_, known)| &*known.pod).collect();
    let tally = count_pods(job, &pods);
    let view = View { job, spec, pods, tally, now };
    if let Some(ended) = finished(job) {
        return view.after_the_end(ended);
    }
    view.next()
}

impl View<'_> {
    /// Pods that the status counts or is about to: they need not be held any longer.
    fn released(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().copied().filter(|pod| is_tracked(pod) && self.tally.is_uncounted(uid(&pod.metadata)))
    }

    fn active(&self) -> Vec<&Pod> {
        self.pods.iter().copied().filter(|pod| is_active(pod)).collect()
    }

    /// A Job that has ended releases its pods, and goes itself when its time to live is over.
    fn after_the_end(&self, ended: Timestamp) -> Decision {
        let held = self.pods.iter().filter(|pod| is_tracked(pod) && !is_active(pod));
        let mut decision = Decision::of(held.map(|pod| release(pod)).collect());
        if let Some(seconds) = self.spec.ttl_seconds_after_finished
            && self.job.metadata.deletion_timestamp.is_none()
        {
            let due = after_seconds(ended, i64::from(seconds));
            if due <= self.now {
                decision.writes.push(delete(JOBS, &self.job.metadata, None));
            } else {
                decision.look_again = Some(due);
            }
        }
        decision
    }

    fn next(&self) -> Decision {
        let mut decision = Decision::default();
        let active = self.active();
        let suspended = self.spec.suspend == Some(true);
        let deleting = self.job.metadata.deletion_timestamp.is_some();
        let end = if deleting { None } else { self.end(active.len()) };
        let (steps, look_again) = match (&end, suspended || deleting) {
            (Some(_), _) | (None, true) => (active.iter().map(|pod| delete(PODS, &pod.metadata, None)).collect(), None),
            (None, false) => self.scale(&active),
        };
        decision.look_again_at(look_again);
        decision.look_again_at(self.deadline().filter(|due| *due > self.now));
        // A Job has ended when its last pod is counted.
        let end = end.filter(|_| !self.tally.has_uncounted());
        decision.writes.extend(self.status_write(&active, suspended, end.as_ref()));
        decision.writes.extend(self.released().map(release));
        decision.writes.extend(self.end_telling(end.as_ref()));
        decision.writes.extend(steps);
        decision
    }

    fn end(&self, active: usize) -> Option<End> {
        let limit = self.spec.backoff_limit.unwrap_or(6);
        if self.tally.all_failed() > limit {
            let message = "Job has reached the specified backoff limit";
            return Some(End::Failed { reason: "BackoffLimitExceeded", message });
        }
        if self.deadline().is_some_and(|due| due <= self.now) {
            let message = "Job was active longer than specified deadline";
            return Some(End::Failed { reason: "DeadlineExceeded", message });
        }
        let done = self.tally.all_succeeded();
        let complete = match self.spec.completions {
            Some(completions) => done >= completions,
            None => done > 0 && active == 0,
        };
        complete.then_some(End::Complete)
    }

    fn deadline(&self) -> Option<Timestamp> {
        let seconds = self.spec.active_deadline_seconds?;
        let started = self.job.status.as_ref()?.start_time.as_ref()?;
        Some(after_seconds(started.0, seconds))
    }

    /// Pods to make or to delete now, and when to make more.
    fn scale(&self, active: &[&Pod]) -> (Vec<Write>, Option<Timestamp>) {
        let parallelism = self.spec.parallelism.unwrap_or(1);
        let done = self.tally.all_succeeded();
        let running = i32::try_from(active.len()).unwrap_or(i32::MAX);
        let wanted = match self.spec.completions {
            Some(completions) => parallelism.min(completions - done),
            None if done > 0 => running.min(parallelism),
            None => parallelism,
        };
        if running > wanted {
            let surplus = usize::try_from(running - wanted.max(0)).unwrap_or(0);
            let mut ranked = active.to_vec();
            super::ranking::sort_for_deletion(&mut ranked, active.iter().copied(), self.now);
            let owner = reference(JOBS, &self.job.metadata);
            let gone = ranked.into_iter().take(surplus);
            return (gone.map(|pod| delete(PODS, &pod.metadata, Some(owner.clone()))).collect(), None);
        }
        let missing = (wanted - running).min(BURST_PODS_MAX);
        if missing <= 0 {
            return (Vec::new(), None);
        }
        if let Some(due) = self.back_off().filter(|due| *due > self.now) {
            return (Vec::new(), Some(due));
        }
        (self.creations(active, missing), None)
    }

    /// After failures the next pods wait: ten seconds, doubled with each failure in a row.
    fn back_off(&self) -> Option<Timestamp> {
        let ended = |pod: &&&Pod| phase(pod) == "Failed";
        let at = |pod: &&Pod| {
            crate::pods::condition(pod, "Ready")
                .and_then(|ready| ready.last_transition_time.as_ref())
                .map(|time| time.0)
        };
        let last = self.pods.iter().filter(ended).filter_map(at).max()?;
        let failures = u32::try_from(self.tally.all_failed().clamp(1, 16)).unwrap_or(1);
        let seconds = (BACK_OFF_SECONDS << (failures - 1)).min(BACK_OFF_SECONDS_MAX);
        Some(after_seconds(last, seconds))
    }

    fn creations(&self, active: &[&Pod], missing: i32) -> Vec<Write> {
        let mut template: PodTemplateSpec = self.spec.template.clone();
        let metadata = template.metadata.get_or_insert_default();
        metadata.finalizers.get_or_insert_default().push(TRACKING.to_owned());
        let maker = Maker { resource: JOBS, owner: &self.job.metadata, template: &template };
        if self.spec.completion_mode.as_deref() != Some("Indexed") {
            return (0..missing).map(|_| maker.create(maker.pod())).collect();
        }
        let noted = self.job.status.as_ref().and_then(|status| status.completed_indexes.as_deref()).unwrap_or("");
        let mut taken: BTreeSet<i32> = parse_indexes(noted);
        taken.extend(active.iter().filter_map(|pod| pod_index(pod)));
        taken.extend(&self.tally.newly_completed);
        let free = (0..self.spec.completions.unwrap_or(0)).filter(|index| !taken.contains(index));
        let count = usize::try_from(missing).unwrap_or(0);
        free.take(count).map(|index| maker.create(self.indexed_pod(&maker, index))).collect()
    }

    fn indexed_pod(&self, maker: &Maker<'_>, index: i32) -> serde_json::Value {
        let own = name(&self.job.metadata);
        let mut pod = maker.pod();
        pod["metadata"]["generateName"] = json!(format!("{own}-{index}-"));
        pod["metadata"]["annotations"][INDEX] = json!(index.to_string());
        pod["metadata"]["labels"][INDEX] = json!(index.to_string());
        pod["spec"]["hostname"] = json!(format!("{own}-{index}"));
        pod
    }

    fn status_write(&self, active: &[&Pod], suspended: bool, end: Option<&End>) -> Option<Write> {
        let before = self.job.status.clone().unwrap_or_default();
        let mut status = before.clone();
        let some = |count: usize| Some(i32::try_from(count).unwrap_or(i32::MAX));
        let held = self.tally.uncounted_text();
        status.succeeded = Some(self.tally.succeeded).filter(|count| *count > 0);
        status.failed = Some(self.tally.failed).filter(|count| *count > 0);
        status.uncounted_terminated_pods = Some(held);
        let ended = end.is_some();
        status.active = some(if ended || suspended { 0 } else { active.len() }).filter(|count| *count > 0);
        status.ready = some(active.iter().filter(|pod| crate::pods::is_ready(pod) && !ended).count());
        status.terminating =
            some(self.pods.iter().filter(|pod| is_deleting(pod) && !crate::pods::is_finished(pod)).count());
        if self.spec.completion_mode.as_deref() == Some("Indexed") {
            let mut completed = parse_indexes(before.completed_indexes.as_deref().unwrap_or(""));
            completed.extend(&self.tally.newly_completed);
            status.completed_indexes = Some(indexes_text(&completed)).filter(|text| !text.is_empty());
        }
        if status.start_time.is_none() && !suspended {
            status.start_time = Some(time(self.now));
        }
        let conditions = status.conditions.get_or_insert_default();
        if suspended || conditions.iter().any(|known| known.type_ == "Suspended") {
            let (state, reason, message) = if suspended {
                ("True", "JobSuspended", "Job suspended")
            } else {
                ("False", "JobResumed", "Job resumed")
            };
            condition(conditions, ("Suspended", state), (reason, message), self.now);
        }
        match end {
            None => {}
            Some(End::Complete) => {
                let why = ("CompletionsReached", "Reached expected number of succeeded pods");
                condition(conditions, ("SuccessCriteriaMet", "True"), why, self.now);
                condition(conditions, ("Complete", "True"), why, self.now);
                status.completion_time = Some(time(self.now));
            }
            Some(End::Failed { reason, message }) => {
                condition(conditions, ("FailureTarget", "True"), (reason, message), self.now);
                condition(conditions, ("Failed", "True"), (reason, message), self.now);
            }
        }
        if status.conditions.as_ref().is_some_and(Vec::is_empty) {
            status.conditions = None;
        }
        if status == before { None } else { replace_status(JOBS, &self.job.metadata, self.job, &status) }
    }

    fn end_telling(&self, end: Option<&End>) -> Option<Write> {
        let (weight, reason, message) = match end? {
            End::Complete => (Weight::Normal, "Completed", "Job completed"),
            End::Failed { reason, message } => (Weight::Warning, *reason, *message),
        };
        let about = reference(JOBS, &self.job.metadata);
        Some(Write::Tell(Telling { about, weight, reason, message: message.to_owned() }))
    }
}

pub(crate) fn pod_index(pod: &Pod) -> Option<i32> {
    annotation(&pod.metadata, INDEX)?.parse().ok()
}

pub(crate) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == TRACKING)
}

/// The pod was counted: its Job no longer holds it.
fn release(pod: &Pod) -> Write {
    let others: Vec<&String> =
        pod.metadata.finalizers.iter().flatten().filter(|finalizer| *finalizer != TRACKING).collect();
    let finalizers = if others.is_empty() { json!(null) } else { json!(others) };
    patch(PODS, &pod.metadata, json!({"metadata": {"uid": uid(&pod.metadata), "finalizers": finalizers}}))
}
