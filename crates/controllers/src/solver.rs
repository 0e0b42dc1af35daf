//! Where the planner runs.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use model::{Plan, Snapshot};
use planner::PlaceConfig;

/// Runs one solve. In production on a thread of its own, so that watches and drains go on meanwhile.
pub trait Solver: Send + Sync + 'static {
    /// The plan for a snapshot; `None` when the solve could not be finished, which is counted and tried again.
    fn solve(&self, snapshot: Arc<Snapshot>, config: PlaceConfig) -> BoxFuture<'static, Option<Plan>>;
}

/// Solves on the runtime's blocking threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadSolver;

impl Solver for ThreadSolver {
    fn solve(&self, snapshot: Arc<Snapshot>, config: PlaceConfig) -> BoxFuture<'static, Option<Plan>> {
        let solve = tokio::task::spawn_blocking(move || planner::place(&snapshot, &config));
        // A broken invariant in the planner ends that thread, not the controller: one failed pass.
        async move { solve.await.ok() }.boxed()
    }
}
