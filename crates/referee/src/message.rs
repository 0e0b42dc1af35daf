//! The one sentence in which the kube-scheduler says that a pod fits nowhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::question::lists_contradict;
use crate::{Objection, PodFacts, Preemption, Situation, Survey, preempt, survey};

/// What the `FailedScheduling` event and the `PodScheduled` condition say.
///
/// `surveyed` is what the nodes said; it is made anew when `None`. Meant for pods that fit nowhere.
pub fn unschedulable_message(situation: &Situation, pod: &PodFacts, surveyed: Option<&Survey>) -> String {
    let count = situation.node_count();
    if count == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    if let Some(reason) = before_any_node(pod) {
        // The plugin for resource claims never got to see the pod and says so when asked for a way out.
        return format!("{}: {reason}. not found", none_of(count));
    }
    let own;
    let surveyed = match surveyed {
        Some(surveyed) => surveyed,
        None => {
            own = survey(situation, pod);
            &own
        }
    };
    let reasons = histogram(surveyed.objections.values().map(|objections| texts(objections)));
    let found = preempt(situation, pod, surveyed);
    let way_out = match after_all_nodes(count, &found) {
        None => String::new(),
        Some(preemption) => format!(" no new claims to deallocate, preemption: {preemption}"),
    };
    format!("{}:{reasons}{way_out}", none_of(count))
}

fn none_of(count: usize) -> String {
    format!("0/{count} nodes are available")
}

fn before_any_node(pod: &PodFacts) -> Option<String> {
    let contradiction = lists_contradict(pod).then(|| "pod affinity terms conflict".to_owned());
    contradiction.or_else(|| pod.blocker.as_ref().map(ToString::to_string))
}

/// What preemption reports; nothing when it found victims.
fn after_all_nodes(count: usize, found: &Preemption) -> Option<String> {
    match found {
        Preemption::NotEligible => Some("not eligible due to preemptionPolicy=Never.".to_owned()),
        Preemption::Candidates(_) => None,
        Preemption::Useless { tried } => {
            let no_victims = || BTreeSet::from(["No preemption victims found for incoming pod".to_owned()]);
            let answer =
                |objections: &Vec<Objection>| if objections.is_empty() { no_victims() } else { texts(objections) };
            let untried = count - tried.len();
            let useless = || BTreeSet::from(["Preemption is not helpful for scheduling".to_owned()]);
            let answers = tried.values().map(answer).chain((0..untried).map(|_| useless()));
            Some(format!("{}:{}", none_of(count), histogram(answers)))
        }
    }
}

fn texts(objections: &[Objection]) -> BTreeSet<String> {
    Survey::reported(objections).iter().map(ToString::to_string).collect()
}

/// ` 1 this, 2 that.`, sorted as text like the kube-scheduler does; empty when there is nothing to say.
fn histogram(answers: impl Iterator<Item = BTreeSet<String>>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    answers.flatten().for_each(|reason| *counts.entry(reason).or_default() += 1);
    let mut lines: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    lines.sort();
    if lines.is_empty() { String::new() } else { format!(" {}.", lines.join(", ")) }
}
