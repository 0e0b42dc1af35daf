//! How many replicas each ReplicaSet of a Deployment should have next.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::deployment::{Sets, is_recreated, knows_desired, max_replicas_noted};
use crate::pods::{Rounding, scaled};

/// A ReplicaSet and the replicas it should have.
pub(crate) struct Change {
    pub(crate) set: Arc<ReplicaSet>,
    pub(crate) replicas: i32,
}

/// How far a rolling update may stray from the wanted number.
pub(crate) struct Limits {
    pub(crate) surge: i32,
    pub(crate) unavailable: i32,
}

/// The surge and unavailability that a Deployment allows, as counts.
pub(crate) fn limits(spec: &DeploymentSpec) -> Limits {
    let replicas = spec.replicas.unwrap_or(1);
    if is_recreated(spec) {
        return Limits { surge: 0, unavailable: 0 };
    }
    let rolling = spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    let quarter = IntOrString::String("25%".to_owned());
    let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref()).unwrap_or(&quarter);
    let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref()).unwrap_or(&quarter);
    let surge = scaled(surge, replicas, Rounding::Up);
    let unavailable = scaled(unavailable, replicas, Rounding::Down);
    // Neither more nor fewer would mean no step at all.
    let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
    Limits { surge, unavailable: unavailable.min(replicas) }
}

pub(crate) fn replicas(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// The next step of a Deployment whose newest ReplicaSet exists.
pub(crate) fn next(sets: &Sets<'_>, paused: bool) -> Vec<Change> {
    let wanted = sets.spec.replicas.unwrap_or(1);
    let rescaled = sets.all().any(|set| replicas(set) > 0 && !knows_desired(set, wanted));
    if paused || rescaled {
        return rescale(sets);
    }
    let Some(new) = &sets.new else { return Vec::new() };
    if is_recreated(sets.spec) {
        let stopping = stop_old(sets);
        return if stopping.is_empty() { vec![Change { set: new.clone(), replicas: wanted }] } else { stopping };
    }
    let up = new_replicas(sets, new);
    if up != replicas(new) {
        return vec![Change { set: new.clone(), replicas: up }];
    }
    let down = roll_down(sets, new);
    if down.is_empty() { vec![Change { set: new.clone(), replicas: up }] } else { down }
}

/// Every old ReplicaSet to none.
pub(crate) fn stop_old(sets: &Sets<'_>) -> Vec<Change> {
    let running = sets.old.iter().filter(|set| replicas(set) > 0);
    running.map(|set| Change { set: set.clone(), replicas: 0 }).collect()
}

/// The replicas of a ReplicaSet that is about to be made.
pub(crate) fn first_replicas(sets: &Sets<'_>) -> i32 {
    let wanted = sets.spec.replicas.unwrap_or(1);
    if is_recreated(sets.spec) {
        return wanted;
    }
    let room = wanted + limits(sets.spec).surge - sets.old.iter().map(|set| replicas(set)).sum::<i32>();
    room.clamp(0, wanted)
}

fn new_replicas(sets: &Sets<'_>, new: &ReplicaSet) -> i32 {
    let wanted = sets.spec.replicas.unwrap_or(1);
    if replicas(new) >= wanted {
        return wanted;
    }
    let total: i32 = sets.all().map(|set| replicas(set)).sum();
    let room = (wanted + limits(sets.spec).surge - total).max(0);
    replicas(new) + room.min(wanted - replicas(new))
}

/// Old ReplicaSets give way as far as availability allows, those that are not healthy first.
fn roll_down(sets: &Sets<'_>, new: &ReplicaSet) -> Vec<Change> {
    let wanted = sets.spec.replicas.unwrap_or(1);
    let old_total: i32 = sets.old.iter().map(|set| replicas(set)).sum();
    if old_total == 0 {
        return Vec::new();
    }
    let min_available = wanted - limits(sets.spec).unavailable;
    let new_unavailable = replicas(new) - available(new);
    let mut spare = (old_total + replicas(new) - min_available - new_unavailable).max(0);
    let mut left: Vec<(Arc<ReplicaSet>, i32)> = sets.old.iter().map(|set| (set.clone(), replicas(set))).collect();
    for (set, remaining) in &mut left {
        let sick = (*remaining - available(set)).clamp(0, spare);
        *remaining -= sick;
        spare -= sick;
    }
    let all_available: i32 = sets.all().map(|set| available(set)).sum();
    let mut spare_healthy = (all_available - min_available).max(0);
    for (_, remaining) in &mut left {
        let going = (*remaining).min(spare_healthy);
        *remaining -= going;
        spare_healthy -= going;
    }
    let changed = left.into_iter().filter(|(set, remaining)| replicas(set) != *remaining);
    changed.map(|(set, replicas)| Change { set, replicas }).collect()
}

/// The wanted number changed (or the Deployment is paused): share the difference among the sets in use.
fn rescale(sets: &Sets<'_>) -> Vec<Change> {
    let wanted = sets.spec.replicas.unwrap_or(1);
    let active: Vec<&Arc<ReplicaSet>> = sets.all().filter(|set| replicas(set) > 0).collect();
    if let [only] | [only, ..] = active.as_slice()
        && active.len() == 1
    {
        return vec![Change { set: (*only).clone(), replicas: wanted }];
    }
    let Some(new) = &sets.new else { return Vec::new() };
    if active.is_empty() {
        return vec![Change { set: new.clone(), replicas: wanted }];
    }
    let saturated = replicas(new) == wanted && available(new) == wanted;
    if saturated {
        return stop_old(sets);
    }
    if is_recreated(sets.spec) {
        return Vec::new();
    }
    share(sets, &active)
}

/// Each set gets its part of the change in proportion to its size; the largest takes what rounding leaves.
fn share(sets: &Sets<'_>, active: &[&Arc<ReplicaSet>]) -> Vec<Change> {
    let wanted = sets.spec.replicas.unwrap_or(1);
    let total: i32 = active.iter().map(|set| replicas(set)).sum();
    let allowed = if wanted > 0 { wanted + limits(sets.spec).surge } else { 0 };
    let difference = allowed - total;
    let mut sizes: Vec<(Arc<ReplicaSet>, i32)> = active.iter().map(|set| ((*set).clone(), replicas(set))).collect();
    sizes.sort_by(|(one, size), (other, other_size)| {
        other_size.cmp(size).then_with(|| other.metadata.creation_timestamp.cmp(&one.metadata.creation_timestamp))
    });
    let mut left = difference;
    for (set, size) in &mut sizes {
        let noted = max_replicas_noted(set).unwrap_or(total).max(1);
        let share = f64::from(*size) * f64::from(allowed) / f64::from(noted);
        // Rounded to the nearest whole, and never beyond what is left to share.
        let part = (share.round() as i32 - *size).clamp(left.min(0), left.max(0));
        *size = (*size + part).max(0);
        left -= part;
    }
    if let Some((_, largest)) = sizes.first_mut() {
        *largest = (*largest + left).max(0);
    }
    sizes.into_iter().map(|(set, replicas)| Change { set, replicas }).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;

    /// A set of a text `replicas/available`, last scaled for `noted` replicas.
    fn set(name: &str, text: &str, noted: i32) -> Arc<ReplicaSet> {
        let (replicas, available) = text.split_once('/').unwrap();
        let (replicas, available): (i32, i32) = (replicas.parse().unwrap(), available.parse().unwrap());
        let object = json!({
            "metadata": {"name": name, "annotations": {
                "deployment.kubernetes.io/desired-replicas": noted.to_string(),
                "deployment.kubernetes.io/max-replicas": (noted + (noted + 3) / 4).to_string(),
            }},
            "spec": {"replicas": replicas, "selector": {}},
            "status": {"replicas": replicas, "availableReplicas": available},
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn step(wanted: i32, noted: i32, strategy: serde_json::Value, old: &str, new: &str) -> String {
        let object = json!({
            "metadata": {"name": "web"},
            "spec": {"replicas": wanted, "selector": {}, "strategy": strategy, "template": {}},
        });
        let deployment: Deployment = serde_json::from_value(object).unwrap();
        let spec = deployment.spec.as_ref().unwrap();
        let sets = Sets {
            deployment: &deployment,
            spec,
            new: Some(set("new", new, noted)),
            old: vec![set("old", old, noted)],
        };
        let changes = next(&sets, false);
        let changed = changes.iter().filter(|change| replicas(&change.set) != change.replicas);
        let text = |change: &Change| format!("{}={}", change.set.metadata.name.as_deref().unwrap(), change.replicas);
        changed.map(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_rolling_update_walks_between_its_limits() {
        let quarter = || json!({"type": "RollingUpdate"});
        let careful = || json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        let hungry = || json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
        let table = [
            (quarter(), "10/10", "0/0", "new=3"),
            (quarter(), "10/10", "3/0", "old=8"),
            (quarter(), "8/8", "3/0", "new=5"),
            (quarter(), "8/8", "5/0", ""),
            (quarter(), "8/8", "5/3", "old=5"),
            (quarter(), "0/0", "10/10", ""),
            (careful(), "10/10", "0/0", "new=1"),
            (careful(), "10/10", "1/0", ""),
            (careful(), "10/10", "1/1", "old=9"),
            (hungry(), "10/10", "0/0", "old=9"),
            (hungry(), "9/9", "0/0", "new=1"),
            (hungry(), "10/7", "0/0", "old=9"),
        ];
        for (strategy, old, new, expected) in table {
            assert_eq!(step(10, 10, strategy.clone(), old, new), expected, "{strategy} old {old} new {new}");
        }
    }

    #[test]
    fn a_new_number_is_shared_among_the_sets_in_use() {
        let quarter = || json!({"type": "RollingUpdate"});
        let table = [
            (20, 10, "0/0", "10/10", "new=20"),
            (5, 10, "0/0", "10/10", "new=5"),
            (20, 10, "8/8", "5/3", "old=15 new=10"),
        ];
        for (wanted, noted, old, new, expected) in table {
            assert_eq!(step(wanted, noted, quarter(), old, new), expected, "to {wanted}: old {old} new {new}");
        }
    }
}
