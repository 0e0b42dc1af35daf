//! How a story ended, in numbers.

use std::time::Duration;

use serde::Serialize;

/// The numbers at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Pods that need a node and have none.
    pub pending_pods: usize,
    /// Nodes of ours that are left, claims without a node among them.
    pub nodes: usize,
    /// How long instances ran, from launch to the beginning of their end.
    pub node_hours: f64,
    /// What that cost.
    pub cost_usd: f64,
    /// How long pods waited from their creation to their binding; one that still waits counts with the time so far.
    pub pod_wait_seconds: PodWaitSeconds,
    /// What only people read.
    #[serde(skip)]
    pub totals: Totals,
}

/// Half of the pods waited no longer than `p50`, ninety-nine of a hundred no longer than `p99`; zero without pods.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PodWaitSeconds {
    /// The middle.
    pub p50: f64,
    /// The end.
    pub p99: f64,
}

/// What happened in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Pods that got a node, daemons left out.
    pub bound: usize,
    /// Instances that were bought.
    pub launched: usize,
    /// Virtual time.
    pub elapsed: Duration,
}

/// The smallest value that at least `percent` of a hundred values do not exceed. `sorted` is in ascending order.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let of = |count: u64| (1..=count).map(Duration::from_secs).collect::<Vec<_>>();
        for (count, p50, p99) in [(0, 0, 0), (1, 1, 1), (2, 1, 2), (10, 5, 10), (100, 50, 99), (1000, 500, 990)] {
            assert_eq!(percentile(&of(count), 50).as_secs(), p50, "{count}");
            assert_eq!(percentile(&of(count), 99).as_secs(), p99, "{count}");
        }
    }
}
