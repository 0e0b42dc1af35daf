//! When a node that just joined is opened to pods.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::lower::{NodeFacts, is_ephemeral_taint};
use api::node_claim::conditions;
use api::{NodeClaim, labels};
use jiff::Timestamp;
use model::ClaimName;
use state::Cluster;

use super::{believed, is_condition_true, left_of, name_of};
use crate::context::Context;
use crate::work::Work;

/// A node that is ready this soon after it joined is registered and initialized in one go.
const READY_AT_ONCE: Duration = Duration::from_secs(1);
/// A node that joins while other machines of the same plan are still on their way waits for them this long.
const READY_TOGETHER: Duration = Duration::from_secs(5);
/// How often a node that waits looks whether it is over.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// What was seen of a plan's machines is good for so long: each of a thousand nodes looking at all others would be all
/// that is done.
const GLANCE: Duration = Duration::from_millis(100);
/// Claims that are younger than this are taken for those of one plan.
const ONE_PLAN: Duration = Duration::from_secs(10);

/// How much longer a node that just joined is kept closed.
///
/// No pod can run on it before it is ready, and if it becomes ready at once, one write each to node and claim does for
/// registration and initialization. And nodes of one plan that come soon after one another open together: with the first
/// of them alone the scheduler would try all waiting pods in vain, and let them wait for seconds before it tries again.
/// Machines that need longer until they join are not kept waiting.
pub(super) fn time_to_wait(context: &Context, claim: &Arc<NodeClaim>, node: &NodeFacts) -> Option<Duration> {
    let now = context.now();
    let name = name_of(claim);
    let since = *context.notes().joined.entry(name.clone()).or_insert(now);
    let company = if is_young(claim, now) { glance(context, now) } else { Arc::default() };
    let patience = company.patience(&name, is_ready(node))?;
    let left = left_of(patience, believed(since, now)?, now)?;
    Some(left.min(LOOK_AGAIN))
}

/// The machines of the last plan, as they were a moment ago at most. Nodes that waited for the last of them are called.
fn glance(context: &Context, now: Timestamp) -> Arc<Company> {
    let last = context.notes().company.clone();
    let is_fresh = |(at, _): &(Timestamp, Arc<Company>)| *at <= now && left_of(GLANCE, *at, now).is_some();
    if let Some((_, company)) = last.filter(is_fresh) {
        return company;
    }
    let company = Arc::new(Company::of(&context.cluster(), now));
    context.notes().company = Some((now, Arc::clone(&company)));
    if company.on_their_way.is_empty() {
        company.waiting.iter().for_each(|name| context.request(Work::Claim(name.clone())));
    }
    company
}

/// The claims of one plan that have not registered.
#[derive(Debug, Default)]
pub(crate) struct Company {
    /// They are being launched, or their nodes are not there or not ready.
    on_their_way: BTreeSet<ClaimName>,
    /// Pods could run on their nodes but for us.
    waiting: BTreeSet<ClaimName>,
    /// How many have a node on which pods can run already.
    open: usize,
}

impl Company {
    fn of(cluster: &Cluster, now: Timestamp) -> Self {
        let is_expected = |claim: &NodeClaim| {
            claim.metadata.deletion_timestamp.is_none() && !is_condition_true(claim, conditions::REGISTERED)
        };
        let mut company = Self::default();
        for (name, claim) in cluster.claims().filter(|(_, claim)| is_young(claim, now) && is_expected(claim)) {
            match cluster.node_of(claim).filter(|node| is_ready(node)) {
                None => drop(company.on_their_way.insert(name.clone())),
                Some(node) if is_closed(node) => drop(company.waiting.insert(name.clone())),
                Some(_) => company.open += 1,
            }
        }
        company
    }

    /// How long after it joined the node of this claim stays closed at most; nothing if it opens.
    fn patience(&self, name: &ClaimName, is_ready: bool) -> Option<Duration> {
        let itself = |claims: &BTreeSet<ClaimName>| usize::from(claims.contains(name));
        let expected = self.on_their_way.len() - itself(&self.on_their_way);
        let others = expected + self.waiting.len() - itself(&self.waiting) + self.open;
        match others {
            _ if is_ready && expected == 0 => None,
            0 => Some(READY_AT_ONCE),
            _ => Some(READY_TOGETHER),
        }
    }
}

/// Whether the claim may belong to the last plan.
fn is_young(claim: &NodeClaim, now: Timestamp) -> bool {
    let created = claim.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    left_of(ONE_PLAN, created, now).is_some()
}

fn is_closed(node: &NodeFacts) -> bool {
    node.taints.iter().any(|taint| *taint.key == *labels::UNREGISTERED_TAINT)
}

/// Whether pods could run on the node but for us.
fn is_ready(node: &NodeFacts) -> bool {
    let ours = [labels::UNREGISTERED_TAINT, labels::NOT_READY_TAINT];
    let is_fence = |taint: &model::Taint| !ours.contains(&&*taint.key) && is_ephemeral_taint(taint);
    node.is_ready && !node.taints.iter().any(is_fence)
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
            ("launches", "True", 2, Some(claim("other", 2, &[])), None, Some(READY_TOGETHER)),
            ("a launch of another plan", "True", 2, Some(claim("other", 60, &[])), None, None),
            ("took long itself", "True", 60, Some(claim("other", 2, &[])), None, None),
            ("not there", "True", 2, Some(launched()), None, Some(READY_TOGETHER)),
            ("not ready", "True", 2, Some(launched()), other("False", &closed), Some(READY_TOGETHER)),
            ("has a fence", "True", 2, Some(launched()), other("True", &["readiness.k8s.io/x"]), Some(READY_TOGETHER)),
            ("neither is ready", "False", 2, Some(launched()), other("False", &closed), Some(READY_TOGETHER)),
            ("not ready as others", "False", 2, Some(launched()), other("True", &closed), Some(READY_TOGETHER)),
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
            let now = Timestamp::from_second(NOW).unwrap();
            let company = if is_young(&own, now) { Company::of(&cluster, now) } else { Company::default() };
            let is_ready = is_ready(&node("own", ready, &closed));
            assert_eq!(company.patience(&name_of(&own), is_ready), expected, "{title}");
        }
    }
}
