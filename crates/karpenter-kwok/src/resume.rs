//! Which machines were launched before a restart and still wait for their Node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::node_claim::conditions::{LAUNCHED, REGISTERED};
use api::{Condition, ConditionStatus, NodeClaim};
use cloud::{LaunchId, LaunchRequest};
use jiff::Timestamp;
use model::{NodeName, ProviderId};

use crate::{claim, node};

/// What the cluster holds at the start.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// All claims.
    pub claims: Vec<Arc<NodeClaim>>,
    /// The names of all nodes.
    pub nodes: BTreeSet<NodeName>,
    /// The delay of each KWOKNodeClass, by its name; a class that is not here has none.
    pub delays: BTreeMap<String, Duration>,
}

/// A launch whose Node is still to come.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// The launch.
    pub request: LaunchRequest,
    /// How long the Node has yet to wait.
    pub remaining: Duration,
}

/// The launches that a restart interrupted, in the order of the claims.
///
/// A claim whose node once registered has lost it for good: that is for the lifecycle to notice, not for us to mend.
pub fn unfinished(found: &Found, now: Timestamp) -> Vec<Unfinished> {
    let waiting = |claim: &Arc<NodeClaim>| {
        let launched_at = launched_at(claim)?;
        let id = LaunchId::of(claim)?;
        let name = node::node_name(claim::name(claim), &id);
        let recorded = claim.status.as_ref()?.provider_id.as_deref().map(ProviderId::new)?;
        if recorded != node::provider_id(&name) || found.nodes.contains(&name) {
            return None;
        }
        let delay = found.delays.get(&claim.spec.node_class_ref.name).copied().unwrap_or_default();
        let waited = Duration::try_from(now.duration_since(launched_at)).unwrap_or_default();
        let request = LaunchRequest { id, claim: Arc::clone(claim) };
        Some(Unfinished { request, remaining: delay.saturating_sub(waited) })
    };
    found.claims.iter().filter_map(waiting).collect()
}

/// When a claim was launched that is neither registered nor going.
fn launched_at(claim: &NodeClaim) -> Option<Timestamp> {
    if claim.metadata.deletion_timestamp.is_some() || holds(claim, REGISTERED).is_some() {
        return None;
    }
    holds(claim, LAUNCHED).map(|condition| condition.last_transition_time.0)
}

fn holds<'a>(claim: &'a NodeClaim, type_: &str) -> Option<&'a Condition> {
    let mut conditions = claim.status.as_ref()?.conditions.as_ref()?.iter();
    conditions.find(|condition| condition.type_ == type_ && condition.status == ConditionStatus::True)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LAUNCHED_AT: &str = "2026-01-01T00:00:00Z";

    fn claim(change: impl Fn(&mut Value)) -> Arc<NodeClaim> {
        let name = node::node_name("one", &LaunchId::new("launch-1"));
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": "one", "annotations": {"karpenter.sh/launch-id": "launch-1"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "slow"},
                "requirements": [],
            },
            "status": {
                "providerID": node::provider_id(&name).as_str(),
                "conditions": [
                    {"type": "Launched", "status": "True", "lastTransitionTime": LAUNCHED_AT},
                    {"type": "Registered", "status": "Unknown", "lastTransitionTime": LAUNCHED_AT},
                ],
            },
        });
        change(&mut claim);
        Arc::new(serde_json::from_value(claim).unwrap())
    }

    fn remaining(claim: Arc<NodeClaim>, nodes: &[&str], seconds_later: i64) -> Option<u64> {
        let found = Found {
            claims: vec![claim],
            nodes: nodes.iter().copied().map(NodeName::new).collect(),
            delays: BTreeMap::from([("slow".to_owned(), Duration::from_secs(60))]),
        };
        let launched_at: Timestamp = LAUNCHED_AT.parse().unwrap();
        let now = Timestamp::from_second(launched_at.as_second() + seconds_later).unwrap();
        unfinished(&found, now).first().map(|unfinished| unfinished.remaining.as_secs())
    }

    /// KWOK-06: a restart neither shortens nor forgets the delay.
    #[test]
    fn the_rest_of_the_delay_is_waited_for() {
        for (seconds_later, expected) in [(-5, 60), (0, 60), (20, 40), (60, 0), (3600, 0)] {
            assert_eq!(remaining(claim(|_| ()), &[], seconds_later), Some(expected), "{seconds_later}");
        }
        let other_class = claim(|claim| claim["spec"]["nodeClassRef"]["name"] = json!("gone"));
        assert_eq!(remaining(other_class, &[], 20), Some(0));
    }

    #[test]
    fn only_launches_without_a_node_are_unfinished() {
        let name = node::node_name("one", &LaunchId::new("launch-1"));
        assert_eq!(remaining(claim(|_| ()), &[name.as_str()], 20), None);
        let changes: [fn(&mut Value); 6] = [
            |claim| claim["metadata"]["deletionTimestamp"] = json!(LAUNCHED_AT),
            |claim| claim["status"]["conditions"][1]["status"] = json!("True"),
            |claim| claim["status"]["conditions"][0]["status"] = json!("Unknown"),
            |claim| claim["status"]["providerID"] = json!(null),
            |claim| claim["status"]["providerID"] = json!("aws:///us-west-2a/i-1"),
            |claim| claim["metadata"]["annotations"] = json!({}),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            assert_eq!(remaining(claim(change), &[], 20), None, "change {index}");
        }
    }
}
