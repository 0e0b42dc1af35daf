//! How many annotations were written, and how that went.

use std::collections::BTreeMap;

use model::PoolName;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabel {
    nodepool: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

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

/// Metrics of pod deletion costs.
#[derive(Debug, Default)]
pub(crate) struct DeletionCostMetrics {
    nodes: Family<PoolLabel, Gauge>,
    writes: Family<ResultLabel, Counter>,
}

impl DeletionCostMetrics {
    /// Registers everything, below the common prefix.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let nodes = "Nodes with pods whose deletion cost was to be written in the last round";
        registry.register("pod_deletion_cost_nodes_with_pending_annotation_writes", nodes, self.nodes.clone());
        let writes = "Deletion costs of pods that were to be written, by outcome";
        registry.register("pod_deletion_cost_pod_annotation_writes", writes, self.writes.clone());
    }

    /// Pools of which nothing is written any more are no longer told of.
    pub(crate) fn round(&self, nodes: &BTreeMap<PoolName, usize>) {
        self.nodes.clear();
        for (pool, count) in nodes {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            self.nodes.get_or_create(&PoolLabel { nodepool: pool.to_string() }).set(count);
        }
    }

    pub(crate) fn annotated(&self, annotated: Annotated) {
        self.writes.get_or_create(&ResultLabel { result: annotated.as_str() }).inc();
    }
}
