//! Whether pods of lower priority would have to go to make room.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{NodeName, PodKey};

use crate::{Objection, PodFacts, Question, Situation, Survey};

/// The pods that would have to leave a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// The node.
    pub node: NodeName,
    /// The pods, most important first.
    pub victims: Vec<PodKey>,
}

/// What the kube-scheduler's preemption finds for a pod that fits nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// The pod may not preempt others.
    NotEligible,
    /// Nodes on which evictions would help, never empty, in the order of their names.
    Candidates(Vec<Eviction>),
    /// It would not help anywhere.
    Useless {
        /// Nodes that were tried, with what still speaks against them; empty where no pod could be evicted. Nodes
        /// whose objections evictions cannot remove are not tried and not listed.
        tried: BTreeMap<NodeName, Vec<Objection>>,
    },
}

/// Looks for nodes on which evicting pods of lower priority would let the pod in, without regard to disruption budgets.
pub fn preempt(situation: &Situation, pod: &PodFacts, survey: &Survey) -> Preemption {
    if !pod.may_preempt {
        return Preemption::NotEligible;
    }
    let mut candidates = Vec::new();
    let mut tried = BTreeMap::new();
    let mut trial: Option<Situation> = None;
    for (node, objections) in &survey.objections {
        let reported = Survey::reported(objections);
        if reported.is_empty() || !reported.iter().all(Objection::could_fall) {
            continue;
        }
        let victims = lower_priority(situation, pod, node);
        if victims.is_empty() {
            tried.insert(node.clone(), Vec::new());
            continue;
        }
        let trial = trial.get_or_insert_with(|| situation.clone());
        match evict(trial, pod, node, &victims) {
            Ok(victims) => candidates.push(Eviction { node: node.clone(), victims }),
            Err(objections) => drop(tried.insert(node.clone(), objections)),
        }
        victims.iter().for_each(|victim| trial.bind(node.clone(), Arc::clone(victim)));
    }
    if candidates.is_empty() { Preemption::Useless { tried } } else { Preemption::Candidates(candidates) }
}

/// Pods that the given one may displace, most important first.
fn lower_priority(situation: &Situation, pod: &PodFacts, node: &NodeName) -> Vec<Arc<PodFacts>> {
    let lower = situation.pods_on(node).filter(|other| other.priority < pod.priority);
    let mut victims: Vec<Arc<PodFacts>> = lower.cloned().collect();
    victims.sort_by_key(|victim| std::cmp::Reverse(victim.priority));
    victims
}

/// Takes all victims out and, if that helps, lets the most important ones back in as long as the pod still fits.
fn evict(
    trial: &mut Situation,
    pod: &PodFacts,
    node: &NodeName,
    victims: &[Arc<PodFacts>],
) -> Result<Vec<PodKey>, Vec<Objection>> {
    victims.iter().for_each(|victim| drop(trial.unbind(&victim.key)));
    let still = Question::new(trial, pod).objections(node);
    if !still.is_empty() {
        return Err(still);
    }
    let mut gone = Vec::new();
    for victim in victims {
        trial.bind(node.clone(), Arc::clone(victim));
        if !Question::new(trial, pod).objections(node).is_empty() {
            trial.unbind(&victim.key);
            gone.push(victim.key.clone());
        }
    }
    Ok(gone)
}
