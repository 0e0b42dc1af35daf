//! Taking away what is no longer needed. For now: nodes that are empty.

mod budget;
mod emptiness;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::NodeClaim;
use model::PoolName;

use crate::context::Context;
use crate::events::{Notice, QUIET, Tone, about};
use crate::lifecycle::{labels_of, name_of, termination_mode};
use crate::work::{Next, Outcome};
use crate::write;
use emptiness::{Blocker, Candidate};

/// Candidates are looked at this often, should nothing change before.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Ends empty nodes, as many as their pools' budgets allow.
pub(crate) async fn reconcile(context: &Context) -> Outcome {
    let now = context.now();
    let (candidates, mut allowed) = {
        let cluster = context.cluster();
        // Nominations live in memory. After a restart one pass has to renew them before an empty node is known to be
        // unwanted.
        if cluster.waiting().next().is_some() && context.notes().passes == 0 {
            return Ok(Next::After(Duration::from_secs(1)));
        }
        let candidates = emptiness::candidates(&cluster, &context.notes().pod_events, now);
        let pools: BTreeMap<PoolName, usize> = cluster
            .pools()
            .map(|(name, pool)| (name.clone(), budget::allowed(pool, &emptiness::census(&cluster, name), now)))
            .collect();
        (candidates, pools)
    };
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
    write::delete_claim(context, claim).await?;
    context.metrics.claim_disrupted("empty", labels_of(claim), termination_mode(claim));
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

fn report_blocked(context: &Context, claim: &NodeClaim, node: &api::lower::NodeFacts, blocker: &Blocker) {
    let now = context.now();
    for about in [about::node(node), about::claim(claim)] {
        let message = blocker.to_string();
        let notice = Notice { about, tone: Tone::Normal, reason: "DisruptionBlocked", message, quiet: QUIET };
        context.recorder.publish(now, notice);
    }
}
