//! What a claim may turn into, worked out once for all claims that say the same.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use model::{HostPort, InstanceType, PlannedClaim, Pool, PoolName, Price, Requirements, Resources, TypeName};

use super::possible::{PossibleNode, daemons, possible_nodes, sum};
use super::{Auditor, PoolView};

/// The types that a claim lists, in its order.
pub(super) struct Menu<'a> {
    pub(super) dishes: Vec<Dish<'a>>,
}

/// One listed type.
pub(super) struct Dish<'a> {
    pub(super) name: TypeName,
    /// `None` if the pool has no such type.
    pub(super) kind: Option<&'a InstanceType>,
    /// The nodes that the type may turn into.
    pub(super) nodes: Vec<PossibleNode>,
    /// What daemons ask for there; nodes with the same daemons together.
    pub(super) daemon_requests: BTreeSet<Resources>,
    /// Host ports of daemons; nodes with the same daemons together.
    pub(super) daemon_ports: BTreeSet<Vec<HostPort>>,
}

impl Dish<'_> {
    pub(super) fn price(&self) -> Option<Price> {
        self.nodes.iter().map(|node| node.price).min()
    }
}

type Said = (PoolName, Arc<[TypeName]>, Arc<Requirements>);

/// Menus that were worked out before.
#[derive(Default)]
pub(super) struct Menus<'a>(RefCell<BTreeMap<Said, Rc<Menu<'a>>>>);

impl<'a> Auditor<'a> {
    /// What a claim may turn into; nothing if its pool does not exist.
    pub(super) fn menu(&self, claim: &PlannedClaim) -> Rc<Menu<'a>> {
        let said = (claim.pool.clone(), Arc::clone(&claim.types), Arc::clone(&claim.requirements));
        if let Some(known) = self.menus.0.borrow().get(&said) {
            return Rc::clone(known);
        }
        let dish = |view: &PoolView<'a>, name: &TypeName| self.dish(view, name, &claim.requirements);
        let view = self.pools.get(&claim.pool);
        let dishes = view.map_or_else(Vec::new, |view| claim.types.iter().map(|name| dish(view, name)).collect());
        let menu = Rc::new(Menu { dishes });
        self.menus.0.borrow_mut().insert(said, Rc::clone(&menu));
        menu
    }

    fn dish(&self, view: &PoolView<'a>, name: &TypeName, requirements: &Requirements) -> Dish<'a> {
        let kind = view.types.get(name).copied();
        let vocabulary = &self.snapshot.vocabulary;
        let nodes = kind.map_or_else(Vec::new, |kind| possible_nodes(kind, requirements, vocabulary));
        self.served(view.pool, name, kind, nodes)
    }

    /// A type that turned into one node.
    pub(super) fn dish_of<'b>(&self, pool: &Pool, kind: &'b InstanceType, node: PossibleNode) -> Dish<'b> {
        self.served(pool, &kind.name, Some(kind), vec![node])
    }

    fn served<'b>(
        &self,
        pool: &Pool,
        name: &TypeName,
        kind: Option<&'b InstanceType>,
        nodes: Vec<PossibleNode>,
    ) -> Dish<'b> {
        let (mut daemon_requests, mut daemon_ports) = (BTreeSet::new(), BTreeSet::new());
        for node in &nodes {
            let daemons = daemons(self.snapshot, pool, &node.labels);
            daemon_requests.insert(sum(daemons.iter().map(|daemon| daemon.class.as_ref())));
            daemon_ports.insert(daemons.iter().flat_map(|daemon| daemon.class.host_ports.clone()).collect());
        }
        Dish { name: name.clone(), kind, nodes, daemon_requests, daemon_ports }
    }
}
