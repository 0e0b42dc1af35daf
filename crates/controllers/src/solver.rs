//! Where the planner runs.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use model::{Plan, Snapshot};
use planner::{Interrupt, PlaceConfig};

/// Runs one solve. In production on a thread of its own, so that watches and drains go on meanwhile.
pub trait Solver: Send + Sync + 'static {
    /// The plan for a snapshot; `None` when the solve could not be finished, which is counted and tried again.
    ///
    /// Whoever drops the future does not want the plan any more: a leader that lost its Lease, a process that ends.
    fn solve(&self, snapshot: Arc<Snapshot>, config: PlaceConfig) -> BoxFuture<'static, Option<Plan>>;

    /// What to solve beside a plan, so that it has room to spare; see [`planner::room_to_spare`].
    fn room_to_spare(&self, snapshot: Arc<Snapshot>, plan: Arc<Plan>) -> BoxFuture<'static, Option<Snapshot>>;
}

/// Solves on the runtime's blocking threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadSolver;

/// Interrupts a solve when nobody waits for it.
struct Awaited(Arc<Interrupt>);

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.raise();
    }
}

impl Solver for ThreadSolver {
    fn solve(&self, snapshot: Arc<Snapshot>, config: PlaceConfig) -> BoxFuture<'static, Option<Plan>> {
        let awaited = Awaited(Arc::new(Interrupt::new()));
        let interrupt = Arc::clone(&awaited.0);
        let solve = tokio::task::spawn_blocking(move || planner::place_until(&snapshot, &config, &interrupt));
        // A broken invariant in the planner ends that thread, not the controller: one failed pass.
        async move {
            let plan = solve.await.ok();
            drop(awaited);
            plan
        }
        .boxed()
    }

    fn room_to_spare(&self, snapshot: Arc<Snapshot>, plan: Arc<Plan>) -> BoxFuture<'static, Option<Snapshot>> {
        let rehearsal = tokio::task::spawn_blocking(move || planner::room_to_spare(&snapshot, &plan));
        // A rehearsal that breaks off is told on standard error like any panic; the plan is good without it.
        async move { rehearsal.await.ok().flatten() }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_solve_that_nobody_waits_for_is_interrupted() {
        let awaited = Awaited(Arc::new(Interrupt::new()));
        let interrupt = Arc::clone(&awaited.0);
        let waiting = async move {
            std::future::pending::<()>().await;
            drop(awaited);
        };
        assert!(!interrupt.is_raised());
        drop(waiting);
        assert!(interrupt.is_raised());
    }
}
