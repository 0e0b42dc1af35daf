//! The resources that requests are about, and valid objects of each.

use fastrand::Rng;
use serde_json::{Value, json};

/// One resource.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) status: bool,
    pub(crate) scale: bool,
    /// Everything but metadata.
    content: fn(&mut Rng) -> Value,
    /// Changes of a valid object, valid or not.
    pub(crate) changes: fn(&mut Rng) -> Value,
}

impl Kind {
    /// The path of the collection in a namespace, or of the only one there is.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        if self.namespaced {
            format!("{}/namespaces/{namespace}/{}", self.root(), self.plural)
        } else {
            self.everywhere()
        }
    }

    /// The path of the collection over all namespaces.
    pub(crate) fn everywhere(&self) -> String {
        format!("{}/{}", self.root(), self.plural)
    }

    fn root(&self) -> String {
        let prefix = if self.api_version.contains('/') { "apis" } else { "api" };
        format!("/{prefix}/{}", self.api_version)
    }

    /// A valid object.
    pub(crate) fn object(&self, rng: &mut Rng, name: &str, labels: Value) -> Value {
        let mut object = (self.content)(rng);
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.kind.into();
        object["metadata"] = json!({"name": name, "labels": labels});
        if rng.u8(..4) == 0 {
            object["metadata"]["annotations"] = json!({"note": "kept"});
        }
        if rng.u8(..6) == 0 {
            object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        object
    }
}

const fn builtin(api_version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        api_version,
        kind,
        plural,
        namespaced: true,
        status: false,
        scale: false,
        content: nothing,
        changes: no_change,
    }
}

/// Every resource that requests are about.
pub(crate) const KINDS: &[Kind] = &[
    Kind { content: config_map, changes: config_map_change, ..builtin("v1", "ConfigMap", "configmaps") },
    Kind { content: pod, changes: pod_change, status: true, ..builtin("v1", "Pod", "pods") },
    Kind { content: node, changes: node_change, status: true, namespaced: false, ..builtin("v1", "Node", "nodes") },
    Kind {
        content: deployment,
        changes: workload_change,
        status: true,
        scale: true,
        ..builtin("apps/v1", "Deployment", "deployments")
    },
    Kind {
        content: replica_set,
        changes: workload_change,
        status: true,
        scale: true,
        ..builtin("apps/v1", "ReplicaSet", "replicasets")
    },
    Kind {
        content: daemon_set,
        changes: workload_change,
        status: true,
        ..builtin("apps/v1", "DaemonSet", "daemonsets")
    },
    Kind {
        content: stateful_set,
        changes: workload_change,
        status: true,
        scale: true,
        ..builtin("apps/v1", "StatefulSet", "statefulsets")
    },
    Kind { content: job, changes: job_change, status: true, ..builtin("batch/v1", "Job", "jobs") },
    Kind {
        content: disruption_budget,
        changes: disruption_budget_change,
        status: true,
        ..builtin("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
    },
    Kind { content: lease, changes: lease_change, ..builtin("coordination.k8s.io/v1", "Lease", "leases") },
    Kind { content: event, changes: event_change, ..builtin("v1", "Event", "events") },
    Kind { status: true, namespaced: false, ..builtin("v1", "Namespace", "namespaces") },
    Kind {
        content: priority_class,
        changes: priority_class_change,
        namespaced: false,
        ..builtin("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses")
    },
    Kind {
        content: node_pool,
        changes: node_pool_change,
        status: true,
        scale: true,
        namespaced: false,
        ..builtin("karpenter.sh/v1", "NodePool", "nodepools")
    },
    Kind {
        content: node_claim,
        changes: node_claim_change,
        status: true,
        namespaced: false,
        ..builtin("karpenter.sh/v1", "NodeClaim", "nodeclaims")
    },
    Kind {
        content: ec2_node_class,
        changes: ec2_node_class_change,
        status: true,
        namespaced: false,
        ..builtin("karpenter.k8s.aws/v1", "EC2NodeClass", "ec2nodeclasses")
    },
    Kind {
        content: nothing,
        changes: no_change,
        status: true,
        namespaced: false,
        ..builtin("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "kwoknodeclasses")
    },
];

fn nothing(_: &mut Rng) -> Value {
    json!({})
}

fn no_change(_: &mut Rng) -> Value {
    json!({"metadata": {"annotations": {"changed": "yes"}}})
}

fn one_of<T: Clone>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())].clone()
}

fn config_map(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({}),
            json!({"data": {"key": "value"}}),
            json!({"binaryData": {"key": "AQID"}}),
            json!({"data": {"a": "1"}, "immutable": true}),
        ],
    )
}

fn config_map_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"data": {"key": "other", "more": "1"}}),
            json!({"data": {"key": null}}),
            json!({"data": {"bad key": "x"}}),
            json!({"data": {"key": 5}}),
            json!({"immutable": true}),
        ],
    )
}

fn container(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"name": "main", "image": "pause:1"}),
            json!({"name": "main", "image": "registry.example.com/app:latest", "resources": {"requests": {"cpu": "0.5", "memory": "128Mi"}, "limits": {"cpu": 1}}}),
            json!({"name": "main", "image": "app", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            json!({"name": "main", "image": "app@sha256:0000000000000000000000000000000000000000000000000000000000000000", "readinessProbe": {"httpGet": {"path": "/", "port": 80}}, "command": ["sleep"], "args": ["1"]}),
        ],
    )
}

fn pod_spec(rng: &mut Rng) -> Value {
    // Nobody makes tokens on the bare API server.
    let mut spec = json!({"containers": [container(rng)], "automountServiceAccountToken": false});
    let extra = [
        json!({}),
        json!({"nodeSelector": {"zone": "a"}}),
        json!({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}], "terminationGracePeriodSeconds": 5}),
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]}}}}),
        json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}]}),
        json!({"priorityClassName": "system-cluster-critical"}),
        json!({"initContainers": [{"name": "first", "image": "app"}], "volumes": [{"name": "scratch", "emptyDir": {}}]}),
        json!({"hostNetwork": true, "securityContext": {"runAsNonRoot": true}}),
    ];
    merge(&mut spec, &one_of(rng, &extra));
    spec
}

fn merge(target: &mut Value, more: &Value) {
    if let (Some(target), Some(more)) = (target.as_object_mut(), more.as_object()) {
        target.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

fn pod(rng: &mut Rng) -> Value {
    let mut spec = pod_spec(rng);
    if rng.u8(..4) == 0 {
        spec["nodeName"] = "machine".into();
    }
    if rng.u8(..4) == 0 {
        spec["restartPolicy"] = "Never".into();
    }
    json!({"spec": spec})
}

fn pod_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"metadata": {"labels": {"app": "changed"}}}),
            json!({"spec": {"containers": [{"name": "main", "image": "pause:2"}]}}),
            json!({"spec": {"nodeSelector": {"zone": "b"}}}),
            json!({"spec": {"terminationGracePeriodSeconds": 1}}),
            json!({"spec": {"activeDeadlineSeconds": 10}}),
            json!({"spec": {"tolerations": [{"key": "new", "operator": "Exists"}]}}),
            json!({"spec": {"containers": []}}),
            json!({"spec": {"restartPolicy": "Sometimes"}}),
            json!({"status": {"phase": "Running"}}),
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}),
        ],
    )
}

fn node(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({}),
            json!({"spec": {"providerID": "fake://1", "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}}),
            json!({"spec": {"unschedulable": true}, "status": {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}, "allocatable": {"cpu": "3500m"}}}),
        ],
    )
}

fn node_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"spec": {"unschedulable": true}}),
            json!({"spec": {"unschedulable": null}}),
            json!({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}),
            json!({"spec": {"taints": [{"key": "a", "effect": "Never"}]}}),
            json!({"spec": {"providerID": "fake://2"}}),
            json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
            json!({"status": {"allocatable": {"cpu": "2", "memory": "1.5Gi"}}}),
        ],
    )
}

fn template(rng: &mut Rng) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(rng)})
}

fn selector() -> Value {
    json!({"matchLabels": {"app": "web"}})
}

fn deployment(rng: &mut Rng) -> Value {
    let mut spec = json!({"selector": selector(), "template": template(rng)});
    merge(
        &mut spec,
        &one_of(
            rng,
            &[
                json!({}),
                json!({"replicas": 3}),
                json!({"replicas": 0, "strategy": {"type": "Recreate"}}),
                json!({"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "50%"}}, "minReadySeconds": 5}),
            ],
        ),
    );
    json!({"spec": spec})
}

fn replica_set(rng: &mut Rng) -> Value {
    json!({"spec": {"replicas": rng.u8(..4), "selector": selector(), "template": template(rng)}})
}

fn daemon_set(rng: &mut Rng) -> Value {
    json!({"spec": {"selector": selector(), "template": template(rng)}})
}

fn stateful_set(rng: &mut Rng) -> Value {
    json!({"spec": {"serviceName": "web", "replicas": rng.u8(..4), "selector": selector(), "template": template(rng)}})
}

fn workload_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"spec": {"replicas": 5}}),
            json!({"spec": {"replicas": -1}}),
            json!({"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}}),
            json!({"spec": {"selector": {"matchLabels": {"app": "other"}}}}),
            json!({"spec": {"template": {"metadata": {"annotations": {"restarted": "yes"}}}}}),
            json!({"spec": {"minReadySeconds": 3}}),
            json!({"spec": {"template": {"spec": {"nodeSelector": {"zone": "c"}}}}}),
            json!({"status": {"replicas": 1, "observedGeneration": 1}}),
        ],
    )
}

fn job(rng: &mut Rng) -> Value {
    let mut template = json!({"spec": pod_spec(rng)});
    template["spec"]["restartPolicy"] = one_of(rng, &["Never", "OnFailure"]).into();
    let mut spec = json!({"template": template});
    merge(
        &mut spec,
        &one_of(
            rng,
            &[json!({}), json!({"completions": 2, "parallelism": 2}), json!({"suspend": true, "backoffLimit": 1})],
        ),
    );
    json!({"spec": spec})
}

fn job_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"spec": {"suspend": true}}),
            json!({"spec": {"parallelism": 3}}),
            json!({"spec": {"completions": 9}}),
            json!({"spec": {"backoffLimit": 2}}),
            json!({"status": {"active": 1, "startTime": "2026-01-01T00:00:00Z"}}),
        ],
    )
}

fn disruption_budget(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"spec": {"minAvailable": 1, "selector": selector()}}),
            json!({"spec": {"maxUnavailable": "50%", "selector": selector()}}),
            json!({"spec": {"selector": {}}}),
        ],
    )
}

fn disruption_budget_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"spec": {"minAvailable": 2, "maxUnavailable": null}}),
            json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}}),
            json!({"spec": {"maxUnavailable": "200%"}}),
            json!({"status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2, "observedGeneration": 1}}),
            json!({"status": {"disruptionsAllowed": -1}}),
        ],
    )
}

fn lease(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"spec": {}}),
            json!({"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:01.500000Z", "leaseTransitions": 1}}),
        ],
    )
}

fn lease_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"spec": {"holderIdentity": "you"}}),
            json!({"spec": {"leaseDurationSeconds": 0}}),
            json!({"spec": {"leaseTransitions": -1}}),
            json!({"spec": {"renewTime": "yesterday"}}),
        ],
    )
}

fn event(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"involvedObject": {"kind": "Pod", "name": "a", "namespace": "@namespace"}, "reason": "Tested", "message": "It was tested.", "type": "Normal"}),
            json!({"involvedObject": {"kind": "Node", "name": "a"}, "reason": "Tested", "count": 2, "firstTimestamp": "2026-01-01T00:00:00Z", "source": {"component": "test"}}),
        ],
    )
}

fn event_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[json!({"count": 3, "lastTimestamp": "2026-01-01T00:01:00Z"}), json!({"message": "It was tested again."})],
    )
}

fn priority_class(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"value": 10}),
            json!({"value": -5, "preemptionPolicy": "Never", "description": "low"}),
            json!({"value": 2_000_000_000}),
        ],
    )
}

fn priority_class_change(rng: &mut Rng) -> Value {
    one_of(rng, &[json!({"value": 11}), json!({"description": "new"}), json!({"preemptionPolicy": "Never"})])
}

fn node_pool(rng: &mut Rng) -> Value {
    let mut spec = json!({"template": {"spec": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
    }}});
    merge(
        &mut spec,
        &one_of(
            rng,
            &[
                json!({}),
                json!({"weight": 10, "limits": {"cpu": "100"}}),
                json!({"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"}}),
                json!({"disruption": {"budgets": [{"nodes": "10%"}, {"nodes": "0", "schedule": "@daily", "duration": "8h"}]}}),
            ],
        ),
    );
    json!({"spec": spec})
}

fn node_pool_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"spec": {"weight": 20}}),
            json!({"spec": {"weight": 101}}),
            json!({"spec": {"weight": 0}}),
            json!({"spec": {"limits": {"cpu": 5, "memory": "lots"}}}),
            json!({"spec": {"disruption": {"consolidateAfter": "soon"}}}),
            json!({"spec": {"template": {"spec": {"nodeClassRef": {"kind": "Other"}}}}}),
            json!({"spec": {"template": {"spec": {"requirements": [{"key": "a", "operator": "Gt", "values": ["x"]}]}}}}),
            json!({"spec": {"template": {"spec": {"expireAfter": "Never"}}}}),
            json!({"status": {"nodes": 3, "resources": {"cpu": "1"}}}),
            json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
        ],
    )
}

fn node_claim(rng: &mut Rng) -> Value {
    let mut spec = json!({
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"], "minValues": 1}],
    });
    merge(
        &mut spec,
        &one_of(
            rng,
            &[
                json!({}),
                json!({"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}),
                json!({"taints": [{"key": "a", "effect": "NoSchedule"}]}),
            ],
        ),
    );
    json!({"spec": spec})
}

fn node_claim_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"spec": {"terminationGracePeriod": "1h"}}),
            json!({"status": {"providerID": "fake://1", "nodeName": "n"}}),
            json!({"status": {"capacity": {"cpu": "4"}}}),
            json!({"spec": null}),
        ],
    )
}

fn ec2_node_class(rng: &mut Rng) -> Value {
    let mut spec = json!({
        "role": "nodes",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"discovery": "a"}}],
        "securityGroupSelectorTerms": [{"tags": {"discovery": "a"}}],
    });
    merge(
        &mut spec,
        &one_of(
            rng,
            &[
                json!({}),
                json!({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi", "volumeType": "gp3"}}]}),
                json!({"kubelet": {"maxPods": 50, "systemReserved": {"cpu": "100m"}}, "tags": {"team": "a"}}),
                json!({"instanceProfile": "p"}),
            ],
        ),
    );
    json!({"spec": spec})
}

fn ec2_node_class_change(rng: &mut Rng) -> Value {
    one_of(
        rng,
        &[
            json!({"spec": {"role": "other"}}),
            json!({"spec": {"role": null}}),
            json!({"spec": {"amiSelectorTerms": []}}),
            json!({"spec": {"tags": {"karpenter.sh/nodepool": "x"}}}),
            json!({"spec": {"metadataOptions": {"httpTokens": "maybe"}}}),
            json!({"status": {"instanceProfile": "p"}}),
        ],
    )
}
