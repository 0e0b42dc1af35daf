//! Pods: those that run, those that wait, and those that come with every node.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use model::labels;
use serde_json::{Value, json};

use super::sizes::plain_spec;
use super::{Artist, FENCE, PODS_MAX, PRIORITIES, priority_class, read};

/// The name of a group of pods, which is also the value of its pods' label `app`.
pub(super) fn app(index: usize) -> String {
    format!("app{index}")
}

impl Artist {
    /// Pods that run on a node.
    pub(super) fn running(&mut self, node: &Node) -> Vec<Pod> {
        let node = node.metadata.name.clone().unwrap_or_default();
        let count = if self.percent(50) { self.rng.usize(1..=2) } else { 0 };
        (0..count).map(|index| self.one_running(&node, index)).collect()
    }

    fn one_running(&mut self, node: &str, index: usize) -> Pod {
        let mut spec = plain_spec(&json!({"cpu": *self.pick(&["100m", "300m", "500m"])}));
        spec["nodeName"] = json!(node);
        let group = self.rng.usize(..3);
        let namespace = self.namespace();
        if self.percent(20) {
            let away = self.pod_term(group);
            spec["affinity"] = json!({"podAntiAffinity": {super::rules::REQUIRED: [away]}});
        }
        if self.flavours.ports && self.percent(20) {
            spec["containers"][0]["ports"] = self.ports();
        }
        let labels = json!({FENCE: self.name, "app": app(group), "version": *self.pick(&["v0", "v1"])});
        let name = format!("{node}-running-{index}");
        read(json!({"metadata": {"namespace": namespace, "name": name, "labels": labels}, "spec": spec}))
    }

    fn namespace(&mut self) -> String {
        if self.flavours.namespaces && self.percent(40) { self.other_namespace() } else { self.name.clone() }
    }

    /// Ports of the host; which pods are alike in them is left to chance.
    fn ports(&mut self) -> Value {
        let number = *self.pick(&[8080, 9090]);
        let mut port = json!({"containerPort": number, "hostPort": number});
        if let Some(protocol) = self.perhaps(30, &["UDP", "TCP"]) {
            port["protocol"] = json!(protocol);
        }
        if let Some(address) = self.perhaps(30, &["10.0.0.1", "10.0.0.2", "0.0.0.0"]) {
            port["hostIP"] = json!(address);
        }
        json!([port])
    }

    pub(super) fn daemons(&mut self) -> Vec<DaemonSet> {
        if !self.flavours.daemons {
            return Vec::new();
        }
        let count = self.rng.usize(1..=2);
        (0..count).map(|index| self.daemon(index)).collect()
    }

    fn daemon(&mut self, index: usize) -> DaemonSet {
        let name = format!("daemon{index}");
        let mut spec = plain_spec(&json!({"cpu": *self.pick(&["100m", "250m", "400m"]), "memory": "50Mi"}));
        spec["nodeSelector"] = json!({FENCE: self.name});
        if let Some(zone) = self.perhaps(20, &["a", "b"]) {
            spec["nodeSelector"][labels::ZONE] = json!(zone);
        }
        if self.percent(60) {
            spec["tolerations"] = json!([{"operator": "Exists"}]);
        }
        // Two daemons with one port would never both get a place.
        if index == 0 && self.flavours.ports && self.percent(30) {
            spec["containers"][0]["ports"] = self.ports();
        }
        let labels = json!({FENCE: self.name, "app": name});
        let template = json!({"metadata": {"labels": labels}, "spec": spec});
        read(json!({
            "metadata": {"namespace": self.system_namespace(), "name": name, "labels": {FENCE: self.name}},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }))
    }

    /// Pods that wait, and their volumes.
    pub(super) fn waiting(&mut self) -> (Vec<Pod>, Vec<PersistentVolumeClaim>, Vec<PersistentVolume>) {
        let mut left = self.rng.usize(2..=PODS_MAX);
        let mut all = (Vec::new(), Vec::new(), Vec::new());
        for group in 0.. {
            if left == 0 {
                break;
            }
            let count = self.rng.usize(1..=left.min(5));
            left -= count;
            self.group(group, count, &mut all);
        }
        all
    }

    fn group(
        &mut self,
        group: usize,
        count: usize,
        all: &mut (Vec<Pod>, Vec<PersistentVolumeClaim>, Vec<PersistentVolume>),
    ) {
        let namespace = self.namespace();
        let spec = self.waiting_spec(group);
        let disk = self.disk();
        let is_mixed = self.flavours.counting && self.percent(60);
        for index in 0..count {
            let name = format!("{}-{index}", app(group));
            let mut labels = json!({FENCE: self.name, "app": app(group)});
            if is_mixed {
                labels["version"] = json!(*self.pick(&["v0", "v1"]));
            }
            let mut spec = spec.clone();
            if let Some(disk) = &disk {
                let (claim, volume) = self.claim(disk, &namespace, &name);
                spec["volumes"] = json!([{"name": "disk", "persistentVolumeClaim": {"claimName": name}}]);
                all.1.push(claim);
                all.2.extend(volume);
            }
            let metadata = json!({"namespace": namespace, "name": name, "labels": labels});
            all.0.push(read(json!({"metadata": metadata, "spec": spec})));
        }
    }

    fn waiting_spec(&mut self, group: usize) -> Value {
        let mut spec = self.sized_spec();
        spec["nodeSelector"] = self.node_selector();
        spec["tolerations"] = self.tolerations();
        spec["affinity"] = self.affinity(group);
        spec["topologySpreadConstraints"] = self.spread(group);
        if self.flavours.priorities
            && let Some(priority) = self.perhaps(40, &PRIORITIES)
        {
            spec["priorityClassName"] = json!(priority_class(*priority));
        }
        if self.flavours.ports && self.percent(35) {
            spec["containers"][0]["ports"] = self.ports();
        }
        spec
    }
}
