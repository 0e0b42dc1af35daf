//! When faults end, everything comes to rest: pods run, claims are ready, nothing is left over, nobody writes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::timeline::{Timeline, is_true, text};
use super::{Rest, Rule, Violation};

/// At rest, the controllers write next to nothing in this time; more is a loop that feeds itself.
const QUIET: Duration = Duration::from_secs(300);
const QUIET_WRITES_MAX: usize = 10;

pub(super) fn check(timeline: &Timeline, rest: Rest) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |rule: Rule, at: Timestamp, detail: String| found.push(Violation { rule, at, detail });
    for (key, pod) in timeline.at("pods", rest.settled) {
        if text(&pod, "/spec/nodeName").is_empty() {
            say(Rule::NoPodForgotten, rest.settled, format!("pod `{}` waits: {}", key.name, waiting(&pod)));
        }
    }
    let claims = timeline.at("nodeclaims", rest.settled);
    for (key, claim) in &claims {
        if claim.pointer("/metadata/deletionTimestamp").is_some() || !is_true(claim, "Ready") {
            say(Rule::Settles, rest.settled, format!("claim `{}` is not ready", key.name));
        }
    }
    let running = |time: Timestamp| {
        timeline
            .machines
            .iter()
            .filter(move |machine| machine.started <= time && machine.ended.is_none_or(|ended| ended > time))
    };
    let machines = running(rest.settled).count();
    if machines != claims.len() {
        say(Rule::Settles, rest.settled, format!("{machines} machines for {} claims", claims.len()));
    }
    let quiet_from = rest.settled.saturating_sub(SignedDuration::try_from(QUIET).unwrap_or_default());
    let quiet_from = quiet_from.unwrap_or(Timestamp::MIN);
    let writes: Vec<String> = timeline
        .own_writes()
        .filter(|record| record.at > quiet_from && record.at <= rest.settled)
        .filter(|record| record.resource != "leases" && record.resource != "events")
        .map(|record| format!("{} {} {}", record.verb.as_str(), record.resource, record.name.as_deref().unwrap_or("")))
        .collect();
    if writes.len() > QUIET_WRITES_MAX {
        say(Rule::Settles, rest.settled, format!("{} writes at rest, such as {}", writes.len(), writes[0]));
    }
    for (key, _) in timeline.at("nodeclaims", rest.empty) {
        say(Rule::Settles, rest.empty, format!("claim `{}` is left over", key.name));
    }
    for machine in running(rest.empty) {
        say(Rule::Settles, rest.empty, format!("machine {} is left over", machine.id));
    }
    found
}

fn waiting(pod: &serde_json::Value) -> String {
    let conditions = pod.pointer("/status/conditions").and_then(serde_json::Value::as_array);
    let scheduled = conditions.into_iter().flatten().find(|found| found["type"] == "PodScheduled");
    scheduled.and_then(|found| found["message"].as_str()).unwrap_or("no reason given").to_owned()
}
