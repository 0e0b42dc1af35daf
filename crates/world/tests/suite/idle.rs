//! A day on which nothing happens costs nearly nothing.

use std::time::Duration;

use serde_json::json;
use world::{Action, CloudKind, ControllerSettings, Player, World, WorldSettings, run_in_virtual_time, sleep_until};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[test]
fn an_idle_day_of_ten_nodes_makes_few_calls() {
    let started = std::time::Instant::now();
    let calls = run_in_virtual_time(5, async {
        let world = World::start(WorldSettings::new(5, CloudKind::Kwok));
        let settings = ControllerSettings::default().with("DISABLE_LEADER_ELECTION", "true");
        let _controller = world.start_controller("alpha", &settings).unwrap();
        let player = Player::new(&world);
        player.perform(&Action::Apply(objects())).await.unwrap();
        sleep_until(world.clock(), Duration::from_secs(600)).await;
        let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(world.client());
        assert_eq!(nodes.list(&kube::api::ListParams::default()).await.unwrap().items.len(), 10);
        let before = world.server().history().len();
        sleep_until(world.clock(), DAY).await;
        assert_eq!(nodes.list(&kube::api::ListParams::default()).await.unwrap().items.len(), 10);
        world.server().history().len() - before
    })
    .unwrap();
    println!("an idle day: {calls} API calls, {:.1} s of real time", started.elapsed().as_secs_f64());
    // Every two minutes the provider lists its machines; watches are opened anew every few minutes.
    assert!(calls < 10_000, "{calls} calls on a day without events");
}

/// Ten pods that each fill a node of four CPUs.
fn objects() -> Vec<serde_json::Value> {
    let labels = json!({"app": "filler"});
    vec![
        json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}),
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [{"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}],
            }}},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "filler", "namespace": "default"},
            "spec": {
                "replicas": 10, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{
                        "name": "main", "image": "registry.k8s.io/pause:3.10",
                        "resources": {"requests": {"cpu": "3"}},
                    }]},
                },
            },
        }),
    ]
}
