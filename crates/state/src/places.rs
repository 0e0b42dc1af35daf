//! Machines as places for pods.

use std::sync::Arc;

use api::lower::{self, NodeFacts, is_ephemeral_taint};
use api::{NodeClaim, ResourceList, labels};
use model::{ClaimName, Place, PlaceId, Requirements, Resources, Stage, Taint, Text};

use crate::cluster::{Cluster, Tracked, pool_name, provider_id};
use crate::usage::Usage;

impl Cluster {
    /// All places that take pods: not those that are going.
    pub(crate) fn places(&self) -> Vec<Arc<Place>> {
        let place = |tracked: Tracked| match tracked {
            Tracked::Claimed(claim) => self.claimed(&claim),
            Tracked::Joined(claim, node) => self.joined(&claim, &node),
            Tracked::Foreign(node) => self.foreign(&node),
        };
        self.tracked().filter_map(place).map(Arc::new).collect()
    }

    fn usage_of(&self, node: &NodeFacts) -> Usage {
        self.usage.get(&node.name).cloned().unwrap_or_default()
    }

    fn foreign(&self, node: &NodeFacts) -> Option<Place> {
        if node.deletion.is_some() {
            return None;
        }
        let usage = self.usage_of(node);
        Some(Place {
            id: PlaceId::Node(node.name.clone()),
            pool: None,
            stage: Stage::Ready,
            requirements: label_requirements(node.labels.iter()),
            taints: node.taints.clone(),
            allocatable: node.allocatable.clone(),
            used: usage.used,
            used_by_daemons: usage.used_by_daemons,
        })
    }

    /// Before a node of ours is usable, its claim knows better what it will be: labels that are still to be copied,
    /// resources that a device plugin has yet to report, taints that will be gone.
    fn joined(&self, claim: &NodeClaim, node: &NodeFacts) -> Option<Place> {
        if is_going(claim) || node.deletion.is_some() {
            return None;
        }
        let usage = self.usage_of(node);
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
        }
        Some(Place {
            id: PlaceId::Node(node.name.clone()),
            pool: pool_name(claim),
            stage: if is_initialized { Stage::Ready } else { Stage::Joining },
            requirements: label_requirements(known.iter()),
            taints,
            allocatable,
            used: usage.used,
            used_by_daemons: usage.used_by_daemons,
        })
    }

    fn claimed(&self, claim: &NodeClaim) -> Option<Place> {
        if is_going(claim) {
            return None;
        }
        let id = PlaceId::Claim(ClaimName::new(claim.metadata.name.as_deref()?));
        let taints = lower::taints(claim.spec.taints.iter().flatten());
        let amounts = |list: Option<&ResourceList>| list.map(lower::resources).unwrap_or_default();
        let status = claim.status.as_ref();
        let (stage, requirements, allocatable, used_by_daemons) = if provider_id(claim).is_some() {
            let known = label_requirements(claim.metadata.labels.iter().flatten());
            let allocatable = amounts(status.and_then(|status| status.allocatable.as_ref()));
            (Stage::Joining, known, allocatable, Resources::none())
        } else {
            // The claim's own requests already hold room for daemons; counting daemons again would leave its own
            // pods without a place, and another node would be launched for them.
            let requests = claim.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
            let requirements = lower::requirements(&claim.spec.requirements);
            (Stage::Promised, requirements, amounts(requests), self.all_daemons())
        };
        let used = Resources::none();
        Some(Place { id, pool: pool_name(claim), stage, requirements, taints, allocatable, used, used_by_daemons })
    }

    fn all_daemons(&self) -> Resources {
        let mut sum = Resources::none();
        self.daemons.values().for_each(|daemon| sum.add(&daemon.class.requests));
        sum
    }
}

fn is_going(claim: &NodeClaim) -> bool {
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
