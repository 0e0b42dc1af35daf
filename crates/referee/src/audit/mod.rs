//! Does a plan keep every rule, and what does it cost.
//!
//! Knows nodes only as concrete labels and sums, and shares nothing with the planner but the words of the model. It
//! judges in two ways. Rules that look at one node alone are judged for every node that a claim may turn into: each
//! listed type, bought with each offering that the claim admits. Rules between pods are judged by replaying the plan:
//! the planned nodes are put beside those that are there, the pods are bound in the plan's order, and the filters of the
//! kube-scheduler are asked about each.

mod alone;
mod bill;
mod ground;
mod lower;
mod menu;
mod possible;
mod refusals;
mod replay;
mod stage;
mod violation;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use model::{
    InstanceType, PendingPod, Plan, PlannedClaim, PodKey, Pool, PoolName, Price, Resources, Snapshot, TypeName,
};

pub use ground::{NewNode, new_nodes, pending_pods, reachable_domains, situation};
use menu::{Dish, Menus};
use possible::{PossibleNode, possible_nodes};
pub use replay::Replay;
pub use violation::{Target, Violation};

/// Every rule that the plan breaks; none for a good one.
///
/// Wishes are not judged: preferred affinity, spread constraints with `ScheduleAnyway`, `PreferNoSchedule`.
pub fn audit(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let auditor = Auditor::new(snapshot);
    let mut violations = auditor.every_pod_once(plan);
    violations.extend(auditor.places(plan));
    violations.extend(plan.claims.iter().enumerate().flat_map(|(index, claim)| auditor.claim(index, claim)));
    violations.extend(snapshot.pools.iter().flat_map(|pool| bill::limits(pool, plan)));
    violations.extend(bill::reservations(snapshot, plan));
    violations.extend(bill::bound(plan, auditor.reckoned_price(plan)));
    violations.extend(auditor.refusals(plan));
    violations.extend(replay::replays(&auditor, plan));
    violations
}

/// What the new nodes of a plan cost per hour, each bought as cheaply as its claim admits, reckoned anew from the offerings.
///
/// Claims that cannot be bought cost nothing here; [`audit`] tells of them.
pub fn reckoned_price(snapshot: &Snapshot, plan: &Plan) -> Price {
    Auditor::new(snapshot).reckoned_price(plan)
}

/// A pool with its types by name. A type that is sold with more room here than there has several of one name.
struct PoolView<'a> {
    pool: &'a Pool,
    types: BTreeMap<&'a TypeName, Vec<&'a InstanceType>>,
}

impl<'a> PoolView<'a> {
    fn of(pool: &'a Pool) -> Self {
        let mut types: BTreeMap<&TypeName, Vec<&InstanceType>> = BTreeMap::new();
        for kind in pool.types.iter() {
            types.entry(&kind.name).or_default().push(kind);
        }
        Self { pool, types }
    }

    fn kinds(&self, name: &TypeName) -> &[&'a InstanceType] {
        self.types.get(name).map_or(&[], Vec::as_slice)
    }

    /// Those that a provider may launch for a claim which asks for this much.
    fn launchable(&self, name: &TypeName, requests: &Resources) -> Vec<&'a InstanceType> {
        let kinds = self.kinds(name);
        if kinds.len() < 2 {
            return kinds.to_vec();
        }
        kinds.iter().copied().filter(|kind| requests.fit_into(&kind.allocatable).is_ok()).collect()
    }
}

struct Auditor<'a> {
    snapshot: &'a Snapshot,
    pods: BTreeMap<&'a PodKey, &'a PendingPod>,
    pools: BTreeMap<&'a PoolName, PoolView<'a>>,
    menus: Menus<'a>,
    /// Pods that the labels and taints of all nodes of a menu suit, by the addresses of menu, class and volumes.
    suited: RefCell<BTreeSet<[usize; 3]>>,
}

impl<'a> Auditor<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let pods = snapshot.pending.iter().map(|pod| (&pod.key, pod)).collect();
        let pools = snapshot.pools.iter().map(|pool| (&pool.name, PoolView::of(pool))).collect();
        Self { snapshot, pods, pools, menus: Menus::default(), suited: RefCell::default() }
    }

    fn reckoned_price(&self, plan: &Plan) -> Price {
        let cheapest = |claim: &PlannedClaim| self.menu(claim).dishes.iter().filter_map(Dish::price).min();
        plan.claims.iter().filter_map(cheapest).sum()
    }

    /// The type that shows this face.
    fn kind(&self, claim: &PlannedClaim, name: &TypeName, face: &PossibleNode) -> Option<&'a InstanceType> {
        let shows =
            |kind: &&InstanceType| possible_nodes(kind, &claim.requirements, &self.snapshot.vocabulary).contains(face);
        match self.pools.get(&claim.pool)?.launchable(name, &claim.requests).as_slice() {
            [only] => Some(*only),
            several => several.iter().copied().find(shows),
        }
    }

    /// The pods that are pending; pods that are not are told elsewhere.
    fn known(&self, pods: &[PodKey]) -> Vec<&'a PendingPod> {
        pods.iter().filter_map(|pod| self.pods.get(pod).copied()).collect()
    }

    /// Every pod is placed or refused once, and the sequence names the placed ones once each.
    fn every_pod_once(&self, plan: &Plan) -> Vec<Violation> {
        let claimed = plan.claims.iter().flat_map(|claim| &claim.pods);
        let nominated = plan.nominations.iter().flat_map(|nomination| &nomination.pods);
        let placed: Vec<&PodKey> = claimed.chain(nominated).collect();
        let unplaced = plan.unplaced.iter().flat_map(|unplaced| &unplaced.pods);
        let mut times: BTreeMap<&PodKey, usize> = self.pods.keys().map(|pod| (*pod, 0)).collect();
        placed.iter().copied().chain(unplaced).for_each(|pod| *times.entry(pod).or_default() += 1);
        let judge = |(pod, times): (&PodKey, usize)| match (self.pods.contains_key(pod), times) {
            (true, 1) => None,
            (true, times) => Some(Violation::NotOnce { pod: pod.clone(), times }),
            (false, _) => Some(Violation::UnknownPod { pod: pod.clone() }),
        };
        let mut violations: Vec<Violation> = times.into_iter().filter_map(judge).collect();
        let placed: BTreeSet<&PodKey> = placed.into_iter().collect();
        let mut turns: BTreeMap<&PodKey, usize> = placed.iter().map(|pod| (*pod, 0)).collect();
        plan.sequence.iter().for_each(|pod| *turns.entry(pod).or_default() += 1);
        let wrong = turns.into_iter().filter(|(pod, times)| *times != usize::from(placed.contains(pod)));
        violations.extend(wrong.map(|(pod, times)| Violation::NotInSequence { pod: pod.clone(), times }));
        violations
    }
}
