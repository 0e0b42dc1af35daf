//! What is reported of a scenario.

use std::collections::BTreeMap;

use serde::Serialize;

/// Milliseconds over several runs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Statistics {
    /// The middle one.
    pub median: f64,
    /// The fastest.
    pub min: f64,
    /// The slowest.
    pub max: f64,
    /// All, in order.
    pub all: Vec<f64>,
}

impl Statistics {
    /// Of some times in milliseconds.
    pub fn of(all: Vec<f64>) -> Self {
        let mut sorted = all.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |position: usize| sorted.get(position).copied().unwrap_or(0.0);
        let median = match sorted.len() {
            0 => 0.0,
            length if length % 2 == 0 => f64::midpoint(at(length / 2 - 1), at(length / 2)),
            length => at(length / 2),
        };
        Self { median, min: at(0), max: at(sorted.len().saturating_sub(1)), all }
    }
}

/// How large a scenario is.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sizes {
    /// Its name.
    pub name: String,
    /// Pods that wait.
    pub pods: usize,
    /// Instance types.
    pub instance_types: usize,
    /// Pools.
    pub node_pools: usize,
    /// Nodes that exist.
    pub nodes: usize,
    /// Pods on them.
    pub bound_pods: usize,
}

/// Times.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// Taking the snapshot.
    pub snapshot: Statistics,
    /// From the snapshot to the plan.
    pub solve: Statistics,
    /// Both.
    pub total: Statistics,
    /// Pods that wait, by the median of the total.
    pub pods_per_second: f64,
}

/// Memory of one run. The input is not counted: everything starts from zero when the run does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// All bytes that were ever asked for.
    #[serde(rename = "allocBytes")]
    pub allocated_bytes: u64,
    /// How often.
    #[serde(rename = "mallocs")]
    pub allocations: u64,
    /// What was held before. Zero here; another scheduler's report may start higher.
    #[serde(rename = "baseHeapBytes")]
    pub base_bytes: u64,
    /// The most that was held at once.
    #[serde(rename = "peakHeapBytes")]
    pub peak_bytes: u64,
}

/// Two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Range<T> {
    /// The lower.
    pub min: T,
    /// The upper.
    pub max: T,
}

impl<T: Copy> Range<T> {
    /// Both ends at one value.
    pub fn at(value: T) -> Self {
        Self { min: value, max: value }
    }
}

/// The extremes over the runs. One input has one answer, so both ends are equal.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// New nodes.
    pub new_node_claims: Range<usize>,
    /// Dollars per hour.
    pub price_per_hour: Range<f64>,
    /// Pods without a place.
    pub pod_errors: Range<usize>,
}

/// The cheapest way to buy a claim.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// Type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Capacity type.
    pub capacity_type: String,
    /// Dollars per hour.
    pub price: f64,
}

/// A new node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Its pool.
    pub node_pool: String,
    /// The cheapest way to buy it.
    pub cheapest: Launch,
    /// What the same type costs where it is dearest.
    pub worst_launch_per_hour: f64,
    /// What is asked of it, daemons included.
    pub requests: BTreeMap<String, String>,
    /// Its pods.
    pub pods: Vec<String>,
    /// The types it may become, cheapest first.
    pub instance_types: Vec<String>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// New nodes.
    pub new_node_claims: usize,
    /// Pods on them.
    pub pods_on_new_nodes: usize,
    /// Pods on nodes that exist.
    pub pods_on_existing_nodes: usize,
    /// Pods without a place.
    pub pod_error_count: usize,
    /// Nodes that exist and got pods.
    pub existing_nodes_used: usize,
    /// Each claim at its cheapest.
    pub price_per_hour: f64,
    /// Each claim's cheapest type where it is dearest.
    pub worst_launch_per_hour: f64,
    /// No plan costs less.
    pub bound_per_hour: f64,
    /// By what part of the price the plan may be too dear, at most.
    pub gap: f64,
    /// Counted steps of the search.
    pub steps: u64,
    /// Whether the search was stopped.
    pub timed_out: bool,
    /// New nodes in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Pods by node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub existing: BTreeMap<String, Vec<String>>,
    /// Reasons by pod.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_errors: BTreeMap<String, String>,
}

/// Everything about a scenario.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// How large it is.
    pub scenario: Sizes,
    /// How often it was run.
    pub runs: usize,
    /// Times.
    pub timing: Timing,
    /// Memory.
    pub memory: Memory,
    /// Extremes.
    pub spread: Spread,
    /// What the referee has against the plan; nothing, or the plan is wrong.
    pub violations: Vec<String>,
    /// The answer.
    pub result: Told,
}

/// What a program prints for each file: one line, in the words of the program that measures the Go scheduler.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// The resident set of this process at its largest; zero where the system does not say.
    #[serde(rename = "maxRSSBytes")]
    pub max_resident_bytes: u64,
    /// The report.
    pub report: &'a Report,
}

impl Line<'_> {
    /// As JSON.
    pub fn json(&self) -> String {
        // Names and numbers can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The largest resident set, from the text of Linux's `/proc/self/status`; zero if it is not in there.
pub fn max_resident_bytes(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_between_the_extremes() {
        for (all, median, min, max) in [
            (vec![], 0.0, 0.0, 0.0),
            (vec![3.0], 3.0, 3.0, 3.0),
            (vec![4.0, 1.0], 2.5, 1.0, 4.0),
            (vec![9.0, 1.0, 2.0], 2.0, 1.0, 9.0),
        ] {
            let of = Statistics::of(all.clone());
            assert_eq!((of.median, of.min, of.max), (median, min, max), "{all:?}");
            assert_eq!(of.all, all, "the order in which they were taken is kept");
        }
    }

    #[test]
    fn the_largest_resident_set_is_read_where_it_is_told() {
        assert_eq!(max_resident_bytes("VmPeak:\t  9 kB\nVmHWM:\t     345 kB\nVmRSS:\t 1 kB\n"), 345 * 1024);
        for unknown in ["", "VmHWM:", "VmHWM:\t many kB"] {
            assert_eq!(max_resident_bytes(unknown), 0, "{unknown}");
        }
    }
}
