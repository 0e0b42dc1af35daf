//! A world with the KWOK provider and one controller, for stories that are told with a client.

use std::time::Duration;

use api::{NodeClaim, NodePool};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use world::fault::PlannedFaults;
use world::{
    Action, CloudKind, Controller, ControllerSettings, FaultPlan, Player, World, WorldSettings, run_in_virtual_time,
};

/// A world whose controller was started with some feature gates.
pub(crate) struct KwokWorld {
    pub(crate) world: World,
    settings: ControllerSettings,
}

/// Tells a story; `gates` are those that are on.
pub(crate) fn tell<T>(gates: &str, story: impl AsyncFnOnce(&KwokWorld) -> T) -> T {
    tell_with(gates, "", story)
}

/// Tells a story in which some calls of the controller go wrong.
pub(crate) fn tell_with<T>(gates: &str, faults: &str, story: impl AsyncFnOnce(&KwokWorld) -> T) -> T {
    let on: Vec<String> = gates.split_whitespace().map(|gate| format!("{gate}=true")).collect();
    let plan: FaultPlan = faults.parse().unwrap();
    run_in_virtual_time(11, async {
        let settings = ControllerSettings { meddler: Some(PlannedFaults::new(&plan)), ..ControllerSettings::default() };
        let settings = settings.with("DISABLE_LEADER_ELECTION", "true").with("FEATURE_GATES", &on.join(","));
        story(&KwokWorld { world: World::start(WorldSettings::new(11, CloudKind::Kwok)), settings }).await
    })
    .unwrap()
}

impl KwokWorld {
    pub(crate) fn start(&self, name: &str) -> Controller {
        self.world.start_controller(name, &self.settings).unwrap()
    }

    pub(crate) async fn apply(&self, objects: Vec<Value>) {
        Player::new(&self.world).perform(&Action::Apply(objects)).await.unwrap();
    }

    pub(crate) async fn sleep(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) fn claims_api(&self) -> Api<NodeClaim> {
        Api::all(self.world.client())
    }

    pub(crate) fn pools_api(&self) -> Api<NodePool> {
        Api::all(self.world.client())
    }

    pub(crate) async fn claims(&self) -> Vec<NodeClaim> {
        self.claims_api().list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn nodes(&self) -> Vec<Node> {
        Api::all(self.world.client()).list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn pods(&self) -> Vec<Pod> {
        Api::namespaced(self.world.client(), "default").list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn pool(&self, name: &str) -> NodePool {
        self.pools_api().get(name).await.unwrap()
    }

    /// Sets the replicas of a pool as `kubectl scale` does.
    pub(crate) async fn scale_pool(&self, name: &str, replicas: u32) {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.pools_api().patch_scale(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn patch_pool(&self, name: &str, patch: &Value) {
        self.pools_api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn patch_claim(&self, name: &str, patch: &Value) {
        self.claims_api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete_claim(&self, name: &str) {
        self.claims_api().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// How often this was asked of the API server, for example `create nodeclaims`.
    pub(crate) fn calls(&self, effect: &str) -> usize {
        let history = self.world.server().history();
        history.iter().filter(|record| effect_of(record) == effect).count()
    }
}

fn effect_of(record: &sim::Record) -> String {
    let verb = format!("{:?}", record.verb).to_lowercase();
    let subresource = record.subresource.as_ref().map_or_else(String::new, |name| format!("/{name}"));
    format!("{verb} {}{subresource}", record.resource)
}

pub(crate) fn node_class() -> Value {
    json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}})
}

/// A pool of small machines; `spec` is merged into its own.
pub(crate) fn pool(name: &str, spec: Value) -> Value {
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["s-4x-amd64-linux"]},
            ],
        }}},
    });
    let own = pool["spec"].as_object_mut().unwrap();
    own.extend(spec.as_object().unwrap().clone());
    pool
}

/// A pod that asks for CPU; `node` binds it without a scheduler.
pub(crate) fn pod(name: &str, cpu: &str, node: Option<&str>, annotations: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": cpu}}}],
        },
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
    }
    pod
}

/// A condition as `Status Reason: message`; nothing if there is none.
pub(crate) fn condition(conditions: Option<&Vec<api::Condition>>, type_: &str) -> Option<String> {
    let found = conditions?.iter().find(|condition| condition.type_ == type_)?;
    Some(format!("{} {}: {}", found.status.as_str(), found.reason, found.message))
}

pub(crate) fn pool_condition(pool: &NodePool, type_: &str) -> Option<String> {
    condition(pool.status.as_ref()?.conditions.as_ref(), type_)
}

pub(crate) fn claim_condition(claim: &NodeClaim, type_: &str) -> Option<String> {
    condition(claim.status.as_ref()?.conditions.as_ref(), type_)
}
