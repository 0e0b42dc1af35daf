//! What changes, and whom it concerns.

use std::sync::Arc;

use api::lower::{
    AttachmentFacts, BudgetFacts, CsiNodeFacts, DaemonFacts, GroupingFacts, GroupingKind, NamespaceFacts,
    NodeClassFacts, NodeFacts, OverlayFacts, PodFacts, PodTemplateFacts, StorageClassFacts, VolumeClaimFacts,
    VolumeFacts, WorkloadFacts, WorkloadKind,
};
use api::{CapacityBuffer, NodeClaim, NodePool};
use model::{BufferKey, ClaimName, NodeName, PodKey, PoolName, Text};

/// The kinds of objects that are folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Pods.
    Pod,
    /// Nodes.
    Node,
    /// NodeClaims.
    Claim,
    /// NodePools.
    Pool,
    /// NodeClasses of any kind.
    NodeClass,
    /// DaemonSets.
    Daemon,
    /// PodDisruptionBudgets.
    Budget,
    /// PersistentVolumeClaims.
    VolumeClaim,
    /// PersistentVolumes.
    Volume,
    /// StorageClasses.
    StorageClass,
    /// CSINodes.
    CsiNode,
    /// VolumeAttachments.
    Attachment,
    /// Namespaces.
    Namespace,
    /// NodeOverlays; wanted only where overlays are in use.
    Overlay,
    /// CapacityBuffers; wanted only where buffers are in use, as the next two.
    Buffer,
    /// PodTemplates, for buffers that refer to one.
    PodTemplate,
    /// Workloads that a buffer may refer to.
    Workload(WorkloadKind),
    /// Services and whatever else says which pods belong together; wanted only when the cluster's scheduler has default
    /// spread constraints.
    Grouping(GroupingKind),
}

impl Kind {
    /// Kinds that every cluster is watched for.
    pub const ALWAYS: [Self; 13] = [
        Self::Pod,
        Self::Node,
        Self::Claim,
        Self::Pool,
        Self::NodeClass,
        Self::Daemon,
        Self::Budget,
        Self::VolumeClaim,
        Self::Volume,
        Self::StorageClass,
        Self::CsiNode,
        Self::Attachment,
        Self::Namespace,
    ];
}

/// An object as it is now.
#[derive(Clone, Debug)]
pub enum Object {
    /// A pod.
    Pod(Arc<PodFacts>),
    /// A node.
    Node(Arc<NodeFacts>),
    /// A claim.
    Claim(Arc<NodeClaim>),
    /// A pool.
    Pool(Arc<NodePool>),
    /// A NodeClass.
    NodeClass(Arc<NodeClassFacts>),
    /// A DaemonSet.
    Daemon(Arc<DaemonFacts>),
    /// A PodDisruptionBudget.
    Budget(Arc<BudgetFacts>),
    /// A PersistentVolumeClaim.
    VolumeClaim(Arc<VolumeClaimFacts>),
    /// A PersistentVolume.
    Volume(Arc<VolumeFacts>),
    /// A StorageClass.
    StorageClass(Arc<StorageClassFacts>),
    /// A CSINode.
    CsiNode(Arc<CsiNodeFacts>),
    /// A VolumeAttachment.
    Attachment(Arc<AttachmentFacts>),
    /// A namespace.
    Namespace(NamespaceFacts),
    /// A NodeOverlay.
    Overlay(Arc<OverlayFacts>),
    /// A CapacityBuffer.
    Buffer(Arc<CapacityBuffer>),
    /// A PodTemplate.
    PodTemplate(Arc<PodTemplateFacts>),
    /// A Deployment, ReplicaSet or StatefulSet.
    Workload(Arc<WorkloadFacts>),
    /// An object that says which pods belong together.
    Grouping(Arc<GroupingFacts>),
}

/// The name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A pod.
    Pod(PodKey),
    /// A node.
    Node(NodeName),
    /// A claim.
    Claim(ClaimName),
    /// A pool.
    Pool(PoolName),
    /// A NodeClass, by kind and name.
    NodeClass(String, String),
    /// A DaemonSet, by `namespace/name`.
    Daemon(Text),
    /// A PodDisruptionBudget, by namespace and name.
    Budget(String, String),
    /// A PersistentVolumeClaim, by namespace and name.
    VolumeClaim(Text, Text),
    /// A PersistentVolume.
    Volume(Text),
    /// A StorageClass.
    StorageClass(Text),
    /// A CSINode; it has its node's name.
    CsiNode(NodeName),
    /// A VolumeAttachment.
    Attachment(Text),
    /// A namespace.
    Namespace(Text),
    /// A NodeOverlay.
    Overlay(Text),
    /// A CapacityBuffer.
    Buffer(BufferKey),
    /// A PodTemplate, by namespace and name.
    PodTemplate(Text, Text),
    /// A Deployment, ReplicaSet or StatefulSet, by kind, namespace and name.
    Workload(WorkloadKind, Text, Text),
    /// An object that says which pods belong together, by kind, namespace and name.
    Grouping(GroupingKind, Text, Text),
}

impl Object {
    /// The object's name; `None` for an object that has none, which the API server never sends.
    pub fn key(&self) -> Option<Key> {
        Some(match self {
            Self::Pod(pod) => Key::Pod(pod.key.clone()),
            Self::Node(node) => Key::Node(node.name.clone()),
            Self::Claim(claim) => Key::Claim(ClaimName::new(claim.metadata.name.as_deref()?)),
            Self::Pool(pool) => Key::Pool(PoolName::new(pool.metadata.name.as_deref()?)),
            Self::NodeClass(class) => Key::NodeClass(class.kind.clone(), class.name.clone()),
            Self::Daemon(daemon) => Key::Daemon(daemon.name.clone()),
            Self::Budget(budget) => Key::Budget(budget.namespace.clone(), budget.name.clone()),
            Self::VolumeClaim(claim) => Key::VolumeClaim(claim.namespace.clone(), claim.name.clone()),
            Self::Volume(volume) => Key::Volume(volume.name.clone()),
            Self::StorageClass(class) => Key::StorageClass(class.name.clone()),
            Self::CsiNode(node) => Key::CsiNode(node.node.clone()),
            Self::Attachment(attachment) => Key::Attachment(attachment.name.clone()),
            Self::Namespace(namespace) => Key::Namespace(namespace.name.clone()),
            Self::Overlay(overlay) => Key::Overlay(overlay.name.clone()),
            Self::Buffer(buffer) => Key::Buffer(buffer_key(buffer)?),
            Self::PodTemplate(template) => Key::PodTemplate(template.namespace.clone(), template.name.clone()),
            Self::Workload(found) => Key::Workload(found.kind, found.namespace.clone(), found.name.clone()),
            Self::Grouping(found) => Key::Grouping(found.kind, found.namespace.clone(), found.name.clone()),
        })
    }
}

impl Key {
    /// The kind of object that is named.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Pod(_) => Kind::Pod,
            Self::Node(_) => Kind::Node,
            Self::Claim(_) => Kind::Claim,
            Self::Pool(_) => Kind::Pool,
            Self::NodeClass(..) => Kind::NodeClass,
            Self::Daemon(_) => Kind::Daemon,
            Self::Budget(..) => Kind::Budget,
            Self::VolumeClaim(..) => Kind::VolumeClaim,
            Self::Volume(_) => Kind::Volume,
            Self::StorageClass(_) => Kind::StorageClass,
            Self::CsiNode(_) => Kind::CsiNode,
            Self::Attachment(_) => Kind::Attachment,
            Self::Namespace(_) => Kind::Namespace,
            Self::Overlay(_) => Kind::Overlay,
            Self::Buffer(_) => Kind::Buffer,
            Self::PodTemplate(..) => Kind::PodTemplate,
            Self::Workload(kind, ..) => Kind::Workload(*kind),
            Self::Grouping(kind, ..) => Kind::Grouping(*kind),
        }
    }
}

/// The key of a buffer; `None` without a name.
pub(crate) fn buffer_key(buffer: &CapacityBuffer) -> Option<BufferKey> {
    let namespace = buffer.metadata.namespace.as_deref().unwrap_or("default");
    Some(BufferKey::new(namespace, buffer.metadata.name.as_deref()?))
}

/// What should be looked at again after a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// A pod waits for a node.
    Waiting(PodKey),
    /// A pod came to this node or ended on it, which restarts the node's quiet time.
    PodMoved(NodeName),
    /// A pod is gone from this node, which may be empty now.
    PodLeft(NodeName),
    /// A pod's wish not to be disturbed ends some day, or cannot be read, which its owner should know.
    Protection(PodKey),
    /// A claim, or something it depends on.
    Claim(ClaimName),
    /// A node, or something it depends on.
    Node(NodeName),
    /// A pool, or something it depends on.
    Pool(PoolName),
    /// Overlays, or something that they change.
    Overlays,
    /// A buffer, or something it refers to.
    Buffer(BufferKey),
    /// Room for a buffer's pods has to be found anew.
    Headroom(BufferKey),
}
