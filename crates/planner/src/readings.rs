//! The readings of a pod: its wishes are taken for rules as long as that works, and given up one by one.

use std::cmp::Reverse;

use model::{Effect, PodClass, PodTerm, Requirements, SpreadConstraint, Toleration, WeightedPodTerm};

use crate::classes::Class;
use crate::config::PreferencePolicy;

/// One reading of a class.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// Labels that the node must have, volumes included.
    pub(crate) requirements: Requirements,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) spread: Vec<SpreadConstraint>,
    pub(crate) near: Vec<PodTerm>,
    pub(crate) away: Vec<PodTerm>,
}

/// What is left of a pod's wishes.
struct Wishes<'a> {
    alternatives: &'a [Requirements],
    near: Vec<&'a WeightedPodTerm>,
    away: Vec<&'a WeightedPodTerm>,
    nodes: Vec<&'a Requirements>,
    spread: Vec<&'a SpreadConstraint>,
    /// Whether `PreferNoSchedule` taints still keep the pod away, while there are such taints.
    minds_soft_taints: bool,
}

/// Heaviest first; of equal ones the first in the pod.
fn heaviest_first(wishes: &[WeightedPodTerm]) -> Vec<&WeightedPodTerm> {
    let mut sorted: Vec<&WeightedPodTerm> = wishes.iter().collect();
    sorted.sort_by_key(|wish| Reverse(wish.weight));
    sorted
}

impl<'a> Wishes<'a> {
    fn of(spec: &'a PodClass, policy: PreferencePolicy, soft_taints: bool) -> Self {
        let alternatives = spec.alternatives.as_slice();
        match policy {
            PreferencePolicy::Ignore => Self {
                alternatives,
                near: Vec::new(),
                away: Vec::new(),
                nodes: Vec::new(),
                spread: Vec::new(),
                minds_soft_taints: soft_taints,
            },
            PreferencePolicy::Respect => {
                let mut nodes: Vec<_> = spec.preferences.iter().collect();
                nodes.sort_by_key(|wish| Reverse(wish.weight));
                Self {
                    alternatives,
                    near: heaviest_first(&spec.soft_affinity),
                    away: heaviest_first(&spec.soft_anti_affinity),
                    nodes: nodes.into_iter().map(|wish| &wish.requirements).collect(),
                    spread: spec.soft_spread.iter().collect(),
                    minds_soft_taints: soft_taints,
                }
            }
        }
    }

    /// Gives up the next wish, in the order in which the reference does; false when nothing is left to give up.
    fn relax(&mut self) -> bool {
        if self.alternatives.len() > 1 {
            self.alternatives = &self.alternatives[1..];
        } else if !self.near.is_empty() {
            self.near.remove(0);
        } else if !self.away.is_empty() {
            self.away.remove(0);
        } else if !self.nodes.is_empty() {
            self.nodes.remove(0);
        } else if !self.spread.is_empty() {
            self.spread.swap_remove(0);
        } else if self.minds_soft_taints {
            self.minds_soft_taints = false;
        } else {
            return false;
        }
        true
    }

    fn read(&self, spec: &PodClass, volume: &Requirements) -> Option<Reading> {
        let mut requirements = self.alternatives.first()?.and(volume);
        if let Some(wish) = self.nodes.first() {
            requirements.add_all(wish);
        }
        if requirements.contradiction().is_some() {
            return None;
        }
        let mut tolerations = spec.tolerations.clone();
        if !self.minds_soft_taints {
            tolerations.push(Toleration::of_effect(Effect::PreferNoSchedule));
        }
        let terms = |hard: &[PodTerm], soft: &[&WeightedPodTerm]| {
            hard.iter().chain(soft.iter().map(|wish| &wish.term)).cloned().collect::<Vec<PodTerm>>()
        };
        Some(Reading {
            requirements,
            tolerations,
            spread: spec.spread.iter().chain(self.spread.iter().copied()).cloned().collect(),
            near: terms(&spec.affinity, &self.near),
            away: terms(&spec.anti_affinity, &self.away),
        })
    }
}

/// The readings of a class, strictest first.
///
/// `soft_taints` tells whether any pool has a taint that only asks to stay away. What contradicts itself is no reading.
/// In the end every alternative has its turn without wishes, so that no pod waits for a wish.
pub(crate) fn readings(class: &Class<'_>, policy: PreferencePolicy, soft_taints: bool) -> Vec<Reading> {
    let spec = class.spec.as_ref();
    let mut wishes = Wishes::of(spec, policy, soft_taints);
    let mut readings = Vec::new();
    loop {
        readings.extend(class.volumes.iter().filter_map(|volume| wishes.read(spec, volume)));
        if !wishes.relax() {
            break;
        }
    }
    for alternative in spec.alternatives.iter().take(spec.alternatives.len().saturating_sub(1)) {
        wishes.alternatives = std::slice::from_ref(alternative);
        readings.extend(class.volumes.iter().filter_map(|volume| wishes.read(spec, volume)));
    }
    readings
}
