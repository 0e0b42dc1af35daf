//! Conditions of claims, nodes, pools and buffers: who changed from what to what, and for how long it had been so.

use std::collections::BTreeMap;

use api::condition::ConditionSubject;
use api::lower::ConditionFacts;
use api::{Condition, ConditionSet, ConditionTypes, labels, node_claim, node_pool};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use state::{Cluster, Key};

use super::seconds;
use crate::context::Context;
use crate::events::about;
use crate::metrics::conditions as rows;
use crate::metrics::{Metrics, Naming, Page, Row};

/// The kinds of objects whose conditions are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SubjectKind {
    Claim,
    Pool,
    Node,
    Buffer,
}

impl SubjectKind {
    const ALL: [Self; 4] = [Self::Claim, Self::Pool, Self::Node, Self::Buffer];

    /// Group and kind, where the older metrics tell of it too.
    fn older_labels(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Claim => Some(["karpenter.sh", "NodeClaim"]),
            Self::Pool => Some(["karpenter.sh", "NodePool"]),
            Self::Node | Self::Buffer => None,
        }
    }

    fn rows(self) -> [&'static Row; 3] {
        match self {
            Self::Claim => [&rows::CLAIM_COUNT, &rows::CLAIM_CURRENT, &rows::CLAIM_TERMINATING],
            Self::Pool => [&rows::POOL_COUNT, &rows::POOL_CURRENT, &rows::POOL_TERMINATING],
            Self::Node => [&rows::NODE_COUNT, &rows::NODE_CURRENT, &rows::NODE_TERMINATING],
            Self::Buffer => [&rows::BUFFER_COUNT, &rows::BUFFER_CURRENT, &rows::BUFFER_TERMINATING],
        }
    }
}

/// An object as far as its conditions go.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    key: Key,
    kind: SubjectKind,
    about: ObjectReference,
    /// The values of the labels that only this kind has.
    own_labels: Vec<String>,
    finalizers: Vec<String>,
    created: Timestamp,
    deletion: Option<Timestamp>,
    conditions: Vec<ConditionFacts>,
}

impl Subject {
    /// The object as the state has it; nothing if it is gone.
    pub(super) fn read(cluster: &Cluster, key: &Key, class_label: &str, now: Timestamp) -> Option<Self> {
        match key {
            Key::Claim(name) => {
                let claim = cluster.claim(name)?;
                let status = claim.status.as_ref().and_then(|status| status.conditions.as_ref());
                Some(Self {
                    about: about::claim(claim),
                    own_labels: own_labels(claim.metadata.labels.as_ref(), &[class_label, labels::NODE_POOL]),
                    conditions: materialised(status, node_claim::conditions::TYPES, &claim.metadata, now),
                    ..Self::bare(key, SubjectKind::Claim, &claim.metadata)
                })
            }
            Key::Pool(name) => {
                let pool = cluster.pool(name)?;
                let status = pool.status.as_ref().and_then(|status| status.conditions.as_ref());
                Some(Self {
                    about: about::pool(pool),
                    conditions: materialised(status, node_pool::conditions::TYPES, &pool.metadata, now),
                    ..Self::bare(key, SubjectKind::Pool, &pool.metadata)
                })
            }
            Key::Node(name) => {
                let node = cluster.node(name)?;
                let wanted = [class_label, labels::NODE_POOL, labels::INITIALIZED];
                Some(Self {
                    key: key.clone(),
                    kind: SubjectKind::Node,
                    about: about::node(node),
                    own_labels: own_labels(Some(&node.labels), &wanted),
                    finalizers: node.finalizers.clone(),
                    created: node.created,
                    deletion: node.deletion,
                    conditions: node.story.conditions.clone(),
                })
            }
            Key::Buffer(name) => {
                let buffer = cluster.buffer(name)?;
                let stored = buffer.status.as_ref().and_then(|status| status.conditions.as_ref());
                Some(Self {
                    about: about::buffer(buffer),
                    conditions: stored.into_iter().flatten().map(ConditionFacts::from).collect(),
                    ..Self::bare(key, SubjectKind::Buffer, &buffer.metadata)
                })
            }
            _ => None,
        }
    }

    fn bare(key: &Key, kind: SubjectKind, metadata: &ObjectMeta) -> Self {
        Self {
            key: key.clone(),
            kind,
            about: ObjectReference::default(),
            own_labels: Vec::new(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            deletion: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            conditions: Vec::new(),
        }
    }

    fn name(&self) -> &str {
        self.about.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.about.namespace.as_deref().unwrap_or_default()
    }
}

fn own_labels(from: Option<&BTreeMap<String, String>>, wanted: &[&str]) -> Vec<String> {
    let value = |key: &&str| from.and_then(|labels| labels.get(*key)).cloned().unwrap_or_default();
    wanted.iter().map(value).collect()
}

/// Conditions that nobody has written yet are unknown since the object was made.
fn materialised(
    stored: Option<&Vec<Condition>>,
    types: ConditionTypes,
    metadata: &ObjectMeta,
    now: Timestamp,
) -> Vec<ConditionFacts> {
    let mut conditions = stored.cloned().unwrap_or_default();
    let subject = ConditionSubject {
        generation: metadata.generation.unwrap_or(0),
        created_at: metadata.creation_timestamp.as_ref().map_or(now, |time| time.0),
        deleting: metadata.deletion_timestamp.is_some(),
        now,
    };
    ConditionSet::open(&mut conditions, types, subject);
    conditions.iter().map(ConditionFacts::from).collect()
}

/// What is remembered of every object.
#[derive(Debug, Default)]
pub(super) struct Conditions(BTreeMap<Key, Subject>);

/// What became of one object.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    subject: Option<Subject>,
    transitions: Vec<Transition>,
    finalized: Vec<String>,
    terminated_after: Option<f64>,
    /// Whether a label that its metrics carry has another value than before.
    pub(super) is_new_label: bool,
}

/// A condition that changed its status.
#[derive(Clone, Debug, PartialEq)]
struct Transition {
    to: ConditionFacts,
    /// The status it left and for how long it had had it; nothing for a condition that is new.
    from: Option<(String, f64)>,
}

impl Conditions {
    /// Notes an object as it is now.
    pub(super) fn note(&mut self, subject: Subject) -> Changes {
        let before = self.0.insert(subject.key.clone(), subject.clone());
        let Some(before) = before.filter(|before| before.about.uid == subject.about.uid) else {
            let transitions = subject.conditions.iter().filter_map(|to| transition(None, to)).collect();
            return Changes { subject: Some(subject), transitions, is_new_label: true, ..Changes::default() };
        };
        let known = |kind: &str| before.conditions.iter().find(|found| found.kind == kind);
        let transitions = subject.conditions.iter().filter_map(|to| transition(known(&to.kind), to)).collect();
        let finalized = before.finalizers.iter().filter(|finalizer| !subject.finalizers.contains(finalizer));
        Changes {
            transitions,
            finalized: finalized.cloned().collect(),
            terminated_after: None,
            is_new_label: before.own_labels != subject.own_labels,
            subject: Some(subject),
        }
    }

    /// Notes that an object is gone.
    pub(super) fn forget(&mut self, key: &Key, now: Timestamp) -> Changes {
        let Some(subject) = self.0.remove(key) else { return Changes::default() };
        Changes {
            transitions: Vec::new(),
            finalized: subject.finalizers.clone(),
            terminated_after: subject.deletion.map(|deletion| seconds(deletion, now)),
            is_new_label: false,
            subject: Some(subject),
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.keys()
    }

    /// Tells every condition of every object, and who is going.
    pub(super) fn tell(&self, naming: &Naming, now: Timestamp, page: &mut Page) {
        for kind in SubjectKind::ALL {
            let [count, current, terminating] = kind.rows();
            let subjects = || self.0.values().filter(move |subject| subject.kind == kind);
            let names = count.label_names(naming);
            let own = |subject| own_pairs(&names[5..], subject);
            let each = || subjects().flat_map(|subject| subject.conditions.iter().map(move |found| (subject, found)));
            page.metric(count, each().map(|(subject, found)| (labelled(subject, found).chain(own(subject)), 1.0)));
            let lasting = each()
                .map(|(subject, found)| (labelled(subject, found).chain(own(subject)), seconds(found.since, now)));
            page.metric(current, lasting);
            let going = subjects().filter_map(|subject| {
                Some((identified(subject).into_iter().chain(own(subject)), seconds(subject.deletion?, now)))
            });
            page.metric(terminating, going);
        }
        self.tell_older(now, page);
    }

    fn tell_older(&self, now: Timestamp, page: &mut Page) {
        let older = || self.0.values().filter_map(|subject| Some((subject, group_and_kind(subject.kind)?)));
        let each =
            || older().flat_map(|(subject, kind)| subject.conditions.iter().map(move |found| (subject, kind, found)));
        let counts = each().map(|(subject, kind, found)| (labelled(subject, found).chain(kind), 1.0));
        page.metric(&rows::COUNT, counts);
        let lasting =
            each().map(|(subject, kind, found)| (labelled(subject, found).chain(kind), seconds(found.since, now)));
        page.metric(&rows::CURRENT, lasting);
        let going = older().filter_map(|(subject, kind)| {
            Some((identified(subject).into_iter().chain(kind), seconds(subject.deletion?, now)))
        });
        page.metric(&rows::TERMINATING, going);
    }
}

fn group_and_kind(kind: SubjectKind) -> Option<[(&'static str, &'static str); 2]> {
    kind.older_labels().map(|[group, kind]| [("group", group), ("kind", kind)])
}

fn identified(subject: &Subject) -> [(&str, &str); 2] {
    [("namespace", subject.namespace()), ("name", subject.name())]
}

fn labelled<'a>(subject: &'a Subject, found: &'a ConditionFacts) -> impl Iterator<Item = (&'a str, &'a str)> {
    let condition =
        [("type", found.kind.as_str()), ("status", found.status.as_str()), ("reason", found.reason.as_str())];
    identified(subject).into_iter().chain(condition)
}

fn own_pairs<'a>(names: &'a [String], subject: &'a Subject) -> impl Iterator<Item = (&'a str, &'a str)> {
    names.iter().map(String::as_str).zip(subject.own_labels.iter().map(String::as_str))
}

/// A condition that nobody knew counts as unknown so far.
fn transition(known: Option<&ConditionFacts>, to: &ConditionFacts) -> Option<Transition> {
    let before = known.map_or("Unknown", |known| known.status.as_str());
    (before != to.status).then(|| Transition {
        to: to.clone(),
        from: known.map(|known| (known.status.clone(), seconds(known.since, to.since))),
    })
}

impl Changes {
    /// Counts how long a claim or a node of ours that is gone took to go, and how long it lived.
    pub(super) fn count_lifetimes(&self, metrics: &Metrics, now: Timestamp) {
        let (Some(subject), Some(going)) = (&self.subject, self.terminated_after) else { return };
        let is_ours = self.finalized.iter().any(|finalizer| finalizer == labels::TERMINATION_FINALIZER);
        let pool = match (subject.kind, subject.own_labels.as_slice()) {
            (SubjectKind::Claim | SubjectKind::Node, [_, pool, ..]) if is_ours => pool.as_str(),
            _ => return,
        };
        if subject.kind == SubjectKind::Node {
            metrics.nodes.termination_seconds.observe([pool], going);
            metrics.nodes.lifetime_seconds.observe([pool], seconds(subject.created, now));
            return;
        }
        metrics.claims.termination_seconds.observe([pool], going);
        let ending = |found: &&ConditionFacts| {
            found.kind == node_claim::conditions::INSTANCE_TERMINATING && found.status == "True"
        };
        if let Some(ending) = subject.conditions.iter().find(ending) {
            metrics.claims.instance_termination_seconds.observe([pool], seconds(ending.since, now));
        }
    }

    /// Counts what happened, and tells people.
    pub(super) fn tell(&self, context: &Context, now: Timestamp) {
        let Some(subject) = &self.subject else { return };
        for transition in &self.transitions {
            count(&context.metrics, subject, transition);
            if let Some(message) = message(transition) {
                context.recorder.tell(now, &subject.about, &transition.to.kind, message);
            }
        }
        for finalizer in &self.finalized {
            context.recorder.tell(now, &subject.about, "Finalized", format!("Finalized {finalizer}"));
        }
        if let Some(seconds) = self.terminated_after {
            count_termination(&context.metrics, subject, seconds);
        }
    }
}

fn message(transition: &Transition) -> Option<String> {
    let Transition { to, from } = transition;
    let (before, _) = from.as_ref()?;
    let more = if to.message.is_empty() { String::new() } else { format!(", Message: {}", to.message) };
    Some(format!(
        "Status condition transitioned, Type: {}, Status: {before} -> {}, Reason: {}{more}",
        to.kind, to.status, to.reason
    ))
}

fn count(metrics: &Metrics, subject: &Subject, transition: &Transition) {
    let families = &metrics.conditions;
    let Transition { to, from } = transition;
    let changed = [to.kind.as_str(), to.status.as_str(), to.reason.as_str()];
    let left =
        from.as_ref().map(|(status, seconds)| ([to.kind.as_str(), status.as_str(), to.status.as_str()], *seconds));
    let own: Vec<&str> = subject.own_labels.iter().map(String::as_str).collect();
    match (subject.kind, own.as_slice()) {
        (SubjectKind::Claim, [class, pool]) => {
            families.claim_transitions.inc(joined(changed, [class, pool]));
            left.iter().for_each(|(left, wait)| {
                families.claim_transition_seconds.observe(joined(*left, [class, pool]), *wait);
            });
        }
        (SubjectKind::Node, [class, pool, initialized]) => {
            families.node_transitions.inc(joined(changed, [class, pool, initialized]));
            left.iter().for_each(|(left, wait)| {
                families.node_transition_seconds.observe(joined(*left, [class, pool, initialized]), *wait);
            });
        }
        (SubjectKind::Buffer, _) => {
            families.buffer_transitions.inc(changed);
            left.iter().for_each(|(left, wait)| families.buffer_transition_seconds.observe(*left, *wait));
        }
        _ => {
            families.pool_transitions.inc(changed);
            left.iter().for_each(|(left, wait)| families.pool_transition_seconds.observe(*left, *wait));
        }
    }
    if let Some(older) = subject.kind.older_labels() {
        families.transitions.inc(joined(changed, older));
        left.iter().for_each(|(left, wait)| families.transition_seconds.observe(joined(*left, older), *wait));
    }
}

fn count_termination(metrics: &Metrics, subject: &Subject, seconds: f64) {
    let families = &metrics.conditions;
    let own: Vec<&str> = subject.own_labels.iter().map(String::as_str).collect();
    match (subject.kind, own.as_slice()) {
        (SubjectKind::Claim, [class, pool]) => families.claim_termination_seconds.observe([class, pool], seconds),
        (SubjectKind::Node, [class, pool, initialized]) => {
            families.node_termination_seconds.observe([class, pool, initialized], seconds);
        }
        (SubjectKind::Buffer, _) => families.buffer_termination_seconds.observe([], seconds),
        _ => families.pool_termination_seconds.observe([], seconds),
    }
    if let Some(older) = subject.kind.older_labels() {
        families.termination_seconds.observe(older, seconds);
    }
}

/// Two lists of labels as one.
fn joined<'a, const N: usize, const M: usize>(first: [&'a str; 3], second: [&'a str; N]) -> [&'a str; M] {
    const { assert!(M == N + 3, "as many labels as the family has") };
    std::array::from_fn(|index| if index < 3 { first[index] } else { second[index - 3] })
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
