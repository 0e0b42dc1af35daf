//! When a node that just joined is opened to pods.

use std::sync::Arc;
use std::time::Duration;

use api::lower::{NodeFacts, is_ephemeral_taint};
use api::node_claim::conditions;
use api::{NodeClaim, labels};
use jiff::Timestamp;
use model::ClaimName;
use state::Cluster;

use super::{believed, is_condition_true, is_launched, left_of, name_of};
use crate::context::Context;
use crate::work::Work;

/// A node that is ready this soon after it joined is registered and initialized in one go.
const READY_AT_ONCE: Duration = Duration::from_secs(1);
/// A node that joins while other machines of the same plan are still being launched waits for those launches this long.
const LAUNCHED_AT_ONCE: Duration = Duration::from_secs(5);
/// How often a node that waits looks whether it is over.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Claims that are younger than this are taken for those of one plan.
const ONE_PLAN: Duration = Duration::from_secs(10);

/// How much longer a node that just joined is kept closed.
///
/// No pod can run on it before it is ready, and if it becomes ready at once, one write each to node and claim does for
/// registration and initialization. And nodes of one plan that are ready at once open together: with the first of them
/// alone the scheduler would try all waiting pods in vain, and let them wait for seconds before it tries again. Machines
/// that need longer until they join are not kept waiting.
pub(super) fn time_to_wait(context: &Context, claim: &Arc<NodeClaim>, node: &NodeFacts) -> Option<Duration> {
    let now = context.now();
    let since = *context.notes().joined.entry(name_of(claim)).or_insert(now);
    let company = company(&context.cluster(), claim, now);
    let states: Vec<Companion> = company.iter().map(|(_, state)| *state).collect();
    let left = wait_for(is_ready(node), &states).and_then(|patience| left_of(patience, believed(since, now)?, now));
    if let Some(left) = left {
        return Some(left.min(LOOK_AGAIN));
    }
    for (name, _) in company.into_iter().filter(|(_, state)| *state == Companion::Waits) {
        context.request(Work::Claim(name));
    }
    None
}

/// How long after it joined a node stays closed at most, with such company; nothing if it opens.
fn wait_for(is_ready: bool, company: &[Companion]) -> Option<Duration> {
    if company.contains(&Companion::Launches) {
        Some(LAUNCHED_AT_ONCE)
    } else if !is_ready || company.contains(&Companion::OnItsWay) {
        Some(READY_AT_ONCE)
    } else {
        None
    }
}

/// How far the machine of another claim is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Companion {
    /// Nobody has said yet that there will be one.
    Launches,
    /// Its node is not there or not ready.
    OnItsWay,
    /// Pods could run on its node but for us.
    Waits,
    /// Pods can run on its node.
    Open,
}

impl Companion {
    fn of(claim: &NodeClaim, node: Option<&Arc<NodeFacts>>) -> Self {
        let is_closed = |node: &NodeFacts| node.taints.iter().any(|taint| *taint.key == *labels::UNREGISTERED_TAINT);
        match node {
            _ if !is_launched(claim) => Self::Launches,
            Some(node) if is_ready(node) && is_closed(node) => Self::Waits,
            Some(node) if is_ready(node) => Self::Open,
            _ => Self::OnItsWay,
        }
    }
}

/// Whether pods could run on the node but for us.
fn is_ready(node: &NodeFacts) -> bool {
    let ours = [labels::UNREGISTERED_TAINT, labels::NOT_READY_TAINT];
    let is_fence = |taint: &model::Taint| !ours.contains(&&*taint.key) && is_ephemeral_taint(taint);
    node.is_ready && !node.taints.iter().any(is_fence)
}

/// The other claims of the same plan that have not registered, and how far they are. Nobody, for a machine that took long.
fn company(cluster: &Cluster, claim: &Arc<NodeClaim>, now: Timestamp) -> Vec<(ClaimName, Companion)> {
    let is_young = |claim: &NodeClaim| {
        let created = claim.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        left_of(ONE_PLAN, created, now).is_some()
    };
    let is_expected = |claim: &NodeClaim| {
        claim.metadata.deletion_timestamp.is_none() && !is_condition_true(claim, conditions::REGISTERED)
    };
    if !is_young(claim) {
        return Vec::new();
    }
    let others = cluster.claims().filter(|(name, _)| **name != name_of(claim));
    let company = others.filter(|(_, other)| is_young(other) && is_expected(other));
    company.map(|(name, other)| (name.clone(), Companion::of(other, cluster.node_of(other)))).collect()
}

#[cfg(test)]
mod tests {
    use api::lower::NodeFacts;
    use model::Vocabulary;
    use serde_json::{Value, json};
    use state::{ManagedKind, Object};

    use super::*;

    const NOW: i64 = 1_000;

    fn claim(name: &str, age: i64, conditions: &[&str]) -> Arc<NodeClaim> {
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap().to_string();
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|type_| json!({"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": at(0)}))
            .collect();
        let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
        let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": name, "uid": name, "creationTimestamp": at(NOW - age)},
            "spec": {"requirements": [], "nodeClassRef": class},
            "status": {"providerID": format!("kwok://{name}"), "conditions": conditions}});
        Arc::new(serde_json::from_value(claim).unwrap())
    }

    fn node(name: &str, ready: &str, taints: &[&str]) -> Arc<NodeFacts> {
        let taints: Vec<Value> = taints.iter().map(|key| json!({"key": key, "effect": "NoExecute"})).collect();
        let node = json!({"metadata": {"name": name}, "spec": {"providerID": format!("kwok://{name}"), "taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        Arc::new(NodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap())
    }

    /// A node of a claim of some age waits for those of the same plan, and only for those.
    #[test]
    fn nodes_of_one_plan_open_together() {
        let closed = [labels::UNREGISTERED_TAINT, labels::NOT_READY_TAINT];
        let launched = || claim("other", 2, &["Launched"]);
        let other = |ready: &str, taints: &[&str]| Some(node("other", ready, taints));
        let table = [
            ("alone and not ready", "False", 2, None, None, Some(READY_AT_ONCE)),
            ("alone and ready", "True", 2, None, None, None),
            ("launches", "True", 2, Some(claim("other", 2, &[])), None, Some(LAUNCHED_AT_ONCE)),
            ("a launch of another plan", "True", 2, Some(claim("other", 60, &[])), None, None),
            ("took long itself", "True", 60, Some(claim("other", 2, &[])), None, None),
            ("not there", "True", 2, Some(launched()), None, Some(READY_AT_ONCE)),
            ("not ready", "True", 2, Some(launched()), other("False", &closed), Some(READY_AT_ONCE)),
            ("has a fence", "True", 2, Some(launched()), other("True", &["readiness.k8s.io/x"]), Some(READY_AT_ONCE)),
            ("waits too", "True", 2, Some(launched()), other("True", &closed), None),
            ("is open", "True", 2, Some(launched()), other("True", &[]), None),
            ("registered", "True", 2, Some(claim("other", 2, &["Launched", "Registered"])), None, None),
        ];
        for (title, ready, age, other, other_node, expected) in table {
            let managed = ManagedKind { group: "karpenter.kwok.sh".to_owned(), kind: "KWOKNodeClass".to_owned() };
            let mut cluster = Cluster::new(Arc::new(Vocabulary::core()), managed);
            let own = claim("own", age, &["Launched"]);
            cluster.apply(Object::Claim(Arc::clone(&own)));
            other.into_iter().for_each(|other| drop(cluster.apply(Object::Claim(other))));
            other_node.into_iter().for_each(|node| drop(cluster.apply(Object::Node(node))));
            let company = company(&cluster, &own, Timestamp::from_second(NOW).unwrap());
            let states: Vec<Companion> = company.iter().map(|(_, state)| *state).collect();
            assert_eq!(wait_for(is_ready(&node("own", ready, &closed)), &states), expected, "{title}");
        }
    }
}
