//! NodeClasses of any kind: all that matters here is whether they can be used.

use kube::core::DynamicObject;

use crate::{Condition, ConditionStatus};

/// Whether a NodeClass can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeClassReadiness {
    /// Yes.
    Ready,
    /// Nobody has said yet.
    Unknown,
    /// No, and why.
    NotReady {
        /// The condition's reason.
        reason: String,
        /// The condition's message.
        message: String,
    },
    /// It is being deleted.
    Terminating,
}

/// What we keep of a NodeClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeClassFacts {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Generation of its spec.
    pub generation: i64,
    /// Whether it can be used.
    pub readiness: NodeClassReadiness,
}

impl NodeClassFacts {
    /// Lowers a NodeClass of any kind; `None` without a name.
    pub fn lower(kind: &str, object: &DynamicObject) -> Option<Self> {
        let conditions = object.data.pointer("/status/conditions").cloned().unwrap_or_default();
        let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
        let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
        let readiness = match ready {
            _ if object.metadata.deletion_timestamp.is_some() => NodeClassReadiness::Terminating,
            Some(found) if found.status == ConditionStatus::True => NodeClassReadiness::Ready,
            Some(found) if found.status == ConditionStatus::False => {
                NodeClassReadiness::NotReady { reason: found.reason, message: found.message }
            }
            _ => NodeClassReadiness::Unknown,
        };
        let generation = object.metadata.generation.unwrap_or(0);
        Some(Self { kind: kind.to_owned(), name: object.metadata.name.clone()?, generation, readiness })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lower(conditions: &Value, deletion: Option<&str>) -> String {
        let class = json!({"apiVersion": "example.com/v1", "kind": "Class",
            "metadata": {"name": "default", "generation": 3, "deletionTimestamp": deletion},
            "status": {"conditions": conditions}});
        let facts = NodeClassFacts::lower("Class", &serde_json::from_value(class).unwrap()).unwrap();
        assert_eq!((facts.kind.as_str(), facts.name.as_str(), facts.generation), ("Class", "default", 3));
        match facts.readiness {
            NodeClassReadiness::NotReady { reason, message } => format!("{reason}: {message}"),
            other => format!("{other:?}"),
        }
    }

    /// API-45: the condition `Ready` decides, in its own words where it is false; a class that goes is of no use, whatever
    /// it says.
    #[test]
    fn the_condition_ready_decides() {
        let one = |kind: &str, status: &str| {
            json!([{"type": kind, "status": status, "reason": "NoSubnets", "message": "none was found",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}])
        };
        let table = [
            (json!(null), "Unknown"),
            (json!([]), "Unknown"),
            (one("Ready", "Unknown"), "Unknown"),
            (one("SubnetsReady", "True"), "Unknown"),
            (one("Ready", "True"), "Ready"),
            (one("Ready", "False"), "NoSubnets: none was found"),
        ];
        for (conditions, expected) in table {
            assert_eq!(lower(&conditions, None), expected, "{conditions}");
            assert_eq!(lower(&conditions, Some("2026-01-01T00:00:00Z")), "Terminating", "{conditions}");
        }
    }
}
