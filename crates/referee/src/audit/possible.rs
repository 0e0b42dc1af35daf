//! The nodes that a claim may turn into.

use std::collections::BTreeMap;

use model::{
    Effect, InstanceType, Offering, PodClass, Pool, Price, Requirement, Requirements, Resources, Snapshot, Taint, Text,
    Vocabulary, labels,
};

use crate::Labels;

/// A node that a claim may turn into.
#[derive(Clone, Debug)]
pub(super) struct PossibleNode {
    pub(super) price: Price,
    pub(super) labels: Labels,
}

/// A value that nobody lists: what admits it, admits almost everything.
const UNHEARD_OF: &str = "a value that nobody lists";

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
    for (key, requirement) in requirements.iter().filter(|(key, _)| !vocabulary.is_well_known(key)) {
        let listed: Vec<&Text> =
            if requirement.admits(UNHEARD_OF) { Vec::new() } else { requirement.values().collect() };
        if !listed.is_empty() {
            nodes = nodes.iter().flat_map(|node| listed.iter().map(|value| with_label(node, key, value))).collect();
        }
    }
    let own = own_labels(requirements);
    nodes.iter_mut().for_each(|node| node.labels.extend(own.clone()));
    nodes
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
    requirements.iter().filter_map(single).collect::<BTreeMap<_, _>>()
}

/// The first taint that keeps pods of the class away.
pub(super) fn untolerated<'a>(class: &PodClass, taints: &'a [Taint]) -> Option<&'a Taint> {
    let tolerated = |taint: &Taint| class.tolerations.iter().any(|toleration| toleration.tolerates(taint));
    taints.iter().find(|taint| taint.effect != Effect::PreferNoSchedule && !tolerated(taint))
}

/// Whether node selector and affinity of the class hold on a node with these labels.
pub(super) fn labels_fit(class: &PodClass, labels: &Labels) -> bool {
    let holds = |(key, wanted): (&Text, &Requirement)| {
        labels.get(key).map_or_else(|| wanted.admits_absence(), |value| wanted.admits(value))
    };
    class.alternatives.iter().any(|alternative| alternative.iter().all(holds))
}

/// What the daemons ask for that would run on a new node of the pool with these labels.
pub(super) fn daemon_requests(snapshot: &Snapshot, pool: &Pool, labels: &Labels) -> Resources {
    let classes = snapshot.daemons.iter().map(|daemon| daemon.class.as_ref());
    sum(classes.filter(|class| untolerated(class, &pool.taints).is_none() && labels_fit(class, labels)))
}

pub(super) fn sum<'a>(classes: impl Iterator<Item = &'a PodClass>) -> Resources {
    let mut sum = Resources::none();
    classes.for_each(|class| sum.add(&class.requests));
    sum
}
