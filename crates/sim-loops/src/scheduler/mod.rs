//! The embedded kube-scheduler: which waiting pod is next, and where it goes.
//!
//! The filters are the referee's alone. Numbers kept here only spare it questions whose answer is plain: a node that
//! is full, or that refused a pod of the same kind for reasons of the node alone. Pods are never preempted; the message
//! of a pod that fits nowhere says what preemption could have done.

mod backlog;
mod labelled;
pub(crate) mod lower;
mod nominated;
mod score;
mod volumes;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition};
use model::{NodeName, PodKey, ResourceName, Text};
use referee::{Gates, Objection, PodFacts, Question, Situation, unschedulable_message};
use serde_json::json;

use self::backlog::{Backlog, Waiting};
use self::labelled::Labelled;
use self::nominated::Nominated;
use self::score::{NodeNumbers, Preferences};
use crate::caches::{Caches, Moved, Noted};
use crate::key::Key;
use crate::pace::fingerprint;
use crate::pods::{after_seconds, condition, is_deleting, is_finished, node_name, set_condition, uid};
use crate::write::{Decision, PODS, Telling, Weight, Write, patch_status, reference};

const SCHEDULER_NAME: &str = "default-scheduler";
/// In clusters of more nodes than this, the words about a kind of pod that still fits nowhere are used again for a while:
/// asking all nodes about every pod would take longer than everything else. The real scheduler does not ask all nodes of
/// such a cluster either.
const ASKED_NODES_MAX: usize = 500;
const WORDS_LAST_SECONDS: i64 = 30;
/// What is known of more kinds of pods than this is thrown away, unless such a pod waits.
const KINDS_MAX: usize = 1_000;

/// What the scheduler keeps between pods.
#[derive(Debug)]
pub(crate) struct Scheduler {
    situation: Situation,
    numbers: BTreeMap<Text, NodeNumbers>,
    labelled: Labelled,
    backlog: Backlog,
    nominated: Nominated,
    /// Nodes that refused a kind of pod for reasons of the node alone, with the version of the node that did.
    refusals: BTreeMap<u64, BTreeMap<Text, u64>>,
    /// What was last said of a kind of pod that fits nowhere.
    verdicts: BTreeMap<u64, Verdict>,
    /// Counts changes after which a pod may fit that did not.
    hopes: u64,
    /// Counts all changes of nodes and bound pods.
    changes: u64,
}

#[derive(Debug)]
struct Verdict {
    hopes: u64,
    changes: u64,
    message: String,
    /// When all nodes were asked.
    asked_at: Timestamp,
}

impl Scheduler {
    pub(crate) fn new() -> Self {
        Self {
            situation: Situation::new(Gates::default()),
            numbers: BTreeMap::new(),
            labelled: Labelled::default(),
            backlog: Backlog::default(),
            nominated: Nominated::default(),
            refusals: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            hopes: 0,
            changes: 0,
        }
    }

    /// Takes a change in; says whether there is something to do for the scheduler now.
    pub(crate) fn observe(&mut self, caches: &Caches, noted: &Noted, now: Timestamp) -> bool {
        let hopeful = match noted {
            Noted::Node(moved) => self.observe_node(caches, moved),
            Noted::Pod(moved) => self.observe_pod(caches, moved),
            Noted::Storage => true,
            _ => false,
        };
        if hopeful {
            self.hopes += 1;
            self.backlog.wake_all(now);
        }
        self.backlog.is_anything_due(now)
    }

    fn observe_node(&mut self, caches: &Caches, moved: &Moved<Node>) -> bool {
        let name = moved.key.name.clone();
        let before = self.situation.node(&NodeName::new(name.clone())).cloned();
        let Some(node) = &moved.new else {
            self.labelled.exchange(&name, before.as_ref(), None);
            self.situation.remove_node(&NodeName::new(name.clone()));
            self.changes += 1;
            // The numbers of its pods stay, should the node come back under the same name.
            if let Some(numbers) = self.numbers.get_mut(&name) {
                numbers.facts = None;
                numbers.version = self.changes;
            }
            return false;
        };
        let facts = lower::node_facts(caches, node);
        if before.as_ref() == Some(&facts) {
            return false;
        }
        self.changes += 1;
        self.labelled.exchange(&name, before.as_ref(), Some(&facts));
        self.numbers.entry(name).or_default().set_node(facts.clone(), self.changes);
        self.situation.put_node(facts);
        true
    }

    fn observe_pod(&mut self, caches: &Caches, moved: &Moved<Pod>) -> bool {
        let key = &moved.key;
        let bound = |pod: &Pod| node_name(pod).is_some() && !is_finished(pod);
        match &moved.new {
            Some(pod) if bound(pod) => {
                self.backlog.remove(key);
                self.nominated.exchange(&pod_key(key), None);
                // Only the spec, labels and deletion matter, and status changes are by far the most frequent.
                let same = moved.old.as_ref().is_some_and(|old| bound(old) && looks_equal(old, pod));
                if !same {
                    self.seat(caches, pod);
                }
                moved.old.as_ref().is_some_and(|old| bound(old) && !same)
            }
            Some(pod) => {
                let freed = self.unseat(key);
                self.note_waiting(caches, key, pod, moved.old.as_deref());
                self.note_nomination(key, pod) || freed
            }
            None => {
                self.backlog.remove(key);
                let freed = self.nominated.exchange(&pod_key(key), None);
                self.unseat(key) || freed
            }
        }
    }

    fn note_waiting(&mut self, caches: &Caches, key: &Key, pod: &Pod, old: Option<&Pod>) {
        let Some(known) = caches.pods.get(key).filter(|_| is_waiting(pod)) else {
            self.backlog.remove(key);
            return;
        };
        let changed = old.is_none_or(|old| !looks_equal(old, pod) || !is_waiting(old));
        if changed || !self.backlog.contains(key) {
            let facts = Arc::new(lower::pod_facts(caches, pod));
            self.backlog.put(key, Waiting::new(kind_of(&facts), facts, known.arrival));
        }
    }

    /// Says whether room is no longer kept for the pod.
    fn note_nomination(&mut self, key: &Key, pod: &Pod) -> bool {
        let waiting = self.backlog.get(key).map(|waiting| Arc::clone(&waiting.facts));
        let nomination = nominated_node(pod).map(NodeName::new).zip(waiting);
        self.changes += u64::from(nomination.is_some());
        self.nominated.exchange(&pod_key(key), nomination)
    }

    fn seat(&mut self, caches: &Caches, pod: &Pod) {
        let Some(node) = node_name(pod) else { return };
        self.unseat(&Key::of(&pod.metadata));
        let facts = Arc::new(lower::pod_facts(caches, pod));
        self.numbers.entry(node.into()).or_default().count(&facts.requests, 1);
        self.situation.bind(NodeName::new(node), facts);
        self.changes += 1;
    }

    /// Takes a pod off its node; says whether it was on one.
    fn unseat(&mut self, key: &Key) -> bool {
        let key = pod_key(key);
        let node = self.situation.node_of(&key).cloned();
        let requests = node.as_ref().and_then(|node| {
            let pods = &mut self.situation.pods_on(node);
            pods.find(|pod| pod.key == key).map(|pod| pod.requests.clone())
        });
        let Some(node) = self.situation.unbind(&key) else { return false };
        if let (Some(numbers), Some(requests)) = (self.numbers.get_mut(node.as_str()), requests) {
            numbers.count(&requests, -1);
        }
        self.changes += 1;
        true
    }

    /// Schedules the next pod, if one is due. A time to look again that is not later than now means: go on.
    pub(crate) fn next(&mut self, caches: &Caches, now: Timestamp) -> Decision {
        let mut decision = Decision::default();
        while let Some(key) = self.backlog.next(now) {
            let Some(known) = caches.pods.get(&key).filter(|known| is_waiting(&known.pod)) else {
                self.backlog.remove(&key);
                continue;
            };
            let Some(waiting) = self.backlog.get(&key).cloned() else { continue };
            let kept = self.nominated.seat_before(&waiting.facts, &mut self.situation);
            let chosen = self.choose(caches, &known.pod, &waiting, now);
            kept.iter().for_each(|other| drop(self.situation.unbind(other)));
            // Also after a choice: the pod leaves the backlog when it is seen to be bound, not when that is asked for.
            self.backlog.tried(&key, now);
            decision.writes = match chosen {
                Ok(node) => binding(&known.pod, &node),
                Err(message) => unschedulable(&known.pod, &message, now),
            };
            break;
        }
        decision.look_again = self.backlog.next_time(now);
        decision
    }

    /// The best node for a pod, or why there is none.
    fn choose(&mut self, caches: &Caches, pod: &Pod, waiting: &Waiting, now: Timestamp) -> Result<Text, String> {
        let Waiting { facts, kind, .. } = waiting;
        if let Some(node) = self.nominated.node_of(&facts.key) {
            let question = Question::new(&self.situation, facts);
            if self.situation.node(node).is_some() && question.objections(node).is_empty() {
                return Ok(node.text());
            }
        } else if let Some(verdict) = self.verdicts.get(kind).filter(|verdict| self.still_holds(verdict, facts)) {
            return Err(verdict.message.clone());
        }
        let question = Question::new(&self.situation, facts);
        let mut refused = BTreeMap::new();
        let known_refusals = self.refusals.get(kind);
        let chosen = self.candidates(caches, pod, facts, known_refusals).into_iter().find(|(_, name)| {
            let objections = question.objections(&NodeName::new(name.clone()));
            if objections.iter().any(is_of_node_alone) {
                refused.insert(name.clone(), self.numbers.get(name).map_or(0, |numbers| numbers.version));
            }
            objections.is_empty()
        });
        let words = self.verdicts.get(kind).filter(|verdict| self.may_repeat(verdict, now));
        let words = words.map(|verdict| (verdict.message.clone(), verdict.asked_at));
        let chosen = chosen.map(|(_, name)| name).ok_or_else(|| {
            words.unwrap_or_else(|| {
                let survey = question.survey();
                (unschedulable_message(&self.situation, facts, Some(&survey)), now)
            })
        });
        if !refused.is_empty() {
            self.refusals.entry(*kind).or_default().extend(refused);
        }
        if let Err((message, asked_at)) = &chosen {
            let (hopes, changes) = (self.hopes, self.changes);
            let verdict = Verdict { hopes, changes, message: message.clone(), asked_at: *asked_at };
            self.verdicts.insert(*kind, verdict);
        }
        self.forget_kinds();
        chosen.map_err(|(message, _)| message)
    }

    /// Whether words that were true a moment ago will do.
    fn may_repeat(&self, verdict: &Verdict, now: Timestamp) -> bool {
        self.numbers.len() > ASKED_NODES_MAX && after_seconds(verdict.asked_at, WORDS_LAST_SECONDS) > now
    }

    /// Every rollout makes new kinds of pods; most of them never come back.
    fn forget_kinds(&mut self) {
        if self.refusals.len().max(self.verdicts.len()) > KINDS_MAX {
            let waiting = self.backlog.kinds();
            self.refusals.retain(|kind, _| waiting.contains(kind));
            self.verdicts.retain(|kind, _| waiting.contains(kind));
        }
    }

    /// A pod that fits nowhere goes on fitting nowhere while pods only come; unless it looks at other pods.
    fn still_holds(&self, verdict: &Verdict, facts: &PodFacts) -> bool {
        let looks_at_others = !(facts.spread.is_empty() && facts.affinity.is_empty());
        verdict.hopes == self.hopes && (!looks_at_others || verdict.changes == self.changes)
    }

    /// Nodes that could take the pod, best first; equals in the order of their names.
    fn candidates(
        &self,
        caches: &Caches,
        pod: &Pod,
        facts: &PodFacts,
        refusals: Option<&BTreeMap<Text, u64>>,
    ) -> Vec<(i64, Text)> {
        let preferences = Preferences::new(caches, pod, facts);
        let (cpu, memory) = (facts.requests.get(&ResourceName::cpu()), facts.requests.get(&ResourceName::memory()));
        let mut found: Vec<(i64, Text)> = Vec::new();
        for (name, numbers) in self.eligible_nodes(facts) {
            let Some(node) = &numbers.facts else { continue };
            let refused = refusals.and_then(|refusals| refusals.get(name)) == Some(&numbers.version);
            if !refused && numbers.may_fit(cpu, memory) {
                found.push((preferences.score(node, numbers), name.clone()));
            }
        }
        found.sort_by(|(one, name), (other, other_name)| other.cmp(one).then_with(|| name.cmp(other_name)));
        found
    }

    /// All nodes, or those with a label that the pod selects, or the one that a pod is pinned to, as the pods of
    /// DaemonSets are. Others would refuse it anyway.
    fn eligible_nodes(&self, facts: &PodFacts) -> Vec<(&Text, &NodeNumbers)> {
        let pinned = match facts.node_terms.as_deref() {
            Some([term]) => term.fields.iter().find(|field| &*field.key == "metadata.name" && field.values.len() == 1),
            _ => None,
        };
        match pinned.filter(|field| field.operator == referee::LabelOperator::In) {
            Some(field) => self.numbers.get_key_value(&field.values[0]).into_iter().collect(),
            None => match self.labelled.fewest(&facts.node_selector) {
                Some(names) => names.iter().filter_map(|name| self.numbers.get_key_value(name)).collect(),
                None => self.numbers.iter().collect(),
            },
        }
    }
}

/// Whether an objection depends on nothing but the node and the kind of the pod.
fn is_of_node_alone(objection: &Objection) -> bool {
    matches!(
        objection,
        Objection::NotListed
            | Objection::Unschedulable
            | Objection::OtherNodeNamed
            | Objection::Untolerated { .. }
            | Objection::NodeAffinity
    )
}

/// Pods of one kind get the same answer from every node: equal in all but name and owner.
fn kind_of(facts: &PodFacts) -> u64 {
    let mut nameless = facts.clone();
    nameless.key = PodKey::new(facts.key.namespace.clone(), "");
    fingerprint(format!("{nameless:?}").as_bytes())
}

fn pod_key(key: &Key) -> PodKey {
    PodKey::new(key.namespace.clone(), key.name.clone())
}

fn nominated_node(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.nominated_node_name.as_deref().filter(|node| !node.is_empty())
}

fn is_waiting(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let scheduler = spec.and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or(SCHEDULER_NAME);
    let gated = spec.and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty());
    scheduler == SCHEDULER_NAME && node_name(pod).is_none() && !is_deleting(pod) && !is_finished(pod) && !gated
}

/// Whether two states of a pod are the same to the scheduler.
fn looks_equal(one: &Pod, other: &Pod) -> bool {
    one.spec == other.spec && one.metadata.labels == other.metadata.labels && is_deleting(one) == is_deleting(other)
}

fn binding(pod: &Pod, node: &str) -> Vec<Write> {
    let key = Key::of(&pod.metadata);
    let message = format!("Successfully assigned {key} to {node}");
    let about = reference(PODS, &pod.metadata);
    vec![
        Write::Bind { key, uid: uid(&pod.metadata).to_owned(), node: node.to_owned() },
        Write::Tell(Telling { about, weight: Weight::Normal, reason: "Scheduled", message }),
    ]
}

fn unschedulable(pod: &Pod, message: &str, now: Timestamp) -> Vec<Write> {
    let about = reference(PODS, &pod.metadata);
    let telling = Telling { about, weight: Weight::Warning, reason: "FailedScheduling", message: message.to_owned() };
    let mut writes = vec![Write::Tell(telling)];
    // Nobody makes room for it, so that no node is kept in mind for it either.
    if nominated_node(pod).is_some() {
        writes.push(patch_status(PODS, &pod.metadata, json!({ "nominatedNodeName": null })));
    }
    let said = condition(pod, "PodScheduled");
    let same = said.is_some_and(|it| it.status == "False" && it.message.as_deref() == Some(message));
    if !same {
        let mut conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        let condition = PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some("Unschedulable".to_owned()),
            message: Some(message.to_owned()),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        };
        set_condition(&mut conditions, condition, now);
        writes.push(patch_status(PODS, &pod.metadata, json!({ "conditions": conditions })));
    }
    writes
}
