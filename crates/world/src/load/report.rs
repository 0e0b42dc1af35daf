//! What a run found out, and what it should have.

use std::collections::BTreeMap;
use std::time::Duration;

use super::figures::Spread;
use super::settings::LoadSettings;
use super::shares::Used;

/// A decision takes longer than this at most once in a hundred times.
const DECISION_MILLISECONDS_MAX: f64 = 1_000.0;
/// A controller that starts has decided after this long.
const START_SECONDS_MAX: f64 = 30.0;
/// What may be more at the end than at the beginning and still be no growth: chance has its part in every window.
const GROWTH_MAX: f64 = 1.1;
/// The grain of lags: the window in which pods are collected lasts up to ten seconds.
const LAG_GRAIN_SECONDS: f64 = 1.0;

/// One start of the controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Start {
    /// When in the story.
    pub title: String,
    /// Nodes that were there.
    pub nodes: usize,
    /// Pods that were there.
    pub pods: usize,
    /// Of these, pods that waited for a decision.
    pub pending: usize,
    /// Real time until the first plan was made.
    pub first_plan: Duration,
    /// Real time until every pod that waited was decided about and the last claim was there.
    pub all_claims: Duration,
    /// Of that time, what the controllers themselves took, and the others.
    pub used: Used,
    /// Claims that were made.
    pub claims: u64,
    /// How much of the heap the whole process took more.
    pub heap_bytes: i64,
    /// Memory of the process afterwards.
    pub resident_bytes: u64,
    /// What the heap was freed of when this controller was killed: what it held.
    pub held_bytes: i64,
}

/// Some minutes of changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Virtual time at its beginning, since the beginning of the changes.
    pub from: Duration,
    /// Virtual time at its end.
    pub until: Duration,
    /// Changes of pods that the store saw.
    pub pod_changes: u64,
    /// Changes of other objects.
    pub other_changes: u64,
    /// Plans made.
    pub plans: u64,
    /// Real milliseconds of the passes in which they were made.
    pub decisions: Spread,
    /// Virtual seconds from a pod being given up by the scheduler to the claim or machine for it.
    pub lags: Spread,
    /// Claims made and gone.
    pub claims_made: u64,
    /// Claims gone.
    pub claims_gone: u64,
    /// Nodes at the end.
    pub nodes: usize,
    /// Pods at the end.
    pub pods: usize,
    /// Pods without a decision at the end.
    pub undecided: usize,
    /// Real time it took.
    pub real: Duration,
    /// Processor time of the process.
    pub processor: Duration,
    /// Whose it was.
    pub used: Used,
    /// Heap of the process at the end, since the beginning of the story.
    pub heap_bytes: i64,
    /// Memory of the process at the end.
    pub resident_bytes: u64,
    /// Passes of each controller, and how long they were busy together.
    pub passes: BTreeMap<String, (u64, Duration)>,
}

/// The whole story.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// What was asked for.
    pub settings: LoadSettings,
    /// Real time in which the cluster was made.
    pub made_in: Duration,
    /// Heap of the process when the cluster was made and no controller ran.
    pub cluster_bytes: i64,
    /// Memory of the process then.
    pub cluster_resident_bytes: u64,
    /// Starts of the controller.
    pub starts: Vec<Start>,
    /// The changes.
    pub windows: Vec<Window>,
}

impl Report {
    /// The demands that were not met, in words.
    pub fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        for start in &self.starts {
            let seconds = start.all_claims.as_secs_f64();
            if seconds > START_SECONDS_MAX {
                missed.push(format!("{}: decided after {seconds:.1} s, not within {START_SECONDS_MAX} s", start.title));
            }
        }
        for window in &self.windows {
            if window.decisions.p99 > DECISION_MILLISECONDS_MAX {
                let (minute, p99) = (window.from.as_secs() / 60, window.decisions.p99);
                missed.push(format!("from minute {minute}: one decision in a hundred took {p99:.0} ms or longer"));
            }
        }
        missed.extend(self.missing_changes());
        missed.extend(self.growth());
        missed
    }

    /// The store has to see what was promised, within a tenth.
    fn missing_changes(&self) -> Option<String> {
        let seen: u64 = self.windows.iter().map(|window| window.pod_changes).sum();
        let wanted = self.settings.changes * self.settings.length().as_secs();
        (seen * 10 < wanted * 9).then(|| format!("{seen} changes of pods were seen, {wanted} were wanted"))
    }

    /// What grew from the first window to the last, or from the first start to the end.
    fn growth(&self) -> Vec<String> {
        let mut grown = Vec::new();
        if let ([first, .., last], true) = (self.windows.as_slice(), self.windows.len() > 1) {
            let (before, after) = (first.lags.p99, last.lags.p99);
            if after > before * GROWTH_MAX + LAG_GRAIN_SECONDS {
                grown.push(format!("lag grew from {before:.1} s to {after:.1} s"));
            }
            // The second window: in the first one, what events and budgets need is still coming together.
            let before = self.windows[1].per_pod();
            if last.per_pod() > before * GROWTH_MAX {
                grown.push(format!("heap per pod grew from {before:.0} to {:.0} bytes", last.per_pod()));
            }
        }
        if let [first, second, ..] = self.starts.as_slice() {
            let (before, after) = (first.held_per_pod(), second.held_per_pod());
            if after > before * GROWTH_MAX {
                grown.push(format!("what the controllers hold per pod grew from {before:.0} to {after:.0} bytes"));
            }
        }
        grown
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2^53 bytes")]
impl Window {
    fn per_pod(&self) -> f64 {
        self.heap_bytes as f64 / self.pods.max(1) as f64
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2^53 bytes")]
impl Start {
    fn held_per_pod(&self) -> f64 {
        self.held_bytes as f64 / self.pods.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(minute: u64) -> Window {
        Window {
            from: Duration::from_secs(minute * 60),
            until: Duration::from_secs((minute + 5) * 60),
            pod_changes: 300_000,
            decisions: Spread { count: 10, median: 20.0, p99: 50.0, max: 60.0 },
            lags: Spread { count: 10, median: 3.0, p99: 9.0, max: 10.0 },
            pods: 100,
            heap_bytes: 1_000_000,
            ..Window::default()
        }
    }

    fn report() -> Report {
        let start = Start { title: "start".to_owned(), pods: 100, held_bytes: 1_000, ..Start::default() };
        Report {
            settings: LoadSettings { minutes: 15, ..LoadSettings::default() },
            starts: vec![start.clone(), start],
            windows: vec![window(0), window(5), window(10)],
            ..Report::default()
        }
    }

    #[test]
    fn every_demand_can_be_missed() {
        type Spoil = fn(&mut Report);
        let table: [(&str, Spoil); 7] = [
            ("", |_| {}),
            ("start: decided after 31.0 s, not within 30 s", |it| it.starts[0].all_claims = Duration::from_secs(31)),
            ("from minute 5: one decision in a hundred took 1001 ms or longer", |it| {
                it.windows[1].decisions.p99 = 1_001.0;
            }),
            ("700000 changes of pods were seen, 900000 were wanted", |it| it.windows[1].pod_changes = 100_000),
            ("lag grew from 9.0 s to 12.0 s", |it| it.windows[2].lags.p99 = 12.0),
            ("heap per pod grew from 10000 to 12000 bytes", |it| it.windows[2].heap_bytes = 1_200_000),
            ("what the controllers hold per pod grew from 10 to 12 bytes", |it| it.starts[1].held_bytes = 1_200),
        ];
        for (expected, spoil) in table {
            let mut spoilt = report();
            spoil(&mut spoilt);
            assert_eq!(spoilt.missed().join("; "), expected);
        }
    }
}
