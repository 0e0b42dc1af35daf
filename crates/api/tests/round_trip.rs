//! What is read and written back is the same text: no field appears, disappears or changes its spelling.

use api::{CapacityBuffer, EC2NodeClass, KWOKNodeClass, NodeClaim, NodeOverlay, NodePool};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn check<T: DeserializeOwned + Serialize>(object: &Value) {
    let read: T = serde_json::from_value(object.clone()).expect("the object can be read");
    assert_eq!(serde_json::to_value(&read).expect("the object can be written"), *object);
}

/// API-10: durations and quantities stay as they were written.
#[test]
fn node_pool() {
    check::<NodePool>(&json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": "default" },
        "spec": {
            "template": {
                "metadata": { "labels": { "team": "a" }, "annotations": {} },
                "spec": {
                    "taints": [{ "key": "a", "effect": "NoSchedule", "timeAdded": "2024-01-01T01:01:01Z" }],
                    "startupTaints": [],
                    "requirements": [{ "key": "b", "operator": "In", "values": ["c"], "minValues": 1 }],
                    "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
                    "terminationGracePeriod": "1h0m0s",
                    "expireAfter": "24h",
                },
            },
            "disruption": {
                "consolidateAfter": "Never",
                "consolidationPolicy": "Balanced",
                "budgets": [
                    { "nodes": "007", "reasons": ["Drifted"], "schedule": "@daily", "duration": "90m" },
                    { "nodes": "5%" },
                ],
            },
            "limits": { "cpu": "1e3", "memory": "1024Mi" },
            "weight": 7,
        },
        "status": { "nodes": 0, "resources": { "cpu": "0.5" } },
    }));
}

#[test]
fn node_claim() {
    check::<NodeClaim>(&json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": { "name": "default-1", "finalizers": ["karpenter.sh/termination"] },
        "spec": {
            "requirements": [{ "key": "b", "operator": "Exists" }],
            "resources": { "requests": { "cpu": "1500m" } },
            "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
            "expireAfter": "720h",
        },
        "status": {
            "nodeName": "n",
            "providerID": "kwok://n",
            "imageID": "i",
            "capacity": { "cpu": "2" },
            "allocatable": { "cpu": "1900m" },
            "lastPodEventTime": "2024-01-01T01:01:01Z",
            "conditions": [{
                "type": "Launched",
                "status": "True",
                "reason": "Launched",
                "message": "",
                "lastTransitionTime": "2024-01-01T01:01:01Z",
                "observedGeneration": 1,
            }],
        },
    }));
}

#[test]
fn node_overlay() {
    check::<NodeOverlay>(&json!({
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": { "name": "cheap" },
        "spec": {
            "requirements": [{ "key": "b", "operator": "Gt", "values": ["3"] }],
            "priceAdjustment": "-10.0%",
            "capacity": { "example.com/gpu": "1" },
            "weight": 10,
        },
    }));
}

#[test]
fn capacity_buffer() {
    check::<CapacityBuffer>(&json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
            "scalableRef": { "apiGroup": "apps", "kind": "Deployment", "name": "web" },
            "percentage": 10,
            "limits": { "cpu": "10" },
        },
        "status": { "podTemplateRef": { "name": "web" }, "podTemplateGeneration": 1, "replicas": 3 },
    }));
}

#[test]
fn kwok_node_class() {
    check::<KWOKNodeClass>(&json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": { "name": "default" },
        "spec": { "nodeRegistrationDelay": "90s" },
    }));
}

/// AWS-NC-17: settings of the kubelet that nobody here knows are kept.
#[test]
fn ec2_node_class() {
    check::<EC2NodeClass>(&json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": { "name": "default" },
        "spec": {
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": [{ "tags": { "team": "a" } }, { "id": "subnet-1" }],
            "securityGroupSelectorTerms": [{ "name": "web" }],
            "capacityReservationSelectorTerms": [{ "ownerID": "123456789012", "instanceMatchCriteria": "open" }],
            "associatePublicIPAddress": false,
            "amiFamily": "AL2023",
            "role": "node",
            "kubelet": { "maxPods": 42, "later": { "field": [1, "two", null] } },
            "blockDeviceMappings": [{
                "deviceName": "/dev/xvda",
                "rootVolume": true,
                "ebs": { "kmsKeyID": "k", "snapshotID": "s", "volumeSize": "100G", "volumeType": "gp3", "iops": 3000 },
            }],
            "instanceStorePolicy": "RAID0",
            "networkInterfaces": [{ "networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only" }],
            "metadataOptions": {
                "httpEndpoint": "enabled",
                "httpProtocolIPv6": "disabled",
                "httpPutResponseHopLimit": 2,
                "httpTokens": "optional",
            },
            "connectionTracking": { "udpTimeout": 45 },
            "cpuOptions": { "nestedVirtualization": "enabled" },
        },
        "status": {
            "subnets": [{ "id": "subnet-1", "zone": "a", "zoneID": "use1-az1" }],
            "amis": [{ "id": "ami-1", "requirements": [{ "key": "k", "operator": "In", "values": ["v"] }] }],
            "capacityReservations": [{
                "availabilityZone": "a",
                "id": "cr-1",
                "instanceMatchCriteria": "targeted",
                "instanceType": "m5.large",
                "ownerID": "123456789012",
                "reservationType": "capacity-block",
                "state": "expiring",
            }],
        },
    }));
}

/// People write quantities as bare numbers too; an integer in a stored object must not make it unreadable.
#[test]
fn quantities_may_be_numbers() {
    let read: NodePool = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
        "spec": {
            "limits": { "cpu": 1000, "memory": 1.5, "pods": "10" },
            "template": { "spec": { "requirements": [],
                "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" } } },
        },
    }))
    .expect("the object can be read");
    let limits = read.spec.limits.expect("limits are there");
    let texts: Vec<(&str, &str)> = limits.iter().map(|(name, quantity)| (name.as_str(), quantity.0.as_str())).collect();
    assert_eq!(texts, [("cpu", "1000"), ("memory", "1.5"), ("pods", "10")]);
}
