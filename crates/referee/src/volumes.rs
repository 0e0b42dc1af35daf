//! The filters that look at persistent volumes.

use std::collections::{BTreeMap, BTreeSet};

use model::{Text, labels};

use crate::{NodeFacts, NodeTerm, Objection, PodFacts, Situation, VolumeFacts, VolumePlace, ZoneLabel};

/// A volume for one pod only that another pod, on whatever node, uses.
pub(crate) fn volume_in_use(situation: &Situation, pod: &PodFacts) -> Option<Text> {
    let exclusive = |volume: &&VolumeFacts| volume.one_pod_only;
    if !pod.volumes.iter().any(|volume| exclusive(&volume)) {
        return None;
    }
    let others = situation.placed().filter(|(_, other)| other.key != pod.key);
    let used: BTreeSet<&Text> = others.flat_map(|(_, other)| &other.volumes).map(|volume| &volume.handle).collect();
    pod.volumes
        .iter()
        .filter(exclusive)
        .find(|volume| used.contains(&volume.handle))
        .map(|volume| volume.handle.clone())
}

pub(crate) fn volume_limits(situation: &Situation, pod: &PodFacts, node: &NodeFacts) -> Option<Objection> {
    if pod.volumes.is_empty() || node.attach_limits.is_empty() {
        return None;
    }
    let others = situation.pods_on(&node.name).filter(|other| other.key != pod.key);
    let attached: BTreeSet<(&Text, &Text)> = others.flat_map(|other| handles(other)).collect();
    let fresh: BTreeSet<(&Text, &Text)> = handles(pod).filter(|volume| !attached.contains(volume)).collect();
    let mut fresh_by_driver: BTreeMap<&Text, usize> = BTreeMap::new();
    fresh.iter().for_each(|(driver, _)| *fresh_by_driver.entry(driver).or_default() += 1);
    fresh_by_driver.into_iter().find_map(|(driver, fresh)| {
        let limit = *node.attach_limits.get(driver)?;
        let there = attached.iter().filter(|(other, _)| *other == driver).count();
        let exceeded = there + fresh > usize::try_from(limit).unwrap_or(usize::MAX);
        exceeded.then(|| Objection::TooManyVolumes { driver: driver.clone(), limit })
    })
}

fn handles(pod: &PodFacts) -> impl Iterator<Item = (&Text, &Text)> {
    pod.volumes.iter().map(|volume| (&volume.driver, &volume.handle))
}

pub(crate) fn volume_binding(pod: &PodFacts, node: &NodeFacts) -> Vec<Objection> {
    let meets = |terms: &Vec<NodeTerm>| terms.iter().any(|term| term.matches(&node.name, &node.labels));
    let elsewhere = pod.volumes.iter().find(|volume| match &volume.place {
        VolumePlace::Bound(terms) => !terms.as_ref().is_none_or(meets),
        VolumePlace::WaitsForPod(_) => false,
    });
    let not_made_here = pod.volumes.iter().find(|volume| match &volume.place {
        VolumePlace::Bound(_) => false,
        VolumePlace::WaitsForPod(terms) => !terms.as_ref().is_none_or(meets),
    });
    let elsewhere = elsewhere.map(|volume| Objection::VolumeElsewhere { handle: volume.handle.clone() });
    let not_made_here = not_made_here.map(|volume| Objection::VolumeNotMadeHere { handle: volume.handle.clone() });
    elsewhere.into_iter().chain(not_made_here).collect()
}

/// Zone and region labels, in the spellings of today and of before.
const TOPOLOGY_LABELS: [&str; 4] = [
    labels::ZONE,
    labels::REGION,
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

pub(crate) fn volume_zone(pod: &PodFacts, node: &NodeFacts) -> Option<Objection> {
    // A node without any such label is in a cluster without zones: nothing to compare.
    if !TOPOLOGY_LABELS.iter().any(|key| node.labels.contains_key(*key)) {
        return None;
    }
    let agrees = |label: &ZoneLabel| {
        let here = node.labels.get(&label.key).or_else(|| node.labels.get(labels::current_spelling(&label.key)));
        here.is_some_and(|value| label.values.contains(value))
    };
    let conflict = pod.volumes.iter().find(|volume| !volume.zone_labels.iter().all(agrees));
    conflict.map(|volume| Objection::VolumeZone { handle: volume.handle.clone() })
}
