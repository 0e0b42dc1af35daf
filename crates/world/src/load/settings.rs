//! How large, how long, how busy.

use std::time::Duration;

/// Nodes of one pool, about: teams of a large cluster have some hundred machines each.
const NODES_PER_POOL: usize = 312;
const POOLS_MAX: usize = 16;
/// Replicas of one Deployment, about.
const REPLICAS: usize = 300;
/// Deployments of a pool at least: a rollout should not be everything that happens in a small cluster.
const DEPLOYMENTS_MIN: usize = 12;
/// Sizes of pods.
const SIZES: usize = 3;
/// Pools whose nodes come and go.
const BURST_POOLS: usize = 4;
/// Each burst has this part of all pods.
const BURST_SHARE: usize = 150;

/// What is played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSettings {
    /// Everything that is left to chance follows from it.
    pub seed: u64,
    /// Nodes at the beginning.
    pub nodes: usize,
    /// Pods at the beginning, all of them running.
    pub pods: usize,
    /// Changes of pods a second.
    pub changes: u64,
    /// Virtual minutes of them.
    pub minutes: u64,
    /// Virtual minutes of one line of the report.
    pub window_minutes: u64,
    /// Pods that wait when the controller starts for the last time; none leaves that part out.
    pub pending: usize,
}

impl Default for LoadSettings {
    fn default() -> Self {
        Self { seed: 1, nodes: 5_000, pods: 150_000, changes: 1_000, minutes: 60, window_minutes: 5, pending: 15_000 }
    }
}

impl LoadSettings {
    /// Pools whose nodes are there from the beginning.
    pub(crate) fn pools(&self) -> usize {
        (self.nodes / NODES_PER_POOL).clamp(1, POOLS_MAX)
    }

    /// Pools that have nodes only now and then.
    pub(crate) fn burst_pools(&self) -> usize {
        BURST_POOLS
    }

    /// Pods of one burst.
    pub(crate) fn burst_pods(&self) -> usize {
        (self.pods / BURST_SHARE).max(10)
    }

    /// Deployments of each pool, equally many of each size.
    pub(crate) fn deployments_per_pool(&self) -> usize {
        (self.pods / self.pools() / REPLICAS).max(DEPLOYMENTS_MIN) / SIZES * SIZES
    }

    /// Replicas of the Deployments of one pool, evenly shared.
    pub(crate) fn replicas(&self, pool: usize) -> Vec<usize> {
        share(share(self.pods, self.pools())[pool], self.deployments_per_pool())
    }

    /// Nodes of one pool.
    pub(crate) fn nodes_of(&self, pool: usize) -> usize {
        share(self.nodes, self.pools())[pool]
    }

    /// Virtual time of the changes.
    pub(crate) fn length(&self) -> Duration {
        Duration::from_secs(self.minutes * 60)
    }

    /// Virtual time of one line of the report.
    pub(crate) fn window(&self) -> Duration {
        Duration::from_secs(self.window_minutes.max(1) * 60)
    }
}

/// Shares a number as evenly as whole numbers can be.
fn share(number: usize, parts: usize) -> Vec<usize> {
    (0..parts).map(|part| number / parts + usize::from(part < number % parts)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_shared_out() {
        for (nodes, pods) in [(5_000, 150_000), (50, 1_500), (333, 1_001), (1, 1)] {
            let settings = LoadSettings { nodes, pods, ..LoadSettings::default() };
            let pools = 0..settings.pools();
            assert_eq!(pools.clone().map(|pool| settings.nodes_of(pool)).sum::<usize>(), nodes);
            assert_eq!(pools.flat_map(|pool| settings.replicas(pool)).sum::<usize>(), pods);
        }
    }
}
