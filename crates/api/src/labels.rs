//! The keys by which objects are marked: labels, annotations, taints and finalizers.

/// The API group of NodePool, NodeClaim and NodeOverlay, and the domain of the labels below.
pub const GROUP: &str = "karpenter.sh";

// Labels.

/// Names the NodePool that owns a NodeClaim or Node.
pub const NODE_POOL: &str = "karpenter.sh/nodepool";
/// How the capacity is paid for: [`CAPACITY_TYPE_SPOT`], [`CAPACITY_TYPE_ON_DEMAND`] or [`CAPACITY_TYPE_RESERVED`].
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// `true` on a Node that was matched with its NodeClaim.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// `true` on a Node that is ready for pods.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// `true` on a Node whose taints are left to whoever created it.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
/// Keeps load balancers away from a Node that is being drained.
pub const EXCLUDE_FROM_LOAD_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// The value that [`EXCLUDE_FROM_LOAD_BALANCERS`] gets.
pub const EXCLUDE_FROM_LOAD_BALANCERS_VALUE: &str = "karpenter";
/// The availability zone of a Node.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// The region of a Node.
pub const REGION: &str = "topology.kubernetes.io/region";
/// The instance type of a Node.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// The processor architecture of a Node.
pub const ARCH: &str = "kubernetes.io/arch";
/// The operating system of a Node.
pub const OS: &str = "kubernetes.io/os";
/// The host name of a Node; different on each, so nobody may ask for it.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// The Windows build of a Node.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

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
/// Key of the `NoSchedule` taint on a Node that reboots.
pub const REBOOTING_TAINT: &str = "karpenter.sh/rebooting";
/// Any taint whose key starts like this disappears by itself while a Node starts.
pub const READINESS_TAINT_PREFIX: &str = "readiness.k8s.io/";

// Finalizers.

/// Holds a NodeClaim or Node until it is drained and its instance is gone.
pub const TERMINATION_FINALIZER: &str = "karpenter.sh/termination";

/// Old names of well-known labels with the names they have now.
const ALIASES: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
];

/// The present name of a label that may be written by an old one.
pub fn normalise(key: &str) -> &str {
    ALIASES.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| new)
}

/// The label that carries the name of a NodeClass: its group, and its kind in lower case.
pub fn node_class_label(group: &str, kind: &str) -> String {
    format!("{group}/{}", kind.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{ZONE, node_class_label, normalise};

    #[test]
    fn old_names_become_present_ones() {
        assert_eq!(normalise("failure-domain.beta.kubernetes.io/zone"), ZONE);
        assert_eq!(normalise("example.com/team"), "example.com/team");
    }

    #[test]
    fn a_node_class_is_labelled_by_group_and_kind() {
        assert_eq!(node_class_label("karpenter.kwok.sh", "KWOKNodeClass"), "karpenter.kwok.sh/kwoknodeclass");
    }
}
