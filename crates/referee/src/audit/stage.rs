//! The nodes of a replay: those that are there, and those that the plan makes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    ClaimName, NodeName, Place, PlaceId, Plan, PlannedClaim, PodKey, Requirement, Requirements, ResourceName,
    Resources, Stage, Taint, Text, TypeName, Undefined, labels,
};

use super::lower::{bound, filler, namespaces};
use super::menu::Dish;
use super::possible::{PossibleNode, daemons, single_values, sum};
use super::{Auditor, Replay, Target, Violation};
use crate::{Gates, Labels, NodeFacts, Situation};

/// A node that a claim could turn into.
type Face = (TypeName, PossibleNode);

/// What the claims of a plan and the promised places could turn into, as far as replays want to know.
pub(super) struct Faces {
    claims: Vec<ClaimFaces>,
    /// The demands of a promised place together with those of its pods; `None` where they do not go together.
    promised: BTreeMap<PlaceId, Option<Requirements>>,
}

#[derive(Default)]
struct ClaimFaces {
    cheapest: Option<Face>,
    dearest: Option<Face>,
    mixed: Option<Face>,
    by_zone: BTreeMap<Text, Face>,
}

impl Faces {
    pub(super) fn new(auditor: &Auditor<'_>, plan: &Plan) -> Self {
        let claims = plan.claims.iter().enumerate().map(|(index, claim)| claim_faces(auditor, index, claim)).collect();
        let promised = auditor.snapshot.places.iter().filter(|place| place.stage == Stage::Promised);
        let narrowed = |place: &Arc<Place>| (place.id.clone(), narrowed(auditor, plan, place));
        Self { claims, promised: promised.map(narrowed).collect() }
    }

    pub(super) fn broken_promises(&self) -> Vec<Violation> {
        let broken = self.promised.iter().filter(|(_, demands)| demands.is_none());
        broken.map(|(place, _)| Violation::PromiseBroken { place: place.clone() }).collect()
    }

    /// Zones that are left open somewhere.
    pub(super) fn open_zones(&self) -> BTreeSet<Text> {
        let claims = self.claims.iter().filter(|claim| claim.by_zone.len() > 1);
        let promised = self.promised.values().flatten().filter_map(|demands| demands.get(labels::ZONE));
        let open = promised.filter(|zone| zone.single_value().is_none()).flat_map(Requirement::values);
        claims.flat_map(|claim| claim.by_zone.keys()).chain(open).cloned().collect()
    }
}

impl ClaimFaces {
    fn shown(&self, replay: &Replay) -> Option<&Face> {
        let cheapest = || self.cheapest.as_ref();
        match replay {
            Replay::Cheapest | Replay::EveryDomain => cheapest(),
            Replay::Dearest => self.dearest.as_ref(),
            Replay::Mixed => self.mixed.as_ref(),
            Replay::InZone(zone) => self.by_zone.get(zone).or_else(cheapest),
        }
    }
}

fn claim_faces(auditor: &Auditor<'_>, index: usize, claim: &PlannedClaim) -> ClaimFaces {
    let mut faces = ClaimFaces::default();
    let menu = auditor.menu(claim);
    for (turn, Dish { name, nodes, .. }) in menu.dishes.iter().enumerate() {
        if turn == index % menu.dishes.len() {
            faces.mixed = nodes.get(index % nodes.len().max(1)).map(|node| (name.clone(), node.clone()));
        }
        for node in nodes {
            let zone = node.labels.get(labels::ZONE).cloned();
            let cheaper = |other: &Option<Face>| other.as_ref().is_none_or(|(_, other)| node.price < other.price);
            let dearer = |other: &Option<Face>| other.as_ref().is_none_or(|(_, other)| node.price > other.price);
            let face = || (name.clone(), node.clone());
            if cheaper(&faces.cheapest) {
                faces.cheapest = Some(face());
            }
            if dearer(&faces.dearest) {
                faces.dearest = Some(face());
            }
            if let Some(zone) = zone {
                let known = faces.by_zone.entry(zone).or_insert_with(face);
                if node.price < known.1.price {
                    *known = face();
                }
            }
        }
    }
    faces
}

fn narrowed(auditor: &Auditor<'_>, plan: &Plan, place: &Place) -> Option<Requirements> {
    let nominated = plan.nominations.iter().filter(|nomination| nomination.place == place.id);
    let pods = auditor.known(&nominated.flat_map(|nomination| nomination.pods.clone()).collect::<Vec<_>>());
    let demands: BTreeSet<&[Requirements]> =
        pods.iter().flat_map(|pod| [&*pod.class.alternatives, &*pod.volumes.alternatives]).collect();
    let demands: Vec<&[Requirements]> = demands.into_iter().collect();
    agreement(auditor, &place.requirements, &demands)
}

/// One alternative of each demand, such that all of them together can be met.
fn agreement(auditor: &Auditor<'_>, given: &Requirements, demands: &[&[Requirements]]) -> Option<Requirements> {
    let Some((first, rest)) = demands.split_first() else { return Some(given.clone()) };
    let undefined = Undefined::MayBeGiven(&auditor.snapshot.vocabulary);
    let possible = first.iter().filter(|alternative| given.satisfy(alternative, undefined).is_ok());
    let narrowed = possible.map(|alternative| given.and(alternative));
    let mut consistent = narrowed.filter(|narrowed| narrowed.contradiction().is_none());
    consistent.find_map(|given| agreement(auditor, &given, rest))
}

/// A cluster with the planned nodes in it, and where each pod of the plan is to sit.
pub(super) struct Scene<'a> {
    pub(super) situation: Situation,
    pub(super) seats: BTreeMap<&'a PodKey, (NodeName, Target)>,
}

impl<'a> Scene<'a> {
    pub(super) fn build(auditor: &Auditor<'_>, plan: &'a Plan, faces: &Faces, replay: &Replay) -> Self {
        let gates = Gates { taint_toleration_comparison_operators: true };
        let mut scene = Self { situation: Situation::new(gates), seats: BTreeMap::new() };
        let running = scene.bind_running(auditor);
        for place in &auditor.snapshot.places {
            let known = faces.promised.get(&place.id).and_then(Option::as_ref).unwrap_or(&place.requirements);
            let company = running.get(&node_name(&place.id)).copied().unwrap_or(0);
            scene.put_place(place, place_labels(place, known, replay), company);
        }
        for nomination in &plan.nominations {
            let node = node_name(&nomination.place);
            scene.seat(&nomination.pods, &node, &Target::Place(nomination.place.clone()));
        }
        for (index, claim) in plan.claims.iter().enumerate() {
            if let Some((kind, node)) = faces.claims[index].shown(replay) {
                scene.put_claim(auditor, index, claim, kind, node);
            }
        }
        scene
    }

    /// Binds the pods that run, and counts them by node.
    fn bind_running(&mut self, auditor: &Auditor<'_>) -> BTreeMap<NodeName, i64> {
        let namespaces = namespaces(auditor.snapshot);
        let mut running = BTreeMap::new();
        for (index, (kind, counts)) in auditor.snapshot.bound.iter().enumerate() {
            for (node, count) in counts {
                *running.entry(node.clone()).or_insert(0) += i64::from(*count);
                for number in 0..*count {
                    let name = format!("running {index} {node} {number}");
                    let pod = bound(auditor.snapshot, &namespaces, kind, &name);
                    self.situation.bind(node.clone(), Arc::new(pod));
                }
            }
        }
        running
    }

    fn put_place(&mut self, place: &Place, labels: Labels, running: i64) {
        let name = node_name(&place.id);
        let filler = filler(name.as_str(), place.host_ports.clone(), place.attached.iter().cloned());
        self.situation.bind(name.clone(), Arc::new(filler));
        let mut node = NodeFacts::new(name);
        node.labels = labels;
        node.taints.clone_from(&place.taints);
        node.unschedulable = place.stage == Stage::Going;
        node.allocatable = with_seats(place.allocatable.minus(&place.used), running + 1);
        node.attach_limits = place.attach_limits.clone();
        self.situation.put_node(node);
    }

    fn put_claim(
        &mut self,
        auditor: &Auditor<'_>,
        index: usize,
        claim: &'a PlannedClaim,
        kind: &TypeName,
        face: &PossibleNode,
    ) {
        let (Some(view), Some(machine)) = (auditor.pools.get(&claim.pool), auditor.kind(claim, kind, face)) else {
            return;
        };
        let name = NodeName::new(format!("claim {index}"));
        let daemons = daemons(auditor.snapshot, view.pool, &face.labels);
        let ports = daemons.iter().flat_map(|daemon| daemon.class.host_ports.clone()).collect();
        self.situation.bind(name.clone(), Arc::new(filler(name.as_str(), ports, std::iter::empty())));
        let mut node = NodeFacts::new(name.clone());
        node.labels.clone_from(&face.labels);
        node.labels.insert(Text::from(labels::HOSTNAME), name.text());
        let taints: &[Taint] = &view.pool.taints;
        node.taints = taints.to_vec();
        let used = sum(daemons.iter().map(|daemon| daemon.class.as_ref()));
        node.allocatable = with_seats(machine.allocatable.minus(&used), 1);
        node.attach_limits = machine.attach_limits.clone();
        self.situation.put_node(node);
        self.seat(&claim.pods, &name, &Target::Claim { index, kind: kind.clone() });
    }

    fn seat(&mut self, pods: &'a [PodKey], node: &NodeName, target: &Target) {
        self.seats.extend(pods.iter().map(|pod| (pod, (node.clone(), target.clone()))));
    }
}

fn node_name(place: &PlaceId) -> NodeName {
    match place {
        PlaceId::Node(name) => name.clone(),
        PlaceId::Claim(name) => claim_node_name(name),
    }
}

/// The node of a claim that has none yet.
fn claim_node_name(claim: &ClaimName) -> NodeName {
    NodeName::new(format!("node of {claim}"))
}

/// The labels of a place; where a promised one leaves a choice, the replay makes it.
fn place_labels(place: &Place, known: &Requirements, replay: &Replay) -> Labels {
    let mut labels = single_values(known);
    if place.stage != Stage::Promised {
        return labels;
    }
    for (key, requirement) in known.iter().filter(|(_, requirement)| requirement.single_value().is_none()) {
        let wanted = match replay {
            Replay::InZone(zone) if &**key == labels::ZONE && requirement.admits(zone) => Some(zone),
            _ => requirement.values().find(|value| requirement.admits(value)),
        };
        labels.extend(wanted.map(|value| (key.clone(), value.clone())));
    }
    labels.entry(Text::from(labels::HOSTNAME)).or_insert_with(|| node_name(&place.id).text());
    labels
}

/// What is free, with room for stand-ins whose number is part of what is used already. A node that says nothing about
/// pods takes any number.
pub(super) fn with_seats(mut free: Resources, stand_ins: i64) -> Resources {
    let pods = ResourceName::pods();
    let seats = if free.names(&pods) { free.get(&pods).saturating_add(stand_ins) } else { i64::MAX };
    free.set(pods, seats);
    free
}
