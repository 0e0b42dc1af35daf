//! Machines as places for pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::lower::{self, NodeFacts, is_ephemeral_taint};
use api::{NodeClaim, ResourceList, labels};
use model::{
    AttachLimits, Attachment, ClaimName, HostPort, InstanceType, NodeName, Place, PlaceId, PoolName, Requirements,
    Resources, Stage, Taint, Text,
};

use crate::cluster::{Cluster, Tracked, pool_name, provider_of};

/// Places as they were made last, and what they are made with. Whoever changes something about a machine forgets its
/// place here.
#[derive(Debug, Default)]
pub(crate) struct KnownPlaces {
    /// A claim that goes before its node has joined is known as no place.
    made: BTreeMap<PlaceId, Option<Arc<Place>>>,
    /// Attach limits of the types of each pool, where a type has any.
    limits: BTreeMap<PoolName, BTreeMap<Text, AttachLimits>>,
}

impl KnownPlaces {
    pub(crate) fn forget_node(&mut self, node: &NodeName) {
        self.made.remove(&PlaceId::Node(node.clone()));
    }

    pub(crate) fn forget_claim(&mut self, claim: &ClaimName) {
        self.made.remove(&PlaceId::Claim(claim.clone()));
    }

    /// Forgets all claims whose node has not joined.
    pub(crate) fn forget_claims(&mut self) {
        self.made.retain(|id, _| matches!(id, PlaceId::Node(_)));
    }

    /// What types of a pool can attach.
    pub(crate) fn set_limits(&mut self, pool: &PoolName, types: &[Arc<InstanceType>]) {
        let limited = types.iter().filter(|kind| !kind.attach_limits.is_empty());
        let limits: BTreeMap<Text, AttachLimits> =
            limited.map(|kind| (kind.name.text(), kind.attach_limits.clone())).collect();
        if self.limits.get(pool).unwrap_or(&BTreeMap::new()) == &limits {
            return;
        }
        self.made.clear();
        match limits.is_empty() {
            true => self.limits.remove(pool),
            false => self.limits.insert(pool.clone(), limits),
        };
    }

    fn of_type(&self, pool: Option<&PoolName>, kind: Option<&String>) -> Option<&AttachLimits> {
        self.limits.get(pool?)?.get(kind?.as_str())
    }

    /// What every type that a claim may become can attach.
    fn of_any(&self, pool: Option<&PoolName>, requirements: &Requirements) -> AttachLimits {
        let mut lowest = AttachLimits::new();
        let allowed = requirements.get(labels::INSTANCE_TYPE);
        for (kind, limits) in pool.and_then(|pool| self.limits.get(pool)).into_iter().flatten() {
            if allowed.is_some_and(|allowed| !allowed.admits(kind)) {
                continue;
            }
            for (driver, limit) in limits {
                let known = lowest.entry(Text::clone(driver)).or_insert(*limit);
                *known = (*known).min(*limit);
            }
        }
        lowest
    }
}

/// What the pods of a node take of it.
#[derive(Default)]
struct Taken {
    used: Resources,
    used_by_daemons: Resources,
    host_ports: Vec<HostPort>,
    attached: BTreeSet<Attachment>,
}

impl Cluster {
    /// All places that take pods, and nodes that are going: pods that stay there until the end still count.
    pub(crate) fn places(&mut self, machines: &[Tracked]) -> Vec<Arc<Place>> {
        let mut places = Vec::with_capacity(machines.len());
        for machine in machines {
            let Some(id) = id_of(machine) else { continue };
            let place = match self.known_places.made.get(&id) {
                Some(known) => known.clone(),
                None => {
                    let place = self.place(machine).map(Arc::new);
                    self.known_places.made.insert(id, place.clone());
                    place
                }
            };
            places.extend(place);
        }
        places
    }

    fn place(&self, machine: &Tracked) -> Option<Place> {
        match machine {
            Tracked::Claimed(claim) => self.claimed(claim),
            Tracked::Joined(claim, node) => self.joined(claim, node),
            Tracked::Foreign(node) => {
                Some(self.as_it_is(node, if node.deletion.is_some() { Stage::Going } else { Stage::Ready }))
            }
        }
    }

    fn taken_of(&self, node: &NodeName) -> Taken {
        let mut taken = Taken::default();
        let Some(usage) = self.usage.get(node) else { return taken };
        taken.used = usage.used.clone();
        taken.used_by_daemons = usage.used_by_daemons.clone();
        for pod in self.pods_on(node).filter(|pod| !pod.is_terminal) {
            taken.host_ports.extend(pod.class.host_ports.iter().cloned());
            taken.attached.extend(self.storage.attachments_of(pod));
        }
        taken
    }

    fn as_it_is(&self, node: &NodeFacts, stage: Stage) -> Place {
        let Taken { used, used_by_daemons, host_ports, attached } = self.taken_of(&node.name);
        Place {
            id: PlaceId::Node(node.name.clone()),
            pool: None,
            stage,
            requirements: self.vocabulary.all_meant(label_requirements(node.labels.iter())),
            taints: node.taints.clone(),
            allocatable: node.allocatable.clone(),
            used,
            used_by_daemons,
            host_ports,
            attached,
            attach_limits: self.storage.limits_of(&node.name, None),
        }
    }

    /// Before a node of ours is usable, its claim knows better what it will be: labels that are still to be copied,
    /// resources that a device plugin has yet to report, taints that will be gone.
    fn joined(&self, claim: &NodeClaim, node: &NodeFacts) -> Option<Place> {
        if is_going(claim) || node.deletion.is_some() {
            return Some(Place { pool: pool_name(claim), ..self.as_it_is(node, Stage::Going) });
        }
        let is_initialized = node.is_labelled(labels::INITIALIZED);
        let mut known = node.labels.clone();
        let mut taints = node.taints.clone();
        let mut allocatable = node.allocatable.clone();
        if !is_initialized {
            if !node.is_labelled(labels::REGISTERED) {
                known.extend(claim.metadata.labels.clone().unwrap_or_default());
                let own = lower::taints(claim.spec.taints.iter().flatten());
                taints.extend(own.into_iter().filter(|own| !node.taints.iter().any(|taint| taint.same_place_as(own))));
            }
            taints = lasting_taints(taints, claim);
            fill_zeros(&mut allocatable, claim.status.as_ref().and_then(|status| status.allocatable.as_ref()));
            // What only an overlay promised is still to be announced; until then the node is not called initialized.
            fill_zeros(&mut allocatable, requests_of(claim));
        }
        let Taken { used, used_by_daemons, host_ports, attached } = self.taken_of(&node.name);
        let pool = pool_name(claim);
        let of_type = self.known_places.of_type(pool.as_ref(), known.get(labels::INSTANCE_TYPE));
        Some(Place {
            id: PlaceId::Node(node.name.clone()),
            stage: if is_initialized { Stage::Ready } else { Stage::Joining },
            requirements: self.vocabulary.all_meant(label_requirements(known.iter())),
            taints,
            allocatable,
            used,
            used_by_daemons,
            host_ports,
            attached,
            attach_limits: self.storage.limits_of(&node.name, of_type),
            pool,
        })
    }

    fn claimed(&self, claim: &NodeClaim) -> Option<Place> {
        if is_going(claim) {
            return None;
        }
        let known = &claim.metadata.labels;
        let amounts = |list: Option<&ResourceList>| list.map(lower::resources).unwrap_or_default();
        let pool = pool_name(claim);
        let place = Place {
            id: PlaceId::Claim(ClaimName::new(claim.metadata.name.as_deref()?)),
            pool: pool.clone(),
            stage: Stage::Joining,
            requirements: self.vocabulary.all_meant(label_requirements(known.iter().flatten())),
            taints: lower::taints(claim.spec.taints.iter().flatten()),
            allocatable: amounts(claim.status.as_ref().and_then(|status| status.allocatable.as_ref())),
            used: Resources::none(),
            used_by_daemons: Resources::none(),
            host_ports: Vec::new(),
            attached: BTreeSet::new(),
            attach_limits: AttachLimits::new(),
        };
        if provider_of(claim).is_some() {
            let kind = known.as_ref().and_then(|known| known.get(labels::INSTANCE_TYPE));
            let attach_limits = self.known_places.of_type(pool.as_ref(), kind).cloned().unwrap_or_default();
            let mut allocatable = place.allocatable.clone();
            fill_zeros(&mut allocatable, requests_of(claim));
            return Some(Place { attach_limits, allocatable, ..place });
        }
        let requirements = self.vocabulary.all_meant(lower::requirements(&claim.spec.requirements));
        Some(Place {
            stage: Stage::Promised,
            allocatable: amounts(requests_of(claim)),
            // The claim's own requests already hold room for daemons; counting daemons again would leave its own
            // pods without a place, and another node would be launched for them.
            used_by_daemons: self.daemons.requests(),
            attach_limits: self.known_places.of_any(pool.as_ref(), &requirements),
            requirements,
            ..place
        })
    }
}

fn id_of(machine: &Tracked) -> Option<PlaceId> {
    match machine {
        Tracked::Claimed(claim) => claim.metadata.name.as_deref().map(|name| PlaceId::Claim(ClaimName::new(name))),
        Tracked::Joined(_, node) | Tracked::Foreign(node) => Some(PlaceId::Node(node.name.clone())),
    }
}

fn requests_of(claim: &NodeClaim) -> Option<&ResourceList> {
    claim.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref())
}

pub(crate) fn is_going(claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_some()
}

fn label_requirements<'a>(labels: impl Iterator<Item = (&'a String, &'a String)>) -> Requirements {
    let labels: Vec<(Text, Text)> =
        labels.map(|(key, value)| (Text::from(key.as_str()), Text::from(value.as_str()))).collect();
    Requirements::from_labels(labels.iter().map(|(key, value)| (key, value)))
}

/// What will remain of a young node's taints.
fn lasting_taints(taints: Vec<Taint>, claim: &NodeClaim) -> Vec<Taint> {
    let startup = lower::taints(claim.spec.startup_taints.iter().flatten());
    let passes = |taint: &Taint| is_ephemeral_taint(taint) || startup.iter().any(|own| own.same_place_as(taint));
    taints.into_iter().filter(|taint| !passes(taint)).collect()
}

fn fill_zeros(amounts: &mut Resources, promised: Option<&ResourceList>) {
    let promised = promised.map(lower::resources).unwrap_or_default();
    for (name, amount) in promised.iter() {
        if amounts.get(name) == 0 {
            amounts.set(name.clone(), amount);
        }
    }
}
