//! Deployments: ReplicaSets by revision, and the way from one to the next.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};

use super::rollout::{self, Change};
use super::template::template_hash;
use crate::caches::Caches;
use crate::key::Key;
use crate::pods::{after_seconds, annotation, is_active, is_finished, name, time, uid};
use crate::write::{
    DEPLOYMENTS, Decision, REPLICA_SETS, Telling, Weight, Write, controller_reference, delete, patch, reference,
    replace_status,
};

pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
const HASH_LABEL: &str = "pod-template-hash";
/// Annotations of a Deployment that its ReplicaSets do not get.
const OWN_ANNOTATIONS: [&str; 4] =
    ["kubectl.kubernetes.io/last-applied-configuration", REVISION, DESIRED_REPLICAS, MAX_REPLICAS];

/// A Deployment with its ReplicaSets told apart.
pub(crate) struct Sets<'a> {
    pub(crate) deployment: &'a Deployment,
    pub(crate) spec: &'a DeploymentSpec,
    /// The set that has the current template.
    pub(crate) new: Option<Arc<ReplicaSet>>,
    /// All others, oldest first.
    pub(crate) old: Vec<Arc<ReplicaSet>>,
}

impl Sets<'_> {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new)
    }
}

/// Takes the next step of a Deployment, and brings its status up to date.
pub(crate) fn reconcile(caches: &Caches, key: &Key, now: Timestamp) -> Decision {
    let Some(deployment) = caches.deployments.get(key) else { return Decision::default() };
    let Some(spec) = &deployment.spec else { return Decision::default() };
    let sets = sort_sets(caches, deployment, spec);
    let mut decision = Decision::default();
    if deployment.metadata.deletion_timestamp.is_none() {
        let paused = spec.paused == Some(true);
        decision.writes.extend(adoptions(caches, &sets));
        let waits = is_recreated(spec) && !paused && !old_pods_gone(caches, &sets);
        match &sets.new {
            _ if waits => decision.writes.extend(scalings(&sets, &rollout::stop_old(&sets))),
            Some(new) => {
                decision.writes.extend(revision_writes(&sets, new));
                decision.writes.extend(scalings(&sets, &rollout::next(&sets, paused)));
            }
            None if paused => {}
            None => decision.writes.extend(creation(caches, &sets)),
        }
        if decision.writes.is_empty() && is_complete(deployment) {
            decision.writes.extend(history_cleanup(&sets));
        }
    }
    let (status, look_again) = status(&sets, now);
    decision.look_again_at(look_again);
    if deployment.status.as_ref() != Some(&status) {
        decision.writes.extend(replace_status(DEPLOYMENTS, &deployment.metadata, &**deployment, &status));
    }
    decision
}

pub(crate) fn is_recreated(spec: &DeploymentSpec) -> bool {
    spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}

fn sort_sets<'a>(caches: &Caches, deployment: &'a Deployment, spec: &'a DeploymentSpec) -> Sets<'a> {
    let mut all = caches.replica_sets_of(uid(&deployment.metadata));
    all.sort_by(|one, other| {
        let order = |set: &ReplicaSet| (set.metadata.creation_timestamp.clone().map(|time| time.0), revision_of(set));
        order(one).cmp(&order(other)).then_with(|| one.metadata.name.cmp(&other.metadata.name))
    });
    let wanted = without_hash(&spec.template);
    let is_new = |set: &Arc<ReplicaSet>| {
        let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
        template.is_some_and(|template| without_hash(template) == wanted)
    };
    let position = all.iter().position(is_new);
    let new = position.map(|position| all.remove(position));
    Sets { deployment, spec, new, old: all }
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    if let Some(labels) = template.metadata.as_mut().and_then(|metadata| metadata.labels.as_mut()) {
        labels.remove(HASH_LABEL);
    }
    template
}

fn revision_of(set: &ReplicaSet) -> i64 {
    annotation(&set.metadata, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// ReplicaSets that match the selector and belong to nobody become the Deployment's own.
fn adoptions(caches: &Caches, sets: &Sets<'_>) -> Vec<Write> {
    let namespace = sets.deployment.metadata.namespace.as_deref().unwrap_or("");
    let from = caches.replica_sets.range(Key::new(namespace, "")..);
    let local = from.take_while(|(key, _)| &*key.namespace == namespace).map(|(_, set)| set);
    let orphans = local.filter(|set| {
        crate::pods::controller(&set.metadata).is_none()
            && set.metadata.deletion_timestamp.is_none()
            && crate::selector::matches(&sets.spec.selector, set.metadata.labels.as_ref())
    });
    let owner = controller_reference(DEPLOYMENTS, &sets.deployment.metadata);
    orphans.map(|set| patch(REPLICA_SETS, &set.metadata, json!({"metadata": {"ownerReferences": [owner]}}))).collect()
}

/// The new set carries the newest revision, and the Deployment the same.
fn revision_writes(sets: &Sets<'_>, new: &ReplicaSet) -> Vec<Write> {
    let newest = sets.old.iter().map(|set| revision_of(set)).max().unwrap_or(0) + 1;
    let revision = revision_of(new).max(newest).to_string();
    let mut writes = Vec::new();
    let mut annotations = serde_json::Map::new();
    if annotation(&new.metadata, REVISION) != Some(&revision) {
        annotations.insert(REVISION.to_owned(), json!(revision));
    }
    for (key, value) in sets.deployment.metadata.annotations.iter().flatten() {
        if !OWN_ANNOTATIONS.contains(&key.as_str()) && annotation(&new.metadata, key) != Some(value) {
            annotations.insert(key.clone(), json!(value));
        }
    }
    if !annotations.is_empty() {
        writes.push(patch(REPLICA_SETS, &new.metadata, json!({"metadata": {"annotations": annotations}})));
    }
    if annotation(&sets.deployment.metadata, REVISION) != Some(&revision) {
        let annotations = json!({"metadata": {"annotations": {REVISION: revision}}});
        writes.push(patch(DEPLOYMENTS, &sets.deployment.metadata, annotations));
    }
    writes
}

fn scalings(sets: &Sets<'_>, changes: &[Change]) -> Vec<Write> {
    changes.iter().flat_map(|change| scale_writes(sets, change)).collect()
}

fn scale_writes(sets: &Sets<'_>, change: &Change) -> Vec<Write> {
    let Change { set, replicas } = change;
    let before = rollout::replicas(set);
    let annotations = scale_annotations(sets.spec);
    let current = set.metadata.annotations.clone().unwrap_or_default();
    let annotated = annotations.iter().all(|(key, value)| current.get(*key) == Some(value));
    if before == *replicas && annotated {
        return Vec::new();
    }
    let annotations: Value = annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let body = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}});
    let mut writes = vec![patch(REPLICA_SETS, &set.metadata, body)];
    if before != *replicas {
        let direction = if before < *replicas { "up" } else { "down" };
        let set = name(&set.metadata);
        let message = format!("Scaled {direction} replica set {set} from {before} to {replicas}");
        writes.push(tell(sets, message));
    }
    writes
}

fn tell(sets: &Sets<'_>, message: String) -> Write {
    let about = reference(DEPLOYMENTS, &sets.deployment.metadata);
    Write::Tell(Telling { about, weight: Weight::Normal, reason: "ScalingReplicaSet", message })
}

fn scale_annotations(spec: &DeploymentSpec) -> [(&'static str, String); 2] {
    let replicas = spec.replicas.unwrap_or(1);
    let limits = rollout::limits(spec);
    [(DESIRED_REPLICAS, replicas.to_string()), (MAX_REPLICAS, (replicas + limits.surge).to_string())]
}

/// Whether the set was last scaled for the number of replicas that is wanted now.
pub(crate) fn knows_desired(set: &ReplicaSet, replicas: i32) -> bool {
    annotation(&set.metadata, DESIRED_REPLICAS).is_none_or(|text| text == replicas.to_string())
}

/// The most replicas, surge included, at the time the set was last scaled.
pub(crate) fn max_replicas_noted(set: &ReplicaSet) -> Option<i32> {
    annotation(&set.metadata, MAX_REPLICAS)?.parse().ok()
}

/// Makes the ReplicaSet of the current template, or counts a collision if its name is taken by another template.
fn creation(caches: &Caches, sets: &Sets<'_>) -> Vec<Write> {
    let Sets { deployment, spec, .. } = sets;
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
    let hash = template_hash(&spec.template, collisions);
    let set_name = format!("{}-{hash}", name(&deployment.metadata));
    let namespace = deployment.metadata.namespace.as_deref().unwrap_or("");
    if caches.replica_sets.contains_key(&Key::new(namespace, set_name.as_str())) {
        let mut status = deployment.status.clone().unwrap_or_default();
        status.collision_count = Some(collisions + 1);
        return replace_status(DEPLOYMENTS, &deployment.metadata, *deployment, &status).into_iter().collect();
    }
    let revision = sets.old.iter().map(|set| revision_of(set)).max().unwrap_or(0) + 1;
    let replicas = rollout::first_replicas(sets);
    let mut template = json!(spec.template);
    template["metadata"]["labels"][HASH_LABEL] = json!(hash);
    let mut selector = json!(spec.selector);
    selector["matchLabels"][HASH_LABEL] = json!(hash);
    let mut annotations = json!({REVISION: revision.to_string()});
    for (key, value) in scale_annotations(spec) {
        annotations[key] = json!(value);
    }
    for (key, value) in deployment.metadata.annotations.iter().flatten() {
        if !OWN_ANNOTATIONS.contains(&key.as_str()) {
            annotations[key] = json!(value);
        }
    }
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": set_name,
            "namespace": namespace,
            "labels": template["metadata"]["labels"],
            "annotations": annotations,
            "ownerReferences": [controller_reference(DEPLOYMENTS, &deployment.metadata)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": spec.min_ready_seconds.unwrap_or(0),
            "selector": selector,
            "template": template,
        },
    });
    let create = Write::Create { resource: REPLICA_SETS, namespace: namespace.to_owned(), object, owner: None };
    let mut writes = vec![create];
    if replicas > 0 {
        writes.push(tell(sets, format!("Scaled up replica set {set_name} from 0 to {replicas}")));
    }
    let annotations = json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
    writes.push(patch(DEPLOYMENTS, &deployment.metadata, annotations));
    writes
}

/// With `Recreate`, nothing new starts before the last old pod has ended.
fn old_pods_gone(caches: &Caches, sets: &Sets<'_>) -> bool {
    let mut pods = sets.old.iter().flat_map(|set| caches.pods_of(uid(&set.metadata)));
    sets.old.iter().all(|set| rollout::replicas(set) == 0)
        && !pods.any(|(_, known)| is_active(&known.pod) || !is_finished(&known.pod))
}

fn history_cleanup(sets: &Sets<'_>) -> Vec<Write> {
    let Some(limit) = sets.spec.revision_history_limit.and_then(|limit| usize::try_from(limit).ok()) else {
        return Vec::new();
    };
    let empty = |set: &&Arc<ReplicaSet>| {
        let status = set.status.clone().unwrap_or_default();
        status.replicas == 0
            && rollout::replicas(set) == 0
            && set.metadata.deletion_timestamp.is_none()
            && status.observed_generation >= set.metadata.generation
    };
    let mut spent: Vec<&Arc<ReplicaSet>> = sets.old.iter().filter(empty).collect();
    spent.sort_by_key(|set| (revision_of(set), set.metadata.name.clone()));
    let surplus = sets.old.len().saturating_sub(limit).min(spent.len());
    spent.into_iter().take(surplus).map(|set| delete(REPLICA_SETS, &set.metadata, None)).collect()
}

fn is_complete(deployment: &Deployment) -> bool {
    let Some(status) = &deployment.status else { return false };
    complete(deployment, status)
}

fn complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    status.updated_replicas.unwrap_or(0) == replicas
        && status.replicas.unwrap_or(0) == replicas
        && status.available_replicas.unwrap_or(0) == replicas
        && status.observed_generation >= deployment.metadata.generation
}

fn status(sets: &Sets<'_>, now: Timestamp) -> (DeploymentStatus, Option<Timestamp>) {
    let sum = |of: fn(&ReplicaSet) -> i32| sets.all().map(|set| of(set)).sum::<i32>();
    let some = |count: i32| Some(count).filter(|count| *count != 0);
    let replicas = sets.spec.replicas.unwrap_or(1);
    let before = sets.deployment.status.clone().unwrap_or_default();
    let available = sum(|set| set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0));
    let total = sum(|set| set.status.as_ref().map_or(0, |status| status.replicas));
    let mut status = DeploymentStatus {
        available_replicas: some(available),
        collision_count: before.collision_count,
        conditions: before.conditions.clone(),
        observed_generation: sets.deployment.metadata.generation,
        ready_replicas: some(sum(|set| set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0))),
        replicas: some(total),
        terminating_replicas: Some(sum(|set| {
            set.status.as_ref().and_then(|status| status.terminating_replicas).unwrap_or(0)
        })),
        unavailable_replicas: some((sum(rollout::replicas) - available).max(0)),
        updated_replicas: some(
            sets.new.iter().map(|set| set.status.as_ref().map_or(0, |status| status.replicas)).sum(),
        ),
    };
    let enough = available >= replicas - rollout::limits(sets.spec).unavailable;
    let available_condition = if enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let mut conditions = before.conditions.clone().unwrap_or_default();
    set_condition(&mut conditions, "Available", available_condition, now);
    let look_again = note_progress(sets, &before, &status, &mut conditions, now);
    status.conditions = Some(conditions);
    (status, look_again)
}

/// The condition `Progressing`, and when it would time out.
fn note_progress(
    sets: &Sets<'_>,
    before: &DeploymentStatus,
    status: &DeploymentStatus,
    conditions: &mut Vec<DeploymentCondition>,
    now: Timestamp,
) -> Option<Timestamp> {
    let Some(deadline) = sets.spec.progress_deadline_seconds.filter(|deadline| *deadline != i32::MAX) else {
        conditions.retain(|condition| condition.type_ != "Progressing");
        return None;
    };
    let current = conditions.iter().find(|condition| condition.type_ == "Progressing").cloned();
    let reason = current.as_ref().and_then(|condition| condition.reason.clone()).unwrap_or_default();
    if sets.spec.paused == Some(true) {
        set_condition(conditions, "Progressing", ("Unknown", "DeploymentPaused", "Deployment is paused"), now);
        return None;
    }
    if status.replicas == status.updated_replicas && reason == "NewReplicaSetAvailable" {
        return None;
    }
    let subject = match &sets.new {
        Some(new) => format!("ReplicaSet \"{}\"", name(&new.metadata)),
        None => format!("Deployment \"{}\"", name(&sets.deployment.metadata)),
    };
    if complete(sets.deployment, status) {
        let message = format!("{subject} has successfully progressed.");
        set_condition(conditions, "Progressing", ("True", "NewReplicaSetAvailable", &message), now);
        return None;
    }
    let progressed = current.is_none() || made_progress(before, status) || reason == "DeploymentPaused";
    if progressed {
        let message = format!("{subject} is progressing.");
        let since = current.filter(|current| current.status == "True").and_then(|current| current.last_transition_time);
        conditions.retain(|condition| condition.type_ != "Progressing");
        set_condition(conditions, "Progressing", ("True", "ReplicaSetUpdated", &message), now);
        if let (Some(since), Some(last)) = (since, conditions.last_mut()) {
            last.last_transition_time = Some(since);
        }
        return Some(after_seconds(now, i64::from(deadline) + 1));
    }
    let updated = current.as_ref().and_then(|current| current.last_update_time.as_ref()).map_or(now, |time| time.0);
    let due = after_seconds(updated, i64::from(deadline));
    if reason == "ProgressDeadlineExceeded" {
        return None;
    }
    if due < now {
        let message = format!("{subject} has timed out progressing.");
        set_condition(conditions, "Progressing", ("False", "ProgressDeadlineExceeded", &message), now);
        return None;
    }
    Some(after_seconds(due, 1))
}

fn made_progress(before: &DeploymentStatus, status: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0);
    status.updated_replicas > before.updated_replicas
        || old(status) < old(before)
        || status.ready_replicas > before.ready_replicas
        || status.available_replicas > before.available_replicas
}

fn set_condition(
    conditions: &mut Vec<DeploymentCondition>,
    kind: &str,
    (status, reason, message): (&str, &str, &str),
    now: Timestamp,
) {
    let known = conditions.iter().position(|condition| condition.type_ == kind);
    let current = known.map(|index| &conditions[index]);
    if current.is_some_and(|current| current.status == status && current.reason.as_deref() == Some(reason)) {
        return;
    }
    let since =
        current.filter(|current| current.status == status).and_then(|current| current.last_transition_time.clone());
    let condition = DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(time(now)),
        last_transition_time: Some(since.unwrap_or_else(|| time(now))),
    };
    conditions.retain(|condition| condition.type_ != kind);
    conditions.push(condition);
}
