//! What built-in kinds ask beyond their schemas: the defaults and rules that the API server has in its code.

mod cluster;
mod common;
mod container;
mod defaults;
mod pod;
mod resources;
mod scheduling;
mod workload;

use serde_json::Value;

use crate::errors::FieldError;
use crate::kind::{KindSchema, Scope};
use crate::metadata::{self, MetadataRule};
use crate::names::NameRule;
use crate::path::Path;
use crate::typed::Arena;

/// Fills in what the kind gives when a field is absent.
pub(crate) fn complete(arena: &Arena, node: usize, kind: &str, object: &mut Value) {
    defaults::fill(arena, node, object);
    defaults::fill_kind(kind, object);
}

/// Reports everything that is wrong with `new`, which replaces `old` if there is one.
pub(crate) fn check(schema: &KindSchema, new: &Value, old: Option<&Value>, scope: Scope, errors: &mut Vec<FieldError>) {
    // Kinds that are sent but not stored need no name.
    let has_metadata = !matches!(schema.kind.as_str(), "Binding" | "Eviction" | "Scale" | "DeleteOptions");
    let is_late = old.is_none() && leaves_metadata(schema);
    if has_metadata && !is_late {
        metadata::check(metadata_rule(schema), new, old, errors);
    }
    match scope {
        Scope::Main | Scope::Scale => check_main(schema, new, old, errors),
        Scope::Status => check_status(schema, new, old, errors),
    }
    if is_late && errors.is_empty() {
        metadata::check(metadata_rule(schema), new, old, errors);
    }
}

/// Kinds whose own rules say nothing of the metadata: the rules of all objects are asked later, and ask less.
fn leaves_metadata(schema: &KindSchema) -> bool {
    matches!(schema.kind.as_str(), "Event" | "PodDisruptionBudget")
}

fn metadata_rule(schema: &KindSchema) -> MetadataRule {
    let names = match schema.kind.as_str() {
        "Namespace" | "Service" | "StatefulSet" => NameRule::Label,
        "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => NameRule::PathSegment,
        _ if leaves_metadata(schema) => NameRule::PathSegment,
        _ => NameRule::Subdomain,
    };
    // Only the metadata of kinds that live in `core` and those that share its code ask for known finalizers.
    let strict_finalizers =
        matches!(schema.group.as_str(), "" | "apps" | "batch" | "scheduling.k8s.io") && !leaves_metadata(schema);
    MetadataRule { names, namespaced: schema.namespaced, strict_finalizers }
}

fn check_main(schema: &KindSchema, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let namespaced = schema.namespaced;
    match schema.kind.as_str() {
        "Pod" => pod::check(new, old, errors),
        "PodTemplate" => pod::check_template(&new["template"], &Path::of("template"), errors),
        "Deployment" => workload::check_deployment(new, old, errors),
        "ReplicaSet" => workload::check_replica_set(new, old, errors),
        "DaemonSet" => workload::check_daemon_set(new, old, errors),
        "StatefulSet" => workload::check_stateful_set(new, old, errors),
        "Job" => workload::check_job(new, old, errors),
        "CronJob" => workload::check_cron_job(new, errors),
        "PodDisruptionBudget" => workload::check_budget(new, errors),
        "Node" => cluster::check_node(new, old, errors),
        "Lease" => cluster::check_lease(new, errors),
        "PriorityClass" => cluster::check_priority_class(new, old, errors),
        "StorageClass" => cluster::check_storage_class(new, old, errors),
        "PersistentVolumeClaim" => cluster::check_claim(new, old, errors),
        "PersistentVolume" => cluster::check_volume(new, errors),
        "ConfigMap" => cluster::check_config_map(new, old, errors),
        "Secret" => cluster::check_secret(new, old, errors),
        "Event" => cluster::check_event(new, errors),
        "Role" | "ClusterRole" => cluster::check_role(new, namespaced, errors),
        "RoleBinding" | "ClusterRoleBinding" => cluster::check_role_binding(new, old, namespaced, errors),
        "Service" => cluster::check_service(new, errors),
        "CustomResourceDefinition" => cluster::check_definition(new, old, errors),
        "Binding" => cluster::check_binding(new, errors),
        "Scale" => cluster::check_scale(new, errors),
        _ => {}
    }
}

fn check_status(schema: &KindSchema, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    match (schema.kind.as_str(), old) {
        ("Pod", Some(old)) => pod::check_status(new, old, errors),
        ("Deployment", _) => {
            workload::check_counts(new, &["updatedReplicas", "readyReplicas", "availableReplicas"], errors);
        }
        ("ReplicaSet", _) => {
            workload::check_counts(new, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"], errors);
        }
        ("StatefulSet", _) => {
            let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
            workload::check_counts(new, &parts, errors);
        }
        ("PodDisruptionBudget", _) => workload::check_budget_status(new, errors),
        // A node's status is judged with the rest of it.
        ("Node", _) => cluster::check_node(new, old, errors),
        _ => {}
    }
}
