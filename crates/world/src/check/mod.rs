//! Checkers: what must hold in every run, whatever went wrong in it.
//!
//! They read the API's history and the cloud's machines, never a value of the controllers.

mod budgets;
mod machines;
mod settled;
mod timeline;

use std::fmt;

use jiff::Timestamp;

pub use timeline::{Life, Machine, Step, Timeline, history_hash};

/// A rule that every run keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A pod that can be placed is placed.
    NoPodForgotten,
    /// A machine without a claim ends within its grace.
    NoMachineLeaked,
    /// A claim has one machine.
    NoLaunchDoubled,
    /// A node that is not ours stays as it is.
    NoForeignNodeTouched,
    /// Disruption budgets hold for what we evict and delete.
    NoBudgetBroken,
    /// A pool never has more than its limits.
    NoLimitCrossed,
    /// When faults end, everything comes to rest.
    Settles,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// When it was seen.
    pub at: Timestamp,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, at, detail } = self;
        write!(formatter, "{rule:?} at {at}: {detail}")
    }
}

/// Times at which a run has to be at rest.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    /// Faults are over since long enough: everything that wants to run runs.
    pub settled: Timestamp,
    /// Nothing wants to run since long enough: nothing of ours is left.
    pub empty: Timestamp,
}

/// Everything that is wrong with a run.
pub fn check(timeline: &Timeline, rest: Rest) -> Vec<Violation> {
    let mut found = machines::check(timeline, rest.empty);
    found.extend(budgets::check(timeline));
    found.extend(settled::check(timeline, rest));
    found.extend(foreign(timeline));
    found.sort_by(|one, other| (one.at, one.rule, &one.detail).cmp(&(other.at, other.rule, &other.detail)));
    found
}

/// Nodes that never had a claim of ours are not written to by us, in no way.
fn foreign(timeline: &Timeline) -> Vec<Violation> {
    use std::collections::BTreeSet;
    let mut ours: BTreeSet<&str> = BTreeSet::new();
    let mut provider_ids: BTreeSet<&str> = BTreeSet::new();
    for step in &timeline.steps {
        if step.event.key.resource == "nodeclaims" {
            provider_ids.insert(timeline::text(&step.object, "/status/providerID"));
            ours.insert(timeline::text(&step.object, "/status/nodeName"));
        }
    }
    for step in timeline.steps.iter().filter(|step| step.event.key.resource == "nodes") {
        let id = timeline::text(&step.object, "/spec/providerID");
        if !id.is_empty() && provider_ids.contains(id) {
            ours.insert(&step.event.key.name);
        }
    }
    let touched = timeline.own_writes().filter(|record| record.resource == "nodes").filter(|record| {
        let name = record.name.as_deref().unwrap_or_default();
        // A node that the KWOK provider made is ours from its first moment, claim recorded or not.
        let is_made_by_us = record.object.as_deref().is_some_and(|object| {
            let object: serde_json::Value = serde_json::from_slice(object).unwrap_or_default();
            timeline::text(&object, "/spec/providerID").starts_with("kwok://")
        });
        !ours.contains(name) && !is_made_by_us
    });
    touched
        .map(|record| Violation {
            rule: Rule::NoForeignNodeTouched,
            at: record.at,
            detail: format!("{} node `{}`", record.verb.as_str(), record.name.as_deref().unwrap_or_default()),
        })
        .collect()
}
