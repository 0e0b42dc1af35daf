//! What a buffer asks for: pods of which shape, and how many. Pure.

use std::fmt;
use std::sync::Arc;

use api::capacity_buffer::{CapacityBufferStatus, LocalReference, ScalableReference, conditions};
use api::condition::Statement;
use api::lower::{Headroom, TemplateFacts, WorkloadKind, resources};
use api::{CapacityBuffer, CapacityBufferSpec, ConditionStatus};
use jiff::Timestamp;
use model::{BufferKey, ResourceName, Resources};
use state::Cluster;

/// A buffer that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// What its pods look like.
    template: Arc<TemplateFacts>,
    /// For how many of them room is kept.
    replicas: i32,
    /// The PodTemplate and its generation, if that is what it refers to.
    pod_template: Option<(String, i64)>,
}

/// Why a buffer was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// It refers to nothing.
    NoReference,
    /// Its PodTemplate is not there.
    NoPodTemplate { name: String },
    /// Its workload is not there.
    NoWorkload { kind: WorkloadKind, name: String },
    /// It refers to a workload of another API group.
    UnsupportedGroup { group: String },
    /// It refers to a workload of another kind.
    UnsupportedKind { kind: String },
}

impl Unresolved {
    fn reason(&self) -> &'static str {
        match self {
            Self::NoPodTemplate { .. } => "PodTemplateNotFound",
            Self::NoWorkload { .. } => "ScalableRefNotFound",
            Self::NoReference | Self::UnsupportedGroup { .. } | Self::UnsupportedKind { .. } => "ResolutionFailed",
        }
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReference => formatter.write_str("Neither podTemplateRef nor scalableRef is set"),
            Self::NoPodTemplate { name } => write!(formatter, "PodTemplate \"{name}\" not found"),
            Self::NoWorkload { kind, name } => write!(formatter, "{}.apps \"{name}\" not found", kind.as_str()),
            Self::UnsupportedGroup { group } => write!(formatter, "unsupported scalableRef API group \"{group}\""),
            Self::UnsupportedKind { kind } => write!(formatter, "unsupported kind \"{kind}\""),
        }
    }
}

/// Looks up what a buffer refers to and counts its pods.
pub(super) fn resolve(buffer: &CapacityBuffer, cluster: &Cluster) -> Result<Resolved, Unresolved> {
    let namespace = buffer.metadata.namespace.as_deref().unwrap_or("default");
    let spec = &buffer.spec;
    if let Some(LocalReference { name }) = &spec.pod_template_ref {
        let found = cluster.pod_template(namespace, name);
        let found = found.ok_or_else(|| Unresolved::NoPodTemplate { name: name.clone() })?;
        return Ok(Resolved {
            replicas: replicas(spec, None, found.template.requests()),
            template: Arc::clone(&found.template),
            pod_template: Some((name.clone(), found.generation)),
        });
    }
    let Some(ScalableReference { api_group, kind, name }) = &spec.scalable_ref else {
        return Err(Unresolved::NoReference);
    };
    if let Some(group) = api_group.as_ref().filter(|group| !matches!(group.as_str(), "" | "apps")) {
        return Err(Unresolved::UnsupportedGroup { group: group.clone() });
    }
    let kind = WorkloadKind::parse(kind).ok_or_else(|| Unresolved::UnsupportedKind { kind: kind.clone() })?;
    let found = cluster.workload(kind, namespace, name);
    let found = found.ok_or_else(|| Unresolved::NoWorkload { kind, name: name.clone() })?;
    Ok(Resolved {
        replicas: replicas(spec, Some(found.replicas), found.template.requests()),
        template: Arc::clone(&found.template),
        pod_template: None,
    })
}

/// The larger of the fixed number and the share of the workload, as far as the limits allow; where neither is given, as
/// many as the limits allow.
fn replicas(spec: &CapacityBufferSpec, workload: Option<i32>, requests: &Resources) -> i32 {
    let running = workload.filter(|replicas| *replicas > 0);
    let share = spec.percentage.zip(running).map(|(percentage, replicas)| share(percentage, replicas));
    let wanted = spec.replicas.into_iter().chain(share).max();
    let allowed = spec.limits.as_ref().and_then(|limits| allowed(&resources(limits), requests));
    match (wanted, allowed) {
        (Some(wanted), Some(allowed)) => wanted.min(allowed),
        (wanted, allowed) => wanted.or(allowed).unwrap_or(0),
    }
}

/// Rounded up, so that any share of a workload that runs is at least one pod.
fn share(percentage: i32, replicas: i32) -> i32 {
    let hundredths = i64::from(percentage).max(0) * i64::from(replicas).max(0);
    i32::try_from((hundredths + 99) / 100).unwrap_or(i32::MAX)
}

/// How many pods fit into the limits; nothing if the limits name no resource that the pods ask for.
fn allowed(limits: &Resources, requests: &Resources) -> Option<i32> {
    let asked = requests.iter().filter(|(name, amount)| *amount > 0 && **name != ResourceName::pods());
    let limited = asked.filter(|(name, _)| limits.names(name));
    let fitting = limited.map(|(name, amount)| limits.get(name).max(0) / amount);
    fitting.min().map(|count| i32::try_from(count).unwrap_or(i32::MAX))
}

/// The room that follows.
pub(super) fn headroom(key: &BufferKey, resolution: &Result<Resolved, Unresolved>) -> Option<Headroom> {
    let Resolved { template, replicas, .. } = resolution.as_ref().ok()?;
    let count = u32::try_from(*replicas).unwrap_or(0);
    Some(Headroom { buffer: key.clone(), template: Arc::clone(template), count })
}

/// The status that says how the buffer was understood.
pub(super) fn status(
    buffer: &CapacityBuffer,
    resolution: &Result<Resolved, Unresolved>,
    now: Timestamp,
) -> CapacityBufferStatus {
    let mut status = buffer.status.clone().unwrap_or_default();
    status.provisioning_strategy = buffer.spec.provisioning_strategy.clone();
    let message;
    let (is_ready, reason, message) = match resolution {
        Ok(Resolved { replicas, pod_template, .. }) => {
            let (name, generation) = pod_template.clone().unzip();
            status.pod_template_ref = name.map(|name| LocalReference { name });
            status.pod_template_generation = generation;
            status.replicas = Some(*replicas);
            (ConditionStatus::True, "Resolved", "Pod template resolved successfully")
        }
        Err(unresolved) => {
            message = unresolved.to_string();
            (ConditionStatus::False, unresolved.reason(), message.as_str())
        }
    };
    let statement = Statement { type_: conditions::READY_FOR_PROVISIONING, status: is_ready, reason, message };
    let generation = buffer.metadata.generation.unwrap_or(0);
    statement.put(status.conditions.get_or_insert_default(), generation, now);
    status
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
