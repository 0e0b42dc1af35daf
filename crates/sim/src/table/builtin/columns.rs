//! The headings of the built-in tables: name, type, and whether only wide output shows them.

use super::Column;

/// One heading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: i32,
}

const NAME: Heading = Heading { name: "Name", kind: "string", format: "name", priority: 0 };

const fn text(name: &'static str) -> Heading {
    Heading { name, kind: "string", format: "", priority: 0 }
}

const fn wide(name: &'static str) -> Heading {
    Heading { name, kind: "string", format: "", priority: 1 }
}

const fn integer(name: &'static str) -> Heading {
    Heading { name, kind: "integer", format: "", priority: 0 }
}

const fn boolean(name: &'static str) -> Heading {
    Heading { name, kind: "boolean", format: "", priority: 0 }
}

const AGE: Heading = text("Age");
const CONTAINERS: Heading = wide("Containers");
const IMAGES: Heading = wide("Images");
const SELECTOR: Heading = wide("Selector");

pub(super) const NAME_AND_CREATION: &[Heading] =
    &[NAME, Heading { name: "Created At", kind: "date", format: "", priority: 0 }];
pub(super) const NAME_AND_AGE: &[Heading] = &[NAME, AGE];
pub(super) const PODS: &[Heading] = &[
    NAME,
    text("Ready"),
    text("Status"),
    text("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];
pub(super) const NODES: &[Heading] = &[
    NAME,
    text("Status"),
    text("Roles"),
    AGE,
    text("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];
pub(super) const NAMESPACES: &[Heading] = &[NAME, text("Status"), AGE];
pub(super) const SERVICES: &[Heading] =
    &[NAME, text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)"), AGE, SELECTOR];
pub(super) const CONFIG_MAPS: &[Heading] = &[NAME, text("Data"), AGE];
pub(super) const SECRETS: &[Heading] = &[NAME, text("Type"), text("Data"), AGE];
pub(super) const EVENTS: &[Heading] = &[
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    Heading { name: "Name", kind: "string", format: "name", priority: 1 },
];
pub(super) const POD_TEMPLATES: &[Heading] = &[NAME, text("Containers"), text("Images"), text("Pod Labels")];
pub(super) const DEPLOYMENTS: &[Heading] =
    &[NAME, text("Ready"), text("Up-to-date"), text("Available"), AGE, CONTAINERS, IMAGES, SELECTOR];
pub(super) const REPLICA_SETS: &[Heading] =
    &[NAME, integer("Desired"), integer("Current"), integer("Ready"), AGE, CONTAINERS, IMAGES, SELECTOR];
pub(super) const DAEMON_SETS: &[Heading] = &[
    NAME,
    integer("Desired"),
    integer("Current"),
    integer("Ready"),
    integer("Up-to-date"),
    integer("Available"),
    text("Node Selector"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
pub(super) const STATEFUL_SETS: &[Heading] = &[NAME, text("Ready"), AGE, CONTAINERS, IMAGES];
pub(super) const CONTROLLER_REVISIONS: &[Heading] = &[NAME, text("Controller"), text("Revision"), AGE];
pub(super) const JOBS: &[Heading] =
    &[NAME, text("Status"), text("Completions"), text("Duration"), AGE, CONTAINERS, IMAGES, SELECTOR];
pub(super) const CRON_JOBS: &[Heading] = &[
    NAME,
    text("Schedule"),
    text("Timezone"),
    boolean("Suspend"),
    integer("Active"),
    text("Last Schedule"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
pub(super) const POD_DISRUPTION_BUDGETS: &[Heading] =
    &[NAME, text("Min Available"), text("Max Unavailable"), integer("Allowed Disruptions"), AGE];
pub(super) const LEASES: &[Heading] = &[NAME, text("Holder"), AGE];
pub(super) const ENDPOINT_SLICES: &[Heading] = &[NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE];
pub(super) const PRIORITY_CLASSES: &[Heading] =
    &[NAME, integer("Value"), boolean("Global-Default"), AGE, text("PreemptionPolicy")];
pub(super) const RUNTIME_CLASSES: &[Heading] = &[NAME, text("Handler"), AGE];
pub(super) const ROLE_BINDINGS: &[Heading] =
    &[NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")];
pub(super) const SCALES: &[Heading] = &[text("Name"), integer("Desired"), integer("Available"), AGE];
pub(super) const STORAGE_CLASSES: &[Heading] =
    &[NAME, text("Provisioner"), text("ReclaimPolicy"), text("VolumeBindingMode"), text("AllowVolumeExpansion"), AGE];
pub(super) const CSI_NODES: &[Heading] = &[NAME, integer("Drivers"), AGE];
pub(super) const VOLUME_ATTACHMENTS: &[Heading] = &[
    NAME,
    Heading { name: "Attacher", kind: "string", format: "name", priority: 0 },
    text("PV"),
    text("Node"),
    boolean("Attached"),
    AGE,
];
pub(super) const PERSISTENT_VOLUMES: &[Heading] = &[
    NAME,
    text("Capacity"),
    text("Access Modes"),
    text("Reclaim Policy"),
    text("Status"),
    text("Claim"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    text("Reason"),
    AGE,
    wide("VolumeMode"),
];
pub(super) const PERSISTENT_VOLUME_CLAIMS: &[Heading] = &[
    NAME,
    text("Status"),
    text("Volume"),
    text("Capacity"),
    text("Access Modes"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    AGE,
    wide("VolumeMode"),
];

impl Heading {
    pub(super) fn column(&self) -> Column {
        Column {
            name: self.name.to_owned(),
            kind: self.kind.to_owned(),
            format: self.format.to_owned(),
            description: describe(self.name).to_owned(),
            priority: self.priority,
        }
    }
}

/// The first column of nearly every table.
pub(in super::super) fn name_column() -> Column {
    NAME.column()
}

/// What a column says, for people who ask for the table as JSON.
pub(in super::super) fn describe(name: &str) -> &'static str {
    match name {
        "Name" => "Name of the object, unique among its kind in its namespace.",
        "Age" => "Time since the object was created.",
        "Created At" => "When the object was created.",
        "Status" => "Where the object stands in its life.",
        "Ready" => "How much of it is ready, of how much is wanted.",
        "Restarts" => "How often containers were restarted, and when last.",
        "IP" => "Address of the pod.",
        "Node" => "Name of the node it belongs to.",
        "Nominated Node" => "Node on which room is being made for the pod.",
        "Readiness Gates" => "How many of the pod's extra readiness conditions hold.",
        "Roles" => "Roles of the node, by its labels.",
        "Version" => "Version of the kubelet.",
        "Internal-IP" | "External-IP" | "Cluster-IP" => "Address under which it is reached.",
        "Containers" => "Names of the containers.",
        "Images" => "Images of the containers.",
        "Selector" | "Node Selector" => "Labels by which it selects.",
        "Desired" => "How many are wanted.",
        "Current" => "How many there are.",
        "Up-to-date" => "How many follow the newest template.",
        "Available" => "How many have been ready for long enough.",
        "Last Seen" | "First Seen" => "Time since the event happened.",
        "Reason" => "Why, in one word.",
        "Message" => "What happened, for people.",
        "Object" | "Subobject" => "What the event is about.",
        "Source" => "Who reported the event.",
        "Count" => "How often it happened.",
        "Data" => "How many entries it holds.",
        "Min Available" => "How many pods must stay available.",
        "Max Unavailable" => "How many pods may be unavailable.",
        "Allowed Disruptions" => "How many pods may be evicted now.",
        "Holder" => "Who holds the lease.",
        "Value" => "Priority of pods with this class.",
        "Capacity" => "Size of the volume.",
        "Drivers" => "How many storage drivers the node has.",
        _ => "See the documentation of the kind.",
    }
}
