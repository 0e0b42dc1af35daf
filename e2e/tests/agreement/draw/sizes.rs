//! What pods ask for.

use serde_json::{Value, json};

use super::{Artist, RUNTIME_CLASS};

const IMAGE: &str = "registry.k8s.io/pause:3.10";

/// A container that asks for something.
pub(super) fn container(name: &str, requests: &Value) -> Value {
    json!({"name": name, "image": IMAGE, "resources": {"requests": requests}})
}

/// A pod's spec with one container and nothing else.
pub(super) fn plain_spec(requests: &Value) -> Value {
    json!({"terminationGracePeriodSeconds": 0, "containers": [container("main", requests)]})
}

impl Artist {
    /// A pod's spec that says what the pod asks for, in one of many ways.
    pub(super) fn sized_spec(&mut self) -> Value {
        let cpu = *self.pick(&["300m", "500m", "700m", "1", "1300m", "1900m", "2500m", "3100m"]);
        let mut requests = json!({"cpu": cpu});
        if let Some(memory) = self.perhaps(60, &["500Mi", "1Gi", "3Gi", "5Gi"]) {
            requests["memory"] = json!(memory);
        }
        let mut spec = plain_spec(&requests);
        if self.flavours.sizes && self.percent(60) {
            self.complicate(&mut spec, &requests);
        }
        spec
    }

    fn complicate(&mut self, spec: &mut Value, requests: &Value) {
        let setup = container("setup", &json!({"cpu": *self.pick(&["200m", "1700m"]), "memory": "2Gi"}));
        let mut helper = container("helper", &json!({"cpu": *self.pick(&["150m", "600m"])}));
        helper["restartPolicy"] = json!("Always");
        match self.rng.u8(..8) {
            0 => spec["initContainers"] = json!([setup]),
            1 => spec["initContainers"] = json!([helper]),
            2 => spec["initContainers"] = json!([helper, setup]),
            3 => spec["initContainers"] = json!([setup, helper]),
            4 => spec["runtimeClassName"] = json!(RUNTIME_CLASS),
            5 => {
                // More for the pod than its containers ask for together.
                spec["resources"] = json!({"requests": {"cpu": "2200m", "memory": "1Gi"}});
                spec["containers"] = json!([container("main", &json!({"cpu": "400m"}))]);
            }
            6 => {
                // What is missing among the requests is taken from the limits.
                spec["containers"][0]["resources"] = json!({"limits": requests});
            }
            _ => {
                let second = container("second", &json!({"cpu": "250m", "memory": "100Mi"}));
                spec["containers"] = json!([container("main", requests), second]);
            }
        }
    }
}
