//! Does a plan keep every rule, and what does it cost.
//!
//! Knows nodes only as concrete labels and sums, and shares nothing with the planner but the words of the model. A claim
//! is judged as every node that it may turn into: each listed type, bought with each offering that the claim admits.

mod possible;
mod violation;

use std::collections::{BTreeMap, BTreeSet};

use model::{
    InstanceType, Place, Plan, PlannedClaim, PodClass, PodKey, Pool, PoolName, Price, Refusal, ResourceName, Resources,
    Shortfall, Snapshot, Stage, Unplaced,
};

use possible::{PossibleNode, daemon_requests, labels_fit, possible_nodes, single_values, sum, untolerated};
pub use violation::{Target, Violation};

/// Every rule that the plan breaks; none for a good one.
pub fn audit(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let auditor = Auditor::new(snapshot);
    let mut violations = auditor.every_pod_once(plan);
    violations.extend(auditor.places(plan));
    violations.extend(plan.claims.iter().enumerate().flat_map(|(index, claim)| auditor.claim(index, claim)));
    violations.extend(snapshot.pools.iter().flat_map(|pool| limits(pool, plan)));
    violations.extend(plan.unplaced.iter().flat_map(|unplaced| auditor.refusals(unplaced)));
    violations
}

/// What the new nodes of a plan cost per hour, each bought as cheaply as its claim admits, reckoned anew from the offerings.
///
/// Claims that cannot be bought cost nothing here; [`audit`] tells of them.
pub fn reckoned_price(snapshot: &Snapshot, plan: &Plan) -> Price {
    let cheapest = |claim: &PlannedClaim| {
        let pool = snapshot.pools.iter().find(|pool| pool.name == claim.pool)?;
        let listed = pool.types.iter().filter(|kind| claim.types.contains(&kind.name));
        let nodes = listed.flat_map(|kind| possible_nodes(kind, &claim.requirements, &snapshot.vocabulary));
        nodes.map(|node| node.price).min()
    };
    plan.claims.iter().filter_map(cheapest).sum()
}

struct Auditor<'a> {
    snapshot: &'a Snapshot,
    classes: BTreeMap<&'a PodKey, &'a PodClass>,
    pools: BTreeMap<&'a PoolName, &'a Pool>,
}

impl<'a> Auditor<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let groups = snapshot.pending.iter();
        let classes = groups.flat_map(|group| group.pods.iter().map(|pod| (pod, group.class.as_ref()))).collect();
        let pools = snapshot.pools.iter().map(|pool| (&pool.name, pool.as_ref())).collect();
        Self { snapshot, classes, pools }
    }

    /// The pods that are pending, with their classes; pods that are not are told elsewhere.
    fn known<'b>(&self, pods: &'b [PodKey]) -> Vec<(&'b PodKey, &'a PodClass)> {
        pods.iter().filter_map(|pod| Some((pod, *self.classes.get(pod)?))).collect()
    }

    fn every_pod_once(&self, plan: &Plan) -> Vec<Violation> {
        let claimed = plan.claims.iter().flat_map(|claim| &claim.pods);
        let nominated = plan.nominations.iter().flat_map(|nomination| &nomination.pods);
        let unplaced = plan.unplaced.iter().flat_map(|unplaced| &unplaced.pods);
        let mut times: BTreeMap<&PodKey, usize> = self.classes.keys().map(|pod| (*pod, 0)).collect();
        claimed.chain(nominated).chain(unplaced).for_each(|pod| *times.entry(pod).or_default() += 1);
        let judge = |(pod, times): (&PodKey, usize)| match (self.classes.contains_key(pod), times) {
            (true, 1) => None,
            (true, times) => Some(Violation::NotOnce { pod: pod.clone(), times }),
            (false, _) => Some(Violation::UnknownPod { pod: pod.clone() }),
        };
        times.into_iter().filter_map(judge).collect()
    }

    fn places(&self, plan: &Plan) -> Vec<Violation> {
        let judge = |nomination: &model::Nomination| {
            let place = self.snapshot.places.iter().find(|place| place.id == nomination.place);
            place.map_or_else(
                || vec![Violation::UnknownPlace { place: nomination.place.clone() }],
                |place| self.place(place, &nomination.pods),
            )
        };
        plan.nominations.iter().flat_map(judge).collect()
    }

    fn place(&self, place: &Place, pods: &[PodKey]) -> Vec<Violation> {
        let target = Target::Place(place.id.clone());
        let labels = single_values(&place.requirements);
        let mut violations = Vec::new();
        for (pod, class) in self.known(pods) {
            violations.extend(taint_violation(pod, class, &place.taints, &target));
            // Labels of a promised node are not known yet: its claim's requirements decide, not single values.
            if place.stage != Stage::Promised && !labels_fit(class, &labels) {
                violations.push(Violation::LabelsUnmet { pod: pod.clone(), target: target.clone() });
            }
        }
        let requested = sum(self.known(pods).into_iter().map(|(_, class)| class));
        violations.extend(overfull(&requested, &place.allocatable.minus(&place.used), &target));
        violations
    }

    fn claim(&self, index: usize, claim: &PlannedClaim) -> Vec<Violation> {
        let Some(pool) = self.pools.get(&claim.pool) else {
            return vec![Violation::UnknownPool { pool: claim.pool.clone() }];
        };
        let mut violations = Vec::new();
        if claim.pods.is_empty() || claim.types.is_empty() {
            violations.push(Violation::Pointless { claim: index });
        }
        let mut prices = Vec::new();
        for name in &claim.types {
            let Some(kind) = pool.types.iter().find(|kind| kind.name == *name) else {
                violations.push(Violation::UnknownType { claim: index, kind: name.clone() });
                continue;
            };
            let nodes = possible_nodes(kind, &claim.requirements, &self.snapshot.vocabulary);
            match nodes.iter().map(|node| node.price).min() {
                None => violations.push(Violation::NotForSale { claim: index, kind: name.clone() }),
                Some(price) => prices.push(price),
            }
            let target = Target::Claim { index, kind: name.clone() };
            violations.extend(nodes.iter().flat_map(|node| self.node(pool, kind, claim, node, &target)));
        }
        violations.extend(price_violations(index, claim, &prices));
        let needed = sum(self.known(&claim.pods).into_iter().map(|(_, class)| class));
        let short = needed.fit_into(&claim.requests).err();
        violations.extend(short.map(|shortfall| Violation::RequestsTooSmall { claim: index, shortfall }));
        violations.sort();
        violations.dedup();
        violations
    }

    /// One node that the claim may turn into.
    fn node(
        &self,
        pool: &Pool,
        kind: &InstanceType,
        claim: &PlannedClaim,
        node: &PossibleNode,
        target: &Target,
    ) -> Vec<Violation> {
        let mut violations = Vec::new();
        let pods = self.known(&claim.pods);
        for (pod, class) in &pods {
            violations.extend(taint_violation(pod, class, &pool.taints, target));
            if !labels_fit(class, &node.labels) {
                violations.push(Violation::LabelsUnmet { pod: (*pod).clone(), target: target.clone() });
            }
        }
        let daemons = daemon_requests(self.snapshot, pool, &node.labels);
        let needed = sum(pods.into_iter().map(|(_, class)| class)).plus(&daemons);
        violations.extend(overfull(&needed, &kind.allocatable, target));
        violations
    }

    /// Refused pods have a reason for every pool, and no pool without a limit could have taken one of them.
    fn refusals(&self, unplaced: &Unplaced) -> Vec<Violation> {
        let (Some(pod), true) = (unplaced.pods.first(), unplaced.class.unplanned_rules.is_empty()) else {
            return Vec::new();
        };
        let reasons: BTreeMap<&PoolName, &Refusal> =
            unplaced.refusals.iter().map(|refusal| (&refusal.pool, &refusal.refusal)).collect();
        let wrong = |pool: &&Pool| match reasons.get(&pool.name) {
            None => true,
            Some(Refusal::LimitReached { .. }) => pool.limits.is_empty(),
            Some(_) => false,
        };
        let needless = |pool: &&Pool| pool.limits.is_empty() && self.could_take(pool, &unplaced.class);
        let pools = || self.snapshot.pools.iter().map(AsRef::as_ref);
        let wrong =
            pools().filter(wrong).map(|pool| Violation::WrongReason { pod: pod.clone(), pool: pool.name.clone() });
        let needless = pools()
            .filter(needless)
            .map(|pool| Violation::NeedlesslyRefused { pod: pod.clone(), pool: pool.name.clone() });
        wrong.chain(needless).collect()
    }

    fn could_take(&self, pool: &Pool, class: &PodClass) -> bool {
        let fits = |kind: &InstanceType| {
            possible_nodes(kind, &pool.requirements, &self.snapshot.vocabulary).iter().any(|node| {
                let needed = class.requests.plus(&daemon_requests(self.snapshot, pool, &node.labels));
                labels_fit(class, &node.labels) && needed.fit_into(&kind.allocatable).is_ok()
            })
        };
        untolerated(class, &pool.taints).is_none() && pool.types.iter().any(|kind| fits(kind))
    }
}

fn taint_violation(pod: &PodKey, class: &PodClass, taints: &[model::Taint], target: &Target) -> Option<Violation> {
    let taint = untolerated(class, taints)?.clone();
    Some(Violation::Untolerated { pod: pod.clone(), target: target.clone(), taint })
}

/// The first resource of which more is requested than is free. What is overdrawn but not asked for does not count.
fn overfull(requested: &Resources, free: &Resources, target: &Target) -> Option<Violation> {
    let (resource, wanted) = requested.iter().find(|(name, amount)| *amount > 0 && *amount > free.get(name))?;
    let shortfall = Shortfall { resource: resource.clone(), wanted, available: free.get(resource) };
    Some(Violation::Overfull { target: target.clone(), shortfall })
}

fn price_violations(index: usize, claim: &PlannedClaim, prices: &[Price]) -> Vec<Violation> {
    let disorder = (!prices.is_sorted()).then_some(Violation::TypesOutOfOrder { claim: index });
    let cheapest = prices.iter().min().filter(|cheapest| **cheapest != claim.price);
    let wrong =
        cheapest.map(|reckoned| Violation::WrongPrice { claim: index, stated: claim.price, reckoned: *reckoned });
    disorder.into_iter().chain(wrong).collect()
}

/// The pool stays within its limits even when every claim becomes the largest type it lists.
fn limits(pool: &Pool, plan: &Plan) -> Vec<Violation> {
    let claims: Vec<&PlannedClaim> = plan.claims.iter().filter(|claim| claim.pool == pool.name).collect();
    let most = |claim: &&PlannedClaim, name: &ResourceName| {
        let listed: BTreeSet<_> = claim.types.iter().collect();
        let kinds = pool.types.iter().filter(|kind| listed.contains(&kind.name));
        kinds.map(|kind| kind.capacity.get(name)).max().unwrap_or(0)
    };
    let judge = |(name, limit): (&ResourceName, i64)| {
        let one = |claim: &&PlannedClaim| if *name == ResourceName::nodes() { 1 } else { most(claim, name) };
        let used = pool.in_use.get(name) + claims.iter().map(one).sum::<i64>();
        let crossed = Violation::LimitCrossed { pool: pool.name.clone(), resource: name.clone(), used, limit };
        (used > limit).then_some(crossed)
    };
    if claims.is_empty() { Vec::new() } else { pool.limits.iter().filter_map(judge).collect() }
}
