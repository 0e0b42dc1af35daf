//! Pods.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use model::{
    NodeName, Operator, PodClass, PodKey, Preference, Requirement, Requirements, ResourceName, Resources, Rule, Text,
    Vocabulary, labels,
};

use super::go_duration;
use super::pod_requests::{MissingRequests, effective};
use super::selector::{expression, tolerations};

/// Who made a pod, as far as that matters to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A DaemonSet: the pod comes and goes with its node.
    DaemonSet,
    /// The kubelet itself, from a manifest on disk.
    Node,
    /// A StatefulSet: a terminating pod will come back under the same name.
    StatefulSet,
    /// Anybody else, or nobody.
    Other,
}

/// Whether a pod asked not to be disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// It did not ask.
    None,
    /// For as long as it runs.
    Always,
    /// Until that moment; before the pod has started, the moment is not known.
    Until(Option<Timestamp>),
    /// The annotation has a value that says nothing.
    Unreadable,
}

impl Protection {
    fn read(annotation: Option<&str>, started: Option<Timestamp>) -> Self {
        match annotation {
            None => Self::None,
            Some("true") => Self::Always,
            Some(text) => match go_duration::parse(text).filter(|length| *length > Duration::ZERO) {
                None => Self::Unreadable,
                Some(length) => Self::Until(started.and_then(|start| start.checked_add(length).ok())),
            },
        }
    }

    /// Whether the pod is protected now.
    pub fn is_active(self, now: Timestamp) -> bool {
        match self {
            Self::None | Self::Unreadable => false,
            Self::Always | Self::Until(None) => true,
            Self::Until(Some(end)) => now < end,
        }
    }
}

/// Why a pod is not planned at all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodFault {
    /// The pod wants to stay away from our nodes; that is its right and no news.
    KeepsAway,
    /// A field selector in node affinity.
    MatchFields,
    /// A node affinity without a single term that could match.
    EmptyAffinity,
    /// An expression that cannot be read.
    Unreadable {
        /// The label.
        key: Text,
    },
    /// A label that users may not select.
    Restricted {
        /// The label.
        key: Text,
    },
    /// Node selector and node affinity that no node can satisfy together.
    Contradiction {
        /// The label they part on.
        key: Text,
    },
}

impl fmt::Display for PodFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepsAway => formatter.write_str("configured to not run on a Karpenter provisioned node"),
            Self::MatchFields => formatter.write_str("node selector term with matchFields is not supported"),
            Self::EmptyAffinity => formatter.write_str("required node affinity has no term that could match a node"),
            Self::Unreadable { key } => write!(formatter, "the node affinity expression on \"{key}\" cannot be read"),
            Self::Restricted { key } => {
                write!(formatter, "label \"{key}\" is restricted; select a well-known or custom label instead")
            }
            Self::Contradiction { key } => {
                write!(formatter, "node selector and required node affinity contradict each other on label \"{key}\"")
            }
        }
    }
}

/// What we keep of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Namespace and name.
    pub key: PodKey,
    /// Its identity; a pod of the same name made later has another.
    pub uid: Text,
    /// When it was made.
    pub created: Timestamp,
    /// What decides where it may run.
    pub class: Arc<PodClass>,
    /// Why it is not planned, if so.
    pub faults: BTreeSet<PodFault>,
    /// The node it is bound to.
    pub node: Option<NodeName>,
    /// Who made it.
    pub owner: Owner,
    /// Succeeded or failed: it no longer uses anything.
    pub is_terminal: bool,
    /// When it is to be gone, if it is being deleted.
    pub deletion: Option<Timestamp>,
    /// The scheduler tried and found no node.
    pub is_unschedulable: bool,
    /// The scheduler is making room for it on some node.
    pub is_nominated: bool,
    /// Its readiness condition.
    pub is_ready: bool,
    /// Whether it may be disturbed.
    pub protection: Protection,
    /// Cluster or node critical: it leaves a node last.
    pub is_critical: bool,
    /// How long it may take to stop.
    pub grace: Duration,
    /// Its labels, for disruption budgets.
    pub labels: BTreeMap<String, String>,
}

impl PodFacts {
    /// Lowers a pod; `None` if the API server sent one without a name.
    pub fn lower(pod: &core::Pod, vocabulary: &Vocabulary) -> Option<Self> {
        let metadata = &pod.metadata;
        let spec = pod.spec.as_ref()?;
        let status = pod.status.as_ref();
        let annotation = |key: &str| metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
        let started = status.and_then(|status| status.start_time.as_ref()).map(|time| time.0);
        let scheduled = condition(status, "PodScheduled");
        let mut faults = BTreeSet::new();
        let class = class(spec, status, MissingRequests::AreZero, vocabulary, &mut faults);
        Some(Self {
            key: PodKey::new(metadata.namespace.as_deref().unwrap_or("default"), metadata.name.as_deref()?),
            uid: Text::from(metadata.uid.as_deref().unwrap_or_default()),
            created: metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            class: Arc::new(class),
            faults,
            node: spec.node_name.as_deref().filter(|name| !name.is_empty()).map(NodeName::new),
            owner: owner(pod),
            is_terminal: matches!(status.and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed")),
            deletion: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            is_unschedulable: scheduled
                .is_some_and(|found| found.status == "False" && found.reason.as_deref() == Some("Unschedulable")),
            is_nominated: status
                .and_then(|status| status.nominated_node_name.as_deref())
                .is_some_and(|n| !n.is_empty()),
            is_ready: condition(status, "Ready").is_some_and(|found| found.status == "True"),
            protection: Protection::read(annotation(crate::labels::DO_NOT_DISRUPT).map(String::as_str), started),
            is_critical: matches!(
                spec.priority_class_name.as_deref(),
                Some("system-cluster-critical" | "system-node-critical")
            ),
            grace: grace(spec),
            labels: metadata.labels.clone().unwrap_or_default(),
        })
    }

    /// Whether we should find it a node: the scheduler could not, and it is not bound to come or go with a node.
    pub fn is_provisionable(&self) -> bool {
        let free = self.node.is_none() && !self.is_nominated && self.deletion.is_none() && !self.is_terminal;
        free && self.is_unschedulable && !matches!(self.owner, Owner::DaemonSet | Owner::Node)
    }

    /// Whether it runs or will run.
    pub fn is_active(&self) -> bool {
        !self.is_terminal && self.deletion.is_none()
    }

    /// Whether it needs another node when its own goes.
    pub fn is_reschedulable(&self) -> bool {
        let returning = self.owner == Owner::StatefulSet && !self.is_terminal;
        (self.is_active() || returning) && !matches!(self.owner, Owner::DaemonSet | Owner::Node)
    }

    /// What it asks for.
    pub fn requests(&self) -> &Resources {
        &self.class.requests
    }
}

fn condition<'a>(status: Option<&'a core::PodStatus>, kind: &str) -> Option<&'a core::PodCondition> {
    status?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

fn grace(spec: &core::PodSpec) -> Duration {
    const KUBERNETES_DEFAULT_SECONDS: i64 = 30;
    let seconds = spec.termination_grace_period_seconds.unwrap_or(KUBERNETES_DEFAULT_SECONDS);
    Duration::from_secs(seconds.max(0).unsigned_abs())
}

fn owner(pod: &core::Pod) -> Owner {
    let owners = pod.metadata.owner_references.iter().flatten();
    for reference in owners {
        match (reference.api_version.as_str(), reference.kind.as_str()) {
            ("apps/v1", "DaemonSet") => return Owner::DaemonSet,
            ("apps/v1", "StatefulSet") => return Owner::StatefulSet,
            ("v1", "Node") => return Owner::Node,
            _ => {}
        }
    }
    Owner::Other
}

pub(super) fn class(
    spec: &core::PodSpec,
    status: Option<&core::PodStatus>,
    missing: MissingRequests,
    vocabulary: &Vocabulary,
    faults: &mut BTreeSet<PodFault>,
) -> PodClass {
    let alternatives = alternatives(spec, vocabulary, faults);
    PodClass {
        priority: spec.priority.unwrap_or(0),
        requests: without_zeros(&effective(spec, status, missing)),
        preferences: preferences(spec, &alternatives),
        alternatives,
        tolerations: tolerations(spec.tolerations.iter().flatten()),
        unplanned_rules: unplanned_rules(spec),
    }
}

/// Two pods that differ only in a resource of which they ask nothing are equal.
fn without_zeros(requests: &Resources) -> Resources {
    let asked = |(name, amount): (&ResourceName, i64)| (amount != 0).then(|| (name.clone(), amount));
    requests.iter().filter_map(asked).collect()
}

fn node_affinity(spec: &core::PodSpec) -> Option<&core::NodeAffinity> {
    spec.affinity.as_ref()?.node_affinity.as_ref()
}

/// Requirements that must hold together, as written.
type Term<'a> = Vec<(&'a str, Requirement)>;

/// What may be met instead of one another. A contradiction is no alternative: taken together, its two sides would read
/// like a demand for the label's absence, and a node without the label would be made for nothing.
fn alternatives(spec: &core::PodSpec, vocabulary: &Vocabulary, faults: &mut BTreeSet<PodFault>) -> Vec<Requirements> {
    let mut selected = Term::new();
    for (key, value) in spec.node_selector.iter().flatten() {
        let requirement = Requirement::is(value.as_str());
        check(key, &requirement, vocabulary, faults);
        selected.push((key, requirement));
    }
    let required =
        node_affinity(spec).and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let terms = match required {
        None => vec![selected.clone()],
        Some(required) => affinity_terms(required, &selected, vocabulary, faults),
    };
    if terms.is_empty() {
        faults.insert(PodFault::EmptyAffinity);
    }
    let possible = terms.iter().filter(|term| contradiction(term).is_none());
    let mut alternatives: Vec<Requirements> = possible.map(|term| together(term)).collect();
    if alternatives.is_empty() {
        faults.extend(terms.iter().filter_map(|term| contradiction(term)).map(|key| PodFault::Contradiction { key }));
        alternatives.push(together(&selected));
    }
    alternatives
}

/// The terms of a node affinity, each with the node selector; a term that says nothing matches nothing.
fn affinity_terms<'a>(
    required: &'a core::NodeSelector,
    selected: &Term<'a>,
    vocabulary: &Vocabulary,
    faults: &mut BTreeSet<PodFault>,
) -> Vec<Term<'a>> {
    let mut terms = Vec::new();
    for term in &required.node_selector_terms {
        let has_fields = term.match_fields.as_ref().is_some_and(|fields| !fields.is_empty());
        if has_fields {
            faults.insert(PodFault::MatchFields);
        }
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        if expressions.is_empty() && !has_fields {
            continue;
        }
        let mut both = selected.clone();
        for written in expressions {
            match expression(written) {
                None => {
                    faults.insert(PodFault::Unreadable { key: Text::from(written.key.as_str()) });
                }
                Some(requirement) => {
                    check(&written.key, &requirement, vocabulary, faults);
                    both.push((&written.key, requirement));
                }
            }
        }
        terms.push(both);
    }
    terms
}

fn together(term: &Term<'_>) -> Requirements {
    term.iter().fold(Requirements::none(), |sum, (key, requirement)| sum.with(key, requirement.clone()))
}

/// A label that the term demands and at the same time leaves no value for.
fn contradiction(term: &Term<'_>) -> Option<Text> {
    let demanded = |key: &str| {
        term.iter().any(|(own, requirement)| labels::current_spelling(own) == key && !requirement.admits_absence())
    };
    let both = together(term);
    let mut valueless = both.iter().filter(|(_, requirement)| requirement.operator() == Operator::DoesNotExist);
    valueless.find(|(key, _)| demanded(key)).map(|(key, _)| Text::clone(key))
}

fn check(key: &str, requirement: &Requirement, vocabulary: &Vocabulary, faults: &mut BTreeSet<PodFault>) {
    let key = labels::current_spelling(key);
    if key == labels::NODE_POOL && requirement.operator() == Operator::DoesNotExist {
        faults.insert(PodFault::KeepsAway);
    }
    if vocabulary.is_restricted(key) {
        faults.insert(PodFault::Restricted { key: Text::from(key) });
    }
}

/// Wishes that cannot be read or fulfilled are dropped: they are wishes.
fn preferences(spec: &core::PodSpec, alternatives: &[Requirements]) -> Vec<Preference> {
    let written =
        node_affinity(spec).and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    let lower = |term: &core::PreferredSchedulingTerm| {
        let expressions = term.preference.match_expressions.iter().flatten();
        let wish: Term<'_> =
            expressions.map(|one| Some((one.key.as_str(), expression(one)?))).collect::<Option<_>>()?;
        let requirements = together(&wish);
        let can_be =
            contradiction(&wish).is_none() && alternatives.iter().any(|own| own.intersect(&requirements).is_ok());
        can_be.then_some(Preference { weight: term.weight, requirements })
    };
    written.into_iter().flatten().filter_map(lower).collect()
}

fn unplanned_rules(spec: &core::PodSpec) -> BTreeSet<Rule> {
    let affinity = spec.affinity.as_ref();
    let together = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let apart = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let stated = |terms: &Option<Vec<core::PodAffinityTerm>>| terms.as_ref().is_some_and(|terms| !terms.is_empty());
    let spread = spec.topology_spread_constraints.iter().flatten();
    let claims_volume = |volume: &core::Volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some();
    let host_port = |port: &core::ContainerPort| port.host_port.is_some_and(|port| port != 0);
    let uses_host_port = |container: &core::Container| container.ports.iter().flatten().any(host_port);
    let rules = [
        (Rule::TopologySpread, spread.clone().any(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")),
        (
            Rule::PodAffinity,
            together.is_some_and(|rule| stated(&rule.required_during_scheduling_ignored_during_execution)),
        ),
        (
            Rule::PodAntiAffinity,
            apart.is_some_and(|rule| stated(&rule.required_during_scheduling_ignored_during_execution)),
        ),
        (Rule::PersistentVolume, spec.volumes.iter().flatten().any(claims_volume)),
        (Rule::HostPort, spec.containers.iter().any(uses_host_port)),
        (Rule::ResourceClaim, spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty())),
    ];
    rules.into_iter().filter_map(|(rule, stated)| stated.then_some(rule)).collect()
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
