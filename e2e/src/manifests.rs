//! The manifests that tests share.

/// A KWOKNodeClass without settings.
pub fn kwok_node_class(name: &str) -> String {
    format!(
        "apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata:
  name: {name}
"
    )
}

/// A pool of linux/amd64 nodes; `extra` is appended to its spec, indented by two.
pub fn node_pool(name: &str, extra: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: {name}
spec:
  template:
    spec:
      nodeClassRef:
        group: karpenter.kwok.sh
        kind: KWOKNodeClass
        name: default
      requirements:
      - key: kubernetes.io/arch
        operator: In
        values: [amd64]
      - key: kubernetes.io/os
        operator: In
        values: [linux]
{extra}"
    )
}

/// The Deployment everybody tries first: pods that ask for one CPU each.
pub fn inflate(replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: inflate
  namespace: default
spec:
  replicas: {replicas}
  selector:
    matchLabels:
      app: inflate
  template:
    metadata:
      labels:
        app: inflate
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: inflate
        image: registry.k8s.io/pause:3.10
        resources:
          requests:
            cpu: \"1\"
"
    )
}

/// A node without a claim of ours. Its taint keeps pods away that do not ask for it.
pub const FOREIGN_NODE: &str = "apiVersion: v1
kind: Node
metadata:
  name: foreign
  annotations:
    kwok.x-k8s.io/node: fake
  labels:
    kubernetes.io/hostname: foreign
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    beta.kubernetes.io/os: linux
    beta.kubernetes.io/arch: amd64
spec:
  taints:
  - key: foreign
    effect: NoSchedule
status:
  allocatable:
    cpu: \"4\"
    memory: 8Gi
    pods: \"20\"
  capacity:
    cpu: \"4\"
    memory: 8Gi
    pods: \"20\"
";
