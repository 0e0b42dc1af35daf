//! The keys by which objects are marked: labels, annotations, taints and finalizers.

/// The API group of NodePool, NodeClaim and NodeOverlay, and the domain of the labels below.
pub const GROUP: &str = "karpenter.sh";

// Labels. Those that the planner knows too are the model's.

pub use model::labels::{
    ARCH, CAPACITY_TYPE, HOSTNAME, INITIALIZED, INSTANCE_TYPE, NODE_POOL, OS, REGION, REGISTERED, WINDOWS_BUILD, ZONE,
    current_spelling,
};

/// `true` on a Node whose taints are left to whoever created it.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
/// Keeps load balancers away from a Node that is being drained.
pub const EXCLUDE_FROM_LOAD_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// The value that [`EXCLUDE_FROM_LOAD_BALANCERS`] gets.
pub const EXCLUDE_FROM_LOAD_BALANCERS_VALUE: &str = "karpenter";

/// Spare capacity that may be taken away at short notice.
pub const CAPACITY_TYPE_SPOT: &str = "spot";
/// Capacity paid by use.
pub const CAPACITY_TYPE_ON_DEMAND: &str = "on-demand";
/// Capacity paid for in advance.
pub const CAPACITY_TYPE_RESERVED: &str = "reserved";
/// Every value that [`CAPACITY_TYPE`] may usefully have.
pub const CAPACITY_TYPES: [&str; 3] = [CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, CAPACITY_TYPE_RESERVED];

// Annotations.

/// On a Pod (`true` or a duration) or a Node (`true`): no voluntary disruption.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// `true` on a Node: no repair of any kind.
pub const DO_NOT_REPAIR: &str = "karpenter.sh/do-not-repair";
/// The eviction cost of a Pod, read before [`POD_DELETION_COST`].
pub const DISRUPTION_COST: &str = "karpenter.sh/disruption-cost";
/// The eviction cost of a Pod as Kubernetes itself knows it.
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The hash of the NodePool's template.
pub const NODE_POOL_HASH: &str = "karpenter.sh/nodepool-hash";
/// The version of the way in which [`NODE_POOL_HASH`] is computed.
pub const NODE_POOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
/// When a NodeClaim's drain ends by force, in RFC 3339.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// Whether `minValues` had to be lowered for a NodeClaim.
pub const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
/// The DRA drivers whose devices a NodeClaim was created for, sorted and separated by commas.
pub const REQUESTED_DRA_DRIVERS: &str = "karpenter.sh/requested-dra-drivers";
/// `true` when an overlay changed the price a NodeClaim was chosen by.
pub const PRICE_OVERLAY_APPLIED: &str = "karpenter.sh/price-overlay-applied";
/// `true` when an overlay changed the capacity a NodeClaim was chosen by.
pub const CAPACITY_OVERLAY_APPLIED: &str = "karpenter.sh/capacity-overlay-applied";
/// `true` on the pods that stand in for a capacity buffer; such pods exist in memory only.
pub const CAPACITY_BUFFER_FAKE_POD: &str = "karpenter.sh/capacity-buffer-fake-pod";
/// Names the buffer a stand-in pod belongs to.
pub const CAPACITY_BUFFER_NAME: &str = "karpenter.sh/capacity-buffer-name";
/// Names the namespace of the buffer a stand-in pod belongs to.
pub const CAPACITY_BUFFER_NAMESPACE: &str = "karpenter.sh/capacity-buffer-namespace";
/// How long the drain of a committed reboot may take.
pub const REBOOT_TERMINATION_GRACE_PERIOD: &str = "karpenter.sh/reboot-termination-grace-period";
/// The boot ID a Node had before its reboot was asked for.
pub const REBOOT_PRE_BOOT_ID: &str = "karpenter.sh/reboot-pre-boot-id";

// Taints.

/// Key of the `NoSchedule` taint on a Node that is about to go.
pub const DISRUPTED_TAINT: &str = "karpenter.sh/disrupted";
/// Key of the `NoExecute` taint that a new Node must carry until it is registered.
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";
/// On a node until the node lifecycle controller has noticed that it is ready.
pub const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
/// Key of the `NoSchedule` taint on a Node that reboots.
pub const REBOOTING_TAINT: &str = "karpenter.sh/rebooting";
/// Any taint whose key starts like this disappears by itself while a Node starts.
pub const READINESS_TAINT_PREFIX: &str = "readiness.k8s.io/";

// Finalizers.

/// Holds a NodeClaim or Node until it is drained and its instance is gone.
pub const TERMINATION_FINALIZER: &str = "karpenter.sh/termination";

/// The label that carries the name of a NodeClass: its group, and its kind in lower case.
pub fn node_class_label(group: &str, kind: &str) -> String {
    format!("{group}/{}", kind.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::node_class_label;

    #[test]
    fn a_node_class_is_labelled_by_group_and_kind() {
        assert_eq!(node_class_label("karpenter.kwok.sh", "KWOKNodeClass"), "karpenter.kwok.sh/kwoknodeclass");
    }
}
