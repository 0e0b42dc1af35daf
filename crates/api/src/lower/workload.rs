//! Objects that say which pods belong together, and namespaces.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, ReplicationController, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::{LabelRequirement, Labels, Selector, Text};

use super::selector::{label_selector, labels};

/// Kinds of objects whose selector the kube-scheduler deduces default spread constraints from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupingKind {
    /// A Service.
    Service,
    /// A ReplicationController.
    ReplicationController,
    /// A ReplicaSet.
    ReplicaSet,
    /// A StatefulSet.
    StatefulSet,
}

impl GroupingKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Service, Self::ReplicationController, Self::ReplicaSet, Self::StatefulSet];
}

/// Which pods an object says belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupingFacts {
    /// Kind.
    pub kind: GroupingKind,
    /// Namespace.
    pub namespace: Text,
    /// Name.
    pub name: Text,
    /// The pods. No selector at all selects nothing.
    pub selector: Selector,
}

impl GroupingFacts {
    /// Lowers a Service.
    pub fn service(service: &Service) -> Option<Self> {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        Self::named(GroupingKind::Service, &service.metadata, equal(selector))
    }

    /// Lowers a ReplicationController.
    pub fn replication_controller(controller: &ReplicationController) -> Option<Self> {
        let selector = controller.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        Self::named(GroupingKind::ReplicationController, &controller.metadata, equal(selector))
    }

    /// Lowers a ReplicaSet.
    pub fn replica_set(set: &ReplicaSet) -> Option<Self> {
        let selector = label_selector(set.spec.as_ref().map(|spec| &spec.selector));
        Self::named(GroupingKind::ReplicaSet, &set.metadata, selector)
    }

    /// Lowers a StatefulSet.
    pub fn stateful_set(set: &StatefulSet) -> Option<Self> {
        let selector = label_selector(set.spec.as_ref().map(|spec| &spec.selector));
        Self::named(GroupingKind::StatefulSet, &set.metadata, selector)
    }

    fn named(kind: GroupingKind, metadata: &ObjectMeta, selector: Selector) -> Option<Self> {
        let (namespace, name) = (metadata.namespace.as_deref().unwrap_or("default"), metadata.name.as_deref()?);
        Some(Self { kind, namespace: Text::from(namespace), name: Text::from(name), selector })
    }
}

fn equal(labels: Option<&BTreeMap<String, String>>) -> Selector {
    let Some(labels) = labels else { return Selector::Nothing };
    let is = |(key, value): (&String, &String)| LabelRequirement::is(key.as_str(), value.as_str());
    Selector::All(labels.iter().map(is).collect())
}

/// What we keep of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// Name.
    pub name: Text,
    /// Labels.
    pub labels: Labels,
}

impl NamespaceFacts {
    /// Lowers a namespace; `None` without a name.
    pub fn lower(namespace: &Namespace) -> Option<Self> {
        let metadata = &namespace.metadata;
        Some(Self { name: Text::from(metadata.name.as_deref()?), labels: labels(metadata.labels.as_ref()) })
    }
}
