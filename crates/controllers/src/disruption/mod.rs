//! Taking away what is no longer needed. For now: nodes that are empty.

pub(crate) mod budget;
pub(crate) mod candidate;
pub(crate) mod cost;
pub(crate) mod emptiness;
mod protection;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::lower::NodeFacts;
use api::node_pool::DisruptionReason;
use api::{NodeClaim, NodePool};
use k8s_openapi::api::core::v1::ObjectReference;
use model::PoolName;
use tokio::time::Instant;

use crate::context::Context;
use crate::events::{Notice, QUIET, Quiet, Tone, about};
use crate::lifecycle::{labels_of, name_of, termination_mode};
use crate::provisioning;
use crate::work::{Next, Outcome};
use crate::write::{self, WriteError};
use candidate::Candidate;
use emptiness::{Empty, Kept};

/// Candidates are looked at this often, should nothing change before.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// That a node cannot be consolidated is told once in a quarter of an hour, for whatever reason.
const LONG_QUIET: Quiet = Quiet::of_reason(Duration::from_secs(15 * 60));

/// Ends empty nodes, as many as their pools' budgets allow.
pub(crate) async fn reconcile(context: &Context) -> Outcome {
    provisioning::learn_types(context).await;
    let now = context.now();
    let began = Instant::now();
    let (empties, mut allowed) = {
        let cluster = context.cluster();
        // Nominations, and the room that is kept for buffers, live in memory. After a restart one pass has to renew them
        // before an empty node is known to be unwanted.
        if cluster.wants_room() && context.notes().passes == 0 {
            return Ok(Next::After(Duration::from_secs(1)));
        }
        let empties = emptiness::empties(&cluster, &context.notes().pod_events, now);
        let censuses = emptiness::censuses(&cluster);
        let census_of = |name: &PoolName| censuses.get(name).copied().unwrap_or_default();
        told::budgets(context, cluster.pools().map(|(name, pool)| (name, &**pool, census_of(name))));
        let allowed = |(name, pool): (&PoolName, &Arc<NodePool>)| {
            (name.clone(), budget::allowed(pool, DisruptionReason::Empty, &census_of(name), now))
        };
        let pools: BTreeMap<PoolName, usize> = cluster.pools().map(allowed).collect();
        (empties, pools)
    };
    let unwanted = empties.iter().filter(|empty| matches!(empty, Empty::Unwanted(_))).count();
    told::looked(&context.metrics, unwanted, began.elapsed());
    let mut is_left_over = protection::tell(context, now);
    for empty in empties {
        let Candidate { claim, node, pool } = match empty {
            Empty::Unwanted(candidate) => candidate,
            Empty::Kept { claim, node, by } => {
                // Whoever finds other room says so; only what blocks may pass unnoticed.
                is_left_over |= matches!(by, Kept::Blocked(_));
                report_kept(context, &claim, &node, &by);
                continue;
            }
        };
        let pool = PoolName::new(pool.metadata.name.as_deref().unwrap_or_default());
        let room = allowed.entry(pool).or_insert(0);
        if *room == 0 {
            is_left_over = true;
            continue;
        }
        *room -= 1;
        end(context, &claim, &node).await?;
    }
    Ok(if is_left_over { Next::After(LOOK_AGAIN) } else { Next::OnChange })
}

async fn end(context: &Context, claim: &Arc<NodeClaim>, node: &NodeFacts) -> Result<(), write::WriteError> {
    tracing::info!(NodeClaim.name = %name_of(claim), Node.name = %node.name, reason = "empty", "disrupting node(s)");
    match write::delete_claim(context, claim).await {
        Err(WriteError::Observed { .. }) => {
            would_end(context, claim);
            return Ok(());
        }
        deleted => deleted?,
    }
    context.metrics.claim_disrupted("empty", labels_of(claim), termination_mode(claim));
    told::ended(&context.metrics, &labels_of(claim).pool);
    let now = context.now();
    let told = [
        (about::node(node), "Disrupting Node: Empty".to_owned()),
        (about::claim(claim), "Disrupting NodeClaim: Empty".to_owned()),
    ];
    for (about, message) in told {
        let notice = Notice { about, tone: Tone::Normal, reason: "DisruptionTerminating", message, quiet: QUIET };
        context.recorder.publish(now, notice);
    }
    Ok(())
}

/// A node that a process that only observes would have ended; told of once.
fn would_end(context: &Context, claim: &Arc<NodeClaim>) {
    let uid = claim.metadata.uid.clone().unwrap_or_default();
    if context.notes().observed_claims.insert(uid) {
        context.metrics.own.decisions.inc(["delete", &labels_of(claim).pool]);
        tracing::info!(NodeClaim.name = %name_of(claim), reason = "empty", "would have disrupted node(s)");
    }
}

/// Tells why a node stays, at the node and at its claim.
fn report_kept(context: &Context, claim: &NodeClaim, node: &NodeFacts, kept: &Kept) {
    for about in [about::node(node), about::claim(claim)] {
        context.recorder.publish(context.now(), stays(about, node, kept));
    }
}

fn stays(about: ObjectReference, node: &NodeFacts, kept: &Kept) -> Notice {
    let (reason, message, quiet) = match kept {
        Kept::Blocked(blocked) => ("DisruptionBlocked", blocked.sentence(), QUIET),
        Kept::ForBuffer => ("Unconsolidatable", format!("Node \"{}\" has buffer pods", node.name), LONG_QUIET),
    };
    Notice { about, tone: Tone::Normal, reason, message, quiet }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use candidate::Blocked;

    /// OBS-13, BUF-12: why a node stays, in words, and for how long that is not said again.
    #[test]
    fn a_node_says_why_it_stays() {
        let node =
            NodeFacts::lower(&serde_json::from_value(json!({"metadata": {"name": "n", "uid": "n"}})).unwrap()).unwrap();
        let table = [
            (
                Kept::Blocked(Blocked::Nominated),
                "Normal DisruptionBlocked: Node is nominated for a pending pod (Quiet { length: 120s, sameness: Words })",
            ),
            (
                Kept::ForBuffer,
                "Normal Unconsolidatable: Node \"n\" has buffer pods (Quiet { length: 900s, sameness: Reason })",
            ),
        ];
        for (kept, expected) in table {
            let Notice { tone, reason, message, quiet, .. } = stays(about::node(&node), &node, &kept);
            assert_eq!(format!("{tone:?} {reason}: {message} ({quiet:?})"), expected);
        }
    }
}
