//! What the two programs print, as far as it is compared.

use anyhow::{Context, Result};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Printed {
    report: Report,
}

#[derive(Debug, Deserialize)]
struct Report {
    scenario: Size,
    timing: Timing,
    memory: Option<Heap>,
    spread: Spread,
    result: Answer,
    #[serde(default)]
    violations: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Size {
    pods: u32,
}

#[derive(Debug, Deserialize)]
struct Timing {
    total: Statistics,
}

#[derive(Debug, Deserialize)]
struct Statistics {
    median: f64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Heap {
    base_heap_bytes: u64,
    peak_heap_bytes: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spread {
    price_per_hour: Least,
    pod_errors: Least,
}

#[derive(Debug, Deserialize)]
struct Least {
    min: f64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    worst_launch_per_hour: f64,
    bound_per_hour: Option<f64>,
}

/// What a program made of a scenario, over all the times it was started. Where its answers differ, the best counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// How many pods wait in the scenario.
    pub(super) pods: u32,
    /// The median of each start.
    milliseconds: Vec<f64>,
    /// What a solve needs of the heap at most, beyond what was there before.
    pub(super) heap_bytes: Option<u64>,
    /// All claims at their cheapest, in dollars per hour.
    pub(super) price: f64,
    /// All claims at their worst launch price.
    pub(super) worst_launch: f64,
    /// No plan costs less; the Go scheduler does not tell.
    pub(super) bound: Option<f64>,
    /// Pods left out.
    pub(super) unplaced: f64,
    /// Rules that the plan breaks.
    pub(super) violations: Vec<String>,
}

impl Outcome {
    /// Reads the line that a program prints for one file.
    pub(super) fn parse(printed: &str) -> Result<Self> {
        let Printed { report } = serde_json::from_str(printed).context("read the report")?;
        let Report { scenario, timing, memory, spread, result, violations } = report;
        Ok(Self {
            pods: scenario.pods,
            milliseconds: vec![timing.total.median],
            heap_bytes: memory.map(|heap| heap.peak_heap_bytes.saturating_sub(heap.base_heap_bytes)),
            price: spread.price_per_hour.min,
            worst_launch: result.worst_launch_per_hour,
            bound: result.bound_per_hour,
            unplaced: spread.pod_errors.min,
            violations,
        })
    }

    /// The middle of all starts.
    pub(super) fn median_milliseconds(&self) -> f64 {
        let mut sorted = self.milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => 0.0,
            length if length % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        }
    }

    /// Leaves the times of what was for something else.
    pub(super) fn forget_times(&mut self) {
        self.milliseconds.clear();
    }

    /// Adds another start.
    pub(super) fn merge(&mut self, other: Self) {
        let Self { pods: _, milliseconds, heap_bytes, price, worst_launch, bound, unplaced, violations } = other;
        self.milliseconds.extend(milliseconds);
        self.heap_bytes = self.heap_bytes.max(heap_bytes);
        self.price = self.price.min(price);
        self.worst_launch = self.worst_launch.min(worst_launch);
        self.bound = self.bound.or(bound);
        self.unplaced = self.unplaced.min(unplaced);
        self.violations.extend(violations);
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    /// As the Go program prints it, shortened.
    const PEER: &str = r#"{"maxRSSBytes":99201024,"report":{"peer":{"version":"v1.15.0"},"scenario":{"name":"a","pods":9},"runs":2,
        "timing":{"solve":{"median":9},"total":{"median":12.5,"min":12,"max":13,"all":[12,13]},"podsPerSecond":1},
        "memory":{"allocBytes":3,"mallocs":4,"baseHeapBytes":1000,"peakHeapBytes":6000,"gcCycles":1},
        "spread":{"newNodeClaims":{"min":1,"max":2},"pricePerHour":{"min":4.5,"max":5},"podErrors":{"min":0,"max":1}},
        "result":{"newNodeClaims":2,"podErrorCount":1,"pricePerHour":5,"worstLaunchPerHour":6}}}"#;
    /// As our program prints it, shortened.
    const OURS: &str = r#"{"maxRSSBytes":0,"report":{"scenario":{"name":"a","pods":9},"runs":2,
        "timing":{"snapshot":{"median":0},"total":{"median":0.25,"min":0.2,"max":0.3,"all":[0.2,0.3]},"podsPerSecond":9},
        "memory":{"allocBytes":3,"mallocs":4,"baseHeapBytes":0,"peakHeapBytes":400},"violations":["no"],
        "spread":{"newNodeClaims":{"min":1,"max":1},"pricePerHour":{"min":3,"max":3},"podErrors":{"min":0,"max":0}},
        "result":{"pricePerHour":3,"worstLaunchPerHour":3.5,"boundPerHour":2.9,"gap":0.03,"steps":7,"timedOut":false}}}"#;

    #[test]
    fn both_programs_are_understood() {
        let peer = Outcome::parse(PEER).unwrap();
        assert_eq!((peer.median_milliseconds(), peer.heap_bytes, peer.bound), (12.5, Some(5000), None));
        assert_eq!((peer.price, peer.worst_launch, peer.unplaced, peer.pods), (4.5, 6.0, 0.0, 9));
        let ours = Outcome::parse(OURS).unwrap();
        assert_eq!((ours.median_milliseconds(), ours.heap_bytes, ours.bound), (0.25, Some(400), Some(2.9)));
        assert_eq!(ours.violations, ["no"]);
        assert!(Outcome::parse("{}").is_err());
    }

    #[test]
    fn of_several_starts_the_best_answer_and_the_median_time_count() {
        let first = Outcome::parse(PEER).unwrap();
        let mut all = first.clone();
        all.forget_times();
        assert_eq!(all.median_milliseconds(), 0.0);
        for (milliseconds, price, heap_bytes) in [(7.0, 5.0, None), (3.0, 4.0, Some(9)), (4.0, 6.0, None)] {
            all.merge(Outcome { milliseconds: vec![milliseconds], price, heap_bytes, ..first.clone() });
        }
        assert_eq!((all.median_milliseconds(), all.price, all.heap_bytes), (4.0, 4.0, Some(5000)));
        all.merge(Outcome { milliseconds: vec![5.0], ..first });
        assert_eq!(all.median_milliseconds(), 4.5);
    }
}
