//! Equal pods together.
//!
//! Pods are equal when nothing that decides about their place tells them apart. Labels count only as far as some rule
//! looks at them, and volumes that no other pod shares count by number, so that the replicas of a StatefulSet are equal.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use model::{
    Attachment, Labels, PendingPod, PodClass, PodTerm, Purpose, Requirements, ResourceName, Selector, Snapshot, Text,
};

use crate::amounts::{Amounts, ResourceTable};
use crate::interner::Index;

/// What the volumes of a pod take of a node's attach limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Attaching {
    /// Volumes of nobody else, by driver.
    pub(crate) own: BTreeMap<Text, u32>,
    /// Volumes that another pod has too.
    pub(crate) shared: BTreeSet<Attachment>,
}

impl Attaching {
    pub(crate) fn is_nothing(&self) -> bool {
        self.own.is_empty() && self.shared.is_empty()
    }
}

/// Everything that tells pods apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Likeness<'a> {
    spec: usize,
    /// Where rules between pods exist, the namespace matters.
    namespace: Option<&'a Text>,
    labels: Vec<(&'a Text, &'a Text)>,
    volumes: &'a [Requirements],
    attaching: Attaching,
    purpose: Purpose,
}

impl Hash for Likeness<'_> {
    /// What most pods do not have is looked at only where it is.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.spec.hash(state);
        self.labels.iter().for_each(|(_, value)| value.hash(state));
        if !self.volumes.is_empty() {
            self.volumes.hash(state);
        }
        if !self.attaching.is_nothing() {
            self.attaching.hash(state);
        }
    }
}

/// Pods that are equal to the planner.
pub(crate) struct Class<'a> {
    pub(crate) spec: &'a Arc<PodClass>,
    pub(crate) namespace: &'a Text,
    /// Those of its labels that rules look at.
    pub(crate) labels: Labels,
    pub(crate) volumes: &'a [Requirements],
    pub(crate) attaching: Attaching,
    pub(crate) demand: Amounts,
    /// Oldest first.
    pub(crate) pods: Vec<&'a PendingPod>,
}

/// The classes of a snapshot, in the order in which they get their places, and the resources that they ask for.
pub(crate) fn classes(snapshot: &Snapshot) -> (Vec<Class<'_>>, ResourceTable) {
    let (specs, spec_of) = specs(&snapshot.pending);
    let table = ResourceTable::of(snapshot, specs.iter().map(|spec| &spec.requests));
    let sight = Sight::of(snapshot, &specs);
    let shared = shared_volumes(snapshot);
    let mut numbers: Index<Likeness<'_>> = Index::default();
    let mut classes: Vec<(Likeness<'_>, Class<'_>)> = Vec::new();
    for (pod, spec) in snapshot.pending.iter().zip(spec_of) {
        let likeness = Likeness {
            spec,
            namespace: sight.namespaces.then_some(&pod.key.namespace),
            labels: sight.visible(&pod.labels),
            volumes: &pod.volumes.alternatives,
            attaching: attaching(pod, &shared),
            purpose: pod.purpose,
        };
        if let Some(number) = numbers.get(&likeness) {
            classes[*number].1.pods.push(pod);
            continue;
        }
        numbers.insert(likeness.clone(), classes.len());
        let class = Class {
            spec: specs[spec],
            namespace: &pod.key.namespace,
            labels: likeness.labels.iter().map(|(key, value)| (Text::clone(key), Text::clone(value))).collect(),
            volumes: likeness.volumes,
            attaching: likeness.attaching.clone(),
            demand: table.amounts(&specs[spec].requests),
            pods: vec![pod],
        };
        classes.push((likeness, class));
    }
    (in_order(classes), table)
}

/// Each spec once, and the number of each pod's spec.
fn specs(pending: &[PendingPod]) -> (Vec<&Arc<PodClass>>, Vec<usize>) {
    let mut specs: Vec<&Arc<PodClass>> = Vec::new();
    let mut by_address: Index<usize> = Index::default();
    let mut by_content: Index<&PodClass> = Index::default();
    let mut spec_of = Vec::with_capacity(pending.len());
    for pod in pending {
        let address = Arc::as_ptr(&pod.class).addr();
        let number = by_address.get(&address).copied().unwrap_or_else(|| {
            let number = *by_content.entry(&pod.class).or_insert_with(|| {
                specs.push(&pod.class);
                specs.len() - 1
            });
            by_address.insert(address, number);
            number
        });
        spec_of.push(number);
    }
    (specs, spec_of)
}

/// Higher priority first; then pods with rules between pods, while there is choice; then larger pods.
fn in_order<'a>(classes: Vec<(Likeness<'a>, Class<'a>)>) -> Vec<Class<'a>> {
    let (cpu, memory) = (ResourceName::cpu(), ResourceName::memory());
    let ranked = classes.into_iter().map(|(_, mut class)| {
        class.pods.sort_by(|left, right| (left.created, &left.key).cmp(&(right.created, &right.key)));
        let size = (class.spec.requests.get(&cpu), class.spec.requests.get(&memory));
        ((Reverse(class.spec.priority), Reverse(has_rules(class.spec)), Reverse(size)), class)
    });
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by(|(first, left), (second, right)| {
        first
            .cmp(second)
            .then_with(|| left.spec.cmp(right.spec))
            .then_with(|| left.namespace.cmp(right.namespace))
            .then_with(|| left.labels.cmp(&right.labels))
            .then_with(|| left.pods[0].key.cmp(&right.pods[0].key))
    });
    ranked.into_iter().map(|(_, class)| class).collect()
}

fn has_rules(spec: &PodClass) -> bool {
    !(spec.spread.is_empty() && spec.affinity.is_empty() && spec.anti_affinity.is_empty())
}

/// What rules between pods look at.
struct Sight<'a> {
    namespaces: bool,
    keys: BTreeSet<&'a Text>,
}

impl<'a> Sight<'a> {
    fn of(snapshot: &'a Snapshot, specs: &[&'a Arc<PodClass>]) -> Self {
        let mut sight = Self { namespaces: false, keys: BTreeSet::new() };
        for spec in specs {
            spec.spread.iter().chain(&spec.soft_spread).for_each(|constraint| sight.look(&constraint.selector));
            let wishes = spec.soft_affinity.iter().chain(&spec.soft_anti_affinity).map(|wish| &wish.term);
            let terms = spec.affinity.iter().chain(&spec.anti_affinity).chain(wishes);
            terms.for_each(|term: &PodTerm| sight.look(&term.selector));
        }
        for (kind, _) in snapshot.bound.iter() {
            kind.anti_affinity.iter().for_each(|term| sight.look(&term.selector));
        }
        sight
    }

    fn look(&mut self, selector: &'a Selector) {
        self.namespaces = true;
        self.keys.extend(selector.keys());
    }

    fn visible<'b>(&self, labels: &'b Labels) -> Vec<(&'b Text, &'b Text)> {
        if self.keys.is_empty() {
            return Vec::new();
        }
        labels.iter().filter(|(key, _)| self.keys.contains(key)).collect()
    }
}

/// Volumes that more than one pod has, waiting or running.
fn shared_volumes(snapshot: &Snapshot) -> BTreeSet<&Attachment> {
    let waiting = snapshot.pending.iter().flat_map(|pod| &pod.volumes.attachments);
    let mut seen = BTreeSet::new();
    let mut shared: BTreeSet<&Attachment> = waiting.filter(|attachment| !seen.insert(*attachment)).collect();
    if !seen.is_empty() {
        let attached = snapshot.places.iter().flat_map(|place| &place.attached);
        shared.extend(attached.filter(|attachment| seen.contains(attachment)));
    }
    shared
}

fn attaching(pod: &PendingPod, shared: &BTreeSet<&Attachment>) -> Attaching {
    let mut attaching = Attaching::default();
    for attachment in &pod.volumes.attachments {
        if shared.contains(attachment) {
            attaching.shared.insert(attachment.clone());
        } else {
            *attaching.own.entry(Text::clone(&attachment.driver)).or_insert(0) += 1;
        }
    }
    attaching
}
