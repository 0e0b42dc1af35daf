//! A large cluster, made at once: its nodes are copies of nodes that the controllers themselves made, and its pods are
//! bound when they are made, so that neither the scheduler nor a controller has anything left to do.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use api::{Condition, ConditionStatus, NodeClaim};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use sim::{Hands, ObjectKey};

use super::settings::LoadSettings;
use crate::controller::ControllerSettings;
use crate::world::{World, accounts};

/// Processor and memory of the pods of three Deployments in turn; thirty of them leave a little of a node free.
const SIZES: [(&str, &str); 3] = [("250m", "256Mi"), ("500m", "512Mi"), ("750m", "768Mi")];
/// A pod that fits into no node as it is made: what is left of one is a little less.
const CROWD_SIZE: (&str, &str) = ("1", "1Gi");
/// The pod for which the first node of each pool is made: it fits a machine of sixteen processors.
const FIRST_POD: (&str, &str) = ("15", "16Gi");
const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
/// Nodes of bursts take nobody else's pods.
const BURST_TAINT: &str = "load.karpenter.sh/burst";
/// Virtual time in which the first nodes must be there.
const PATIENCE: Duration = Duration::from_secs(300);

/// A Deployment that can be rolled out and scaled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) replicas: usize,
}

/// The name of a pool, which is also the namespace of its workloads.
pub(crate) fn pool_name(pool: usize) -> String {
    format!("team-{pool:02}")
}

/// The name of a pool that has nodes only now and then.
pub(crate) fn burst_name(pool: usize) -> String {
    format!("burst-{pool:02}")
}

/// Makes pools and a node in each of the lasting ones, by a controller of ours that ends afterwards.
pub(crate) async fn found(world: &World, settings: &LoadSettings, controller: &ControllerSettings) -> Result<()> {
    let hands = world.server().act(accounts::ADMINISTRATOR);
    create(&hands, "karpenter.kwok.sh", "kwoknodeclasses", &node_class())?;
    for pool in (0..settings.pools()).map(pool_name) {
        create(&hands, "", "namespaces", &json!({"metadata": {"name": pool}}))?;
        create(&hands, "karpenter.sh", "nodepools", &node_pool(&pool, "5m", None))?;
    }
    for pool in (0..settings.burst_pools()).map(burst_name) {
        create(&hands, "", "namespaces", &json!({"metadata": {"name": pool}}))?;
        create(&hands, "karpenter.sh", "nodepools", &node_pool(&pool, "30s", Some(BURST_TAINT)))?;
        create(&hands, "apps", "deployments", &deployment((&pool, "burst", &pool), SIZES[1], 0, Some(BURST_TAINT)))?;
    }
    // Namespaces have no service accounts before somebody had the time to make them.
    tokio::time::sleep(Duration::from_secs(2)).await;
    for pool in (0..settings.pools()).map(pool_name) {
        create(&hands, "", "pods", &first_pod(&pool))?;
    }
    let first = world.start_controller("founder", controller)?;
    let deadline = world.clock().elapsed() + PATIENCE;
    while initialized(world).await? < settings.pools() {
        if world.clock().elapsed() > deadline {
            bail!("the first nodes are not there after {} s", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    first.kill();
    for pool in (0..settings.pools()).map(pool_name) {
        let key = ObjectKey::new("", "pods", Some(&pool), "first");
        let at_once = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        hands.delete_object(&key, &at_once)?;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok(())
}

/// How many claims are in use.
async fn initialized(world: &World) -> Result<usize> {
    let is_in_use = |claim: &&NodeClaim| {
        let conditions = claim.status.as_ref().and_then(|status| status.conditions.as_ref());
        let is_true = |condition: &Condition| condition.status == ConditionStatus::True;
        conditions.into_iter().flatten().any(|found| found.type_ == "Initialized" && is_true(found))
    };
    Ok(claims(world).await?.iter().filter(is_in_use).count())
}

async fn claims(world: &World) -> Result<Vec<NodeClaim>> {
    let claims: Api<NodeClaim> = Api::all(world.client());
    Ok(claims.list(&ListParams::default()).await?.items)
}

/// Copies the first node of each pool and its claim until there are enough; the names of all nodes, by pool.
pub(crate) async fn grow(world: &World, settings: &LoadSettings) -> Result<Vec<Vec<String>>> {
    let hands = world.server().act(accounts::ADMINISTRATOR);
    let claims = claims(world).await?;
    let mut pools = Vec::new();
    for pool in 0..settings.pools() {
        let name = pool_name(pool);
        let is_of = |claim: &&NodeClaim| {
            claim.metadata.labels.as_ref().and_then(|labels| labels.get("karpenter.sh/nodepool")) == Some(&name)
        };
        let claim = claims.iter().find(is_of).and_then(|claim| claim.metadata.name.clone());
        let claim = claim.with_context(|| format!("no claim of `{name}`"))?;
        let model = Machine::read(&hands, &claim)?;
        let mut nodes = vec![model.node_name.clone()];
        for number in 1..settings.nodes_of(pool) {
            nodes.push(model.copy(&hands, &name, number)?);
        }
        pools.push(nodes);
    }
    Ok(pools)
}

/// A node with its claim, as text in which names can be exchanged.
struct Machine {
    claim_name: String,
    node_name: String,
    claim_uid: String,
    launch: String,
    zone: String,
    claim: String,
    node: String,
}

impl Machine {
    fn read(hands: &Hands, claim_name: &str) -> Result<Self> {
        let claim = hands.get_object(&ObjectKey::new("karpenter.sh", "nodeclaims", None, claim_name))?;
        let text = |pointer: &str| claim.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let node_name = text("/status/nodeName");
        let node = hands.get_object(&ObjectKey::new("", "nodes", None, &node_name))?;
        Ok(Self {
            claim_name: claim_name.to_owned(),
            node_name,
            claim_uid: text("/metadata/uid"),
            launch: text("/metadata/annotations/karpenter.sh~1launch-id"),
            zone: text("/metadata/labels/topology.kubernetes.io~1zone"),
            claim: unstored(claim).to_string(),
            node: unstored(node).to_string(),
        })
    }

    /// Makes another machine like this one; the name of its node.
    fn copy(&self, hands: &Hands, pool: &str, number: usize) -> Result<String> {
        let claim_name = format!("{pool}-{number:05}");
        let node_name = format!("kwok-{claim_name}");
        let zone = ZONES[number % ZONES.len()];
        let renamed = |text: &str, uid: &str| -> Result<Value> {
            // The node's name contains the claim's: it goes first.
            let text = text.replace(&self.node_name, &node_name).replace(&self.claim_name, &claim_name);
            let text = text.replace(&self.claim_uid, uid).replace(&self.launch, &format!("{}-{number}", self.launch));
            Ok(serde_json::from_str(&text.replace(&self.zone, zone))?)
        };
        let claim = renamed(&self.claim, &self.claim_uid)?;
        let made = create(hands, "karpenter.sh", "nodeclaims", &claim)?;
        let key = ObjectKey::new("karpenter.sh", "nodeclaims", None, &claim_name);
        hands.patch_object(&key, Some("status"), &json!({"status": claim["status"]}))?;
        let uid = made["metadata"]["uid"].as_str().unwrap_or_default();
        create(hands, "", "nodes", &renamed(&self.node, uid)?)?;
        Ok(node_name)
    }
}

/// An object as if it had never been stored.
fn unstored(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            // The claim's own identity is exchanged in the text of the node; in its own text it must not stand.
            metadata.remove(field);
        }
    }
    object
}

/// Makes Deployments that have no pods yet; their ReplicaSets are made by those who make them everywhere.
pub(crate) fn deploy(world: &World, settings: &LoadSettings) -> Result<Vec<Workload>> {
    let hands = world.server().act(accounts::ADMINISTRATOR);
    let mut workloads = Vec::new();
    for pool in 0..settings.pools() {
        let namespace = pool_name(pool);
        for (number, replicas) in settings.replicas(pool).into_iter().enumerate() {
            let name = format!("app-{number:02}");
            let size = SIZES[number % SIZES.len()];
            create(&hands, "apps", "deployments", &deployment((&namespace, &name, &namespace), size, 0, None))?;
            if number == 0 {
                create(&hands, "policy", "poddisruptionbudgets", &budget(&namespace, &name))?;
            }
            workloads.push(Workload { namespace: namespace.clone(), name, replicas });
        }
    }
    Ok(workloads)
}

/// Makes the pods of all Deployments of one pool, each on its node, before anybody can miss or mind them.
pub(crate) fn populate(world: &World, workloads: &[Workload], nodes: &[String]) -> Result<()> {
    let hands = world.server().act(accounts::ADMINISTRATOR);
    let sets: Vec<ReplicaSet> = match workloads.first() {
        Some(first) => hands.list(Some(&first.namespace))?,
        None => return Ok(()),
    };
    // Pods of each size go round the nodes by themselves, and begin elsewhere, so that no node gets too much.
    let mut next: Vec<usize> = (0..SIZES.len()).map(|size| size * nodes.len() / SIZES.len()).collect();
    for (number, workload) in workloads.iter().enumerate() {
        let is_of = |set: &&ReplicaSet| {
            let owners = set.metadata.owner_references.iter().flatten();
            owners.clone().any(|owner| owner.name == workload.name)
        };
        let set = sets.iter().find(is_of).with_context(|| format!("no ReplicaSet of `{}`", workload.name))?;
        let name = set.metadata.name.clone().unwrap_or_default();
        let replicas = json!({"spec": {"replicas": workload.replicas}});
        for (resource, name) in [("deployments", &workload.name), ("replicasets", &name)] {
            let key = ObjectKey::new("apps", resource, Some(&workload.namespace), name);
            hands.patch_object(&key, None, &replicas)?;
        }
        let mut pod = pod_of(&serde_json::to_value(set)?, &name);
        let next = &mut next[number % SIZES.len()];
        for _ in 0..workload.replicas {
            pod["spec"]["nodeName"] = json!(nodes[*next % nodes.len()]);
            create(&hands, "", "pods", &pod)?;
            *next += 1;
        }
    }
    Ok(())
}

fn pod_of(set: &Value, name: &str) -> Value {
    let template = &set["spec"]["template"];
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": format!("{name}-"),
            "namespace": set["metadata"]["namespace"],
            "labels": template["metadata"]["labels"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": set["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": template["spec"],
    })
}

/// Pods that nobody made room for: Deployments of their own, spread over the pools.
pub(crate) fn crowd(world: &World, settings: &LoadSettings, title: &str, pods: usize) -> Result<()> {
    let hands = world.server().act(accounts::ADMINISTRATOR);
    let count = (settings.pools() * 2).min(pods).max(1);
    for number in 0..count {
        let namespace = pool_name(number % settings.pools());
        let replicas = pods / count + usize::from(number < pods % count);
        let name = format!("{title}-{number:02}");
        let object = deployment((&namespace, &name, &namespace), CROWD_SIZE, replicas, None);
        create(&hands, "apps", "deployments", &object)?;
    }
    Ok(())
}

/// Makes an object of any kind.
pub(crate) fn create(hands: &Hands, group: &str, resource: &str, object: &Value) -> Result<Value> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    hands.create_object(group, resource, object).with_context(|| format!("create {resource} `{name}`"))
}

fn node_class() -> Value {
    json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}})
}

fn node_pool(name: &str, quiet: &str, taint: Option<&str>) -> Value {
    let taints: Vec<Value> = taint.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": quiet,
                "budgets": [{"nodes": "10%"}]},
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["8", "16", "32"]},
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                ],
                "taints": taints,
            }},
        },
    })
}

fn containers((cpu, memory): (&str, &str)) -> Value {
    json!([{
        "name": "main", "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
    }])
}

fn first_pod(pool: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "first", "namespace": pool},
        "spec": {"nodeSelector": {"karpenter.sh/nodepool": pool}, "containers": containers(FIRST_POD)},
    })
}

fn deployment(
    (namespace, name, pool): (&str, &str, &str),
    size: (&str, &str),
    replicas: usize,
    taint: Option<&str>,
) -> Value {
    let labels = json!({"app": name});
    let tolerations: Vec<Value> = taint.iter().map(|key| json!({"key": key, "operator": "Exists"})).collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "revisionHistoryLimit": 1,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "10%", "maxUnavailable": "10%"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"karpenter.sh/nodepool": pool},
                    "tolerations": tolerations,
                    "containers": containers(size),
                },
            },
        },
    })
}

fn budget(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": namespace},
        "spec": {"maxUnavailable": "10%", "selector": {"matchLabels": {"app": name}}},
    })
}
