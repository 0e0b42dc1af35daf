//! Core events: equal ones are counted up instead of repeated, and chatter is cut off, as in the real recorder.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::key::Key;
use crate::pods::{after_seconds, time_text};
use crate::tasks::Actor;
use crate::write::{EVENTS, Part, Telling, Weight, Write};

/// How many different events are remembered for counting up.
const REMEMBERED_MAX: usize = 4096;
/// How often an event is counted up before it is only every five minutes.
const BURST: i32 = 25;
const CHATTER_SECONDS: i64 = 300;

/// What makes two events one: about what, from whom, why, in which words.
type Sameness = (String, &'static str, &'static str, String);

/// Remembers what was told.
#[derive(Debug, Default)]
pub(crate) struct Tellings {
    known: BTreeMap<Sameness, Told>,
    order: VecDeque<Sameness>,
    sequence: i64,
}

#[derive(Debug)]
struct Told {
    key: Key,
    count: i32,
    last: Timestamp,
}

impl Tellings {
    /// The write that tells: a new event, one more of a known one, or nothing when it was told too often.
    pub(crate) fn write(&mut self, actor: &Actor, telling: Telling, now: Timestamp) -> Option<Write> {
        let Telling { about, weight, reason, message } = telling;
        let sameness = (about.uid.clone().unwrap_or_default(), actor.component, reason, message.clone());
        if let Some(told) = self.known.get_mut(&sameness) {
            if told.count >= BURST && after_seconds(told.last, CHATTER_SECONDS) > now {
                return None;
            }
            told.count += 1;
            told.last = now;
            let patch = json!({"count": told.count, "lastTimestamp": time_text(now)});
            return Some(Write::Patch { resource: EVENTS, key: told.key.clone(), part: Part::Main, patch });
        }
        self.sequence += 1;
        let namespace = about.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let moment = now.as_microsecond().wrapping_mul(1_000).wrapping_add(self.sequence % 1_000_000);
        let name = format!("{}.{moment:016x}", about.name.as_deref().unwrap_or(""));
        let object = event(actor, (&namespace, &name), &json!(about), (weight, reason, &message), now);
        self.remember(sameness, Told { key: Key::new(namespace.as_str(), name), count: 1, last: now });
        Some(Write::Create { resource: EVENTS, namespace, object, owner: None })
    }

    fn remember(&mut self, sameness: Sameness, told: Told) {
        self.known.insert(sameness.clone(), told);
        self.order.push_back(sameness);
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Forgets an event that could not be counted up, because it is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.known.retain(|_, told| told.key != *key);
        let known = &self.known;
        self.order.retain(|sameness| known.contains_key(sameness));
    }
}

fn event(
    actor: &Actor,
    (namespace, name): (&str, &str),
    about: &Value,
    (weight, reason, message): (Weight, &str, &str),
    now: Timestamp,
) -> Value {
    let kind = if weight == Weight::Warning { "Warning" } else { "Normal" };
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": kind,
        "count": 1,
        "firstTimestamp": time_text(now),
        "lastTimestamp": time_text(now),
        "source": {"component": actor.component, "host": actor.host},
        "reportingComponent": actor.component,
        "reportingInstance": actor.host.as_deref().unwrap_or(""),
    })
}
