//! ReplicaSets: as many pods as asked for.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use serde_json::json;

use super::ranking::sort_for_deletion;
use super::template::Maker;
use crate::caches::Caches;
use crate::key::Key;
use crate::pods::{Availability, availability, controller_uid, earlier, is_active, is_deleting, is_ready, uid};
use crate::selector::matches;
use crate::write::{
    Decision, PODS, REPLICA_SETS, Write, controller_reference, delete, patch, reference, replace_status,
};

/// How many pods one pass makes or deletes, as in the real controller.
const BURST_PODS_MAX: usize = 500;

/// Brings the pods of a ReplicaSet to the wanted number, and its status up to date.
pub(crate) fn reconcile(caches: &Caches, key: &Key, now: Timestamp) -> Decision {
    let Some(set) = caches.replica_sets.get(key) else { return Decision::default() };
    let owned: Vec<&Pod> = owned_pods(caches, set);
    let active: Vec<&Pod> = owned.iter().copied().filter(|pod| is_active(pod)).collect();
    let mut decision = Decision::default();
    if set.metadata.deletion_timestamp.is_none() {
        decision.writes.extend(adoptions(caches, set));
        if decision.writes.is_empty() {
            decision.writes.extend(scale(caches, set, &active, now));
        }
    }
    let (status, look_again) = status(set, &owned, &active, now);
    decision.look_again_at(look_again);
    if set.status.as_ref() != Some(&status) {
        decision.writes.extend(replace_status(REPLICA_SETS, &set.metadata, &**set, &status));
    }
    decision
}

fn wanted(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

fn owned_pods<'a>(caches: &'a Caches, set: &ReplicaSet) -> Vec<&'a Pod> {
    caches.pods_of(uid(&set.metadata)).map(|(_, known)| &*known.pod).collect()
}

/// Pods that match the selector and belong to nobody become the set's own.
fn adoptions(caches: &Caches, set: &ReplicaSet) -> Vec<Write> {
    let Some(spec) = &set.spec else { return Vec::new() };
    let namespace = set.metadata.namespace.as_deref().unwrap_or("");
    let orphans = caches.orphan_pods(namespace).map(|(_, known)| &known.pod);
    let ours = orphans.filter(|pod| is_active(pod) && matches(&spec.selector, pod.metadata.labels.as_ref()));
    let owner = controller_reference(REPLICA_SETS, &set.metadata);
    ours.map(|pod| {
        let uid = uid(&pod.metadata);
        patch(PODS, &pod.metadata, json!({"metadata": {"uid": uid, "ownerReferences": [owner]}}))
    })
    .collect()
}

fn scale(caches: &Caches, set: &ReplicaSet, active: &[&Pod], now: Timestamp) -> Vec<Write> {
    let wanted = usize::try_from(wanted(set)).unwrap_or(0);
    if active.len() < wanted {
        let none = PodTemplateSpec::default();
        let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref()).unwrap_or(&none);
        let maker = Maker { resource: REPLICA_SETS, owner: &set.metadata, template };
        let count = (wanted - active.len()).min(BURST_PODS_MAX);
        return (0..count).map(|_| maker.create(maker.pod())).collect();
    }
    let surplus = (active.len() - wanted).min(BURST_PODS_MAX);
    if surplus == 0 {
        return Vec::new();
    }
    let mut ranked = active.to_vec();
    sort_for_deletion(&mut ranked, related_pods(caches, set).into_iter(), now);
    let owner = reference(REPLICA_SETS, &set.metadata);
    ranked.into_iter().take(surplus).map(|pod| delete(PODS, &pod.metadata, Some(owner.clone()))).collect()
}

/// The active pods of all ReplicaSets of the same controller.
fn related_pods<'a>(caches: &'a Caches, set: &ReplicaSet) -> Vec<&'a Pod> {
    let uids: Vec<String> = match controller_uid(&set.metadata) {
        Some(controller) => {
            caches.replica_sets_of(controller).iter().map(|set| uid(&set.metadata).to_owned()).collect()
        }
        None => vec![uid(&set.metadata).to_owned()],
    };
    let pods = uids.iter().flat_map(|uid| caches.pods_of(uid)).map(|(_, known)| &*known.pod);
    pods.filter(|pod| is_active(pod)).collect()
}

fn status(set: &ReplicaSet, owned: &[&Pod], active: &[&Pod], now: Timestamp) -> (ReplicaSetStatus, Option<Timestamp>) {
    let min_ready = set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    let template_labels =
        template.and_then(|template| template.metadata.as_ref()).and_then(|meta| meta.labels.as_ref());
    let count = |number: usize| Some(i32::try_from(number).unwrap_or(i32::MAX)).filter(|number| *number > 0);
    let labelled = |pod: &&&Pod| {
        let labels = pod.metadata.labels.as_ref();
        template_labels.into_iter().flatten().all(|(key, value)| labels.and_then(|all| all.get(key)) == Some(value))
    };
    let states: Vec<Availability> = active.iter().map(|pod| availability(pod, min_ready, now)).collect();
    let look_again = states.iter().fold(None, |soonest, state| match state {
        Availability::From(at) => earlier(soonest, Some(*at)),
        Availability::NotReady | Availability::Available => soonest,
    });
    let mut status = set.status.clone().unwrap_or_default();
    status.replicas = i32::try_from(active.len()).unwrap_or(i32::MAX);
    status.fully_labeled_replicas = count(active.iter().filter(labelled).count());
    status.ready_replicas = count(active.iter().filter(|pod| is_ready(pod)).count());
    status.available_replicas = count(states.iter().filter(|state| **state == Availability::Available).count());
    status.terminating_replicas = Some(
        i32::try_from(owned.iter().filter(|pod| is_deleting(pod) && !crate::pods::is_finished(pod)).count())
            .unwrap_or(i32::MAX),
    );
    status.observed_generation = set.metadata.generation;
    (status, look_again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, see, text};

    fn caches(replicas: i32, pods: &[&str]) -> Caches {
        let mut caches = Caches::default();
        see(
            &mut caches,
            0,
            &json!({
                "kind": "ReplicaSet",
                "metadata": {"name": "web", "namespace": "default", "uid": "web"},
                "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
                    "metadata": {"labels": {"app": "web"}}, "spec": {"containers": []},
                }},
            }),
        );
        for line in pods {
            let (name, state) = line.split_once(' ').unwrap_or((line, ""));
            let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true}]);
            let mut pod = json!({
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}},
                "spec": {"containers": [], "nodeName": "n"},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            });
            if state != "orphan" {
                pod["metadata"]["ownerReferences"] = owner;
            }
            match state {
                "failed" => pod["status"]["phase"] = json!("Failed"),
                "unready" => pod["status"]["conditions"] = json!([]),
                "deleting" => pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z"),
                _ => {}
            }
            see(&mut caches, 0, &pod);
        }
        caches
    }

    #[test]
    fn a_set_has_as_many_active_pods_as_it_wants() {
        let table: [(i32, &[&str], &str); 7] = [
            (2, &[], "create:Pod/web- create:Pod/web- status:web"),
            (2, &["a", "b"], "status:web"),
            (2, &["a", "b deleting"], "create:Pod/web- status:web"),
            (2, &["a", "b failed"], "create:Pod/web- status:web"),
            (1, &["a", "b unready"], "delete:b status:web"),
            (0, &["a", "b"], "delete:a delete:b status:web"),
            (1, &["a orphan"], "patch:a status:web"),
        ];
        for (replicas, pods, expected) in table {
            let decision = reconcile(&caches(replicas, pods), &Key::new("default", "web"), at(100));
            assert_eq!(text(&decision), expected, "{replicas} of {pods:?}");
        }
    }
}
