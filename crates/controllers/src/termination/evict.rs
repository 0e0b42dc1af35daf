//! Evicting one pod of a node that is going, and what to say when that is refused.

use std::sync::Arc;
use std::time::Duration;

use api::lower::{BudgetFacts, NodeFacts, PodFacts};
use api::node_claim::conditions;
use api::{NodeClaim, labels};
use jiff::Timestamp;
use model::PodKey;

use super::{deadline, drain};
use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};
use crate::metrics::HeldBack;
use crate::work::{Next, Outcome};
use crate::write::{self, Evicted};

/// By then our watch shows that a pod is going; until then nobody asks again.
const HEARD_OF: Duration = Duration::from_secs(1);

/// The reason of an end that nobody gave a reason for.
const FORCED: &str = "Forceful Termination";

/// Evicts one pod of a node that is going. A budget that holds it back is respected.
pub(crate) async fn evict(context: &Context, key: &PodKey, uid: &str) -> Outcome {
    let Some(Evictable { pod, node, claim }) = evictable(context, key, uid) else { return Ok(Next::OnChange) };
    let now = context.now();
    let is_forced = drain::forced_grace(&pod, deadline(claim.as_deref())?, now).is_some();
    if is_forced || pod.deletion.is_some() || pod.protection.is_active(now) {
        return Ok(Next::OnChange);
    }
    match write::evict(context, &pod).await? {
        Evicted::Gone => Ok(Next::OnChange),
        Evicted::Accepted => {
            let reason = claim.map_or(FORCED.to_owned(), |claim| eviction_reason(&claim));
            context.metrics.pods.drained.inc([&reason]);
            tell(context, about::pod(&pod), Tone::Normal, "Evicted", format!("Evicted pod: {reason}"));
            Ok(Next::After(HEARD_OF))
        }
        Evicted::HeldBack => {
            let budgets: Vec<Arc<BudgetFacts>> = context.cluster().budgets_of(&pod).cloned().collect();
            let hold = Hold::of(&budgets);
            hold_back(context, &pod, &node, &hold);
            Ok(Next::BackOff)
        }
        Evicted::SeveralBudgets => {
            hold_back(context, &pod, &node, &Hold::Several);
            Ok(Next::BackOff)
        }
    }
}

/// Ends one pod of a node whose time is up, whatever holds it back.
pub(crate) async fn force_out(context: &Context, key: &PodKey, uid: &str) -> Outcome {
    let Some(Evictable { pod, claim, .. }) = evictable(context, key, uid) else { return Ok(Next::OnChange) };
    let deadline = deadline(claim.as_deref())?;
    let forced_grace = drain::forced_grace(&pod, deadline, context.now());
    let Some((deadline, grace)) = deadline.zip(forced_grace) else { return Ok(Next::OnChange) };
    write::delete_pod(context, key, uid, grace).await?;
    context.metrics.pods.drained.inc([FORCED]);
    tell(context, about::pod(&pod), Tone::Normal, "Disrupted", forced(&pod, deadline, grace.as_secs()));
    Ok(Next::After(HEARD_OF))
}

struct Evictable {
    pod: Arc<PodFacts>,
    node: Arc<NodeFacts>,
    claim: Option<Arc<NodeClaim>>,
}

/// The pod, if it is still the same one, still on a node of ours that is going, and still has to leave.
fn evictable(context: &Context, key: &PodKey, uid: &str) -> Option<Evictable> {
    let cluster = context.cluster();
    let pod = cluster.pod(key).filter(|pod| &*pod.uid == uid)?;
    let node = cluster.node(pod.node.as_ref()?)?;
    let is_ours = cluster.is_managed_node(node) && node.has_finalizer(labels::TERMINATION_FINALIZER);
    let is_going = is_ours && node.deletion.is_some();
    let claim = cluster.claim_of(node).cloned();
    is_going.then(|| Evictable { pod: Arc::clone(pod), node: Arc::clone(node), claim })
}

/// What keeps the eviction API from evicting a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hold {
    /// Too few of its fellows are healthy now; that may change.
    Now,
    /// Its budget will never allow it, as long as budget and pods are what they are.
    Never { budget: String },
    /// It has several budgets.
    Several,
}

impl Hold {
    fn of(budgets: &[Arc<BudgetFacts>]) -> Self {
        let never = budgets.iter().find(|budget| budget.can_never_allow());
        never.map_or(Self::Now, |budget| Self::Never { budget: format!("{}/{}", budget.namespace, budget.name) })
    }

    fn metric(&self) -> HeldBack {
        match self {
            Self::Now => HeldBack::BudgetExhausted,
            Self::Never { .. } => HeldBack::BudgetNeverAllows,
            Self::Several => HeldBack::SeveralBudgets,
        }
    }

    fn words(&self) -> &'static str {
        match self {
            Self::Now | Self::Never { .. } => "evicting pod violates a PDB",
            Self::Several => "eviction does not support multiple PDBs",
        }
    }
}

/// Says on the node why it does not drain. What no waiting will change is said on the pod as well: its owner has to do
/// something.
fn hold_back(context: &Context, pod: &PodFacts, node: &NodeFacts, hold: &Hold) {
    context.metrics.eviction_held_back(hold.metric());
    let key = format!("{}/{}", pod.key.namespace, pod.key.name);
    let message = format!("Failed to drain node, {} (Pod={key})", hold.words());
    tell(context, about::node(node), Tone::Warning, "FailedDraining", message);
    if let Hold::Never { budget } = hold {
        let message = format!(
            "PodDisruptionBudget {budget} can never allow the eviction of pod {key}: it wants all of its pods available. \
             Change the budget, run more pods, or set a terminationGracePeriod"
        );
        for about in [about::node(node), about::pod(pod)] {
            tell(context, about, Tone::Warning, "DisruptionBudgetNeverAllows", message.clone());
        }
    }
}

fn tell(
    context: &Context,
    about: k8s_openapi::api::core::v1::ObjectReference,
    tone: Tone,
    reason: &'static str,
    message: String,
) {
    context.recorder.publish(context.now(), Notice { about, tone, reason, message, quiet: QUIET });
}

/// Why a pod was deleted and what it was granted, in the words that people search for.
fn forced(pod: &PodFacts, deadline: Timestamp, granted_seconds: u64) -> String {
    let deadline = deadline.strftime("%Y-%m-%d %H:%M:%S +0000 UTC");
    let own_seconds = pod.grace.as_secs();
    format!(
        "Deleting the pod to accommodate the terminationTime {deadline} of the node. The pod was granted \
         {granted_seconds} seconds of grace-period of its {own_seconds} terminationGracePeriodSeconds. This bypasses the \
         PDB of the pod and the do-not-disrupt annotation."
    )
}

fn eviction_reason(claim: &NodeClaim) -> String {
    let conditions = claim.status.as_ref().and_then(|status| status.conditions.as_ref());
    let disruption = conditions.into_iter().flatten().find(|found| found.type_ == conditions::DISRUPTION_REASON);
    disruption.map_or(FORCED.to_owned(), |found| found.reason.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn budget(name: &str, spec: serde_json::Value) -> Arc<BudgetFacts> {
        let budget = json!({"metadata": {"namespace": "shop", "name": name}, "spec": spec});
        Arc::new(BudgetFacts::lower(&serde_json::from_value(budget).unwrap()).unwrap())
    }

    /// A budget that is used up is told from one that never allows anything.
    #[test]
    fn budgets_hold_for_now_or_for_ever() {
        let some = budget("some", json!({"minAvailable": 2}));
        let none = budget("none", json!({"maxUnavailable": 0}));
        let table = [
            (vec![], Hold::Now, "budget_exhausted"),
            (vec![Arc::clone(&some)], Hold::Now, "budget_exhausted"),
            (vec![some, none], Hold::Never { budget: "shop/none".to_owned() }, "budget_never_allows"),
        ];
        for (budgets, expected, metric) in table {
            let hold = Hold::of(&budgets);
            assert_eq!((&hold, hold.metric().as_str()), (&expected, metric));
        }
    }

    /// TERM-23: the reason of the disruption, or that there was none.
    #[test]
    fn the_reason_for_an_eviction() {
        let claim = |conditions: serde_json::Value| -> NodeClaim {
            serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"},
                "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
                "status": {"conditions": conditions},
            }))
            .unwrap()
        };
        let time = "2026-01-01T00:00:00Z";
        let drifted = json!([{"type": "DisruptionReason", "status": "True", "reason": "Drifted", "message": "Drifted",
            "lastTransitionTime": time}]);
        assert_eq!(eviction_reason(&claim(drifted)), "Drifted");
        assert_eq!(eviction_reason(&claim(json!([]))), "Forceful Termination");
    }
}
