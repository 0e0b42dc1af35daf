//! What the checkers read: the API's own history and the cloud's own machines, put in order of time.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sim::{Change, ObjectKey, Record, StoreEvent, Verb};

use crate::world::accounts;

/// A machine as its cloud remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The cloud's name for it.
    pub id: String,
    /// The claim it was started for, as the launch said.
    pub claim: String,
    /// The pool of that claim.
    pub pool: String,
    /// What it has, in thousandths of a CPU.
    pub milli_cpu: i64,
    /// When it was started.
    pub started: Timestamp,
    /// When it was over.
    pub ended: Option<Timestamp>,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Step {
    /// When.
    pub at: Timestamp,
    /// The change.
    pub event: Arc<StoreEvent>,
    /// The object after it; for a removal its last state.
    pub object: Arc<Value>,
}

/// Everything that happened in one run.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Changes of objects, in order.
    pub steps: Vec<Step>,
    /// Calls that may have changed something, in order.
    pub writes: Vec<Arc<Record>>,
    /// Machines, by their start.
    pub machines: Vec<Machine>,
}

impl Timeline {
    /// Orders what was recorded.
    pub fn new(events: Vec<(Timestamp, Arc<StoreEvent>)>, history: &[Arc<Record>], machines: Vec<Machine>) -> Self {
        let steps = events.into_iter().map(|(at, event)| {
            let object = Arc::new(serde_json::from_slice(&event.object).unwrap_or_default());
            Step { at, event, object }
        });
        let writes = history.iter().filter(|record| record.verb.is_write() && !record.dry_run);
        Self { steps: steps.collect(), writes: writes.cloned().collect(), machines }
    }

    /// Calls of the controllers under test that succeeded.
    pub fn own_writes(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.writes.iter().filter(|record| record.actor == accounts::KARPENTER && record.code < 300)
    }

    /// Objects of one resource as they were at the end.
    pub fn last(&self, resource: &str) -> BTreeMap<ObjectKey, Arc<Value>> {
        self.at(resource, Timestamp::MAX)
    }

    /// Objects of one resource as they were at a time.
    pub fn at(&self, resource: &str, time: Timestamp) -> BTreeMap<ObjectKey, Arc<Value>> {
        let mut objects = BTreeMap::new();
        for step in
            self.steps.iter().take_while(|step| step.at <= time).filter(|step| step.event.key.resource == resource)
        {
            match step.event.change {
                Change::Deleted => objects.remove(&step.event.key),
                Change::Added | Change::Modified => objects.insert(step.event.key.clone(), Arc::clone(&step.object)),
            };
        }
        objects
    }

    /// When each object of a resource came and went, by name.
    pub fn lives(&self, resource: &str) -> Vec<Life> {
        let mut lives: Vec<Life> = Vec::new();
        for step in self.steps.iter().filter(|step| step.event.key.resource == resource) {
            let name = &step.event.key.name;
            match step.event.change {
                Change::Added => lives.push(Life { name: name.clone(), from: step.at, until: None }),
                Change::Modified => {}
                Change::Deleted => {
                    if let Some(life) = lives.iter_mut().rev().find(|life| life.name == *name && life.until.is_none()) {
                        life.until = Some(step.at);
                    }
                }
            }
        }
        lives
    }
}

/// The life of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Name.
    pub name: String,
    /// When it came.
    pub from: Timestamp,
    /// When it went.
    pub until: Option<Timestamp>,
}

/// A text field of an object.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a condition of an object is true.
pub(super) fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|found| found["type"] == condition && found["status"] == "True")
}

/// A number that names a whole history: equal histories, equal numbers.
pub fn history_hash(history: &[Arc<Record>]) -> u64 {
    let mut hash = Fnv::default();
    for record in history {
        let Record {
            at,
            actor,
            verb,
            group,
            resource,
            namespace,
            name,
            subresource,
            dry_run,
            code,
            object,
            revision,
            body,
        } = &**record;
        hash.eat(at.to_string().as_bytes());
        for part in [actor, verb_name(*verb), group, resource] {
            hash.eat(part.as_bytes());
        }
        for part in [namespace, name, subresource] {
            hash.eat(part.as_deref().unwrap_or("-").as_bytes());
        }
        hash.eat(&[u8::from(*dry_run)]);
        hash.eat(&code.to_le_bytes());
        hash.eat(&revision.to_le_bytes());
        for part in [object, body] {
            hash.eat(part.as_deref().unwrap_or_default());
        }
    }
    hash.0
}

fn verb_name(verb: Verb) -> &'static str {
    verb.as_str()
}

/// FNV-1a, which is the same everywhere.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn eat(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
