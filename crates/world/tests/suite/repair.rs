//! What a provider knows about nodes that fell ill.

use std::sync::Arc;
use std::time::Duration;

use cloud::{CloudProvider, RebootError};
use k8s_openapi::api::core::v1::Node;
use karpenter_kwok::{KwokProvider, instance_types};
use kube::api::{Api, ListParams};
use serde_json::json;
use tokio::time::timeout;
use world::{CloudKind, ControllerSettings, World, WorldSettings, run_in_virtual_time};

use crate::kwok_world::{node_class, pod, pool, tell};
use crate::lifecycle::provider::Script;

/// KWOK-11, CP-08: a reboot gives the node the boot id of its operation, however often it is asked for.
#[test]
fn a_node_is_rebooted_once_for_an_operation() {
    tell("", async |story| {
        let _controller = story.start("karpenter");
        story.apply(vec![node_class(), pool("default", json!({})), pod("web", "1", None, &json!({}))]).await;
        story.sleep(60).await;
        let claim = story.claims().await.remove(0);
        let provider = KwokProvider::new(story.world.client(), instance_types::built_in().into());
        for operation in ["one", "one", "two"] {
            provider.reboot(&claim, operation).await.unwrap();
            let nodes: Api<Node> = Api::all(story.world.client());
            let node = nodes.list(&ListParams::default()).await.unwrap().items.remove(0);
            let info = node.status.and_then(|status| status.node_info).unwrap();
            assert_eq!(info.boot_id, format!("kwok-{operation}"));
        }
        let mut elsewhere = claim.clone();
        elsewhere.status.as_mut().unwrap().node_name = Some("nowhere".to_owned());
        let gone = RebootError::NotFound { message: "node `nowhere` is gone".to_owned() };
        assert_eq!(provider.reboot(&elsewhere, "three").await, Err(gone));
        elsewhere.status.as_mut().unwrap().node_name = None;
        assert!(!provider.reboot(&elsewhere, "three").await.unwrap_err().is_final());
        let silent = Script::default().around(story.world.clock())(Arc::new(provider));
        let cannot = silent.reboot(&claim, "four").await;
        assert_eq!(cannot, Err(RebootError::NotImplemented), "a provider that says nothing about it");
    });
}

/// RPOL-01, REP-07, CP-06: where nodes are to be repaired, a provider must know how; nothing is asked of it where they
/// are not, or only in the old way.
#[test]
fn repair_needs_a_provider_that_knows_how() {
    let none = "node repair requires the cloud provider to define RepairPolicies, but it defines none";
    let table = [
        (CloudKind::Aws, "NodeRepair=true", "false", Some(none)),
        (CloudKind::Aws, "NodeRepair=true", "true", None),
        (CloudKind::Aws, "NodeRepair=false", "false", None),
        (CloudKind::Kwok, "NodeRepair=true", "false", None),
    ];
    for (cloud, gates, legacy, expected) in table {
        let settings = ControllerSettings::default().with("FEATURE_GATES", gates).with("LEGACY_NODE_REPAIR", legacy);
        let end = run_in_virtual_time(1, async {
            let world = World::start(WorldSettings::new(1, cloud));
            let mut controller = world.start_controller("karpenter", &settings).unwrap();
            timeout(Duration::from_secs(60), controller.ended()).await.ok()
        });
        let told = end.unwrap().map(|end| format!("{end:?}"));
        assert_eq!(told, expected.map(|error| format!("Failed({error:?})")), "{cloud:?} {gates} {legacy}");
    }
}
