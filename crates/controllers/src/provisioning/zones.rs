//! In which zone waiting pods can be, so that a shortage in one zone can be told from one everywhere. Pure.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use model::{
    Labels, NamespaceScope, NodeName, Operator, PendingPod, PlaceId, PodTerm, PodVolumes, Requirement, Selector,
    Snapshot, SpreadConstraint, Text, WeightedPodTerm, labels,
};
use planner::PreferencePolicy;

/// Where a pod can be, as far as zones go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EffectiveZone {
    /// In this one only.
    Only(Text),
    /// In several, or wherever there is one.
    Flexible,
    /// In none: its demands contradict each other.
    Nowhere,
}

impl fmt::Display for EffectiveZone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Only(zone) => formatter.write_str(zone),
            Self::Flexible => formatter.write_str("flexible"),
            Self::Nowhere => formatter.write_str("none"),
        }
    }
}

/// How many of the pods can be in which zone. Pods that say the same are looked at once.
pub(super) fn by_zone<'a>(
    snapshot: &'a Snapshot,
    preferences: PreferencePolicy,
    pods: impl IntoIterator<Item = &'a PendingPod>,
) -> BTreeMap<EffectiveZone, usize> {
    let cluster = Zones::of(snapshot, preferences);
    // Only a memory of what was reckoned: addresses decide nothing.
    let mut known = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for pod in pods {
        let says = (Arc::as_ptr(&pod.class), Arc::as_ptr(&pod.labels), Arc::as_ptr(&pod.volumes), &pod.key.namespace);
        let zone: &EffectiveZone = known.entry(says).or_insert_with(|| cluster.zone_of(pod));
        *counts.entry(zone.clone()).or_insert(0) += 1;
    }
    counts
}

/// The zones of a cluster, reckoned when the first rule between pods asks for them: most pods have none.
struct Zones<'a> {
    snapshot: &'a Snapshot,
    preferences: PreferencePolicy,
    known: OnceCell<KnownZones<'a>>,
}

/// Where zones are found.
struct KnownZones<'a> {
    /// Zones of nodes, and zones in which a pool may buy.
    all: BTreeSet<&'a Text>,
    of_node: BTreeMap<&'a NodeName, &'a Text>,
}

impl<'a> KnownZones<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let mut of_node = BTreeMap::new();
        for place in &snapshot.places {
            let zone = place.requirements.get(labels::ZONE).and_then(Requirement::single_value);
            if let (PlaceId::Node(node), Some(zone)) = (&place.id, zone) {
                of_node.insert(node, zone);
            }
        }
        let mut all: BTreeSet<&Text> = of_node.values().copied().collect();
        for pool in &snapshot.pools {
            let allowed = pool.requirements.get(labels::ZONE);
            let sold = pool.types.iter().filter_map(|kind| kind.requirements.get(labels::ZONE));
            let sold = sold.filter(|zones| zones.operator() == Operator::In).flat_map(Requirement::values);
            all.extend(sold.filter(|zone| allowed.is_none_or(|allowed| allowed.admits(zone))));
        }
        Self { all, of_node }
    }
}

impl<'a> Zones<'a> {
    fn of(snapshot: &'a Snapshot, preferences: PreferencePolicy) -> Self {
        Self { snapshot, preferences, known: OnceCell::new() }
    }

    fn known(&self) -> &KnownZones<'a> {
        self.known.get_or_init(|| KnownZones::of(self.snapshot))
    }

    fn zone_of(&self, pod: &PendingPod) -> EffectiveZone {
        let own = pod.class.alternatives.first().and_then(|strict| strict.get(labels::ZONE));
        let of_volumes = zones_of_volumes(&pod.volumes);
        let Some(of_rules) = self.zones_by_rules(pod, own) else { return EffectiveZone::Nowhere };
        let listed = own.filter(|own| own.operator() == Operator::In).map(|own| own.values().collect());
        let Some(zones) = listed.or_else(|| of_volumes.clone()).or_else(|| of_rules.clone()) else {
            return EffectiveZone::Flexible;
        };
        let fits = |zone: &&&Text| {
            own.is_none_or(|own| own.admits(zone))
                && of_volumes.as_ref().is_none_or(|zones| zones.contains(*zone))
                && of_rules.as_ref().is_none_or(|zones| zones.contains(*zone))
        };
        let zones: BTreeSet<&Text> = zones;
        match zones.iter().filter(fits).collect::<Vec<_>>()[..] {
            [] => EffectiveZone::Nowhere,
            [zone] => EffectiveZone::Only(Text::clone(zone)),
            _ => EffectiveZone::Flexible,
        }
    }

    /// The zones that each rule between pods leaves; `None` inside if no rule is about zones, outside if a rule leaves
    /// none at all.
    fn zones_by_rules(&self, pod: &PendingPod, own: Option<&Requirement>) -> Option<Option<BTreeSet<&'a Text>>> {
        let class = &pod.class;
        let wishes = self.preferences == PreferencePolicy::Respect;
        let is_zonal = |key: &Text| &**key == labels::ZONE;
        let spread = class.spread.iter().chain(class.soft_spread.iter().filter(|_| wishes));
        let spread: Vec<_> = spread.filter(|rule| is_zonal(&rule.topology_key)).collect();
        let terms = |hard: &'_ [PodTerm], soft: &'_ [WeightedPodTerm]| -> Vec<PodTerm> {
            let all = hard.iter().chain(soft.iter().filter(|_| wishes).map(|wish| &wish.term));
            all.filter(|term| is_zonal(&term.topology_key)).cloned().collect()
        };
        let near = terms(&class.affinity, &class.soft_affinity);
        let away = terms(&class.anti_affinity, &class.soft_anti_affinity);
        if spread.is_empty() && near.is_empty() && away.is_empty() {
            return Some(None);
        }
        let all = self.known().all.iter().copied();
        let mut left: BTreeSet<&Text> = all.filter(|zone| own.is_none_or(|own| own.admits(zone))).collect();
        let open = left.clone();
        let spread = spread.into_iter().map(|rule| self.even(pod, rule, &open));
        let near = near.iter().map(|term| self.together(pod, term, &open));
        let away = away.iter().map(|term| self.apart(term, &open));
        for zones in spread.chain(near).chain(away) {
            if zones.is_empty() {
                return None;
            }
            left.retain(|zone| zones.contains(zone));
        }
        Some(Some(left))
    }

    fn even(&self, pod: &PendingPod, rule: &SpreadConstraint, open: &BTreeSet<&'a Text>) -> BTreeSet<&'a Text> {
        let counts = self.counts(&rule.selector, &NamespaceScope::only(Text::clone(&pod.key.namespace)));
        let count = |zone: &Text| counts.get(zone).copied().unwrap_or(0);
        let enough = open.len() >= usize::try_from(rule.min_domains).unwrap_or(usize::MAX);
        let lowest = open.iter().map(|zone| count(zone)).min().filter(|_| enough).unwrap_or(0);
        let own = u32::from(rule.selector.matches(&pod.labels));
        open.iter().copied().filter(|zone| count(zone) + own <= lowest.saturating_add(rule.max_skew)).collect()
    }

    fn together(&self, pod: &PendingPod, term: &PodTerm, open: &BTreeSet<&'a Text>) -> BTreeSet<&'a Text> {
        let counts = self.counts(&term.selector, &term.namespaces);
        let occupied: BTreeSet<&Text> = open.iter().copied().filter(|zone| counts.contains_key(*zone)).collect();
        // The first of a group that wants to be together may begin anywhere.
        let begins = self.is_in(&term.namespaces, &pod.key.namespace) && term.selector.matches(&pod.labels);
        if occupied.is_empty() && begins { open.clone() } else { occupied }
    }

    fn apart(&self, term: &PodTerm, open: &BTreeSet<&'a Text>) -> BTreeSet<&'a Text> {
        let counts = self.counts(&term.selector, &term.namespaces);
        open.iter().copied().filter(|zone| !counts.contains_key(*zone)).collect()
    }

    fn is_in(&self, scope: &NamespaceScope, namespace: &Text) -> bool {
        scope.contains(namespace, self.snapshot.namespaces.get(namespace))
    }

    /// How many selected pods run in each zone that has any.
    fn counts(&self, selector: &Selector, scope: &NamespaceScope) -> BTreeMap<&'a Text, u32> {
        let selected = |namespace: &Text, labels: &Labels| self.is_in(scope, namespace) && selector.matches(labels);
        let mut counts = BTreeMap::new();
        for (_, nodes) in self.snapshot.bound.iter().filter(|(kind, _)| selected(&kind.namespace, &kind.labels)) {
            for (node, count) in nodes {
                if let Some(zone) = self.known().of_node.get(node) {
                    *counts.entry(*zone).or_insert(0) += count;
                }
            }
        }
        counts
    }
}

/// The zones from which a pod's volumes can be reached, unless there is a way that names none.
fn zones_of_volumes(volumes: &PodVolumes) -> Option<BTreeSet<&Text>> {
    let mut zones = BTreeSet::new();
    for way in &volumes.alternatives {
        let named = way.get(labels::ZONE).filter(|zones| zones.operator() == Operator::In)?;
        zones.extend(named.values());
    }
    (!volumes.alternatives.is_empty()).then_some(zones)
}

#[cfg(test)]
#[path = "zones_tests.rs"]
mod tests;
