//! Plans with room to spare where the scheduler would leave pods over.

use std::sync::Arc;

use model::{Plan, Snapshot};

use super::untried::is_scheduler_at_work;
use crate::context::Context;

/// Room is added so often at most: every time costs a rehearsal, and room for a hundredth of the pods.
const ROUNDS_MAX: usize = 2;

/// The plan for a snapshot, with so much room to spare that the scheduler should leave nobody over; and the snapshot, with
/// pods that stand for that room.
///
/// A pod that is left over needs a node of its own many seconds later; the room for it costs no more now. While the
/// scheduler is at work nodes fill otherwise than planned anyway, and nothing is added.
pub(super) async fn solved(context: &Context, snapshot: Arc<Snapshot>) -> Option<(Arc<Snapshot>, Plan)> {
    let mut snapshot = snapshot;
    let mut plan = Arc::new(context.solver.solve(Arc::clone(&snapshot), context.place_config).await?);
    if is_scheduler_at_work(context) {
        return Some((snapshot, Arc::unwrap_or_clone(plan)));
    }
    for _ in 0..ROUNDS_MAX {
        let Some(room) = context.solver.room_to_spare(Arc::clone(&snapshot), Arc::clone(&plan)).await else { break };
        let pods = room.pending.clone();
        // Room that cannot be had is not missed: everybody has a place.
        let Some(more) = context.solver.solve(Arc::new(room), context.place_config).await else { break };
        if more.claims.is_empty() {
            break;
        }
        tracing::info!(nodeclaims = more.claims.len(), pods = pods.len(), price = %more.price(), "adding room to spare");
        Arc::make_mut(&mut snapshot).pending.extend(pods);
        Arc::make_mut(&mut plan).claims.extend(more.claims);
    }
    Some((snapshot, Arc::unwrap_or_clone(plan)))
}
