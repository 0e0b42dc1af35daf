//! Clocks that are wrong for a while.

use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::{Value, json};

use super::kwok_world::{KwokWorld, node_class, pool, tell};

const AHEAD: SignedDuration = SignedDuration::from_hours(3);
const BEHIND: SignedDuration = SignedDuration::from_mins(-5);

/// A pool whose nodes go soon after they are empty; `template` is merged into what it says of them.
fn brief(template: &Value) -> Value {
    let mut own = pool(
        "default",
        json!({"disruption": {
            "consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s", "budgets": [{"nodes": "100%"}],
        }}),
    );
    for (key, value) in template.as_object().unwrap() {
        own["spec"]["template"]["spec"][key] = value.clone();
    }
    own
}

/// Pods of which each fills most of a node.
fn fillers(count: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "filler", "namespace": "default"},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": {"app": "filler"}},
            "template": {
                "metadata": {"labels": {"app": "filler"}},
                "spec": {"containers": [{
                    "name": "main", "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"cpu": "3"}},
                }]},
            },
        },
    })
}

async fn running(stage: &KwokWorld) -> usize {
    let pods = stage.pods().await;
    pods.iter().filter(|pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")).count()
}

fn set(stage: &KwokWorld, ahead: SignedDuration) {
    for process in ["alpha", "beta"] {
        stage.world.wall_clocks().set_ahead(process, ahead);
    }
}

/// Whatever a wrong clock made the controller write down, nodes stay while they are wanted, come when they are, and go
/// soon after they are not.
#[test]
fn a_clock_that_was_wrong_leaves_nothing_behind() {
    for wrong in [AHEAD, BEHIND] {
        tell("", async |stage| {
            let _controller = stage.start("alpha");
            stage.apply(vec![node_class(), brief(&json!({"expireAfter": "720h"})), fillers(2)]).await;
            stage.sleep(60).await;
            let before: Vec<_> = stage.claims().await.into_iter().map(|claim| claim.metadata.name).collect();
            assert_eq!((before.len(), running(stage).await), (2, 2), "{wrong}");

            set(stage, wrong);
            stage.apply(vec![fillers(4)]).await;
            stage.sleep(120).await;
            assert_eq!(running(stage).await, 4, "{wrong}: pods get nodes whatever the time");
            let now: Vec<_> = stage.claims().await.into_iter().map(|claim| claim.metadata.name).collect();
            assert!(before.iter().all(|name| now.contains(name)), "{wrong}: {before:?} are wanted, {now:?} are there");
            assert_eq!(now.len(), 4, "{wrong}");

            set(stage, SignedDuration::ZERO);
            stage.apply(vec![fillers(1)]).await;
            stage.sleep(20 * 60).await;
            assert_eq!((stage.claims().await.len(), running(stage).await), (1, 1), "{wrong}: what is empty goes");
            stage.apply(vec![fillers(3)]).await;
            stage.sleep(60).await;
            assert_eq!((stage.claims().await.len(), running(stage).await), (3, 3), "{wrong}");
        });
    }
}

/// A life that is over by a wrong clock ends once, not again and again; no pod is left without a node.
#[test]
fn what_expires_by_a_wrong_clock_is_replaced() {
    tell("", async |stage| {
        let _controller = stage.start("alpha");
        stage.apply(vec![node_class(), brief(&json!({"expireAfter": "1h"})), fillers(2)]).await;
        stage.sleep(60).await;
        assert_eq!(running(stage).await, 2);
        set(stage, BEHIND);
        stage.sleep(120).await;
        assert_eq!(stage.calls("delete nodeclaims"), 0, "a clock that goes back ends nothing");
        set(stage, SignedDuration::ZERO);
        stage.sleep(30 * 60).await;
        assert_eq!((stage.calls("delete nodeclaims"), running(stage).await), (0, 2), "half of their life has passed");
        stage.sleep(40 * 60).await;
        assert_eq!((stage.calls("delete nodeclaims"), running(stage).await), (2, 2), "now it is over");
    });
}

/// Who leads is not a question of what the clock says.
#[test]
fn a_wrong_clock_changes_no_leader() {
    tell("", async |stage| {
        stage.apply(vec![node_class(), brief(&json!({})), fillers(1)]).await;
        let settings = world::ControllerSettings::default();
        let _alpha = stage.world.start_controller("alpha", &settings).unwrap();
        stage.sleep(5).await;
        let _beta = stage.world.start_controller("beta", &settings).unwrap();
        let leases: Api<Lease> = Api::namespaced(stage.world.client(), "kube-system");
        let lease = async || {
            let spec = leases.get("karpenter-leader-election").await.unwrap().spec.unwrap();
            (spec.holder_identity.unwrap(), spec.lease_transitions)
        };
        stage.sleep(20).await;
        let before = lease().await;
        for (process, ahead) in [("alpha", AHEAD), ("beta", AHEAD), ("alpha", BEHIND), ("beta", BEHIND)] {
            stage.world.wall_clocks().set_ahead(process, ahead);
            stage.sleep(60).await;
            assert_eq!(lease().await, before, "{process} {ahead}");
        }
        assert_eq!((stage.claims().await.len(), running(stage).await), (1, 1));
    });
}
