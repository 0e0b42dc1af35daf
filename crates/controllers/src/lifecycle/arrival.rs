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
/// How often a node that waits for launches looks whether they are over.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Claims made within this time of each other come from one plan.
const ONE_PLAN: Duration = Duration::from_secs(10);

/// How much longer a node that just joined is kept closed.
///
/// No pod can run on it before it is ready, and if it becomes ready at once, one write each to node and claim does for
/// registration and initialization. And nodes of one plan that are ready at once open together: with the first of them
/// alone the scheduler would try all waiting pods in vain, and let them wait for seconds before it tries again. Machines
/// that need longer than a launch takes until they join are not kept waiting.
pub(super) fn time_to_wait(context: &Context, claim: &Arc<NodeClaim>, node: &NodeFacts) -> Option<Duration> {
    let now = context.now();
    let since = *context.notes().joined.entry(name_of(claim)).or_insert(now);
    let since = believed(since, now)?;
    let left = left_of(READY_AT_ONCE, since, now);
    let company = company(&context.cluster(), claim, now);
    let is_any = |state: Companion| company.iter().any(|(_, found)| *found == state);
    if is_any(Companion::Launches) {
        return left_of(LAUNCHED_AT_ONCE, since, now).map(|left| left.min(LOOK_AGAIN));
    }
    if !is_ready(node) || is_any(Companion::OnItsWay) {
        return left;
    }
    for (name, _) in company.into_iter().filter(|(_, state)| *state == Companion::Waits) {
        context.request(Work::Claim(name));
    }
    None
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

/// The other claims of the same plan that have not registered, and how far they are.
fn company(cluster: &Cluster, claim: &Arc<NodeClaim>, now: Timestamp) -> Vec<(ClaimName, Companion)> {
    let is_young = |claim: &NodeClaim| {
        let created = claim.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        left_of(ONE_PLAN, created, now).is_some()
    };
    let is_expected = |claim: &NodeClaim| {
        claim.metadata.deletion_timestamp.is_none() && !is_condition_true(claim, conditions::REGISTERED)
    };
    let others = cluster.claims().filter(|(name, _)| **name != name_of(claim));
    let company = others.filter(|(_, other)| is_young(other) && is_expected(other));
    company.map(|(name, other)| (name.clone(), Companion::of(other, cluster.node_of(other)))).collect()
}
