//! Rules about machines: one per claim, none without a claim, never more than a pool's limits.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use model::{ResourceName, parse_quantity};
use serde_json::Value;

use super::timeline::{Machine, Timeline};
use super::{Rule, Violation};

/// How long a machine may run without a claim: the collector asks every two minutes, and the cloud may show a machine
/// late; an API server that answers late adds its share.
const LEAK_GRACE: Duration = Duration::from_secs(600);

pub(super) fn check(timeline: &Timeline, end: Timestamp) -> Vec<Violation> {
    let mut found = doubled(&timeline.machines);
    found.extend(leaked(timeline, end));
    found.extend(over_limits(timeline));
    found
}

/// A claim has one machine. The same machine may be there a second time: a KWOK machine is its Node, and a person who
/// deletes the Node before its launch was written down takes it from a launch that goes on.
fn doubled(machines: &[Machine]) -> Vec<Violation> {
    let mut by_claim: BTreeMap<&str, Vec<&Machine>> = BTreeMap::new();
    for machine in machines {
        by_claim.entry(&machine.claim).or_default().push(machine);
    }
    let is_other = |pair: &[&Machine]| {
        let still_ran = pair[0].ended.is_none_or(|ended| ended > pair[1].started);
        pair[0].id != pair[1].id || still_ran
    };
    let several = by_claim.into_iter().filter(|(_, machines)| machines.windows(2).any(is_other));
    several
        .map(|(claim, machines)| Violation {
            rule: Rule::NoLaunchDoubled,
            at: machines[1].started,
            detail: format!("claim `{claim}` got {}", ids(&machines)),
        })
        .collect()
}

fn ids(machines: &[&Machine]) -> String {
    machines.iter().map(|machine| machine.id.as_str()).collect::<Vec<_>>().join(" and ")
}

fn leaked(timeline: &Timeline, end: Timestamp) -> Vec<Violation> {
    let grace = SignedDuration::try_from(LEAK_GRACE).unwrap_or_default();
    let claims = timeline.lives("nodeclaims");
    let mut found = Vec::new();
    for machine in &timeline.machines {
        let claim = claims.iter().find(|claim| claim.name == machine.claim);
        let orphaned = match claim {
            None => machine.started,
            Some(life) => life.until.unwrap_or(end).max(machine.started),
        };
        let ended = machine.ended.unwrap_or(end);
        if ended.duration_since(orphaned) > grace {
            let detail = format!("machine {} ran on without claim `{}`", machine.id, machine.claim);
            found.push(Violation { rule: Rule::NoMachineLeaked, at: orphaned, detail });
        }
    }
    found
}

/// At the start of each machine, all machines of its pool together are within the pool's limits of that time.
///
/// Memory counts as a claim's status shows it: what the machine's operating system sees is less than what is printed on
/// the box, and limits are about the former.
fn over_limits(timeline: &Timeline) -> Vec<Violation> {
    let memory_of = claimed_memory(timeline);
    let mut found = Vec::new();
    for machine in &timeline.machines {
        let pools = timeline.at("nodepools", machine.started);
        let Some(pool) = pools.iter().find(|(key, _)| key.name == machine.pool).map(|(_, pool)| pool) else { continue };
        let running = |other: &&Machine| {
            other.pool == machine.pool
                && other.started <= machine.started
                && other.ended.is_none_or(|ended| ended > machine.started)
        };
        let together: Vec<&Machine> = timeline.machines.iter().filter(running).collect();
        let milli_cpu: i64 = together.iter().map(|machine| machine.milli_cpu).sum();
        let memory: i64 = together.iter().filter_map(|machine| memory_of.get(machine.claim.as_str())).sum();
        let nodes = i64::try_from(together.len()).unwrap_or(i64::MAX);
        for (name, used) in [("cpu", milli_cpu), ("memory", memory), ("nodes", nodes)] {
            let limit = limit(pool, name);
            if limit.is_some_and(|limit| used > limit) {
                let detail = format!("pool `{}` has {name} {used} of {limit:?} with {}", machine.pool, machine.id);
                found.push(Violation { rule: Rule::NoLimitCrossed, at: machine.started, detail });
            }
        }
    }
    found
}

/// The memory that each claim got, once its status said so.
fn claimed_memory(timeline: &Timeline) -> BTreeMap<&str, i64> {
    let claims = timeline.steps.iter().filter(|step| step.event.key.resource == "nodeclaims");
    let memory = claims.filter_map(|step| {
        let written = step.object.pointer("/status/capacity/memory")?.as_str()?;
        Some((step.event.key.name.as_str(), parse_quantity(&ResourceName::memory(), written).ok()?))
    });
    memory.collect()
}

fn limit(pool: &Value, name: &str) -> Option<i64> {
    let written = pool.pointer("/spec/limits")?.get(name)?;
    let text = written.as_str().map_or_else(|| written.to_string(), ToOwned::to_owned);
    parse_quantity(&ResourceName::new(name), &text).ok()
}
