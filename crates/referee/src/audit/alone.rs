//! The rules that look at one node alone: labels, taints, volumes, ports and room.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use model::{
    AttachLimits, Attachment, HostPort, InstanceType, Nomination, PendingPod, Place, Plan, PlannedClaim, PodKey, Pool,
    Price, Resources, Shortfall, Stage, Taint, Text,
};

use super::menu::{Dish, Menu};
use super::possible::{labels_fit, possible_nodes, single_values, sum, untolerated};
use super::{Auditor, Target, Violation, bill};
use crate::Labels;

impl<'a> Auditor<'a> {
    pub(super) fn places(&self, plan: &Plan) -> Vec<Violation> {
        let judge = |nomination: &Nomination| {
            let mut open = self.snapshot.places.iter().filter(|place| place.stage != Stage::Going);
            let place = open.find(|place| place.id == nomination.place);
            place.map_or_else(
                || vec![Violation::UnknownPlace { place: nomination.place.clone() }],
                |place| self.place(place, &nomination.pods),
            )
        };
        plan.nominations.iter().flat_map(judge).collect()
    }

    fn place(&self, place: &Place, pods: &[PodKey]) -> Vec<Violation> {
        let target = Target::Place(place.id.clone());
        let pods = self.known(pods);
        let mut violations = Vec::new();
        for pod in representatives(&pods) {
            violations.extend(taint_violation(pod, &place.taints, &target));
            // Labels of a promised node are not known yet: whether its demands go together with those of all its pods
            // is for the replay to find out.
            if place.stage != Stage::Promised {
                violations.extend(label_violations(pod, &single_values(&place.requirements), &target));
            }
        }
        violations.extend(port_violations(&pods, &place.host_ports, &target));
        violations.extend(attach_violations(&pods, &place.attached, &place.attach_limits, &target));
        let requested = sum(pods.iter().map(|pod| pod.class.as_ref()));
        violations.extend(overfull(&requested, &place.allocatable.minus(&place.used), &target));
        violations
    }

    pub(super) fn claim(&self, index: usize, claim: &PlannedClaim) -> Vec<Violation> {
        let Some(view) = self.pools.get(&claim.pool) else {
            return vec![Violation::UnknownPool { pool: claim.pool.clone() }];
        };
        let mut violations = Vec::new();
        if claim.pods.is_empty() || claim.types.is_empty() {
            violations.push(Violation::Pointless { claim: index });
        }
        let company = Company::new(&self.known(&claim.pods));
        let menu = self.menu(claim);
        for dish in &menu.dishes {
            let target = Target::Claim { index, kind: dish.name.clone() };
            match (dish.kind, dish.nodes.is_empty()) {
                (None, _) => violations.push(Violation::UnknownType { claim: index, kind: dish.name.clone() }),
                (Some(_), true) => violations.push(Violation::NotForSale { claim: index, kind: dish.name.clone() }),
                (Some(kind), false) => violations.extend(company.room_violations(kind, dish, &target)),
            }
        }
        for pod in &company.representatives {
            let address = [Rc::as_ptr(&menu).addr(), Arc::as_ptr(&pod.class).addr(), Arc::as_ptr(&pod.volumes).addr()];
            if self.suited.borrow().contains(&address) {
                continue;
            }
            let found = suit_violations(view.pool, &menu, pod, index);
            if found.is_empty() {
                self.suited.borrow_mut().insert(address);
            }
            violations.extend(found);
        }
        let of_one_type = menu.dishes.chunk_by(|left, right| left.name == right.name);
        let prices: Vec<Price> = of_one_type.filter_map(|dishes| dishes.iter().filter_map(Dish::price).min()).collect();
        violations.extend(bill::prices(index, claim, &prices));
        violations.extend(bill::variety(index, claim, view));
        let short = company.requests.fit_into(&claim.requests).err();
        violations.extend(short.map(|shortfall| Violation::RequestsTooSmall { claim: index, shortfall }));
        violations.sort();
        violations.dedup();
        violations
    }

    /// Whether a new node of the pool could take the pod alone, for all that looks at one node.
    pub(super) fn could_take(&self, pool: &Pool, pod: &PendingPod) -> bool {
        let company = Company::new(&[pod]);
        let fits = |kind: &InstanceType| {
            let target = Target::Claim { index: 0, kind: kind.name.clone() };
            let nodes = possible_nodes(kind, &pool.requirements, &self.snapshot.vocabulary);
            nodes.into_iter().any(|node| {
                let suits = label_violations(pod, &node.labels, &target).is_empty();
                let dish = self.dish_of(pool, kind, node);
                suits && company.room_violations(kind, &dish, &target).is_empty()
            })
        };
        untolerated(&pod.class, &pool.taints).is_none() && pool.types.iter().any(|kind| fits(kind))
    }
}

/// Whether labels and taints of every node that a claim may turn into suit a pod.
fn suit_violations(pool: &Pool, menu: &Menu<'_>, pod: &PendingPod, index: usize) -> Vec<Violation> {
    let mut violations = Vec::new();
    for dish in &menu.dishes {
        let target = Target::Claim { index, kind: dish.name.clone() };
        violations.extend(taint_violation(pod, &pool.taints, &target).filter(|_| !dish.nodes.is_empty()));
        violations.extend(dish.nodes.iter().flat_map(|node| label_violations(pod, &node.labels, &target)));
    }
    violations
}

/// The pods of a claim, with what does not depend on the node worked out once.
struct Company<'a> {
    representatives: Vec<&'a PendingPod>,
    with_ports: Vec<&'a PendingPod>,
    with_volumes: Vec<&'a PendingPod>,
    requests: Resources,
}

impl<'a> Company<'a> {
    fn new(pods: &[&'a PendingPod]) -> Self {
        let having = |has: fn(&PendingPod) -> bool| pods.iter().copied().filter(|pod| has(pod)).collect();
        Self {
            representatives: representatives(pods),
            with_ports: having(|pod| !pod.class.host_ports.is_empty()),
            with_volumes: having(|pod| !pod.volumes.attachments.is_empty()),
            requests: sum(pods.iter().map(|pod| pod.class.as_ref())),
        }
    }

    /// Whether room, ports and volumes of a type do for all of them beside any daemons that may come.
    fn room_violations(&self, kind: &InstanceType, dish: &Dish<'_>, target: &Target) -> Vec<Violation> {
        let full = |daemons: &Resources| overfull(&self.requests.plus(daemons), &kind.allocatable, target);
        let mut violations: Vec<Violation> = dish.daemon_requests.iter().filter_map(full).collect();
        if !self.with_ports.is_empty() {
            let taken = dish.daemon_ports.iter().flat_map(|ports| port_violations(&self.with_ports, ports, target));
            violations.extend(taken);
        }
        if !self.with_volumes.is_empty() {
            violations.extend(attach_violations(&self.with_volumes, &BTreeSet::new(), &kind.attach_limits, target));
        }
        violations
    }
}

/// One pod out of those that say the same about labels and taints.
fn representatives<'a>(pods: &[&'a PendingPod]) -> Vec<&'a PendingPod> {
    let mut seen = BTreeSet::new();
    pods.iter().copied().filter(|pod| seen.insert((&pod.class, &pod.volumes.alternatives))).collect()
}

fn taint_violation(pod: &PendingPod, taints: &[Taint], target: &Target) -> Option<Violation> {
    let taint = untolerated(&pod.class, taints)?.clone();
    Some(Violation::Untolerated { pod: pod.key.clone(), target: target.clone(), taint })
}

fn label_violations(pod: &PendingPod, labels: &Labels, target: &Target) -> Vec<Violation> {
    let (key, target) = (|| pod.key.clone(), || target.clone());
    let unmet = || Violation::LabelsUnmet { pod: key(), target: target() };
    let elsewhere = || Violation::VolumeElsewhere { pod: key(), target: target() };
    let unmet = (!labels_fit(&pod.class.alternatives, labels)).then(unmet);
    let elsewhere = (!labels_fit(&pod.volumes.alternatives, labels)).then(elsewhere);
    unmet.into_iter().chain(elsewhere).collect()
}

/// Ports that another pod of the node, or what runs there already, has too.
fn port_violations(pods: &[&PendingPod], taken: &[HostPort], target: &Target) -> Vec<Violation> {
    let mut taken: Vec<&HostPort> = taken.iter().collect();
    let mut violations = Vec::new();
    for pod in pods {
        let collides = |port: &&HostPort| taken.iter().any(|other| other.collides_with(port));
        let found = pod.class.host_ports.iter().find(collides);
        violations.extend(found.map(|port| Violation::PortTaken {
            pod: pod.key.clone(),
            target: target.clone(),
            port: port.clone(),
        }));
        taken.extend(&pod.class.host_ports);
    }
    violations
}

fn attach_violations(
    pods: &[&PendingPod],
    attached: &BTreeSet<Attachment>,
    limits: &AttachLimits,
    target: &Target,
) -> Vec<Violation> {
    let fresh: BTreeSet<&Attachment> = pods.iter().flat_map(|pod| &pod.volumes.attachments).collect();
    let all: BTreeSet<&Attachment> = fresh.iter().copied().chain(attached).collect();
    let mut counts: BTreeMap<&Text, usize> = BTreeMap::new();
    all.iter().for_each(|attachment| *counts.entry(&attachment.driver).or_default() += 1);
    let asks =
        |driver: &Text| fresh.iter().any(|attachment| attachment.driver == *driver && !attached.contains(*attachment));
    let judge = |(driver, wanted): (&Text, usize)| {
        let limit = *limits.get(driver)?;
        let exceeded = wanted > usize::try_from(limit).unwrap_or(usize::MAX) && asks(driver);
        exceeded.then(|| Violation::TooManyVolumes { target: target.clone(), driver: driver.clone(), wanted, limit })
    };
    counts.into_iter().filter_map(judge).collect()
}

/// The first resource of which more is requested than is free. What is overdrawn but not asked for does not count.
fn overfull(requested: &Resources, free: &Resources, target: &Target) -> Option<Violation> {
    let (resource, wanted) = requested.iter().find(|(name, amount)| *amount > 0 && *amount > free.get(name))?;
    let shortfall = Shortfall { resource: resource.clone(), wanted, available: free.get(resource) };
    Some(Violation::Overfull { target: target.clone(), shortfall })
}
