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

type Said = (PoolName, Arc<[TypeName]>, Arc<Requirements>, Resources);

/// Menus that were worked out before.
#[derive(Default)]
pub(super) struct Menus<'a>(RefCell<BTreeMap<Said, Rc<Menu<'a>>>>);

impl<'a> Auditor<'a> {
    /// What a claim may turn into; nothing if its pool does not exist.
    pub(super) fn menu(&self, claim: &PlannedClaim) -> Rc<Menu<'a>> {
        let view = self.pools.get(&claim.pool);
        // How much is asked for only matters where a type is sold with more room here than there.
        let is_ambiguous = view.is_some_and(|view| claim.types.iter().any(|name| view.kinds(name).len() > 1));
        let asked = if is_ambiguous { claim.requests.clone() } else { Resources::none() };
        let said = (claim.pool.clone(), Arc::clone(&claim.types), Arc::clone(&claim.requirements), asked);
        if let Some(known) = self.menus.0.borrow().get(&said) {
            return Rc::clone(known);
        }
        let dishes = |view: &PoolView<'a>| claim.types.iter().flat_map(|name| self.dishes(view, name, claim)).collect();
        let dishes = view.map_or_else(Vec::new, dishes);
        let menu = Rc::new(Menu { dishes });
        self.menus.0.borrow_mut().insert(said, Rc::clone(&menu));
        menu
    }

    fn dishes(&self, view: &PoolView<'a>, name: &TypeName, claim: &PlannedClaim) -> Vec<Dish<'a>> {
        let kinds = view.launchable(name, &claim.requests);
        if kinds.is_empty() {
            return vec![self.served(view.pool, name, None, Vec::new())];
        }
        let nodes = |kind: &InstanceType| possible_nodes(kind, &claim.requirements, &self.snapshot.vocabulary);
        let mut dishes: Vec<Dish<'a>> =
            kinds.iter().map(|kind| self.served(view.pool, name, Some(*kind), nodes(kind))).collect();
        // One of them for sale is enough.
        if dishes.iter().any(|dish| !dish.nodes.is_empty()) {
            dishes.retain(|dish| !dish.nodes.is_empty());
        }
        dishes
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
