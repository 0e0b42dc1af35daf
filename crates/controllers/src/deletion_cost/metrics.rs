//! How many annotations were written, and how that went.

use std::collections::BTreeMap;

use model::PoolName;

use crate::metrics::Metrics;

/// How the writing of one annotation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Annotated {
    /// It says what it should.
    Updated,
    /// It said so before.
    Unchanged,
    /// The pod is gone.
    NotFound,
    /// Somebody else wrote first; the next round looks again.
    Conflict,
    /// The API server refused or did not answer; it is tried again.
    Failed,
}

impl Annotated {
    fn as_str(self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Unchanged => "skipped_unchanged",
            Self::NotFound => "skipped_notfound",
            Self::Conflict => "skipped_conflict",
            Self::Failed => "error",
        }
    }
}

impl Metrics {
    /// Nodes with pods to write to in this round. Pools of which nothing is written any more are no longer told of.
    pub(super) fn deletion_costs_ranked(&self, nodes: &BTreeMap<PoolName, usize>) {
        let pending = nodes.iter().map(|(pool, count)| ([pool.to_string()], *count as f64));
        self.pools.deletion_cost_pending.replace(pending);
    }

    pub(super) fn deletion_cost_written(&self, annotated: Annotated) {
        self.pools.deletion_cost_writes.inc([annotated.as_str()]);
    }
}
