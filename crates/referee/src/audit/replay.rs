//! The plan carried out, and the kube-scheduler's filters asked about every pod when its turn comes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use model::{
    NodeName, PendingPod, Plan, PodKey, PodTerm, Requirement, Requirements, SpreadConstraint, Text, Toleration, labels,
};

use super::possible::possible_nodes;
use super::stage::{Faces, Scene};
use super::{Auditor, Target, Violation};
use crate::spread::SpreadCounts;
use crate::{Labels, NodeFacts, NodeTerm, PodFacts, Question, Situation};

/// What the planned nodes turned into, where the plan leaves that open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Replay {
    /// Each into the cheapest that its claim admits.
    Cheapest,
    /// Each into the dearest.
    Dearest,
    /// Each into the cheapest of this zone, if its claim admits the zone.
    InZone(Text),
    /// Each into another.
    Mixed,
    /// As the cheapest, and every domain that a pool could make counts as being there: pods are spread over all of them
    /// from the beginning, not only over those that happen to have nodes.
    EveryDomain,
}

impl fmt::Display for Replay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cheapest => formatter.write_str("cheapest"),
            Self::Dearest => formatter.write_str("dearest"),
            Self::InZone(zone) => write!(formatter, "zone {zone}"),
            Self::Mixed => formatter.write_str("mixed"),
            Self::EveryDomain => formatter.write_str("every-domain"),
        }
    }
}

/// Everything that goes wrong in any replay, told once per pod.
pub(super) fn replays(auditor: &Auditor<'_>, plan: &Plan) -> Vec<Violation> {
    let faces = Faces::new(auditor, plan);
    let mut violations = faces.broken_promises();
    let facts = facts(auditor, plan);
    let mut told = BTreeSet::new();
    for replay in worth_playing(auditor, &faces) {
        let scene = Scene::build(auditor, plan, &faces, &replay);
        let Scene { mut situation, seats } = scene;
        if replay == Replay::EveryDomain {
            phantoms(auditor).into_iter().for_each(|node| situation.put_node(node));
        }
        let rejections = play(&mut situation, plan, &facts, &seats, &replay);
        violations.extend(rejections.into_iter().filter(|(pod, _)| told.insert(pod.clone())).map(|(_, it)| it));
    }
    violations
}

fn facts<'a>(auditor: &Auditor<'a>, plan: &Plan) -> BTreeMap<&'a PodKey, Arc<PodFacts>> {
    let namespaces = super::lower::namespaces(auditor.snapshot);
    let lowered =
        |pod: &&'a PendingPod| (&pod.key, Arc::new(super::lower::pending(auditor.snapshot, &namespaces, pod)));
    auditor.known(&plan.sequence).iter().map(lowered).collect()
}

/// The replays that can differ: what a node turns into only matters where rules look at domains.
fn worth_playing(auditor: &Auditor<'_>, faces: &Faces) -> Vec<Replay> {
    let classes = || auditor.snapshot.pending.iter().map(|pod| pod.class.as_ref());
    let spread = || classes().flat_map(|class| &class.spread).map(|constraint| &constraint.topology_key);
    let keys_of = |terms: &[PodTerm]| terms.iter().map(|term| term.topology_key.clone()).collect::<Vec<Text>>();
    let near = classes().flat_map(|class| keys_of(&class.affinity));
    let away = classes().flat_map(|class| keys_of(&class.anti_affinity));
    let bound = auditor.snapshot.bound.iter().flat_map(|(kind, _)| keys_of(&kind.anti_affinity));
    let mut keys = near.chain(away).chain(bound).chain(spread().cloned());
    let mut replays = vec![Replay::Cheapest];
    if keys.any(|key| &*key != labels::HOSTNAME) {
        replays.extend([Replay::Dearest, Replay::Mixed]);
        replays.extend(faces.open_zones().into_iter().map(Replay::InZone));
    }
    if spread().next().is_some() {
        replays.push(Replay::EveryDomain);
    }
    replays
}

/// What the counts of a pod's spread constraints depend on; pods that agree in it share them.
type Spreader<'a> = (&'a [SpreadConstraint], Option<&'a [NodeTerm]>, &'a [Toleration], &'a Text);

fn play(
    situation: &mut Situation,
    plan: &Plan,
    facts: &BTreeMap<&PodKey, Arc<PodFacts>>,
    seats: &BTreeMap<&PodKey, (NodeName, Target)>,
    replay: &Replay,
) -> Vec<(PodKey, Violation)> {
    let mut rejections = Vec::new();
    let mut tallies: BTreeMap<Spreader<'_>, (&PodFacts, Rc<SpreadCounts>)> = BTreeMap::new();
    for pod in &plan.sequence {
        let (Some(facts), Some((node, target))) = (facts.get(pod), seats.get(pod)) else { continue };
        let spreader = (&*facts.spread, facts.node_terms.as_deref(), &*facts.tolerations, &facts.key.namespace);
        let tally = tallies.entry(spreader).or_insert_with(|| (facts, Rc::new(SpreadCounts::new(situation, facts))));
        let question = Question::with_spread(situation, facts, Rc::clone(&tally.1));
        let objection = question.objections(node).into_iter().next();
        drop(question);
        let rejected = |objection| {
            let (target, replay) = (target.clone(), replay.clone());
            (pod.clone(), Violation::Rejected { pod: pod.clone(), target, replay, objection })
        };
        rejections.extend(objection.map(rejected));
        if let Some(home) = situation.node(node) {
            let gates = situation.gates();
            tallies.values_mut().for_each(|(pod, counts)| Rc::make_mut(counts).note(gates, pod, facts, home));
        }
        situation.bind(node.clone(), Arc::clone(facts));
    }
    rejections
}

/// One node without room for every kind of node that a pool could make, as far as pods that are spread can tell them
/// apart.
pub(super) fn phantoms(auditor: &Auditor<'_>) -> Vec<NodeFacts> {
    let keys = telling_labels(auditor);
    let mut seen: BTreeSet<(Labels, usize)> = BTreeSet::new();
    for (index, pool) in auditor.snapshot.pools.iter().enumerate() {
        let nodes =
            pool.types.iter().flat_map(|kind| possible_nodes(kind, &pool.requirements, &auditor.snapshot.vocabulary));
        let told = |labels: Labels| labels.into_iter().filter(|(key, _)| keys.contains(key)).collect();
        seen.extend(nodes.map(|node| (told(node.labels), index)));
    }
    let phantom = |(index, (mut labels, pool)): (usize, (Labels, usize))| {
        let name = format!("phantom {index}");
        labels.insert(Text::from(labels::HOSTNAME), Text::from(name.as_str()));
        let taints = auditor.snapshot.pools[pool].taints.clone();
        NodeFacts { labels, taints, ..NodeFacts::new(NodeName::new(name)) }
    };
    seen.into_iter().enumerate().map(phantom).collect()
}

/// The labels that spread constraints and the node affinity of pods with such constraints look at.
fn telling_labels(auditor: &Auditor<'_>) -> BTreeSet<Text> {
    let mut keys = BTreeSet::new();
    let classes = auditor.snapshot.pending.iter().map(|pod| pod.class.as_ref());
    for class in classes.filter(|class| !class.spread.is_empty()) {
        keys.extend(class.spread.iter().map(|constraint| constraint.topology_key.clone()));
        keys.extend(
            class.alternatives.iter().flat_map(Requirements::iter).map(|(key, _): (&Text, &Requirement)| key.clone()),
        );
    }
    keys
}
