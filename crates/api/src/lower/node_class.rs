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
