//! The nodes of a controller, given to a cluster all at once.
//!
//! What is left of the time then is that of the API server, the kube-scheduler and KWOK: the floor under every controller
//! that makes these nodes.

use k8s_openapi::api::core::v1::{Node, NodeSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// So many nodes are asked for at a time.
pub(crate) const AT_ONCE: usize = 32;

/// The label of nodes that belong to a pool.
const POOL: &str = "karpenter.sh/nodepool";

/// Of all nodes of a cluster those that a controller made, as they would be if they were new and open to pods.
pub(crate) fn made(nodes: Vec<Node>) -> Vec<Node> {
    let is_made = |node: &Node| node.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(POOL));
    nodes.into_iter().filter(is_made).map(anew).collect()
}

fn anew(node: Node) -> Node {
    let Node { metadata, spec, status } = node;
    let metadata = ObjectMeta {
        name: metadata.name,
        labels: metadata.labels,
        annotations: metadata.annotations,
        ..ObjectMeta::default()
    };
    let spec = spec.map(|spec| NodeSpec { provider_id: spec.provider_id, ..NodeSpec::default() });
    Node { metadata, spec, status }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_pools_come_back_new_and_open() {
        let node = |name: &str, labels: serde_json::Value| {
            serde_json::from_value::<Node>(serde_json::json!({
                "metadata": {"name": name, "labels": labels, "uid": "1", "resourceVersion": "7", "finalizers": ["f"]},
                "spec": {"providerID": "kwok://a", "unschedulable": true, "taints": [{"key": "t", "effect": "NoExecute"}]},
                "status": {"allocatable": {"cpu": "4"}},
            }))
            .unwrap()
        };
        let nodes = made(vec![node("a", serde_json::json!({POOL: "x"})), node("keeper", serde_json::json!({}))]);
        assert_eq!(
            serde_json::to_value(&nodes).unwrap(),
            serde_json::json!([{
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "a", "labels": {POOL: "x"}},
                "spec": {"providerID": "kwok://a"},
                "status": {"allocatable": {"cpu": "4"}},
            }])
        );
    }
}
