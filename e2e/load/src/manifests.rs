//! What is asked of a controller.

use std::fmt;

use serde_json::{Value, json};

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Story {
    /// Pods of 30 Deployments of different sizes, with 20 NodePools.
    Many {
        /// How many pods in all.
        pods: u32,
    },
    /// The same, but half of the Deployments say something about where their pods run.
    Choosy {
        /// How many pods in all.
        pods: u32,
    },
    /// Pods that keep each other off their nodes.
    Alone {
        /// How many pods, and with it how many nodes.
        pods: u32,
    },
}

const DEPLOYMENTS: u32 = 30;
const POOLS: u32 = 20;

impl Story {
    pub(crate) fn pods(self) -> u32 {
        match self {
            Self::Many { pods } | Self::Choosy { pods } | Self::Alone { pods } => pods,
        }
    }

    /// The node class, the pools, and the node on which a controller would live.
    pub(crate) fn pools(self) -> Vec<Value> {
        let pools = match self {
            Self::Many { .. } | Self::Choosy { .. } => POOLS,
            Self::Alone { .. } => 1,
        };
        let class = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}});
        [class, host()].into_iter().chain((0..pools).map(pool)).collect()
    }

    /// The workloads.
    pub(crate) fn deployments(self) -> Vec<Value> {
        match self {
            Self::Many { pods } => deployments(pods, |_| json!({})),
            Self::Choosy { pods } => deployments(pods, wish),
            Self::Alone { pods } => {
                let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "load-0"}}}
                ]}}});
                vec![deployment(0, pods, &apart)]
            }
        }
    }
}

impl fmt::Display for Story {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Many { pods } => write!(formatter, "{pods} pods of {DEPLOYMENTS} Deployments, {POOLS} NodePools"),
            Self::Choosy { pods } => {
                write!(formatter, "{pods} pods of {DEPLOYMENTS} Deployments, half of them choosy, {POOLS} NodePools")
            }
            Self::Alone { pods } => write!(formatter, "{pods} pods, one per node"),
        }
    }
}

/// A node that takes no pod. Every cluster with a controller in it has one, and without any the kube-scheduler does not
/// wait for nodes to change: it tries again every few seconds, and that would be measured instead of the controller.
fn host() -> Value {
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "host", "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": {"kubernetes.io/hostname": "host"},
        },
        "spec": {"taints": [{"key": "example.com/host", "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room},
    })
}

fn pool(number: u32) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": format!("load-{number:02}")},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            ],
        }}},
    })
}

fn deployments(pods: u32, wish: fn(u32) -> Value) -> Vec<Value> {
    let deployment = |number: u32| {
        let replicas = pods / DEPLOYMENTS + u32::from(number < pods % DEPLOYMENTS);
        deployment(number, replicas, &wish(number))
    };
    (0..DEPLOYMENTS).map(deployment).collect()
}

/// What a Deployment says about where its pods run: every second one nothing, the others one of the usual things.
fn wish(number: u32) -> Value {
    const ZONE: &str = "topology.kubernetes.io/zone";
    let itself = json!({"matchLabels": {"app": format!("load-{number}")}});
    let spread = |otherwise: &str| {
        json!({"topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": otherwise, "labelSelector": itself},
        ]})
    };
    let zone = ["test-zone-a", "test-zone-b", "test-zone-c"][number as usize % 3];
    match number % 8 {
        1 => spread("DoNotSchedule"),
        3 => spread("ScheduleAnyway"),
        5 => json!({"nodeSelector": {ZONE: zone}}),
        7 => json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": ZONE, "labelSelector": itself},
        ]}}}),
        _ => json!({}),
    }
}

/// Sizes differ from Deployment to Deployment as they do in a cluster: a few large ones among many small ones.
fn deployment(number: u32, replicas: u32, wish: &Value) -> Value {
    const MILLICPU: [u32; 6] = [100, 250, 250, 500, 1000, 2000];
    const MEBIBYTES: [u32; 5] = [128, 256, 512, 1024, 4096];
    let name = format!("load-{number}");
    let cpu = format!("{}m", MILLICPU[number as usize % MILLICPU.len()]);
    let memory = format!("{}Mi", MEBIBYTES[number as usize % MEBIBYTES.len()]);
    let mut spec = json!({
        "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "pause", "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": {"cpu": cpu, "memory": memory}},
        }],
    });
    if let (Some(spec), Some(wish)) = (spec.as_object_mut(), wish.as_object()) {
        spec.extend(wish.clone());
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    })
}
