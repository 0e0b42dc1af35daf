//! The nodes that a claim may turn into.

use model::{
    Daemon, Effect, InstanceType, Offering, PodClass, Pool, Price, Requirement, Requirements, Resources, Snapshot,
    Taint, Text, Vocabulary, labels,
};

use crate::Labels;

/// A node that a claim may turn into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PossibleNode {
    pub(super) price: Price,
    pub(super) labels: Labels,
}

/// Every node that a type may turn into: one per offering for sale, and per value of a custom label that is left open.
pub(super) fn possible_nodes(
    kind: &InstanceType,
    requirements: &Requirements,
    vocabulary: &Vocabulary,
) -> Vec<PossibleNode> {
    let admitted = |node: &PossibleNode| {
        let fits = |(key, value): (&Text, &Text)| requirements.get(key).is_none_or(|wanted| wanted.admits(value));
        node.labels.iter().all(fits)
    };
    let bought = |offering: &Offering| {
        let mut labels = single_values(&kind.requirements);
        labels.extend(single_values(&offering.requirements));
        PossibleNode { price: offering.price, labels }
    };
    let for_sale = kind.offerings.iter().filter(|offering| offering.is_launchable()).map(bought);
    let mut nodes: Vec<PossibleNode> = for_sale.filter(admitted).collect();
    for (key, requirement) in requirements.iter().filter(|(key, _)| is_written(key, vocabulary)) {
        let values = written_values(requirement);
        let missing = nodes.iter().any(|node| !node.labels.contains_key(key));
        if missing && !values.is_empty() {
            nodes = nodes.iter().flat_map(|node| values.iter().map(|value| with_label(node, key, value))).collect();
        }
    }
    let own = own_labels(requirements);
    nodes.iter_mut().for_each(|node| node.labels.extend(own.clone()));
    nodes
}

/// Whether a demand on the label becomes a label of the node: well-known ones come from the machine instead.
fn is_written(key: &str, vocabulary: &Vocabulary) -> bool {
    !vocabulary.is_well_known(key) && key != labels::HOSTNAME
}

/// The values that the node may get for a custom label: any listed one, or for an open demand a made-up number.
fn written_values(requirement: &Requirement) -> Vec<Text> {
    let listed: Vec<Text> = requirement.values().filter(|value| requirement.admits(value)).cloned().collect();
    let (lower, upper) = requirement.bounds();
    // Excluded numbers are few, so that a free one is near.
    let near = |from: i64, step: i64| (0..1000).map(move |index: i64| from.saturating_add(index * step));
    let numbers = match (lower, upper) {
        (None, Some(upper)) => near(upper, -1),
        (lower, _) => near(lower.unwrap_or(0), 1),
    };
    let made_up = || numbers.map(|number| Text::from(number.to_string())).find(|value| requirement.admits(value));
    if listed.is_empty() { made_up().into_iter().collect() } else { listed }
}

fn with_label(node: &PossibleNode, key: &Text, value: &Text) -> PossibleNode {
    let mut node = node.clone();
    node.labels.insert(key.clone(), value.clone());
    node
}

/// Labels that the autoscaler itself puts on its nodes.
fn own_labels(requirements: &Requirements) -> Labels {
    let marks = [labels::REGISTERED, labels::INITIALIZED].map(|key| (Text::from(key), Text::from("true")));
    let pool = requirements.get(labels::NODE_POOL).and_then(Requirement::single_value);
    marks.into_iter().chain(pool.map(|pool| (Text::from(labels::NODE_POOL), pool.clone()))).collect()
}

/// Labels of which only one value is possible.
pub(super) fn single_values(requirements: &Requirements) -> Labels {
    let single = |(key, requirement): (&Text, &Requirement)| Some((key.clone(), requirement.single_value()?.clone()));
    requirements.iter().filter_map(single).collect()
}

/// The first taint that keeps pods of the class away.
pub(super) fn untolerated<'a>(class: &PodClass, taints: &'a [Taint]) -> Option<&'a Taint> {
    let tolerated = |taint: &Taint| class.tolerations.iter().any(|toleration| toleration.tolerates(taint));
    taints.iter().find(|taint| taint.effect != Effect::PreferNoSchedule && !tolerated(taint))
}

/// Whether one of the alternatives holds on a node with these labels.
pub(super) fn labels_fit(alternatives: &[Requirements], labels: &Labels) -> bool {
    let holds = |(key, wanted): (&Text, &Requirement)| {
        labels.get(key).map_or_else(|| wanted.admits_absence(), |value| wanted.admits(value))
    };
    alternatives.iter().any(|alternative| alternative.iter().all(holds))
}

/// The daemons that would run on a new node of the pool with these labels.
pub(super) fn daemons<'a>(snapshot: &'a Snapshot, pool: &Pool, labels: &Labels) -> Vec<&'a Daemon> {
    let runs = |daemon: &&Daemon| {
        untolerated(&daemon.class, &pool.taints).is_none() && labels_fit(&daemon.class.alternatives, labels)
    };
    snapshot.daemons.iter().map(AsRef::as_ref).filter(runs).collect()
}

pub(super) fn sum<'a>(classes: impl Iterator<Item = &'a PodClass>) -> Resources {
    let mut sum = Resources::none();
    classes.for_each(|class| sum.add(&class.requests));
    sum
}
