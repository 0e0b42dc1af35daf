//! Taking away what is no longer needed. For now: nodes that are empty.

mod budget;
mod emptiness;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::NodeClaim;
use model::PoolName;
use tokio::time::Instant;

use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};
use crate::lifecycle::{labels_of, name_of, termination_mode};
use crate::work::{Next, Outcome};
use crate::write::{self, WriteError};
use emptiness::{Blocker, Candidate};

/// Candidates are looked at this often, should nothing change before.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Ends empty nodes, as many as their pools' budgets allow.
pub(crate) async fn reconcile(context: &Context) -> Outcome {
    let now = context.now();
    let began = Instant::now();
    let (candidates, mut allowed) = {
        let cluster = context.cluster();
        // Nominations live in memory. After a restart one pass has to renew them before an empty node is known to be
        // unwanted.
        if cluster.waiting().next().is_some() && context.notes().passes == 0 {
            return Ok(Next::After(Duration::from_secs(1)));
        }
        let candidates = emptiness::candidates(&cluster, &context.notes().pod_events, now);
        told::budgets(context, cluster.pools().map(|(name, pool)| (name, &**pool, emptiness::census(&cluster, name))));
        let pools: BTreeMap<PoolName, usize> = cluster
            .pools()
            .map(|(name, pool)| (name.clone(), budget::allowed(pool, &emptiness::census(&cluster, name), now)))
            .collect();
        (candidates, pools)
    };
    told::looked(
        &context.metrics,
        candidates.iter().filter(|candidate| candidate.blocker.is_none()).count(),
        began.elapsed(),
    );
    let mut is_left_over = false;
    for Candidate { claim, node, blocker } in candidates {
        let pool = PoolName::new(labels_of(&claim).pool.as_str());
        if let Some(blocker) = blocker {
            is_left_over = true;
            report_blocked(context, &claim, &node, &blocker);
            continue;
        }
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

async fn end(context: &Context, claim: &Arc<NodeClaim>, node: &api::lower::NodeFacts) -> Result<(), write::WriteError> {
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

fn report_blocked(context: &Context, claim: &NodeClaim, node: &api::lower::NodeFacts, blocker: &Blocker) {
    let now = context.now();
    for about in [about::node(node), about::claim(claim)] {
        let message = blocker.to_string();
        let notice = Notice { about, tone: Tone::Normal, reason: "DisruptionBlocked", message, quiet: QUIET };
        context.recorder.publish(now, notice);
    }
}
