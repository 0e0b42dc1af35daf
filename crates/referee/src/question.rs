//! One pod against the cluster: what every node says.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{NodeName, ResourceName, Text};

use crate::affinity::Neighbours;
use crate::spread::SpreadCounts;
use crate::{NodeFacts, Objection, PodFacts, Situation, filters, volumes};

/// Everything that speaks against a pod on a node; empty when it may run there.
///
/// A node that is not known objects as one that was not listed. Ask a [`Question`] when many nodes are to be checked.
pub fn check(situation: &Situation, pod: &PodFacts, node: &NodeName) -> Vec<Objection> {
    Question::new(situation, pod).objections(node)
}

/// The answers of all nodes.
pub fn survey(situation: &Situation, pod: &PodFacts) -> Survey {
    Question::new(situation, pod).survey()
}

/// A pod that looks for a node, with what must be counted over the whole cluster counted once.
pub struct Question<'a> {
    situation: &'a Situation,
    pod: &'a PodFacts,
    listed: Option<BTreeSet<Text>>,
    spread: Rc<SpreadCounts>,
    neighbours: Neighbours,
    volume_in_use: Option<Text>,
    pods_resource: ResourceName,
}

impl<'a> Question<'a> {
    /// Counts what has to be counted.
    pub fn new(situation: &'a Situation, pod: &'a PodFacts) -> Self {
        Self::with_spread(situation, pod, Rc::new(SpreadCounts::new(situation, pod)))
    }

    /// With the counts of spread constraints, for a caller that keeps them.
    pub(crate) fn with_spread(situation: &'a Situation, pod: &'a PodFacts, spread: Rc<SpreadCounts>) -> Self {
        Self {
            situation,
            pod,
            listed: listed_names(pod),
            spread,
            neighbours: Neighbours::new(situation, pod),
            volume_in_use: volumes::volume_in_use(situation, pod),
            pods_resource: ResourceName::pods(),
        }
    }

    /// Everything that speaks against one node, in the order of the filters.
    ///
    /// The kube-scheduler stops at the first filter that objects; [`Survey::reported`] gives what it would report.
    pub fn objections(&self, node: &NodeName) -> Vec<Objection> {
        let Some(node) = self.situation.node(node) else { return vec![Objection::NotListed] };
        let Self { situation, pod, .. } = self;
        let gates = situation.gates();
        let mut objections = Vec::new();
        objections.extend(pod.blocker.clone().map(|blocker| Objection::Blocked { blocker }));
        objections.extend(self.not_listed(node));
        objections.extend(filters::node_unschedulable(gates, pod, node));
        objections.extend(filters::node_name(pod, node));
        objections.extend(filters::taint_toleration(gates, pod, node));
        objections.extend(filters::node_affinity(pod, node));
        objections.extend(filters::node_ports(situation, pod, node));
        objections.extend(filters::node_resources_fit(situation, &self.pods_resource, pod, node));
        objections.extend(self.volume_in_use.clone().map(|handle| Objection::VolumeInUse { handle }));
        objections.extend(volumes::volume_limits(situation, pod, node));
        objections.extend(volumes::volume_binding(pod, node));
        objections.extend(volumes::volume_zone(pod, node));
        objections.extend(self.spread.objection(pod, node));
        objections.extend(self.neighbours.objection(pod, node));
        objections
    }

    /// The answers of all nodes.
    pub fn survey(&self) -> Survey {
        let answer = |node: &NodeFacts| (node.name.clone(), self.objections(&node.name));
        Survey { objections: self.situation.nodes().map(answer).collect() }
    }

    fn not_listed(&self, node: &NodeFacts) -> Option<Objection> {
        let listed = self.listed.as_ref()?;
        (!listed.contains(node.name.as_str())).then_some(Objection::NotListed)
    }
}

/// The node names that the pod's affinity allows, when every alternative lists some.
fn listed_names(pod: &PodFacts) -> Option<BTreeSet<Text>> {
    let terms = pod.node_terms.as_ref().filter(|terms| !terms.is_empty())?;
    let lists: Option<Vec<Vec<Text>>> = terms.iter().map(|term| term.listed_names()).collect();
    Some(lists?.into_iter().flatten().collect())
}

/// Whether the pod's affinity lists node names that contradict each other.
pub(crate) fn lists_contradict(pod: &PodFacts) -> bool {
    listed_names(pod).is_some_and(|names| names.is_empty())
}

/// What every node says about one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Objections by node; a node without any may take the pod.
    pub objections: BTreeMap<NodeName, Vec<Objection>>,
}

impl Survey {
    /// The nodes that may take the pod, in the order of their names.
    pub fn feasible(&self) -> impl Iterator<Item = &NodeName> {
        self.objections.iter().filter(|(_, objections)| objections.is_empty()).map(|(node, _)| node)
    }

    /// What the kube-scheduler reports of a node: the words of the first filter that objects.
    pub fn reported(objections: &[Objection]) -> &[Objection] {
        let first = objections.first().map(Objection::plugin);
        let end = objections.iter().take_while(|objection| Some(objection.plugin()) == first).count();
        &objections[..end]
    }
}
