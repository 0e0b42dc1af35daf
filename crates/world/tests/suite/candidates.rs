//! What keeps a node, as people read it in events.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node};
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use sim_loops::Span;
use world::{
    Action, CloudKind, Controller, ControllerSettings, Player, Scale, Target, World, WorldSettings, run_in_virtual_time,
};

struct Stage {
    world: World,
    client: Client,
    _controller: Controller,
}

impl Stage {
    /// A pool whose empty nodes go at once, a Deployment of one pod with such annotations, and a daemon with others.
    fn play(pod: &Value, daemon: &Value, story: impl AsyncFn(&Self)) {
        Self::play_in(WorldSettings::new(7, CloudKind::Kwok), pod, daemon, story);
    }

    fn play_in(settings: WorldSettings, pod: &Value, daemon: &Value, story: impl AsyncFn(&Self)) {
        run_in_virtual_time(7, async {
            let world = World::start(settings);
            let settings = ControllerSettings::default().with("DISABLE_LEADER_ELECTION", "true");
            let _controller = world.start_controller("alpha", &settings).unwrap();
            let client = world.client();
            let stage = Self { world, client, _controller };
            stage.perform(Action::Apply(objects(pod, daemon))).await;
            stage.after(60).await;
            assert_eq!(stage.nodes().await, 1);
            story(&stage).await;
        })
        .unwrap();
    }

    async fn perform(&self, action: Action) {
        Player::new(&self.world).perform(&action).await.unwrap();
    }

    async fn after(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    async fn scale(&self, replicas: u32) {
        let (namespace, deployment) = ("default".to_owned(), "web".to_owned());
        self.perform(Action::Scale(Scale { namespace, deployment, replicas })).await;
    }

    async fn scale_to_zero(&self) {
        self.scale(0).await;
    }

    async fn delete(&self, api_version: &str, kind: &str, name: &str) {
        let target = Target {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: Some("default".to_owned()),
            name: name.to_owned(),
        };
        self.perform(Action::Delete(target)).await;
    }

    async fn nodes(&self) -> usize {
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.list(&ListParams::default()).await.unwrap().items.len()
    }

    /// The events of a reason, as `kind: message`; the names of pods that somebody made are left out.
    async fn events(&self, reason: &str) -> BTreeSet<String> {
        let events: Api<Event> = Api::all(self.client.clone());
        let events = events.list(&ListParams::default()).await.unwrap();
        let told = events.items.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        told.map(|event| {
            let message = event.message.unwrap_or_default();
            let message = message.split("agent-").next().unwrap_or_default();
            format!("{}: {message}", event.involved_object.kind.unwrap_or_default())
        })
        .collect()
    }
}

fn objects(pod: &Value, daemon: &Value) -> Vec<Value> {
    let template = |app: &str, annotations: &Value, cpu: &str| {
        json!({"metadata": {"labels": {"app": app}, "annotations": annotations}, "spec": {"containers": [{
            "name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu}}}]}})
    };
    let metadata = |name: &str| json!({"name": name, "namespace": "default"});
    let selector = |app: &str| json!({"matchLabels": {"app": app}});
    vec![
        json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}),
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}, "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": []}}}}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata("agent"),
            "spec": {"selector": selector("agent"), "template": template("agent", daemon, "100m")}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("web"),
            "spec": {"replicas": 1, "selector": selector("web"), "template": template("web", pod, "1")}}),
    ]
}

fn both(message: &str) -> BTreeSet<String> {
    ["Node", "NodeClaim"].map(|kind| format!("{kind}: {message}")).into()
}

/// CAND-03, CAND-13: a daemon that asked to be left alone keeps its empty node, and node and claim say so.
#[test]
fn a_protected_daemon_keeps_its_node() {
    let held = json!({"karpenter.sh/do-not-disrupt": "true"});
    Stage::play(&json!({}), &held, async |stage| {
        stage.scale_to_zero().await;
        stage.after(120).await;
        let expected = both("Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/");
        let told = stage.events("DisruptionBlocked").await;
        assert!(stage.nodes().await == 1 && expected.is_subset(&told), "{told:?}");
        stage.delete("apps/v1", "DaemonSet", "agent").await;
        stage.after(60).await;
        assert_eq!(stage.nodes().await, 0);
    });
}

/// A node that nobody waits for any more when it joins goes, although nothing happens on it after that. It is ready so soon
/// that it joins and is usable in one pass.
#[test]
fn a_node_that_comes_too_late_goes() {
    let mut settings = WorldSettings::new(7, CloudKind::Kwok);
    settings.loops.node_readiness = Span::millis(800, 800);
    Stage::play_in(settings, &json!({}), &json!({}), async |stage| {
        stage.delete("apps/v1", "DaemonSet", "agent").await;
        stage.scale_to_zero().await;
        stage.after(60).await;
        assert_eq!(stage.nodes().await, 0);
        stage.scale(1).await;
        while stage.nodes().await == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        stage.scale_to_zero().await;
        stage.after(60).await;
        assert_eq!(stage.nodes().await, 0);
    });
}

/// CAND-07, CAND-13: so does a disruption budget that allows nothing, for as long as it is there.
#[test]
fn a_budget_keeps_a_node() {
    Stage::play(&json!({}), &json!({}), async |stage| {
        stage
            .perform(Action::Apply(vec![json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "all", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "agent"}}}})]))
            .await;
        stage.after(5).await;
        stage.scale_to_zero().await;
        stage.after(120).await;
        let expected = both("Pdb prevents pod evictions (PodDisruptionBudget=[default/all])");
        let told = stage.events("DisruptionBlocked").await;
        assert!(stage.nodes().await == 1 && expected.is_subset(&told), "{told:?}");
        stage.delete("policy/v1", "PodDisruptionBudget", "all").await;
        stage.after(60).await;
        assert_eq!(stage.nodes().await, 0);
    });
}

/// CAND-04, CAND-05: owners are told when the protection of a pod ends and that it has ended, or that it is none.
#[test]
fn owners_of_pods_are_told() {
    let until = json!({"karpenter.sh/do-not-disrupt": "10m"});
    Stage::play(&until, &json!({"karpenter.sh/do-not-disrupt": "soon"}), async |stage| {
        let invalid = "Pod: Invalid karpenter.sh/do-not-disrupt annotation: failed to parse \"soon\" as a duration: \
            time: invalid duration \"soon\", ignoring annotation";
        assert_eq!(stage.events("InvalidDoNotDisruptAnnotation").await, BTreeSet::from([invalid.to_owned()]));
        let told = stage.events("DoNotDisruptUntil").await;
        let [message] = &told.into_iter().collect::<Vec<_>>()[..] else { panic!("one message") };
        assert!(
            message.starts_with("Pod: The karpenter.sh/do-not-disrupt grace period will elapse at 20"),
            "{message}"
        );
        assert!(stage.events("DoNotDisruptGracePeriodElapsed").await.is_empty());
        stage.after(620).await;
        let elapsed = "Pod: The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable";
        assert_eq!(stage.events("DoNotDisruptGracePeriodElapsed").await, BTreeSet::from([elapsed.to_owned()]));
    });
}
