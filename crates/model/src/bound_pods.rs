//! Pods that run, counted by what the rules of other pods can see of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Labels, NodeName, PodTerm, Text};

/// What rules of other pods can see of a running pod. Replicas of one workload are of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoundKind {
    /// Its namespace.
    pub namespace: Text,
    /// Its labels.
    pub labels: Arc<Labels>,
    /// Whom it keeps away.
    pub anti_affinity: Vec<PodTerm>,
}

/// How many pods of each kind run on which node.
///
/// Kept up to date pod by pod, and cheap to copy: a copy shares the counts of every kind that has not changed since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundPods(BTreeMap<Arc<BoundKind>, Arc<BTreeMap<NodeName, u32>>>);

impl BoundPods {
    /// Counts a pod.
    pub fn add(&mut self, kind: &Arc<BoundKind>, node: &NodeName) {
        self.add_times(kind, node, 1);
    }

    /// Counts several equal pods.
    pub fn add_times(&mut self, kind: &Arc<BoundKind>, node: &NodeName, times: u32) {
        let counts = self.0.entry(Arc::clone(kind)).or_default();
        *Arc::make_mut(counts).entry(node.clone()).or_insert(0) += times;
    }

    /// Counts a pod no more.
    pub fn take(&mut self, kind: &BoundKind, node: &NodeName) {
        let Some(shared) = self.0.get_mut(kind) else { return };
        let counts = Arc::make_mut(shared);
        if let Some(count) = counts.get_mut(node) {
            *count -= 1;
            if *count == 0 {
                counts.remove(node);
            }
        }
        if counts.is_empty() {
            self.0.remove(kind);
        }
    }

    /// Every kind with the nodes it runs on, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<BoundKind>, &BTreeMap<NodeName, u32>)> {
        self.0.iter().map(|(kind, counts)| (kind, counts.as_ref()))
    }

    /// Whether nothing runs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
