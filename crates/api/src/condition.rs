//! Conditions of an object's status, and the mechanics by which they change.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema::QUALIFIED_NAME;

/// Reason of a condition that nobody has looked at yet.
pub const AWAITING_RECONCILIATION: &str = "AwaitingReconciliation";
/// Reason of a root condition when a condition it depends on is false.
pub const UNHEALTHY_DEPENDENTS: &str = "UnhealthyDependents";
/// Reason of a root condition when a condition it depends on is not yet known.
pub const RECONCILING_DEPENDENTS: &str = "ReconcilingDependents";
const AWAITING_RECONCILIATION_MESSAGE: &str = "object is awaiting reconciliation";

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can say yet.
    #[default]
    Unknown,
}

impl ConditionStatus {
    /// The status as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One statement about an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the statement is about.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word.
    #[serde(default)]
    pub reason: String,
    /// Why, for people.
    #[serde(default)]
    pub message: String,
    /// When the status last changed.
    pub last_transition_time: Time,
    /// The generation of the object that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The conditions of a kind: the root, and those it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionTypes {
    /// True when all dependents are.
    pub root: &'static str,
    /// The conditions that every object of the kind has from the start.
    pub dependents: &'static [&'static str],
}

/// What has to be known about an object to change its conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionSubject {
    /// The object's present generation.
    pub generation: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// Whether the object is being deleted.
    pub deleting: bool,
    /// The present time.
    pub now: Timestamp,
}

/// The conditions of one object, while they are being changed.
///
/// Every set keeps the transition time unless the status changes, notes the generation, works out the root condition
/// anew, and leaves the list ordered by transition time with the root last.
#[derive(Debug)]
pub struct ConditionSet<'a> {
    conditions: &'a mut Vec<Condition>,
    types: ConditionTypes,
    subject: ConditionSubject,
}

impl<'a> ConditionSet<'a> {
    /// Opens the conditions of an object; the root and its dependents exist afterwards.
    ///
    /// What was missing is unknown since the object was created, not since now: that is how long nobody looked.
    pub fn open(conditions: &'a mut Vec<Condition>, types: ConditionTypes, subject: ConditionSubject) -> Self {
        let mut set = Self { conditions, types, subject };
        let root_known = set.get(types.root).is_some();
        let mut dependent_added = false;
        for dependent in types.dependents {
            if set.get(dependent).is_none() {
                set.insert_awaiting(dependent);
                dependent_added = true;
            }
        }
        if !root_known {
            set.insert_awaiting(types.root);
        } else if dependent_added {
            set.recompute_root();
        }
        if subject.deleting {
            for condition in set.conditions.iter_mut() {
                condition.observed_generation = Some(subject.generation);
            }
        }
        set.sort();
        set
    }

    /// The condition of this type, if there is one.
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition exists and holds.
    pub fn is_true(&self, type_: &str) -> bool {
        self.get(type_).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// Says that a condition holds; the reason is the type itself. Returns whether anything changed.
    pub fn set_true(&mut self, type_: &str) -> bool {
        self.set_true_with_reason(type_, type_, "")
    }

    /// Says that a condition holds, and why. Returns whether anything changed.
    pub fn set_true_with_reason(&mut self, type_: &str, reason: &str, message: &str) -> bool {
        self.set(type_, ConditionStatus::True, reason, message)
    }

    /// Says that it is not known whether a condition holds, and why. Returns whether anything changed.
    pub fn set_unknown(&mut self, type_: &str, reason: &str, message: &str) -> bool {
        self.set(type_, ConditionStatus::Unknown, reason, message)
    }

    /// Says that nobody has looked yet, or that what was seen no longer counts. Returns whether anything changed.
    pub fn set_awaiting(&mut self, type_: &str) -> bool {
        self.set_unknown(type_, AWAITING_RECONCILIATION, AWAITING_RECONCILIATION_MESSAGE)
    }

    /// Says that a condition does not hold, and why. Returns whether anything changed.
    pub fn set_false(&mut self, type_: &str, reason: &str, message: &str) -> bool {
        self.set(type_, ConditionStatus::False, reason, message)
    }

    /// Removes a condition. The root and its dependents always stay; returns whether anything was removed.
    pub fn clear(&mut self, type_: &str) -> bool {
        if type_ == self.types.root || self.types.dependents.contains(&type_) {
            return false;
        }
        let before = self.conditions.len();
        self.conditions.retain(|condition| condition.type_ != type_);
        self.conditions.len() != before
    }

    fn set(&mut self, type_: &str, status: ConditionStatus, reason: &str, message: &str) -> bool {
        let changed = self.write(type_, status, reason, message);
        if type_ != self.types.root {
            self.recompute_root();
        }
        self.sort();
        changed
    }

    fn write(&mut self, type_: &str, status: ConditionStatus, reason: &str, message: &str) -> bool {
        let known = self.conditions.iter().position(|condition| condition.type_ == type_);
        let last_transition_time = match known {
            Some(at) if self.conditions[at].status == status => self.conditions[at].last_transition_time.clone(),
            _ => whole_seconds(self.subject.now),
        };
        let condition = Condition {
            type_: type_.to_owned(),
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time,
            observed_generation: Some(self.subject.generation),
        };
        match known {
            Some(at) if self.conditions[at] == condition => false,
            Some(at) => {
                self.conditions[at] = condition;
                true
            }
            None => {
                self.conditions.push(condition);
                true
            }
        }
    }

    fn insert_awaiting(&mut self, type_: &str) {
        self.conditions.push(Condition {
            type_: type_.to_owned(),
            status: ConditionStatus::Unknown,
            reason: AWAITING_RECONCILIATION.to_owned(),
            message: AWAITING_RECONCILIATION_MESSAGE.to_owned(),
            last_transition_time: whole_seconds(self.subject.created_at),
            observed_generation: Some(self.subject.generation),
        });
    }

    /// A dependent that was last looked at in an earlier generation says nothing about this one.
    fn recompute_root(&mut self) {
        let current = Some(self.subject.generation);
        let mut unhealthy: Vec<&Condition> = self
            .types
            .dependents
            .iter()
            .filter_map(|dependent| self.get(dependent))
            .filter(|condition| condition.status != ConditionStatus::True || condition.observed_generation != current)
            .collect();
        if unhealthy.is_empty() {
            self.write(self.types.root, ConditionStatus::True, self.types.root, "");
            return;
        }
        unhealthy.sort_by(|left, right| right.last_transition_time.cmp(&left.last_transition_time));
        let message = unhealthy
            .iter()
            .map(|condition| format!("{}={}", condition.type_, condition.status.as_str()))
            .collect::<Vec<_>>()
            .join(", ");
        let failed = unhealthy
            .iter()
            .any(|condition| condition.status == ConditionStatus::False && condition.observed_generation == current);
        let (status, reason) = if failed {
            (ConditionStatus::False, UNHEALTHY_DEPENDENTS)
        } else {
            (ConditionStatus::Unknown, RECONCILING_DEPENDENTS)
        };
        self.write(self.types.root, status, reason, &message);
    }

    fn sort(&mut self) {
        let root = self.types.root;
        self.conditions.sort_by(|left, right| {
            (left.type_ == root, &left.last_transition_time).cmp(&(right.type_ == root, &right.last_transition_time))
        });
    }
}

/// What is said about an object whose conditions depend on nothing and keep the order in which they first appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// What it is about.
    pub type_: &'a str,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: &'a str,
    /// Why, for people.
    pub message: &'a str,
}

impl Statement<'_> {
    /// Puts the statement among an object's conditions, as Kubernetes itself does: since now if the status changed.
    pub fn put(&self, conditions: &mut Vec<Condition>, generation: i64, now: Timestamp) {
        let known = conditions.iter().position(|condition| condition.type_ == self.type_);
        let since = known.map(|at| &conditions[at]).filter(|condition| condition.status == self.status);
        let condition = Condition {
            type_: self.type_.to_owned(),
            status: self.status,
            reason: self.reason.to_owned(),
            message: self.message.to_owned(),
            last_transition_time: since
                .map_or_else(|| whole_seconds(now), |condition| condition.last_transition_time.clone()),
            observed_generation: Some(generation),
        };
        match known {
            Some(at) => conditions[at] = condition,
            None => conditions.push(condition),
        }
    }
}

/// Times in objects have whole seconds; a finer one would differ from what is read back.
fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

/// The schema of a point in time.
pub(crate) fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// The schema of conditions as Kubernetes itself defines them.
pub(crate) fn standard_conditions(_: &mut SchemaGenerator) -> Schema {
    conditions_schema(
        &json!(["lastTransitionTime", "message", "reason", "status", "type"]),
        &json!({
            "description": "Why, in one word.",
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        }),
    )
}

/// The schema of conditions whose reason and message may be absent or empty.
pub(crate) fn relaxed_conditions(_: &mut SchemaGenerator) -> Schema {
    conditions_schema(
        &json!(["lastTransitionTime", "status", "type"]),
        &json!({
            "description": "Why, in one word.",
            "type": "string",
            "maxLength": 1024,
            "pattern": "^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$",
        }),
    )
}

fn conditions_schema(required: &Value, reason: &Value) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "One statement about the object.",
            "type": "object",
            "required": required,
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": { "description": "Why, for people.", "type": "string", "maxLength": 32768 },
                "observedGeneration": {
                    "description": "The generation of the object that was looked at.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": reason,
                "status": {
                    "description": "Whether it holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "What the statement is about.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": QUALIFIED_NAME,
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{Condition, ConditionSet, ConditionSubject, ConditionTypes};

    const TYPES: ConditionTypes = ConditionTypes { root: "Ready", dependents: &["Red", "Green"] };

    /// An object made at second 100 of the epoch, looked at in the given generation and second.
    fn subject(generation: i64, now: i64) -> ConditionSubject {
        ConditionSubject {
            generation,
            created_at: Timestamp::from_second(100).unwrap(),
            deleting: false,
            now: Timestamp::from_second(now).unwrap(),
        }
    }

    fn open(conditions: &mut Vec<Condition>, generation: i64, now: i64) -> ConditionSet<'_> {
        ConditionSet::open(conditions, TYPES, subject(generation, now))
    }

    fn shown(conditions: &[Condition]) -> Vec<String> {
        let line = |condition: &Condition| {
            format!(
                "{}={} {} @{} gen {}{}",
                condition.type_,
                condition.status.as_str(),
                condition.reason,
                condition.last_transition_time.0.as_second(),
                condition.observed_generation.unwrap_or(-1),
                if condition.message.is_empty() { String::new() } else { format!(" ({})", condition.message) },
            )
        };
        conditions.iter().map(line).collect()
    }

    /// API-57: what is missing is unknown since the object's creation.
    #[test]
    fn missing_conditions_are_unknown_since_creation() {
        let mut conditions = vec![];
        open(&mut conditions, 1, 500);
        assert_eq!(
            shown(&conditions),
            [
                "Red=Unknown AwaitingReconciliation @100 gen 1 (object is awaiting reconciliation)",
                "Green=Unknown AwaitingReconciliation @100 gen 1 (object is awaiting reconciliation)",
                "Ready=Unknown AwaitingReconciliation @100 gen 1 (object is awaiting reconciliation)",
            ]
        );
    }

    /// API-57: a condition that the root does not depend on begins when it is first set.
    #[test]
    fn independent_conditions_begin_now() {
        let mut conditions = vec![];
        open(&mut conditions, 1, 500).set_true("Blue");
        assert_eq!(shown(&conditions)[2], "Blue=True Blue @500 gen 1");
    }

    /// API-58: the root is unknown while dependents are, false as soon as one is, true when all are.
    #[test]
    fn the_root_follows_its_dependents() {
        let mut conditions = vec![];
        open(&mut conditions, 1, 200).set_true("Green");
        assert_eq!(
            shown(&conditions),
            [
                "Red=Unknown AwaitingReconciliation @100 gen 1 (object is awaiting reconciliation)",
                "Green=True Green @200 gen 1",
                "Ready=Unknown ReconcilingDependents @100 gen 1 (Red=Unknown)",
            ]
        );
        open(&mut conditions, 1, 300).set_unknown("Green", "Waiting", "");
        open(&mut conditions, 1, 400).set_false("Red", "Broken", "it fell");
        assert_eq!(
            shown(&conditions),
            [
                "Green=Unknown Waiting @300 gen 1",
                "Red=False Broken @400 gen 1 (it fell)",
                "Ready=False UnhealthyDependents @400 gen 1 (Red=False, Green=Unknown)",
            ]
        );
        open(&mut conditions, 1, 500).set_true("Red");
        open(&mut conditions, 1, 600).set_true("Green");
        assert_eq!(
            shown(&conditions),
            ["Red=True Red @500 gen 1", "Green=True Green @600 gen 1", "Ready=True Ready @600 gen 1"]
        );
    }

    /// API-58, API-59: what was said of an earlier generation does not count, until it is said again.
    #[test]
    fn an_old_generation_says_nothing() {
        let mut conditions = vec![];
        open(&mut conditions, 1, 200).set_false("Red", "Broken", "");
        open(&mut conditions, 1, 250).set_true("Green");
        open(&mut conditions, 2, 300).set_true("Green");
        assert_eq!(
            shown(&conditions),
            [
                "Red=False Broken @200 gen 1",
                "Green=True Green @250 gen 2",
                "Ready=Unknown ReconcilingDependents @300 gen 2 (Red=False)",
            ]
        );
    }

    /// API-59: saying the same again refreshes the generation and keeps the transition time.
    #[test]
    fn repeating_refreshes_the_generation_only() {
        let mut conditions = vec![];
        assert!(open(&mut conditions, 1, 200).set_true("Red"));
        assert!(!open(&mut conditions, 1, 300).set_true("Red"));
        assert!(open(&mut conditions, 2, 400).set_true("Red"));
        assert_eq!(shown(&conditions)[1], "Red=True Red @200 gen 2");
    }

    /// API-59: on an object that goes, every condition is current.
    #[test]
    fn deletion_brings_all_generations_up_to_date() {
        let mut conditions = vec![];
        open(&mut conditions, 1, 200).set_true("Blue");
        ConditionSet::open(&mut conditions, TYPES, ConditionSubject { deleting: true, ..subject(7, 300) });
        assert!(conditions.iter().all(|condition| condition.observed_generation == Some(7)));
    }

    #[test]
    fn a_new_dependent_holds_the_root_back() {
        let mut conditions = vec![];
        let fewer = ConditionTypes { dependents: &["Red"], ..TYPES };
        ConditionSet::open(&mut conditions, fewer, subject(1, 200)).set_true("Red");
        open(&mut conditions, 1, 300);
        assert_eq!(shown(&conditions)[2], "Ready=Unknown ReconcilingDependents @300 gen 1 (Green=Unknown)");
    }

    #[test]
    fn only_independent_conditions_can_be_cleared() {
        let mut conditions = vec![];
        let mut set = open(&mut conditions, 1, 200);
        set.set_true("Blue");
        assert!(set.clear("Blue") && !set.clear("Blue") && !set.clear("Red") && !set.clear("Ready"));
    }

    #[test]
    fn a_root_without_dependents_is_true_once_set() {
        let mut conditions = vec![];
        let alone = ConditionTypes { dependents: &[], ..TYPES };
        ConditionSet::open(&mut conditions, alone, subject(1, 200)).set_true("Ready");
        assert_eq!(shown(&conditions), ["Ready=True Ready @200 gen 1"]);
    }
}
