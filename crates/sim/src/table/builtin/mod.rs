//! The tables of the built-in resources.

mod columns;
mod pods;
mod rows;
mod storage;

use jiff::Timestamp;
use serde_json::Value;

pub(super) use self::columns::{describe, name_column};
use super::Column;
use super::read::Subject;

type Cells = fn(Subject<'_>) -> Vec<Value>;

/// Columns and cells of one built-in resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Builtin {
    columns: &'static [columns::Heading],
    cells: Cells,
}

impl Builtin {
    pub(super) fn find(group: &str, resource: &str) -> Self {
        let (columns, cells): (&'static [columns::Heading], Cells) = match (group, resource) {
            ("", "pods") => (columns::PODS, pods::pod),
            ("", "nodes") => (columns::NODES, rows::node),
            ("", "namespaces") => (columns::NAMESPACES, rows::namespace),
            ("", "services") => (columns::SERVICES, rows::service),
            ("", "configmaps") => (columns::CONFIG_MAPS, rows::config_map),
            ("", "secrets") => (columns::SECRETS, rows::secret),
            ("", "serviceaccounts") => (columns::NAME_AND_AGE, rows::name_and_age),
            ("", "events") => (columns::EVENTS, rows::core_event),
            ("events.k8s.io", "events") => (columns::EVENTS, rows::new_event),
            ("", "persistentvolumes") => (columns::PERSISTENT_VOLUMES, storage::persistent_volume),
            ("", "persistentvolumeclaims") => (columns::PERSISTENT_VOLUME_CLAIMS, storage::persistent_volume_claim),
            ("", "podtemplates") => (columns::POD_TEMPLATES, rows::pod_template),
            ("", "replicationcontrollers") => (columns::REPLICA_SETS, rows::replication_controller),
            ("apps", "deployments") => (columns::DEPLOYMENTS, rows::deployment),
            ("apps", "replicasets") => (columns::REPLICA_SETS, rows::replica_set),
            ("apps", "daemonsets") => (columns::DAEMON_SETS, rows::daemon_set),
            ("apps", "statefulsets") => (columns::STATEFUL_SETS, rows::stateful_set),
            ("apps", "controllerrevisions") => (columns::CONTROLLER_REVISIONS, rows::controller_revision),
            ("batch", "jobs") => (columns::JOBS, rows::job),
            ("batch", "cronjobs") => (columns::CRON_JOBS, rows::cron_job),
            ("policy", "poddisruptionbudgets") => (columns::POD_DISRUPTION_BUDGETS, rows::pod_disruption_budget),
            ("coordination.k8s.io", "leases") => (columns::LEASES, rows::lease),
            ("discovery.k8s.io", "endpointslices") => (columns::ENDPOINT_SLICES, rows::endpoint_slice),
            ("scheduling.k8s.io", "priorityclasses") => (columns::PRIORITY_CLASSES, rows::priority_class),
            ("node.k8s.io", "runtimeclasses") => (columns::RUNTIME_CLASSES, rows::runtime_class),
            ("storage.k8s.io", "storageclasses") => (columns::STORAGE_CLASSES, storage::storage_class),
            ("storage.k8s.io", "csinodes") => (columns::CSI_NODES, storage::csi_node),
            ("storage.k8s.io", "volumeattachments") => (columns::VOLUME_ATTACHMENTS, storage::volume_attachment),
            ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
                (columns::ROLE_BINDINGS, rows::role_binding)
            }
            ("autoscaling", "scale") => (columns::SCALES, rows::scale),
            _ => (columns::NAME_AND_CREATION, rows::name_and_creation),
        };
        Self { columns, cells }
    }

    pub(super) fn columns(self) -> Vec<Column> {
        self.columns.iter().map(columns::Heading::column).collect()
    }

    pub(super) fn cells(self, object: &Value, now: Timestamp) -> Vec<Value> {
        (self.cells)(Subject { object, now })
    }
}
