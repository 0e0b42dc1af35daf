//! Empty nodes, and what keeps them. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::lower::NodeFacts;
use api::node_claim::conditions;
use api::{NodeClaim, labels};
use jiff::Timestamp;
use model::{NodeName, PoolName};
use state::{Cluster, Tracked};

use super::budget::Census;
use super::candidate::{Blocked, Candidate, candidate};
use crate::lifecycle::quiet::{Remaining, remaining};
use crate::lifecycle::{believed, is_condition_true, labels_of, name_of};

/// When pods last came or went, by node.
type PodEvents = BTreeMap<NodeName, Timestamp>;

/// An empty node whose quiet time is over, or one that nobody can judge because its pool is not there.
#[derive(Clone, Debug)]
pub(super) enum Empty {
    /// Nothing keeps it.
    Unwanted(Candidate),
    /// It stays.
    Kept { claim: Arc<NodeClaim>, node: Arc<NodeFacts>, by: Kept },
}

/// What keeps an empty node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It may not be disrupted.
    Blocked(Blocked),
    /// Room for pods of a buffer is kept on it.
    ForBuffer,
}

/// Nodes of ours that are usable, quiet for long enough, and run nothing that would need another node.
///
/// `pod_events` are the last pod events as this process saw them. The condition `Consolidatable` follows them with a
/// delay: right after a node's last pod left, it still speaks of the time before that pod came.
pub(super) fn empties(cluster: &Cluster, pod_events: &PodEvents, now: Timestamp) -> Vec<Empty> {
    let machines = cluster.tracked().filter(|machine| match machine {
        Tracked::Joined(claim, node) => {
            let event = pod_events.get(&node.name).copied();
            is_usable(cluster, claim, node)
                && (is_orphan(cluster, node) || is_quiet(cluster, claim) && is_over(cluster, claim, event, now))
        }
        Tracked::Claimed(_) | Tracked::Foreign(_) => false,
    });
    machines.filter_map(|machine| empty(cluster, &machine, now)).collect()
}

fn empty(cluster: &Cluster, machine: &Tracked, now: Timestamp) -> Option<Empty> {
    let Tracked::Joined(claim, node) = machine else { return None };
    let kept = |by| Empty::Kept { claim: Arc::clone(claim), node: Arc::clone(node), by };
    Some(match candidate(cluster, machine, now) {
        Err(blocked) => kept(Kept::Blocked(blocked)),
        Ok(_) if cluster.holds_headroom(&name_of(claim), &node.name) => kept(Kept::ForBuffer),
        Ok(candidate) => Empty::Unwanted(candidate),
    })
}

/// A node that could be given up: in use, not going, and with nothing on it that would need another node.
fn is_usable(cluster: &Cluster, claim: &NodeClaim, node: &NodeFacts) -> bool {
    let is_going = claim.metadata.deletion_timestamp.is_some() || node.deletion.is_some();
    !is_going && node.is_labelled(labels::INITIALIZED) && cluster.is_vacant(&node.name)
}

/// A node of a pool that is not there any more.
fn is_orphan(cluster: &Cluster, node: &NodeFacts) -> bool {
    let pool = node.labels.get(labels::NODE_POOL).map(|pool| PoolName::new(pool.as_str()));
    pool.is_some_and(|pool| cluster.pool(&pool).is_none())
}

fn is_quiet(cluster: &Cluster, claim: &NodeClaim) -> bool {
    is_condition_true(claim, conditions::CONSOLIDATABLE) && {
        let pool = PoolName::new(labels_of(claim).pool.as_str());
        cluster.pool(&pool).is_some_and(|pool| pool.spec.replicas.is_none())
    }
}

/// Whether the quiet time since the last pod event is over, if one was seen.
fn is_over(cluster: &Cluster, claim: &NodeClaim, event: Option<Timestamp>, now: Timestamp) -> bool {
    let pool = PoolName::new(labels_of(claim).pool.as_str());
    let after = cluster.pool(&pool).map(|pool| &pool.spec.disruption.consolidate_after);
    let event = event.and_then(|event| believed(event, now));
    event.is_none_or(|event| remaining(after, Some(event), now) == Remaining::Over)
}

/// Counts the nodes of every pool for its budgets, in one pass over all machines. A pool without nodes is not named.
pub(crate) fn censuses(cluster: &Cluster) -> BTreeMap<PoolName, Census> {
    let mut censuses: BTreeMap<PoolName, Census> = BTreeMap::new();
    for machine in cluster.tracked() {
        let Tracked::Joined(claim, node) = machine else { continue };
        if !node.is_labelled(labels::INITIALIZED) || is_condition_true(&claim, conditions::INSTANCE_TERMINATING) {
            continue;
        }
        let Some(pool) = claim.metadata.labels.as_ref().and_then(|own| own.get(labels::NODE_POOL)) else { continue };
        let is_going = claim.metadata.deletion_timestamp.is_some() || node.deletion.is_some();
        let census = censuses.entry(PoolName::new(pool.as_str())).or_default();
        census.nodes += 1;
        census.disrupted += usize::from(is_going || !node.is_ready);
    }
    censuses
}

#[cfg(test)]
mod tests {
    use api::lower::PodFacts;
    use api::{NillableDuration, NodePool};
    use model::{ClaimName, InstanceType, PlaceId, Requirements, Resources, TypeName, Vocabulary};
    use serde_json::{Value, json};
    use state::{ManagedKind, Object};

    use super::*;

    const NOW: i64 = 1_000;

    fn cluster(node_annotations: &Value, claim_conditions: &[&str], pods: &[Value]) -> Cluster {
        let managed = ManagedKind { group: "karpenter.kwok.sh".to_owned(), kind: "KWOKNodeClass".to_owned() };
        let mut cluster = Cluster::new(Arc::new(Vocabulary::core()), managed);
        let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
        let time = "2026-01-01T00:00:00Z";
        let conditions: Vec<Value> = claim_conditions
            .iter()
            .map(|type_| json!({"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": time}))
            .collect();
        let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
            "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": class}}}});
        let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "uid": "c", "labels": {"karpenter.sh/nodepool": "p"}},
            "spec": {"requirements": [], "nodeClassRef": class},
            "status": {"providerID": "kwok://n", "conditions": conditions}});
        let node = json!({"metadata": {"name": "n", "uid": "n", "annotations": node_annotations,
            "labels": {"karpenter.sh/initialized": "true", "karpenter.sh/nodepool": "p"}}, "spec": {"providerID": "kwok://n"}});
        cluster.apply(Object::Pool(Arc::new(serde_json::from_value(pool).unwrap())));
        cluster.apply(Object::Claim(Arc::new(serde_json::from_value(claim).unwrap())));
        let node = NodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap();
        cluster.apply(Object::Node(Arc::new(node)));
        cluster.set_types(PoolName::new("p"), Arc::from([sold()]));
        for pod in pods {
            let pod = serde_json::from_value(pod.clone()).unwrap();
            cluster.apply(Object::Pod(Arc::new(PodFacts::lower(&pod, &Vocabulary::core()).unwrap())));
        }
        cluster
    }

    fn sold() -> Arc<InstanceType> {
        let (name, none) = (TypeName::new("m"), Resources::none);
        InstanceType::new(name, Requirements::none(), none(), none(), Vec::new())
    }

    fn pod(owner: &str, more: &Value) -> Value {
        let mut pod = json!({"metadata": {"name": "pod", "namespace": "default", "uid": "u", "annotations": more["annotations"],
            "deletionTimestamp": more["deletionTimestamp"],
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o"}]},
            "spec": {"nodeName": "n", "containers": []}, "status": {"phase": "Running"}});
        if let Some(metadata) = pod["metadata"].as_object_mut() {
            metadata.retain(|_, value| !value.is_null());
        }
        pod
    }

    fn judge(cluster: &Cluster) -> String {
        match empties(cluster, &PodEvents::new(), Timestamp::from_second(NOW).unwrap()).as_slice() {
            [] => "stays".to_owned(),
            [Empty::Unwanted(_)] => "goes".to_owned(),
            [Empty::Kept { by: Kept::ForBuffer, .. }] => "has buffer pods".to_owned(),
            [Empty::Kept { by: Kept::Blocked(blocked), .. }] => blocked.sentence(),
            several => panic!("{} candidates", several.len()),
        }
    }

    /// CONS-08, CAND-02, CAND-06: what makes a node empty, and what keeps an empty one.
    #[test]
    fn empty_nodes_go_unless_something_keeps_them() {
        let (none, quiet) = (json!({}), ["Initialized", "Consolidatable"]);
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        let held = json!({"annotations": {"karpenter.sh/do-not-disrupt": "true"}});
        let table = [
            (none.clone(), &quiet[..], vec![], "goes"),
            (none.clone(), &quiet[..1], vec![], "stays"),
            (none.clone(), &quiet[..], vec![pod("DaemonSet", &none)], "goes"),
            (none.clone(), &quiet[..], vec![pod("ReplicaSet", &none)], "stays"),
            (none.clone(), &quiet[..], vec![pod("ReplicaSet", &going)], "goes"),
            (none.clone(), &quiet[..], vec![pod("StatefulSet", &going)], "stays"),
            (
                none.clone(),
                &quiet[..],
                vec![pod("DaemonSet", &held)],
                "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/pod)",
            ),
            (
                held["annotations"].clone(),
                &quiet[..],
                vec![],
                "Disruption is blocked through the \"karpenter.sh/do-not-disrupt\" annotation",
            ),
            (json!({"karpenter.sh/do-not-disrupt": "false"}), &quiet[..], vec![], "goes"),
        ];
        for (annotations, conditions, pods, expected) in table {
            assert_eq!(
                judge(&cluster(&annotations, conditions, &pods)),
                expected,
                "{annotations} {conditions:?} {pods:?}"
            );
        }
    }

    /// CONS-03: a pod that left a moment ago starts the quiet time anew, whatever the condition still says.
    #[test]
    fn the_quiet_time_counts_from_the_last_pod_that_left() {
        let cluster = cluster(&json!({}), &["Initialized", "Consolidatable"], &[]);
        let now = Timestamp::from_second(NOW).unwrap();
        for (left, count) in [(NOW - 1, 1), (NOW, 1)] {
            let events = PodEvents::from([(NodeName::new("n"), Timestamp::from_second(left).unwrap())]);
            assert_eq!(empties(&cluster, &events, now).len(), count, "the pool waits 0s");
        }
        let mut pool = NodePool::clone(cluster.pool(&PoolName::new("p")).unwrap());
        pool.spec.disruption.consolidate_after = NillableDuration::parse("30s").unwrap();
        let mut cluster = cluster;
        cluster.apply(Object::Pool(Arc::new(pool)));
        for (left, count) in [(NOW - 1, 0), (NOW - 30, 1)] {
            let events = PodEvents::from([(NodeName::new("n"), Timestamp::from_second(left).unwrap())]);
            assert_eq!(empties(&cluster, &events, now).len(), count, "left at {left}");
        }
    }

    /// Budgets count the nodes of each pool, going and unready ones as disrupted.
    #[test]
    fn nodes_are_counted_by_pool() {
        let mut cluster = cluster(&json!({}), &["Initialized"], &[]);
        let pool = PoolName::new("p");
        let unready = Census { nodes: 1, disrupted: 1 };
        assert_eq!(
            censuses(&cluster),
            BTreeMap::from([(pool.clone(), unready)]),
            "the node does not say that it is ready"
        );
        let mut node = NodeFacts::clone(cluster.node(&NodeName::new("n")).unwrap());
        node.is_ready = true;
        cluster.apply(Object::Node(Arc::new(node)));
        assert_eq!(censuses(&cluster), BTreeMap::from([(pool, Census { nodes: 1, disrupted: 0 })]));
    }

    /// PROV-53: a nomination, of the node or of its claim, keeps a node until it runs out.
    #[test]
    fn nominated_nodes_stay() {
        for place in [PlaceId::Node(NodeName::new("n")), PlaceId::Claim(ClaimName::new("c"))] {
            for (until, expected) in [(NOW + 1, "Node is nominated for a pending pod"), (NOW, "goes")] {
                let mut cluster = cluster(&json!({}), &["Consolidatable"], &[]);
                cluster.nominate(place.clone(), Timestamp::MIN..Timestamp::from_second(until).unwrap());
                assert_eq!(judge(&cluster), expected, "{place} until {until}");
            }
        }
    }

    /// BUF-12: an empty node on which room is kept stays, whether the plan knew its claim or already its node.
    #[test]
    fn nodes_with_room_for_a_buffer_stay() {
        for place in [PlaceId::Node(NodeName::new("n")), PlaceId::Claim(ClaimName::new("c"))] {
            let mut cluster = cluster(&json!({}), &["Consolidatable"], &[]);
            assert!(!cluster.set_held(BTreeMap::from([(place, 2)])));
            assert_eq!(judge(&cluster), "has buffer pods");
            assert!(cluster.set_held(BTreeMap::new()), "somebody should look at the node");
            assert_eq!(judge(&cluster), "goes");
        }
    }
}
