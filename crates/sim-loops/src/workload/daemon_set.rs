//! DaemonSets: one pod on every node that they select.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplateSpec, Toleration};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::Text;
use serde_json::json;

use super::template::{Maker, template_hash};
use crate::caches::Caches;
use crate::key::Key;
use crate::pods::{Availability, Rounding, availability, is_deleting, is_finished, is_ready, node_name, scaled, uid};
use crate::selector::{selects_node, tolerated};
use crate::write::{DAEMON_SETS, Decision, PODS, Write, delete, delete_now, reference, replace_status};

const HASH_LABEL: &str = "controller-revision-hash";
const GENERATION_LABEL: &str = "pod-template-generation";
/// How many pods one pass makes or deletes, as in the real controller.
const BURST_PODS_MAX: usize = 250;

/// Brings the pods of a DaemonSet to its nodes, and its status up to date.
pub(crate) fn reconcile(caches: &Caches, key: &Key, now: Timestamp) -> Decision {
    let Some(set) = caches.daemon_sets.get(key) else { return Decision::default() };
    let Some(spec) = &set.spec else { return Decision::default() };
    let hash = template_hash(&spec.template, 0);
    let template = daemon_template(set, spec, &hash);
    let plan = survey(caches, set, &template);
    let mut decision = Decision::default();
    if set.metadata.deletion_timestamp.is_none() {
        decision.writes.extend(placements(set, &template, &plan));
        if decision.writes.is_empty() {
            decision.writes.extend(updates(set, spec, &plan, &hash, now));
        }
        decision.writes.truncate(BURST_PODS_MAX);
    }
    let (status, look_again) = status(set, spec, &plan, &hash, now);
    decision.look_again_at(look_again);
    if set.status.as_ref() != Some(&status) {
        decision.writes.extend(replace_status(DAEMON_SETS, &set.metadata, &**set, &status));
    }
    decision
}

/// What a node means to a DaemonSet, and the set's pods that are on it or meant for it.
struct Seat<'a> {
    should_run: bool,
    should_stay: bool,
    pods: Vec<&'a Pod>,
}

fn survey<'a>(caches: &'a Caches, set: &DaemonSet, template: &PodTemplateSpec) -> BTreeMap<Text, Seat<'a>> {
    let mut seats: BTreeMap<Text, Seat<'a>> = BTreeMap::new();
    for (name, node) in &caches.nodes {
        let (should_run, should_stay) = verdict(template, node);
        seats.insert(name.clone(), Seat { should_run, should_stay, pods: Vec::new() });
    }
    for (_, known) in caches.pods_of(uid(&set.metadata)) {
        let node = node_name(&known.pod).or_else(|| pinned_node(&known.pod)).unwrap_or("");
        let nowhere = || Seat { should_run: false, should_stay: false, pods: Vec::new() };
        seats.entry(node.into()).or_insert_with(nowhere).pods.push(&known.pod);
    }
    seats
}

/// Whether a daemon should be started on a node, and whether one that is there may stay.
fn verdict(template: &PodTemplateSpec, node: &Node) -> (bool, bool) {
    let Some(spec) = &template.spec else { return (false, false) };
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let wanted = selects_node(spec, node);
    let refused = |effects: &[&str]| {
        taints.iter().any(|taint| effects.contains(&taint.effect.as_str()) && !tolerated(tolerations, taint))
    };
    (wanted && !refused(&["NoSchedule", "NoExecute"]), wanted && !refused(&["NoExecute"]))
}

/// The node that a daemon pod is meant for while it is not bound.
fn pinned_node(pod: &Pod) -> Option<&str> {
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let terms = &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    let fields = terms.iter().filter_map(|term| term.match_fields.as_ref()).flatten();
    let mut named = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
    named.next()?.values.as_ref()?.first().map(String::as_str)
}

/// The template with what the controller adds: labels of the revision and tolerations for troubled nodes.
fn daemon_template(set: &DaemonSet, spec: &DaemonSetSpec, hash: &str) -> PodTemplateSpec {
    let mut template = spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(HASH_LABEL.to_owned(), hash.to_owned());
    labels.insert(GENERATION_LABEL.to_owned(), set.metadata.generation.unwrap_or(1).to_string());
    let pod = template.spec.get_or_insert_default();
    let mut added = vec![
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ];
    if pod.host_network == Some(true) {
        added.push(("node.kubernetes.io/network-unavailable", "NoSchedule"));
    }
    let tolerations = pod.tolerations.get_or_insert_default();
    for (key, effect) in added {
        let toleration = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        tolerations.retain(|known| known.key != toleration.key || known.effect != toleration.effect);
        tolerations.push(toleration);
    }
    template
}

/// Daemons for nodes without one; daemons that ended, are too many or must not stay are deleted.
fn placements(set: &DaemonSet, template: &PodTemplateSpec, seats: &BTreeMap<Text, Seat<'_>>) -> Vec<Write> {
    let maker = Maker { resource: DAEMON_SETS, owner: &set.metadata, template };
    let owner = reference(DAEMON_SETS, &set.metadata);
    let mut writes = Vec::new();
    for (node, seat) in seats {
        let ended = seat.pods.iter().filter(|pod| is_finished(pod) && !is_deleting(pod));
        writes.extend(ended.map(|pod| delete(PODS, &pod.metadata, Some(owner.clone()))));
        let mut living: Vec<&&Pod> = seat.pods.iter().filter(|pod| !is_finished(pod) && !is_deleting(pod)).collect();
        living.sort_by_key(|pod| (node_name(pod).is_none(), pod.metadata.creation_timestamp.clone().map(|at| at.0)));
        let keep = usize::from(seat.should_stay);
        // A pod for a node that is gone, and not bound, has nobody else to remove it.
        let unbound = living.iter().skip(keep).filter(|pod| node_name(pod).is_none());
        writes.extend(unbound.map(|pod| delete_now(PODS, &pod.metadata)));
        let bound = living.iter().skip(keep).filter(|pod| node_name(pod).is_some());
        writes.extend(bound.map(|pod| delete(PODS, &pod.metadata, Some(owner.clone()))));
        if seat.should_run && seat.pods.is_empty() {
            writes.push(maker.create(pinned_pod(&maker, node)));
        }
    }
    writes
}

/// A pod that only the named node satisfies, so that the scheduler binds it there when there is room.
fn pinned_pod(maker: &Maker<'_>, node: &str) -> serde_json::Value {
    let mut pod = maker.pod();
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    pod
}

/// Old daemons make room for new ones, as many at a time as may be unavailable.
///
/// A surge (`maxSurge`) is taken as unavailability: the new daemon starts after the old one is gone.
fn updates(
    set: &DaemonSet,
    spec: &DaemonSetSpec,
    seats: &BTreeMap<Text, Seat<'_>>,
    hash: &str,
    now: Timestamp,
) -> Vec<Write> {
    let strategy = spec.update_strategy.as_ref();
    if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
        return Vec::new();
    }
    let running: Vec<&Seat<'_>> = seats.values().filter(|seat| seat.should_run).collect();
    let total = i32::try_from(running.len()).unwrap_or(i32::MAX);
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let share =
        |value: Option<&IntOrString>, default| value.map_or(default, |value| scaled(value, total, Rounding::Up));
    let surge = share(rolling.and_then(|rolling| rolling.max_surge.as_ref()), 0);
    let unavailable = share(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), 1);
    let allowed = unavailable.max(surge).max(1);
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let available = |pod: &Pod| !is_deleting(pod) && availability(pod, min_ready, now) == Availability::Available;
    let down = running.iter().filter(|seat| !seat.pods.iter().any(|pod| available(pod))).count();
    let mut room = usize::try_from(allowed).unwrap_or(0).saturating_sub(down);
    let owner = reference(DAEMON_SETS, &set.metadata);
    let mut writes = Vec::new();
    for pod in running.iter().flat_map(|seat| &seat.pods).filter(|pod| !is_deleting(pod) && !is_current(pod, hash)) {
        if available(pod) {
            if room == 0 {
                continue;
            }
            room -= 1;
        }
        writes.push(delete(PODS, &pod.metadata, Some(owner.clone())));
    }
    writes
}

fn is_current(pod: &Pod, hash: &str) -> bool {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(HASH_LABEL)).is_some_and(|label| label == hash)
}

fn status(
    set: &DaemonSet,
    spec: &DaemonSetSpec,
    seats: &BTreeMap<Text, Seat<'_>>,
    hash: &str,
    now: Timestamp,
) -> (DaemonSetStatus, Option<Timestamp>) {
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let mut status = DaemonSetStatus { observed_generation: set.metadata.generation, ..DaemonSetStatus::default() };
    let (mut updated, mut available, mut look_again) = (0, 0, None);
    for seat in seats.values() {
        let scheduled = seat.pods.iter().filter(|pod| !is_finished(pod)).collect::<Vec<_>>();
        if !seat.should_run {
            status.number_misscheduled += i32::from(!scheduled.is_empty());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(oldest) = scheduled.first() else { continue };
        status.current_number_scheduled += 1;
        updated += i32::from(is_current(oldest, hash));
        if is_ready(oldest) {
            status.number_ready += 1;
            match availability(oldest, min_ready, now) {
                Availability::Available => available += 1,
                Availability::From(at) => look_again = crate::pods::earlier(look_again, Some(at)),
                Availability::NotReady => {}
            }
        }
    }
    let some = |count: i32| Some(count).filter(|count| *count != 0);
    status.updated_number_scheduled = some(updated);
    status.number_available = some(available);
    status.number_unavailable = some(status.desired_number_scheduled - available);
    status.conditions = set.status.as_ref().and_then(|status| status.conditions.clone());
    status.collision_count = set.status.as_ref().and_then(|status| status.collision_count);
    (status, look_again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, see, text};

    /// Names with what is on them.
    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn step(nodes: Pairs<'_>, pods: Pairs<'_>) -> String {
        let mut caches = Caches::default();
        see(
            &mut caches,
            0,
            &json!({
                "kind": "DaemonSet",
                "metadata": {"name": "agent", "namespace": "default", "uid": "agent", "generation": 1},
                "spec": {"selector": {}, "template": {
                    "metadata": {"labels": {"app": "agent"}},
                    "spec": {"containers": [], "nodeSelector": {"os": "linux"}},
                }},
            }),
        );
        let set = caches.daemon_sets.values().next().cloned().unwrap();
        let hash = template_hash(&set.spec.as_ref().unwrap().template, 0);
        for (name, taint) in nodes {
            let os = if *taint == "windows" { "windows" } else { "linux" };
            let taints = match taint.split_once(':') {
                Some((key, effect)) => json!([{"key": key, "effect": effect}]),
                None => json!([]),
            };
            let node =
                json!({"kind": "Node", "metadata": {"name": name, "labels": {"os": os}}, "spec": {"taints": taints}});
            see(&mut caches, 0, &node);
        }
        for (name, node) in pods {
            let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agent", "controller": true});
            let labels = json!({HASH_LABEL: if name.starts_with("old") { "before" } else { hash.as_str() }});
            see(
                &mut caches,
                0,
                &json!({
                    "kind": "Pod",
                    "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels, "ownerReferences": [owner]},
                    "spec": {"containers": [], "nodeName": node},
                    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
                }),
            );
        }
        text(&reconcile(&caches, &Key::new("default", "agent"), at(100)))
    }

    #[test]
    fn daemons_follow_their_nodes() {
        let table: [(Pairs<'_>, Pairs<'_>, &str); 8] = [
            (&[("n1", ""), ("n2", "windows")], &[], "create:Pod/agent- status:agent"),
            (&[("n1", "team:NoSchedule")], &[], "status:agent"),
            (&[("n1", "node.kubernetes.io/unschedulable:NoSchedule")], &[], "create:Pod/agent- status:agent"),
            (&[("n1", "team:NoSchedule")], &[("a", "n1")], "status:agent"),
            (&[("n1", "team:NoExecute")], &[("a", "n1")], "delete:a status:agent"),
            (&[("n1", "")], &[("a", "n1"), ("b", "n1")], "delete:b status:agent"),
            (&[], &[("a", "gone")], "delete:a status:agent"),
            (&[("n1", ""), ("n2", "")], &[("old1", "n1"), ("old2", "n2")], "delete:old1 status:agent"),
        ];
        for (nodes, pods, expected) in table {
            assert_eq!(step(nodes, pods), expected, "{nodes:?} {pods:?}");
        }
    }
}
