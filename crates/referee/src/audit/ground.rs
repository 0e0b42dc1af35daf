//! A snapshot as the filters see it, for whoever wants to try placements one by one.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{InstanceType, NodeName, PendingPod, Pool, Price, Resources, Snapshot, Text, TypeName, labels};

use super::possible::{daemons, possible_nodes, sum};
use super::stage::Scene;
use super::{Auditor, Replay, lower, replay};
use crate::{NodeFacts, PodFacts, Situation};

/// A node that a pool could make.
#[derive(Clone, Debug)]
pub struct NewNode {
    /// Its type.
    pub kind: TypeName,
    /// Its price per hour.
    pub price: Price,
    /// What the machine has; this counts against limits.
    pub capacity: Resources,
    /// The node; its room is what its daemons leave.
    pub node: NodeFacts,
    /// Stands for the daemons, as far as they keep others away.
    pub company: Arc<PodFacts>,
}

/// Every node that a pool could make now, one for each type, offering and value of an open label.
pub fn new_nodes(snapshot: &Snapshot, pool: &Pool) -> Vec<NewNode> {
    let bought = |kind: &InstanceType| {
        let nodes = possible_nodes(kind, &pool.requirements, &snapshot.vocabulary);
        nodes.into_iter().map(|node| new_node(snapshot, pool, kind, &node)).collect::<Vec<_>>()
    };
    pool.types.iter().flat_map(|kind| bought(kind)).collect()
}

fn new_node(snapshot: &Snapshot, pool: &Pool, kind: &InstanceType, face: &super::possible::PossibleNode) -> NewNode {
    let daemons = daemons(snapshot, pool, &face.labels);
    let ports = daemons.iter().flat_map(|daemon| daemon.class.host_ports.clone()).collect();
    let mut node = NodeFacts::new(NodeName::new(""));
    node.labels.clone_from(&face.labels);
    node.taints.clone_from(&pool.taints);
    let used = sum(daemons.iter().map(|daemon| daemon.class.as_ref()));
    node.allocatable = super::stage::with_seats(kind.allocatable.minus(&used), 1);
    node.attach_limits = kind.attach_limits.clone();
    let company = Arc::new(lower::filler("", ports, std::iter::empty()));
    NewNode { kind: kind.name.clone(), price: face.price, capacity: kind.capacity.clone(), node, company }
}

impl NewNode {
    /// Puts the node into a cluster under a name of its own, with what comes with it.
    pub fn join(&self, situation: &mut Situation, name: &NodeName) {
        let mut node = self.node.clone();
        node.name = name.clone();
        node.labels.insert(Text::from(labels::HOSTNAME), name.text());
        let mut company = PodFacts::clone(&self.company);
        company.key.name = name.text();
        situation.put_node(node);
        situation.bind(name.clone(), Arc::new(company));
    }
}

/// The nodes of a snapshot and the pods that run on them. A promised node is taken for the first it could turn into.
pub fn situation(snapshot: &Snapshot) -> Situation {
    let auditor = Auditor::new(snapshot);
    let plan = model::Plan::default();
    let faces = super::stage::Faces::new(&auditor, &plan);
    Scene::build(&auditor, &plan, &faces, &Replay::Cheapest).situation
}

/// Nodes without room, one for every domain that a pool could make: pods are spread over these domains too.
pub fn reachable_domains(snapshot: &Snapshot) -> Vec<NodeFacts> {
    replay::phantoms(&Auditor::new(snapshot))
}

/// The pods that wait, as the filters see them, in the snapshot's order.
pub fn pending_pods(snapshot: &Snapshot) -> Vec<PodFacts> {
    let namespaces: BTreeSet<Text> = lower::namespaces(snapshot);
    let lowered = |pod: &PendingPod| lower::pending(snapshot, &namespaces, pod);
    snapshot.pending.iter().map(lowered).collect()
}
