//! Pods that are nominated to a node: room is kept there for them, until they are bound or fit nowhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{NodeName, PodKey};
use referee::{PodFacts, Situation};

/// Waiting pods with the nodes that they are nominated to.
#[derive(Debug, Default)]
pub(crate) struct Nominated(BTreeMap<PodKey, (NodeName, Arc<PodFacts>)>);

impl Nominated {
    /// Takes over where a pod is nominated to; says whether others may find room that was kept before.
    pub(crate) fn exchange(&mut self, key: &PodKey, nomination: Option<(NodeName, Arc<PodFacts>)>) -> bool {
        let node = nomination.as_ref().map(|(node, _)| node.clone());
        let before = match nomination {
            Some(nomination) => self.0.insert(key.clone(), nomination),
            None => self.0.remove(key),
        };
        before.is_some_and(|(before, _)| Some(before) != node)
    }

    pub(crate) fn node_of(&self, pod: &PodKey) -> Option<&NodeName> {
        self.0.get(pod).map(|(node, _)| node)
    }

    /// Puts those whose room this pod may not have on their nodes, and answers who they are. Pods of a higher priority do
    /// not mind them.
    pub(crate) fn seat_before(&self, pod: &PodFacts, situation: &mut Situation) -> Vec<PodKey> {
        let minded = |other: &&(NodeName, Arc<PodFacts>)| other.1.key != pod.key && other.1.priority >= pod.priority;
        let seated = self.0.values().filter(minded);
        seated
            .map(|(node, other)| {
                situation.bind(node.clone(), Arc::clone(other));
                other.key.clone()
            })
            .collect()
    }
}
