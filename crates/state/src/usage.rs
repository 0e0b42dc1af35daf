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
    pub(crate) limits: Resources,
    pub(crate) daemon_limits: Resources,
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
        count(&mut self.used, pod.requests(), times);
        count(&mut self.limits, &pod.story.limits, times);
        if pod.owner == Owner::DaemonSet {
            count(&mut self.used_by_daemons, pod.requests(), times);
            count(&mut self.daemon_limits, &pod.story.limits, times);
        }
    }
}

/// A resource of which nothing is used is not named, so that equal pods mean equal usage, whoever was there before.
pub(crate) fn count(sum: &mut Resources, amounts: &Resources, times: i64) {
    sum.add_times(amounts, times);
    if sum.iter().any(|(_, amount)| amount == 0) {
        *sum = sum.iter().filter(|(_, amount)| *amount != 0).map(|(name, amount)| (name.clone(), amount)).collect();
    }
}
