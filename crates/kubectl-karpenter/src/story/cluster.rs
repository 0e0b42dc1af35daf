//! Objects that people write: pools, classes, workloads. The story tells when they come, change and go.

use std::collections::BTreeMap;

use serde_json::Value;
use sim::{Change, ObjectKey};

use super::news::{News, ObjectName, Objects, Scaled, Warned};
use super::read::{owner, text};

/// Kinds whose coming and going is worth a line, by group and resource.
const TOLD: [(&str, &str); 10] = [
    ("", "pods"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "jobs"),
    ("karpenter.k8s.aws", "ec2nodeclasses"),
    ("karpenter.kwok.sh", "kwoknodeclasses"),
    ("karpenter.sh", "nodepools"),
    ("policy", "poddisruptionbudgets"),
];

/// What the story remembers of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    replicas: Option<u64>,
    /// Everything else that is wished for. Generations do not tell: a Deployment's also counts its annotations.
    spec: Value,
}

impl Known {
    fn of(object: &Value) -> Self {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        let replicas = spec.as_object_mut().and_then(|spec| spec.remove("replicas")).and_then(|count| count.as_u64());
        Self { replicas, spec }
    }
}

/// Objects that people wrote.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    known: BTreeMap<ObjectKey, Known>,
}

impl Wishes {
    /// Whether objects of this kind are people's wishes.
    pub(crate) fn are_in(key: &ObjectKey) -> bool {
        TOLD.contains(&(key.group.as_str(), key.resource.as_str()))
    }

    /// Takes a change in. Objects that a controller made for another object are not people's.
    pub(crate) fn change(&mut self, key: &ObjectKey, change: Change, object: &Value) -> Option<News> {
        if !Self::are_in(key) || owner(object).is_some() {
            return None;
        }
        let name = ObjectName {
            kind: text(object, "/kind").unwrap_or(&key.resource).to_owned(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        };
        if change == Change::Deleted {
            self.known.remove(key);
            return Some(News::Deleted(Objects { objects: vec![name] }));
        }
        let now = Known::of(object);
        let (replicas, spec) = (now.replicas, now.spec.clone());
        let Some(before) = self.known.insert(key.clone(), now) else {
            return Some(News::Applied(Objects { objects: vec![name] }));
        };
        match (before.replicas, replicas) {
            (Some(from), Some(to)) if from != to => Some(News::Scaled(Scaled { object: name, from, to })),
            _ if before.spec != spec => Some(News::Changed(Objects { objects: vec![name] })),
            _ => None,
        }
    }
}

/// Warnings that are no news here: plans tell the first two better, and every drain gives the third while it lasts.
const TOLD_OTHERWISE: [&str; 3] = ["FailedScheduling", "NoCompatibleInstanceTypes", "FailedDraining"];

/// A warning of the controller, read from its Event object.
pub(crate) fn warning(event: &Value) -> Option<News> {
    let is_ours = text(event, "/source/component") == Some("karpenter");
    let reason = text(event, "/reason")?;
    if !is_ours || text(event, "/type") != Some("Warning") || TOLD_OTHERWISE.contains(&reason) {
        return None;
    }
    let about = ObjectName {
        kind: text(event, "/involvedObject/kind")?.to_owned(),
        namespace: text(event, "/involvedObject/namespace").map(str::to_owned),
        name: text(event, "/involvedObject/name")?.to_owned(),
    };
    let message = text(event, "/message").unwrap_or_default().to_owned();
    Some(News::Warned(Warned { reason: reason.to_owned(), message, about: vec![about] }))
}
