//! What the pods of a node use, kept up to date pod by pod.

use std::collections::BTreeSet;

use api::lower::{Owner, PodFacts};
use model::{PodKey, Resources};

/// Pods bound to one node and what they use together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) pods: BTreeSet<PodKey>,
    pub(crate) used: Resources,
    pub(crate) used_by_daemons: Resources,
}

impl Usage {
    pub(crate) fn add(&mut self, pod: &PodFacts) {
        self.pods.insert(pod.key.clone());
        self.count(pod, 1);
    }

    pub(crate) fn take(&mut self, pod: &PodFacts) {
        self.pods.remove(&pod.key);
        self.count(pod, -1);
    }

    fn count(&mut self, pod: &PodFacts, times: i64) {
        if pod.is_terminal {
            return;
        }
        self.used.add_times(pod.requests(), times);
        if pod.owner == Owner::DaemonSet {
            self.used_by_daemons.add_times(pod.requests(), times);
        }
    }
}
