//! StatefulSets: pods with an ordinal each, one after the other.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::template::{Maker, template_hash};
use crate::caches::Caches;
use crate::key::Key;
use crate::pods::{Availability, availability, earlier, is_active, is_deleting, is_finished, is_ready, name, uid};
use crate::write::{CLAIMS, Decision, PODS, STATEFUL_SETS, Write, delete, reference, replace_status};

const HASH_LABEL: &str = "controller-revision-hash";

/// A StatefulSet with what was read off it.
struct View<'a> {
    set: &'a StatefulSet,
    spec: &'a StatefulSetSpec,
    /// The revision that the current template has.
    update_revision: String,
    /// The revision that the pods had before the running update.
    current_revision: String,
    pods: BTreeMap<i32, &'a Pod>,
    now: Timestamp,
}

/// Takes the next step of a StatefulSet, and brings its status up to date.
pub(crate) fn reconcile(caches: &Caches, key: &Key, now: Timestamp) -> Decision {
    let Some(set) = caches.stateful_sets.get(key) else { return Decision::default() };
    let Some(spec) = &set.spec else { return Decision::default() };
    let view = read(caches, set, spec, now);
    let mut decision = Decision::default();
    if set.metadata.deletion_timestamp.is_none() {
        decision.writes.extend(view.next(caches));
    }
    let (status, look_again) = view.status();
    decision.look_again_at(look_again);
    if set.status.as_ref() != Some(&status) {
        decision.writes.extend(replace_status(STATEFUL_SETS, &set.metadata, &**set, &status));
    }
    decision
}

fn read<'a>(caches: &'a Caches, set: &'a StatefulSet, spec: &'a StatefulSetSpec, now: Timestamp) -> View<'a> {
    let own = name(&set.metadata);
    let update_revision = format!("{own}-{}", template_hash(&spec.template, 0));
    let noted = set.status.as_ref().and_then(|status| status.current_revision.clone());
    let current_revision = noted.filter(|text| !text.is_empty()).unwrap_or_else(|| update_revision.clone());
    let owned = caches.pods_of(uid(&set.metadata)).map(|(_, known)| &*known.pod);
    let ordinal = |pod: &Pod| name(&pod.metadata).strip_prefix(own)?.strip_prefix('-')?.parse::<i32>().ok();
    let pods = owned.filter_map(|pod| Some((ordinal(pod)?, pod))).collect();
    View { set, spec, update_revision, current_revision, pods, now }
}

impl View<'_> {
    fn ordinals(&self) -> std::ops::Range<i32> {
        let first = self.spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0);
        first..first + self.spec.replicas.unwrap_or(1)
    }

    fn is_parallel(&self) -> bool {
        self.spec.pod_management_policy.as_deref() == Some("Parallel")
    }

    fn availability(&self, pod: &Pod) -> Availability {
        availability(pod, self.spec.min_ready_seconds.unwrap_or(0), self.now)
    }

    fn is_healthy(&self, pod: &Pod) -> bool {
        is_active(pod) && self.availability(pod) == Availability::Available
    }

    fn has_revision(pod: &Pod, revision: &str) -> bool {
        pod.metadata.labels.as_ref().and_then(|labels| labels.get(HASH_LABEL)).is_some_and(|label| label == revision)
    }

    /// Missing pods in order, then surplus pods from the top, then old pods from the top; one at a time unless the pods
    /// are managed in parallel.
    fn next(&self, caches: &Caches) -> Vec<Write> {
        let owner = reference(STATEFUL_SETS, &self.set.metadata);
        let remove = |pod: &Pod| delete(PODS, &pod.metadata, Some(owner.clone()));
        let mut writes = Vec::new();
        for ordinal in self.ordinals() {
            match self.pods.get(&ordinal) {
                None => writes.extend(self.creation(caches, ordinal)),
                Some(pod) if is_finished(pod) && !is_deleting(pod) => writes.push(remove(pod)),
                Some(pod) if self.is_healthy(pod) || self.is_parallel() => continue,
                Some(_) => return writes,
            }
            if !self.is_parallel() {
                return writes;
            }
        }
        let ordinals = self.ordinals();
        for (_, pod) in self.pods.iter().rev().filter(|(ordinal, _)| !ordinals.contains(ordinal)) {
            if !is_deleting(pod) {
                writes.push(remove(pod));
            }
            if !self.is_parallel() {
                return writes;
            }
        }
        if !writes.is_empty() {
            return writes;
        }
        self.update().into_iter().map(remove).collect()
    }

    /// The pod that the update replaces next: the highest ordinal with an old revision, once all above are healthy.
    fn update(&self) -> Option<&Pod> {
        let strategy = self.spec.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return None;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0);
        for ordinal in self.ordinals().rev().filter(|ordinal| *ordinal >= partition) {
            let pod = self.pods.get(&ordinal)?;
            if !Self::has_revision(pod, &self.update_revision) {
                return Some(pod).filter(|pod| !is_deleting(pod)).copied();
            }
            if !self.is_healthy(pod) {
                return None;
            }
        }
        None
    }

    /// A pod and the volume claims that it names.
    ///
    /// Every pod gets the newest template; pods below a partition keep the old one only until they are replaced.
    fn creation(&self, caches: &Caches, ordinal: i32) -> Vec<Write> {
        let namespace = self.set.metadata.namespace.clone().unwrap_or_default();
        let own = name(&self.set.metadata);
        let pod_name = format!("{own}-{ordinal}");
        let maker = Maker { resource: STATEFUL_SETS, owner: &self.set.metadata, template: &self.spec.template };
        let mut pod = maker.pod();
        pod["metadata"]["name"] = json!(pod_name);
        pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
        pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(pod_name);
        pod["metadata"]["labels"][HASH_LABEL] = json!(self.update_revision);
        pod["spec"]["hostname"] = json!(pod_name);
        if let Some(service) = self.spec.service_name.as_deref().filter(|service| !service.is_empty()) {
            pod["spec"]["subdomain"] = json!(service);
        }
        let mut writes = Vec::new();
        for template in self.spec.volume_claim_templates.iter().flatten() {
            let volume = name(&template.metadata);
            let claim = format!("{volume}-{pod_name}");
            if let Some(volumes) = pod["spec"]["volumes"].as_array_mut() {
                volumes.retain(|known| known["name"] != volume);
            } else {
                pod["spec"]["volumes"] = json!([]);
            }
            if let Some(volumes) = pod["spec"]["volumes"].as_array_mut() {
                volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
            }
            if !caches.claims.contains_key(&Key::new(namespace.as_str(), claim.as_str())) {
                let object = claim_object(&claim, template, self.spec);
                writes.push(Write::Create { resource: CLAIMS, namespace: namespace.clone(), object, owner: None });
            }
        }
        writes.push(maker.create(pod));
        writes
    }

    fn status(&self) -> (StatefulSetStatus, Option<Timestamp>) {
        let living = || self.pods.values().filter(|pod| is_active(pod));
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        let some = |number: i32| Some(number).filter(|number| *number != 0);
        let updated = living().filter(|pod| Self::has_revision(pod, &self.update_revision)).count();
        let all_updated = updated == living().count()
            && count(updated) == self.spec.replicas.unwrap_or(1)
            && living().all(|pod| self.is_healthy(pod));
        let current_revision = if all_updated { self.update_revision.clone() } else { self.current_revision.clone() };
        let look_again = living().fold(None, |soonest, pod| match self.availability(pod) {
            Availability::From(at) => earlier(soonest, Some(at)),
            Availability::NotReady | Availability::Available => soonest,
        });
        let current = living().filter(|pod| Self::has_revision(pod, &current_revision)).count();
        let status = StatefulSetStatus {
            available_replicas: Some(count(living().filter(|pod| self.is_healthy(pod)).count())),
            collision_count: Some(0),
            conditions: self.set.status.as_ref().and_then(|status| status.conditions.clone()),
            current_replicas: some(count(current)),
            current_revision: Some(current_revision),
            observed_generation: self.set.metadata.generation,
            ready_replicas: some(count(living().filter(|pod| is_ready(pod)).count())),
            replicas: count(self.pods.values().filter(|pod| !is_finished(pod)).count()),
            update_revision: Some(self.update_revision.clone()),
            updated_replicas: some(count(updated)),
        };
        (status, look_again)
    }
}

fn claim_object(
    claim: &str,
    template: &k8s_openapi::api::core::v1::PersistentVolumeClaim,
    spec: &StatefulSetSpec,
) -> Value {
    let mut labels = json!(template.metadata.labels.clone().unwrap_or_default());
    for (key, value) in spec.selector.match_labels.iter().flatten() {
        labels[key] = json!(value);
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "labels": labels, "annotations": template.metadata.annotations},
        "spec": template.spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, see, text};

    fn step(replicas: i32, policy: &str, pods: &[&str]) -> String {
        let mut caches = Caches::default();
        see(
            &mut caches,
            0,
            &json!({
                "kind": "StatefulSet",
                "metadata": {"name": "db", "namespace": "default", "uid": "db"},
                "spec": {
                    "replicas": replicas, "podManagementPolicy": policy, "selector": {},
                    "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}},
                },
            }),
        );
        let set = caches.stateful_sets.values().next().cloned().unwrap();
        let revision = format!("db-{}", template_hash(&set.spec.as_ref().unwrap().template, 0));
        for line in pods {
            let (name, state) = line.split_once(' ').unwrap_or((line, ""));
            let owner =
                json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db", "controller": true});
            let revision = if state == "old" { "before" } else { revision.as_str() };
            let ready = if state == "unready" { "False" } else { "True" };
            see(
                &mut caches,
                0,
                &json!({
                    "kind": "Pod",
                    "metadata": {
                        "name": name, "namespace": "default", "uid": name,
                        "labels": {HASH_LABEL: revision}, "ownerReferences": [owner],
                    },
                    "spec": {"containers": []},
                    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
                }),
            );
        }
        text(&reconcile(&caches, &Key::new("default", "db"), at(100)))
    }

    #[test]
    fn pods_come_and_go_one_by_one_unless_in_parallel() {
        let (one_by_one, at_once) = ("OrderedReady", "Parallel");
        let table: [(i32, &str, &[&str], &str); 8] = [
            (2, one_by_one, &[], "create:Pod/db-0 status:db"),
            (2, one_by_one, &["db-0 unready"], "status:db"),
            (2, one_by_one, &["db-0"], "create:Pod/db-1 status:db"),
            (2, at_once, &[], "create:Pod/db-0 create:Pod/db-1 status:db"),
            (1, one_by_one, &["db-0", "db-1", "db-2"], "delete:db-2 status:db"),
            (1, at_once, &["db-0", "db-1", "db-2"], "delete:db-2 delete:db-1 status:db"),
            (2, one_by_one, &["db-0 old", "db-1 old"], "delete:db-1 status:db"),
            (2, one_by_one, &["db-0 old", "db-1"], "delete:db-0 status:db"),
        ];
        for (replicas, policy, pods, expected) in table {
            assert_eq!(step(replicas, policy, pods), expected, "{replicas} {policy} {pods:?}");
        }
    }
}
