//! What many seeds covered: which faults hit which effects, and which never did.

use std::collections::BTreeMap;
use std::time::Duration;

use super::run::Report;
use crate::effect::{CLOUD_CALLS, WATCHES, WRITES};
use crate::fault::{Blow, CallFault, Coverage};

/// The sum of many reports.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Seeds run.
    pub seeds: u64,
    /// Virtual time of all of them.
    pub elapsed: Duration,
    /// Calls to the API.
    pub calls: usize,
    /// Effects, and how often they happened.
    pub seen: BTreeMap<String, u64>,
    /// Faults of calls that hit.
    pub coverage: Coverage,
    /// Blows that hit.
    pub blows: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Adds a report.
    pub fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.elapsed += report.elapsed;
        self.calls += report.calls;
        for (effect, count) in &report.seen {
            *self.seen.entry(effect.to_string()).or_insert(0) += u64::from(*count);
        }
        for (cell, count) in &report.coverage {
            *self.coverage.entry(cell.clone()).or_insert(0) += count;
        }
        for (blow, count) in &report.blows {
            *self.blows.entry(blow).or_insert(0) += count;
        }
    }

    /// Cells of the table, and blows, that never happened.
    pub fn empty_cells(&self) -> Vec<String> {
        let cells = effects().flat_map(|effect| {
            let faults = CallFault::ALL.into_iter().filter(move |fault| fault.applies_to(effect));
            faults.map(move |fault| (effect.to_owned(), fault.name()))
        });
        let missing =
            cells.filter(|cell| !self.coverage.contains_key(cell)).map(|(effect, fault)| format!("{effect} {fault}"));
        let unstruck = Blow::ALL.into_iter().map(Blow::name).filter(|blow| !self.blows.contains_key(blow));
        missing.chain(unstruck.map(ToOwned::to_owned)).collect()
    }
}

impl Tally {
    /// Effects that happened and that the table does not know: nobody draws faults for them.
    pub fn unknown_effects(&self) -> Vec<&str> {
        let matters = |effect: &str| {
            ["create ", "update ", "patch ", "delete ", "watch ", "cloud "].iter().any(|verb| effect.starts_with(verb))
        };
        let seen = self.seen.keys().map(String::as_str);
        seen.filter(|effect| matters(effect) && !effects().any(|known| known == *effect)).collect()
    }
}

fn effects() -> impl Iterator<Item = &'static str> {
    WRITES.into_iter().chain(CLOUD_CALLS).chain(WATCHES)
}

/// The table of effects and faults. A dot is a combination that makes no sense, a zero one that never happened.
pub fn render(tally: &Tally) -> String {
    let width = effects().map(str::len).max().unwrap_or(0);
    let mut text = format!("{:width$} {:>8}", "", "seen");
    for fault in CallFault::ALL {
        text += &format!(" {:>12}", fault.name());
    }
    for effect in effects() {
        text += &format!("\n{effect:width$} {:>8}", tally.seen.get(effect).copied().unwrap_or(0));
        for fault in CallFault::ALL {
            let count = tally.coverage.get(&(effect.to_owned(), fault.name())).copied().unwrap_or(0);
            let cell = if fault.applies_to(effect) { count.to_string() } else { "·".to_owned() };
            text += &format!(" {cell:>12}");
        }
    }
    text += "\n\nblows:";
    for blow in Blow::ALL {
        text += &format!(" {} {},", blow.name(), tally.blows.get(blow.name()).copied().unwrap_or(0));
    }
    text.trim_end_matches(',').to_owned() + "\n"
}
