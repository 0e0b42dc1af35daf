//! Types, pools, and the nodes that are there.

use std::sync::Arc;

use api::NodePool;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use model::{InstanceType, labels};
use serde_json::{Value, json};

use super::{Artist, DRIVER, FENCE, Phase, csi_node, read};
use crate::chance::{Size, cluster};
use crate::language::Scenario;

/// The class of every pool.
pub(crate) const CLASS_GROUP: &str = "example.com";
/// See [`CLASS_GROUP`].
pub(crate) const CLASS_KIND: &str = "NodeClass";

/// Keeps a node that is on its way out, as long as the test likes.
const FINALIZER: &str = "example.com/agreement";

/// Whether a node is to be on its way out.
pub(crate) fn is_going(node: &Node) -> bool {
    node.metadata.finalizers.is_some()
}

/// More make the search for a better plan longer, and nothing clearer.
const TYPES_MAX: usize = 4;

impl Artist {
    /// Types as the planner's own random tests draw them.
    pub(super) fn types(&mut self, seed: u64) -> (String, Arc<[Arc<InstanceType>]>) {
        let text = cluster(seed, Size { pods_min: 1, pods_max: 1, limits: false, volumes: false });
        let mut lines: Vec<String> =
            text.lines().filter(|line| line.starts_with("type ")).take(TYPES_MAX).map(str::to_owned).collect();
        if self.flavours.volumes {
            for line in &mut lines {
                let limit = self.perhaps(50, &[1, 2, 3]).map(|limit| format!(" attach={DRIVER}:{limit}"));
                *line += &limit.unwrap_or_default();
            }
        }
        let text = lines.join("\n");
        let scenario = Scenario::parse(&format!("{text}\npool any"));
        (text, Arc::clone(&scenario.snapshot.pools[0].types))
    }

    pub(super) fn pools(&mut self) -> Vec<NodePool> {
        let count = if self.percent(60) { 1 } else { 2 };
        (0..count).map(|index| self.pool(index)).collect()
    }

    fn pool(&mut self, index: usize) -> NodePool {
        let mut own = json!({FENCE: self.name});
        let wanted: [(&str, &str, &[&str]); 4] = [
            (labels::ZONE, "In", &["a", "b"]),
            (labels::ZONE, "NotIn", &["a"]),
            (labels::CAPACITY_TYPE, "In", &["on-demand"]),
            (labels::ARCH, "In", &["amd64"]),
        ];
        let wanted = self.perhaps(15, &wanted).copied();
        if self.percent(20) {
            own["team"] = json!("x");
        }
        let mut requirements: Vec<Value> = wanted
            .into_iter()
            .map(|(key, operator, values)| json!({"key": key, "operator": operator, "values": values}))
            .collect();
        if self.flavours.counting {
            let rack = self.rack_label();
            if self.percent(30) {
                requirements.push(json!({"key": rack, "operator": "In", "values": ["r0", "r1"]}));
            } else {
                own[rack] = json!(format!("r{index}"));
            }
        }
        let weight = self.perhaps(40, &[5, 9]).copied();
        let limit =
            self.perhaps(30, &[("cpu", "6"), ("cpu", "11"), ("nodes", "1"), ("nodes", "2"), ("memory", "20Gi")]);
        let limit = limit.filter(|_| self.phase == Phase::Steered).map(|(name, amount)| json!({*name: *amount}));
        let class = json!({"group": CLASS_GROUP, "kind": CLASS_KIND, "name": "any"});
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        read(json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": format!("pool{index}"), "uid": format!("pool{index}")},
            "spec": {
                "weight": weight,
                "limits": limit.unwrap_or_else(|| json!({})),
                "template": {
                    "metadata": {"labels": own},
                    "spec": {"nodeClassRef": class, "requirements": requirements, "taints": self.taints()},
                },
            },
            "status": {"conditions": [ready]},
        }))
    }

    fn taints(&mut self) -> Vec<Value> {
        let mut taints = Vec::new();
        if self.percent(12) {
            taints.push(json!({"key": "hard", "value": "1", "effect": "NoSchedule"}));
        }
        if self.flavours.wishes && self.percent(30) {
            taints.push(json!({"key": "soft", "value": "1", "effect": "PreferNoSchedule"}));
        }
        taints
    }

    pub(super) fn nodes(&mut self) -> (Vec<Node>, Vec<CSINode>) {
        let count = self.rng.usize(..=2);
        let (mut nodes, mut csi_nodes) = (Vec::new(), Vec::new());
        for index in 0..count {
            let name = format!("{}-n{index}", self.name);
            if self.flavours.volumes && self.percent(50) {
                let limit = *self.pick(&[1, 2]);
                csi_nodes.push(csi_node(&self.name, &name, limit));
            }
            nodes.push(self.node(&name));
        }
        if self.flavours.going {
            let name = format!("{}-going", self.name);
            let mut node = self.node(&name);
            node.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
            let taint = read(json!({"key": api::labels::DISRUPTED_TAINT, "effect": "NoSchedule"}));
            node.spec.get_or_insert_default().taints.get_or_insert_default().push(taint);
            nodes.push(node);
        }
        (nodes, csi_nodes)
    }

    fn node(&mut self, name: &str) -> Node {
        let mut own = json!({
            FENCE: self.name,
            labels::HOSTNAME: name,
            labels::ZONE: *self.pick(&["a", "b", "c"]),
            labels::OS: "linux",
        });
        if self.percent(60) {
            own[labels::ARCH] = json!("amd64");
        }
        if self.percent(20) {
            own["team"] = json!("x");
        }
        if self.flavours.counting && self.percent(80) {
            own[self.rack_label()] = json!(*self.pick(&["r0", "r1", "r2"]));
        }
        let (cpu, memory, pods) =
            *self.pick(&[("2", "4Gi", "110"), ("4", "8Gi", "110"), ("4", "16Gi", "5"), ("2500m", "2Gi", "8")]);
        let room = json!({"cpu": cpu, "memory": memory, "pods": pods});
        read(json!({
            "metadata": {"name": name, "labels": own, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "spec": {"taints": self.taints()},
            "status": {"allocatable": room, "capacity": room},
        }))
    }
}
