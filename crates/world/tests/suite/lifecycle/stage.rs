//! An embedded cluster with one controller, and the things that a person does and sees there.

use std::collections::BTreeMap;
use std::time::Duration;

use api::NodeClaim;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sim_loops::Order;
use world::fault::PlannedFaults;
use world::{
    CloudKind, Controller, ControllerSettings, FaultPlan, Player, World, WorldSettings, accounts, run_in_virtual_time,
};

use super::provider::{Orders, Script};

/// Where a story plays.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) script: Script,
    controller: Controller,
}

/// Only a broken story waits that long.
const PATIENCE: Duration = Duration::from_secs(3 * 3600);

/// Bad news that a controller tells; all others are normal.
const WARNINGS: [&str; 8] = [
    "DisruptionBudgetNeverAllows",
    "FailedConsistencyCheck",
    "FailedDraining",
    "FailedScheduling",
    "InsufficientCapacityError",
    "InvalidDoNotDisruptAnnotation",
    "TerminationGracePeriodExpiring",
    "UnregisteredTaintMissing",
];

/// Tells a story on a cluster with a NodeClass called `default` and a controller.
pub(crate) fn play(story: impl AsyncFnOnce(&Stage)) {
    play_with("", story);
}

/// Tells a story in which some calls of the controller go wrong.
pub(crate) fn play_with(faults: &str, story: impl AsyncFnOnce(&Stage)) {
    let plan: FaultPlan = faults.parse().unwrap();
    run_in_virtual_time(11, async {
        let world = World::start(WorldSettings::new(11, CloudKind::Kwok));
        let script = Script::default();
        let settings = ControllerSettings {
            around: Some(script.around(world.clock())),
            meddler: Some(PlannedFaults::new(&plan)),
            ..ControllerSettings::default()
        };
        let settings = settings.with("DISABLE_LEADER_ELECTION", "true");
        let controller = world.start_controller("alpha", &settings).unwrap();
        let stage = Stage { world, script, controller };
        stage.apply(json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}})).await;
        story(&stage).await;
        stage.check_tones().await;
    })
    .unwrap();
}

impl Stage {
    pub(crate) fn order(&self, change: impl FnOnce(&mut Orders)) {
        self.script.order(change);
    }

    pub(crate) fn now(&self) -> Duration {
        self.world.clock().elapsed()
    }

    pub(crate) async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) async fn apply(&self, object: Value) {
        Player::new(&self.world).apply(&object).await.unwrap();
    }

    /// Waits until something is so, and says how long that took.
    pub(crate) async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) -> Duration {
        let began = self.now();
        while !is_so().await {
            assert!(self.now() - began < PATIENCE, "waited in vain for {what}: {:#?}", self.claims().await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.now() - began
    }

    pub(crate) fn claim_api(&self) -> Api<NodeClaim> {
        Api::all(self.world.client())
    }

    pub(crate) fn node_api(&self) -> Api<Node> {
        Api::all(self.world.client())
    }

    pub(crate) fn pod_api(&self) -> Api<Pod> {
        Api::namespaced(self.world.client(), "default")
    }

    pub(crate) async fn claims(&self) -> BTreeMap<String, NodeClaim> {
        let found = self.claim_api().list(&ListParams::default()).await.unwrap().items;
        found.into_iter().map(|claim| (claim.name_any(), claim)).collect()
    }

    pub(crate) async fn claim(&self, name: &str) -> Option<NodeClaim> {
        self.claim_api().get_opt(name).await.unwrap()
    }

    pub(crate) async fn nodes(&self) -> BTreeMap<String, Node> {
        let found = self.node_api().list(&ListParams::default()).await.unwrap().items;
        found.into_iter().map(|node| (node.name_any(), node)).collect()
    }

    pub(crate) async fn node(&self, name: &str) -> Option<Node> {
        self.node_api().get_opt(name).await.unwrap()
    }

    pub(crate) async fn pod(&self, name: &str) -> Option<Pod> {
        self.pod_api().get_opt(name).await.unwrap()
    }

    pub(crate) async fn pods(&self) -> Vec<Pod> {
        self.pod_api().list(&ListParams::default()).await.unwrap().items
    }

    /// A condition as `status reason: message`.
    pub(crate) async fn condition(&self, claim: &str, kind: &str) -> Option<String> {
        let claim = self.claim(claim).await?;
        let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let found = conditions.find(|found| found.type_ == kind)?;
        Some(format!("{} {}: {}", found.status.as_str(), found.reason, found.message))
    }

    /// Waits for a condition whose text begins so.
    pub(crate) async fn until_condition(&self, claim: &str, kind: &str, begins: &str) -> Duration {
        self.until(&format!("{claim} {kind} {begins}"), async || {
            self.condition(claim, kind).await.is_some_and(|text| text.starts_with(begins))
        })
        .await
    }

    pub(crate) async fn until_claim_gone(&self, name: &str) -> Duration {
        self.until(&format!("the end of {name}"), async || self.claim(name).await.is_none()).await
    }

    pub(crate) async fn until_running(&self, pod: &str) -> Duration {
        self.until(&format!("{pod} to run"), async || self.pod(pod).await.is_some_and(|pod| is_running(&pod))).await
    }

    pub(crate) async fn until_all_running(&self, count: usize) -> Duration {
        self.until(&format!("{count} running pods"), async || {
            let pods = self.pods().await;
            pods.len() == count && pods.iter().all(is_running)
        })
        .await
    }

    pub(crate) async fn delete_claim(&self, name: &str) {
        self.claim_api().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn delete_node(&self, name: &str) {
        self.node_api().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn patch_node(&self, name: &str, patch: Value) {
        self.node_api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn patch_claim(&self, name: &str, patch: Value) {
        self.claim_api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// A claim without a pool, ready; the name of its node.
    pub(crate) async fn ready_claim(&self, name: &str, spec: Value) -> String {
        self.apply(claim(name, spec)).await;
        self.until_condition(name, "Ready", "True").await;
        self.claim(name).await.unwrap().status.unwrap().node_name.unwrap()
    }

    async fn all_events(&self) -> Vec<Event> {
        let events: Api<Event> = Api::all(self.world.client());
        events.list(&ListParams::default()).await.unwrap().items
    }

    /// Whatever was told in a story: warnings are warnings, and nothing else is.
    async fn check_tones(&self) {
        let own = |event: &Event| event.source.as_ref().and_then(|from| from.component.as_deref()) == Some("karpenter");
        for event in self.all_events().await.into_iter().filter(own) {
            let is_warning = event.reason.as_deref().is_some_and(|reason| WARNINGS.contains(&reason));
            assert_eq!(event.type_.as_deref(), Some(if is_warning { "Warning" } else { "Normal" }), "{event:?}");
        }
    }

    /// Events of a kind as `Kind/name: message`.
    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let found = self.all_events().await;
        let wanted = found.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        wanted
            .map(|event| {
                let about = event.involved_object;
                let message = event.message.unwrap_or_default();
                format!("{}/{}: {message}", about.kind.unwrap_or_default(), about.name.unwrap_or_default())
            })
            .collect()
    }

    /// All metrics of the controller.
    pub(crate) fn scrape(&self) -> String {
        self.controller.metrics()
    }

    /// The sum of all values of a metric whose labels contain a text.
    pub(crate) fn metric(&self, name: &str, labels: &str) -> f64 {
        let text = self.scrape();
        let lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(labels));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// What the controller wrote so far, as `verb resource/subresource` with what it sent.
    pub(crate) fn writes(&self) -> Vec<(String, Value)> {
        let history = self.world.server().history();
        let own = history.iter().filter(|record| record.actor == accounts::KARPENTER && record.verb.is_write());
        own.map(|record| {
            let subresource = record.subresource.as_ref().map(|sub| format!("/{sub}")).unwrap_or_default();
            let body = record.body.as_ref().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
            (format!("{} {}{subresource}", record.verb.as_str(), record.resource), body)
        })
        .collect()
    }

    /// The kubelet of a node is not heard any more.
    pub(crate) async fn silence(&self, node: &str) {
        self.world.order(Order::Silence(node.to_owned()));
        self.until("a node that is not ready", async || {
            self.node(node).await.is_some_and(|node| !is_ready_node(&node))
        })
        .await;
    }
}

pub(crate) fn is_running(pod: &Pod) -> bool {
    let is_running = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    is_running && pod.metadata.deletion_timestamp.is_none()
}

pub(crate) fn is_ready_node(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|found| found.type_ == "Ready" && found.status == "True")
}

/// The first object, with what the second says instead or besides.
pub(crate) fn with(mut object: Value, more: &Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut object, more) {
        for (key, value) in more {
            let before = fields.remove(key).unwrap_or_default();
            fields.insert(key.clone(), if before.is_object() { with(before, value) } else { value.clone() });
        }
        return object;
    }
    more.clone()
}

/// A claim of two CPUs that no pool stands behind.
pub(crate) fn claim(name: &str, spec: Value) -> Value {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let requirement =
        json!({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-2x-amd64-linux"]});
    let usual = json!({"nodeClassRef": class, "requirements": [requirement]});
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}, "spec": with(usual, &spec),
    })
}

/// A pool of nodes of four CPUs that are not taken away; `template` is added to the spec of its nodes.
pub(crate) fn pool(template: Value) -> Value {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let requirement = json!({"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]});
    let usual = json!({"nodeClassRef": class, "requirements": [requirement]});
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {
            "template": {"spec": with(usual, &template)},
            "disruption": {"consolidateAfter": "Never"},
        },
    })
}

/// A pod of nobody's.
pub(crate) fn pod(name: &str, more: &Value) -> Value {
    let usual = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": "100m"}}}],
        },
    });
    with(usual, more)
}

/// Pods that each fill most of a node of four CPUs.
pub(crate) fn fillers(replicas: u32) -> Value {
    let labels = json!({"app": "filler"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "filler", "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
                    "name": "main", "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"cpu": "3"}},
                }]},
            },
        },
    })
}

/// A node that a test makes itself, for the instance with this identity.
pub(crate) fn node(name: &str, provider_id: &str, more: &Value) -> Value {
    let usual = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
        "spec": {"providerID": provider_id, "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "64"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "64"},
        },
    });
    with(usual, more)
}

/// A budget for the pods of one app.
pub(crate) fn budget(name: &str, app: &str, spec: &Value) -> Value {
    let usual = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
    });
    with(usual, &json!({"spec": spec}))
}
