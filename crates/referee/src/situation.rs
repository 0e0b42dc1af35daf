//! The nodes, and the pods that hold room on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{NodeName, PodKey, ResourceName, Resources};

use crate::{NodeFacts, PodFacts};

/// Feature gates of the kube-scheduler that change an answer. The default is that of release 1.36.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// `TaintTolerationComparisonOperators`: whether tolerations with `Gt` and `Lt` mean anything.
    pub taint_toleration_comparison_operators: bool,
}

/// Nodes and the pods bound to them.
///
/// Pods that have ended must be taken out by the caller: they hold no room. A pod may be bound to a node that is not
/// known (yet, or any more); it counts as soon as the node is.
#[derive(Clone, Debug, Default)]
pub struct Situation {
    gates: Gates,
    nodes: BTreeMap<NodeName, Arc<NodeFacts>>,
    seats: BTreeMap<NodeName, Seat>,
    bound: BTreeMap<PodKey, NodeName>,
    /// Bound pods that want to stay away from others: every pod has to ask all of them, and most clusters have few.
    aloof: BTreeSet<PodKey>,
}

/// The pods of one node, with the sum of what they ask for.
#[derive(Clone, Debug, Default)]
struct Seat {
    pods: BTreeMap<PodKey, Arc<PodFacts>>,
    requested: Resources,
}

impl Situation {
    /// An empty cluster.
    pub fn new(gates: Gates) -> Self {
        Self { gates, ..Self::default() }
    }

    /// The gates in force.
    pub fn gates(&self) -> Gates {
        self.gates
    }

    /// Adds a node or replaces what is known about it; its pods stay.
    pub fn put_node(&mut self, node: NodeFacts) {
        self.nodes.insert(node.name.clone(), Arc::new(node));
    }

    /// Forgets a node; pods bound to it are kept, should it come back.
    pub fn remove_node(&mut self, name: &NodeName) {
        self.nodes.remove(name);
    }

    /// Binds a pod to a node, or replaces what is known about it.
    pub fn bind(&mut self, node: NodeName, pod: Arc<PodFacts>) {
        self.unbind(&pod.key);
        self.bound.insert(pod.key.clone(), node.clone());
        if !pod.anti_affinity.is_empty() {
            self.aloof.insert(pod.key.clone());
        }
        let seat = self.seats.entry(node).or_default();
        seat.requested.add(&pod.requests);
        seat.pods.insert(pod.key.clone(), pod);
    }

    /// Takes a pod out, and says where it was.
    pub fn unbind(&mut self, pod: &PodKey) -> Option<NodeName> {
        let node = self.bound.remove(pod)?;
        self.aloof.remove(pod);
        let seat = self.seats.get_mut(&node)?;
        if let Some(gone) = seat.pods.remove(pod) {
            seat.requested.subtract(&gone.requests);
        }
        if seat.pods.is_empty() {
            self.seats.remove(&node);
        }
        Some(node)
    }

    /// The nodes in the order of their names.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeFacts> {
        self.nodes.values().map(Arc::as_ref)
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// One node.
    pub fn node(&self, name: &NodeName) -> Option<&NodeFacts> {
        self.nodes.get(name).map(Arc::as_ref)
    }

    /// The pods on a node, in the order of their keys.
    pub fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.seats.get(node).into_iter().flat_map(|seat| seat.pods.values())
    }

    /// The node that a pod is bound to.
    pub fn node_of(&self, pod: &PodKey) -> Option<&NodeName> {
        self.bound.get(pod)
    }

    /// Every pod on a node that is known, with its node.
    pub fn placed(&self) -> impl Iterator<Item = (&NodeFacts, &Arc<PodFacts>)> {
        self.nodes().flat_map(|node| self.pods_on(&node.name).map(move |pod| (node, pod)))
    }

    /// Every pod with a required anti-affinity on a node that is known, with its node.
    pub(crate) fn aloof(&self) -> impl Iterator<Item = (&NodeFacts, &Arc<PodFacts>)> {
        self.aloof.iter().filter_map(|key| {
            let name = self.bound.get(key)?;
            Some((self.node(name)?, self.seats.get(name)?.pods.get(key)?))
        })
    }

    /// How many pods are on a node.
    pub fn pod_count(&self, node: &NodeName) -> i64 {
        self.seats.get(node).map_or(0, |seat| i64::try_from(seat.pods.len()).unwrap_or(i64::MAX))
    }

    /// How much of a resource the pods on a node ask for.
    pub fn requested(&self, node: &NodeName, resource: &ResourceName) -> i64 {
        self.seats.get(node).map_or(0, |seat| seat.requested.get(resource))
    }
}
