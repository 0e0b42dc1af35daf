//! Capacity buffers, from the API server to nodes and back.

use std::collections::BTreeMap;
use std::time::Duration;

use api::{CapacityBuffer, NodeClaim};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use world::{CloudKind, Controller, ControllerSettings, Player, World, WorldSettings, run_in_virtual_time};

/// A world with a pool of nodes with four CPUs, of which three are free for pods, and a controller with buffers.
struct Stage {
    world: World,
    client: Client,
    controller: Controller,
}

impl Stage {
    fn play(story: impl AsyncFn(&Self)) {
        Self::play_with(&json!({}), story);
    }

    fn play_with(pool: &Value, story: impl AsyncFn(&Self)) {
        run_in_virtual_time(7, async {
            let world = World::start(WorldSettings::new(7, CloudKind::Kwok));
            let settings = ControllerSettings::default()
                .with("DISABLE_LEADER_ELECTION", "true")
                .with("FEATURE_GATES", "CapacityBuffer=true");
            let controller = world.start_controller("alpha", &settings).unwrap();
            let client = world.client();
            let stage = Self { world, client, controller };
            let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
            let mut spec = json!({"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
                "template": {"spec": {"nodeClassRef": class, "requirements": [
                    {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}]}}});
            spec.as_object_mut().unwrap().extend(pool.as_object().unwrap().clone());
            stage
                .apply(json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
                "metadata": {"name": "default"}}))
                .await;
            stage
                .apply(json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
                "spec": spec}))
                .await;
            story(&stage).await;
        })
        .unwrap();
    }

    async fn apply(&self, object: Value) {
        Player::new(&self.world).apply(&object).await.unwrap();
    }

    async fn pod_template(&self, namespace: &str, name: &str, cpu: &str) {
        self.apply(json!({"apiVersion": "v1", "kind": "PodTemplate",
            "metadata": {"name": name, "namespace": namespace}, "template": template(name, cpu)}))
            .await;
    }

    async fn deployment(&self, name: &str, cpu: &str, replicas: u32) {
        self.apply(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template(name, cpu)}}))
        .await;
    }

    async fn buffer(&self, namespace: &str, name: &str, spec: Value) {
        self.apply(json!({"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec}))
            .await;
    }

    fn buffers(&self, namespace: &str) -> Api<CapacityBuffer> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Lets time pass.
    async fn after(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Replicas and conditions of a buffer, as people see them.
    async fn status(&self, namespace: &str, name: &str) -> String {
        let buffer = self.buffers(namespace).get(name).await.unwrap();
        let status = buffer.status.unwrap_or_default();
        let told = status
            .conditions
            .into_iter()
            .flatten()
            .map(|found| format!("{}={} {}: {}", found.type_, found.status.as_str(), found.reason, found.message));
        let replicas = status.replicas.map_or_else(|| "?".to_owned(), |replicas| replicas.to_string());
        [replicas].into_iter().chain(told).collect::<Vec<_>>().join("\n")
    }

    /// The condition of a buffer that tells of its room.
    async fn provisioning(&self, name: &str) -> String {
        let status = self.status("default", name).await;
        status.lines().find_map(|line| line.strip_prefix("Provisioning=")).unwrap_or_default().to_owned()
    }

    async fn nodes(&self) -> usize {
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.list(&ListParams::default()).await.unwrap().items.len()
    }

    async fn claims(&self) -> Vec<NodeClaim> {
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        claims.list(&ListParams::default()).await.unwrap().items
    }

    async fn running(&self) -> usize {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let pods = pods.list(&ListParams::default()).await.unwrap();
        let runs = |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        pods.items.iter().filter(runs).count()
    }

    /// Events of one reason, by the kind they are about.
    async fn events(&self, reason: &str) -> BTreeMap<String, Vec<String>> {
        let events: Api<Event> = Api::all(self.client.clone());
        let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in events.list(&ListParams::default()).await.unwrap() {
            if event.reason.as_deref() == Some(reason) {
                let kind = event.involved_object.kind.clone().unwrap_or_default();
                told.entry(kind).or_default().push(event.message.unwrap_or_default());
            }
        }
        told
    }

    /// How often buffers were looked at.
    fn looks(&self) -> u64 {
        let metrics = self.controller.metrics();
        let lines = metrics.lines().filter(|line| line.contains("reconcile_total{controller=\"capacitybuffer\""));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// How often buffers were written.
    fn status_writes(&self) -> usize {
        let history = self.world.server().history();
        history.iter().filter(|call| call.resource == "capacitybuffers" && call.verb.is_write()).count()
    }
}

fn template(app: &str, cpu: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
        "name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu}}}]}})
}

const RESOLVED: &str = "ReadyForProvisioning=True Resolved: Pod template resolved successfully";

/// BUF-01, BUF-05, BUF-06, BUF-07, BUF-09: a buffer of a PodTemplate gets nodes without a pod, and says so; a change of the
/// template is followed.
#[test]
fn a_pod_template_becomes_room() {
    Stage::play(async |stage| {
        stage.pod_template("default", "small", "2").await;
        stage.buffer("default", "spare", json!({"podTemplateRef": {"name": "small"}, "replicas": 2})).await;
        stage.after(3).await;
        let expected = format!(
            "2\n{RESOLVED}\nProvisioning=False RequiresNewCapacity: 2/2 virtual pods required new capacity, 0 failed"
        );
        assert_eq!(stage.status("default", "spare").await, expected);
        stage.after(30).await;
        let expected = format!(
            "2\n{RESOLVED}\nProvisioning=True FitsExistingCapacity: All 2 virtual pods fit on existing capacity"
        );
        assert_eq!(stage.status("default", "spare").await, expected);
        assert_eq!(stage.nodes().await, 2);
        let conditions = stage.buffers("default").get("spare").await.unwrap().status.unwrap().conditions.unwrap();
        assert!(conditions.iter().all(|found| found.observed_generation == Some(1)), "of which buffer: {conditions:?}");
        let pods: Api<Pod> = Api::all(stage.client.clone());
        assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 0, "nobody made a pod");
        let template = async || {
            let status = stage.buffers("default").get("spare").await.unwrap().status.unwrap();
            (status.pod_template_ref.unwrap().name, status.pod_template_generation.unwrap())
        };
        assert_eq!(template().await, ("small".to_owned(), 1));
        // One CPU is little enough for both pods on one node, and the other may go.
        stage.pod_template("default", "small", "1").await;
        stage.after(20).await;
        assert_eq!(template().await, ("small".to_owned(), 2));
        assert_eq!(stage.nodes().await, 1);
    });
}

/// BUF-01, BUF-08, BUF-20: a buffer waits for what it refers to, and follows at once when that comes.
#[test]
fn late_references_are_found_at_once() {
    Stage::play(async |stage| {
        let reference = json!({"kind": "Deployment", "name": "web"});
        stage.buffer("default", "spare", json!({"scalableRef": reference, "percentage": 50})).await;
        stage.after(4).await;
        let expected = "?\nReadyForProvisioning=False ScalableRefNotFound: Deployment.apps \"web\" not found\n\
            Provisioning=False NotReadyForProvisioning: Buffer is not ReadyForProvisioning";
        assert_eq!(stage.status("default", "spare").await, expected);
        stage.deployment("web", "1", 0).await;
        stage.after(4).await;
        let expected = format!("0\n{RESOLVED}\nProvisioning=False BufferEmpty: Buffer has zero desired replicas");
        assert_eq!(stage.status("default", "spare").await, expected);
        stage.deployment("web", "1", 3).await;
        stage.after(4).await;
        assert!(stage.status("default", "spare").await.starts_with("2\n"), "half of three, rounded up");
    });
}

/// BUF-08: a buffer that had its room says so no longer when it is understood no more, or has nothing to keep.
#[test]
fn a_buffer_takes_back_what_it_said() {
    Stage::play(async |stage| {
        stage.deployment("web", "1", 2).await;
        let reference = json!({"kind": "Deployment", "name": "web"});
        stage.buffer("default", "spare", json!({"scalableRef": reference, "percentage": 100})).await;
        stage.after(60).await;
        assert!(stage.provisioning("spare").await.starts_with("True FitsExistingCapacity"));
        stage.deployment("web", "1", 0).await;
        stage.after(4).await;
        assert_eq!(stage.provisioning("spare").await, "False BufferEmpty: Buffer has zero desired replicas");
        let deployments: Api<Deployment> = Api::namespaced(stage.client.clone(), "default");
        deployments.delete("web", &DeleteParams::default()).await.unwrap();
        stage.after(4).await;
        let expected = "False NotReadyForProvisioning: Buffer is not ReadyForProvisioning";
        assert_eq!(stage.provisioning("spare").await, expected);
    });
}

/// BUF-10, BUF-11, BUF-20: the share follows the workload; real pods take the room, and it is found elsewhere.
#[test]
fn room_that_is_taken_is_made_again() {
    Stage::play(async |stage| {
        stage.deployment("web", "1500m", 2).await;
        let reference = json!({"kind": "Deployment", "name": "web"});
        stage.buffer("default", "spare", json!({"scalableRef": reference, "percentage": 100})).await;
        stage.after(60).await;
        assert_eq!((stage.running().await, stage.nodes().await), (2, 2), "two pods on a node, and room for two");
        stage.deployment("web", "1500m", 4).await;
        stage.after(5).await;
        assert_eq!(stage.running().await, 4, "they need not wait for a node");
        stage.after(40).await;
        assert!(stage.status("default", "spare").await.starts_with("4\n"));
        assert_eq!((stage.running().await, stage.nodes().await), (4, 4));
        assert!(stage.provisioning("spare").await.starts_with("True FitsExistingCapacity"));
    });
}

/// BUF-11: a buffer of fixed size is made full again at once, although nothing that it refers to has changed and the
/// pod that took its room never waited for any.
#[test]
fn room_of_fixed_size_is_made_again() {
    Stage::play(async |stage| {
        stage.pod_template("default", "small", "2").await;
        stage.buffer("default", "spare", json!({"podTemplateRef": {"name": "small"}, "replicas": 1})).await;
        stage.after(60).await;
        assert_eq!((stage.running().await, stage.nodes().await), (0, 1));
        stage.deployment("web", "2", 1).await;
        stage.after(5).await;
        assert_eq!((stage.running().await, stage.nodes().await), (1, 2), "it waits for no node, and another comes");
        stage.after(40).await;
        assert!(stage.provisioning("spare").await.starts_with("True FitsExistingCapacity"));
    });
}

/// BUF-12, BUF-13, BUF-18, BUF-21: empty nodes stay for as long as there is a buffer, and go when it goes or breaks.
#[test]
fn nodes_go_with_their_buffer() {
    for ending in ["deleted", "broken", "emptied"] {
        Stage::play(async |stage| {
            stage.pod_template("default", "small", "2").await;
            stage.buffer("default", "spare", json!({"podTemplateRef": {"name": "small"}, "replicas": 2})).await;
            stage.after(300).await;
            assert_eq!(stage.nodes().await, 2);
            let told = stage.events("Unconsolidatable").await;
            assert_eq!(told.keys().collect::<Vec<_>>(), ["Node", "NodeClaim"]);
            for message in told.values().flatten() {
                assert!(message.starts_with("Node \"") && message.ends_with("\" has buffer pods"), "{message}");
            }
            assert_eq!(told.values().flatten().count(), 4, "once in a quarter of an hour, for each node");
            let told = stage.events("DisruptionBlocked").await;
            assert!(told.is_empty(), "nobody is expected there: {told:?}");
            match ending {
                "deleted" => {
                    stage.buffers("default").delete("spare", &DeleteParams::default()).await.unwrap();
                }
                "broken" => {
                    let templates: Api<k8s_openapi::api::core::v1::PodTemplate> =
                        Api::namespaced(stage.client.clone(), "default");
                    templates.delete("small", &DeleteParams::default()).await.unwrap();
                }
                _ => {
                    let patch = Patch::Merge(json!({"spec": {"replicas": 0}}));
                    stage.buffers("default").patch("spare", &PatchParams::default(), &patch).await.unwrap();
                }
            }
            // The next round of the loop beneath is further away than this.
            stage.after(8).await;
            assert_eq!(stage.nodes().await, 0, "{ending}");
        });
    }
}

/// BUF-19: each of two buffers of one name has its room, and loses it alone.
#[test]
fn namesakes_are_kept_apart() {
    Stage::play(async |stage| {
        for namespace in ["default", "other"] {
            if namespace == "other" {
                stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await;
            }
            stage.pod_template(namespace, "small", "2").await;
            stage.buffer(namespace, "spare", json!({"podTemplateRef": {"name": "small"}, "replicas": 1})).await;
        }
        stage.after(60).await;
        assert_eq!(stage.nodes().await, 2);
        stage.buffers("other").delete("spare", &DeleteParams::default()).await.unwrap();
        stage.after(60).await;
        assert_eq!(stage.nodes().await, 1);
        assert!(stage.provisioning("spare").await.starts_with("True FitsExistingCapacity"));
    });
}

/// BUF-19: each of two buffers of one name says what became of its own room.
#[test]
fn namesakes_tell_of_themselves() {
    Stage::play(async |stage| {
        stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).await;
        // No node of the pool is large enough for the second.
        for (namespace, cpu) in [("default", "2"), ("other", "64")] {
            stage.pod_template(namespace, "small", cpu).await;
            stage.buffer(namespace, "spare", json!({"podTemplateRef": {"name": "small"}, "replicas": 1})).await;
        }
        stage.after(60).await;
        let told = [stage.status("default", "spare").await, stage.status("other", "spare").await];
        assert!(told[0].contains("Provisioning=True FitsExistingCapacity"), "{told:?}");
        let failed = "Provisioning=False RequiresNewCapacity: 0/1 virtual pods required new capacity, 1 failed";
        assert!(told[1].contains(failed), "{told:?}");
    });
}

/// BUF-14, as far as a node goes because its time is up: when the claim is deleted, as it is at its expiry, the room is
/// made again. BUF-15: no more than the pool may have, so that it has to wait for the node to be gone.
#[test]
fn nodes_with_room_are_replaced_within_limits() {
    Stage::play_with(&json!({"limits": {"nodes": "3"}}), async |stage| {
        stage.pod_template("default", "small", "2").await;
        stage.buffer("default", "spare", json!({"podTemplateRef": {"name": "small"}, "replicas": 4})).await;
        stage.after(60).await;
        assert_eq!(stage.nodes().await, 3);
        let expected = "False RequiresNewCapacity: 0/4 virtual pods required new capacity, 1 failed";
        assert_eq!(stage.provisioning("spare").await, expected);
        let before: Vec<String> = stage.claims().await.iter().map(ResourceExt::name_any).collect();
        let claims: Api<NodeClaim> = Api::all(stage.client.clone());
        claims.delete(&before[0], &DeleteParams::default()).await.unwrap();
        stage.after(90).await;
        let after: Vec<String> = stage.claims().await.iter().map(ResourceExt::name_any).collect();
        assert_eq!(after.len(), 3);
        assert!(!after.contains(&before[0]), "{after:?}");
    });
}

/// BUF-14, BUF-15: nodes whose life is over are replaced, room and all, and never beyond the pool's limit.
#[test]
fn nodes_with_room_expire() {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let template = json!({"spec": {"nodeClassRef": class, "expireAfter": "10m", "requirements": [
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}]}});
    Stage::play_with(&json!({"limits": {"nodes": "3"}, "template": template}), async |stage| {
        stage.pod_template("default", "small", "2").await;
        stage.buffer("default", "spare", json!({"podTemplateRef": {"name": "small"}, "replicas": 2})).await;
        stage.after(60).await;
        let names = async || -> Vec<String> { stage.claims().await.iter().map(ResourceExt::name_any).collect() };
        let before = names().await;
        assert_eq!(before.len(), 2);
        for _ in 0..700 {
            stage.after(1).await;
            assert!(names().await.len() <= 3, "no more than the pool may have");
        }
        let after = names().await;
        assert_eq!((after.len(), stage.nodes().await), (2, 2));
        assert!(before.iter().all(|name| !after.contains(name)), "{before:?} {after:?}");
        assert!(stage.provisioning("spare").await.starts_with("True FitsExistingCapacity"));
    });
}

/// BUF-10: a quiet buffer is looked at every half minute, and costs nothing: no call to the API server, however often.
#[test]
fn a_quiet_buffer_is_not_written() {
    Stage::play(async |stage| {
        stage.pod_template("default", "small", "2").await;
        stage.buffer("default", "spare", json!({"podTemplateRef": {"name": "small"}, "replicas": 2})).await;
        stage.after(120).await;
        // The buffer itself, how it was understood, that nodes are needed, that they are there.
        assert_eq!(stage.status_writes(), 4);
        let before = stage.looks();
        stage.after(3600).await;
        assert_eq!(stage.looks() - before, 120);
        assert_eq!((stage.nodes().await, stage.status_writes()), (2, 4));
    });
}

/// After a restart nobody remembers where room is kept; nodes stay until that was found out.
#[test]
fn a_restart_forgets_no_room() {
    Stage::play(async |stage| {
        stage.pod_template("default", "small", "2").await;
        stage.buffer("default", "spare", json!({"podTemplateRef": {"name": "small"}, "replicas": 2})).await;
        stage.after(60).await;
        let before: Vec<String> = stage.claims().await.iter().map(ResourceExt::name_any).collect();
        stage.controller.kill();
        stage.after(5).await;
        let settings = ControllerSettings::default()
            .with("DISABLE_LEADER_ELECTION", "true")
            .with("FEATURE_GATES", "CapacityBuffer=true");
        let _next = stage.world.start_controller("beta", &settings).unwrap();
        stage.after(60).await;
        let after: Vec<String> = stage.claims().await.iter().map(ResourceExt::name_any).collect();
        assert_eq!((before.len(), after), (2, before));
    });
}

/// Without the gate a buffer is an object like any other.
#[test]
fn the_gate_is_closed_by_default() {
    run_in_virtual_time(7, async {
        let world = World::start(WorldSettings::new(7, CloudKind::Kwok));
        let settings = ControllerSettings::default().with("DISABLE_LEADER_ELECTION", "true");
        let _controller = world.start_controller("alpha", &settings).unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let unread = ["capacitybuffers", "podtemplates", "deployments"];
        let asked = world
            .server()
            .history()
            .into_iter()
            .find(|call| call.actor == world::accounts::KARPENTER && unread.contains(&call.resource.as_str()));
        assert_eq!(asked, None, "nothing is watched that nobody reads");
    })
    .unwrap();
}
