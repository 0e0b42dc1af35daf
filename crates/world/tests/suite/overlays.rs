//! Overlays, from the API server to the claim.

use std::time::Duration;

use api::NodeClaim;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use world::{Action, CloudKind, ControllerSettings, Player, World, WorldSettings, run_in_virtual_time, sleep_until};

/// OVL-05: a pod wants a resource that only an overlay promises, of one type. With the gate a claim for that type is
/// made; without it the overlay means nothing.
#[test]
fn claims_follow_overlays_behind_the_gate() {
    for (gate, expected) in
        [("NodeOverlay=true", vec![vec!["c-4x-amd64-linux".to_owned()]]), ("NodeOverlay=false", vec![])]
    {
        assert_eq!(claimed_types(gate), expected, "{gate}");
    }
}

/// The types that claims ask for after a minute.
fn claimed_types(gate: &'static str) -> Vec<Vec<String>> {
    run_in_virtual_time(7, async move {
        let world = World::start(WorldSettings::new(7, CloudKind::Kwok));
        let settings =
            ControllerSettings::default().with("DISABLE_LEADER_ELECTION", "true").with("FEATURE_GATES", gate);
        let _controller = world.start_controller("alpha", &settings).unwrap();
        Player::new(&world).perform(&Action::Apply(objects())).await.unwrap();
        sleep_until(world.clock(), Duration::from_secs(60)).await;
        let claims: Api<NodeClaim> = Api::all(world.client());
        let types = |claim: NodeClaim| {
            let listed = claim.spec.requirements.into_iter().find(|one| one.key == "node.kubernetes.io/instance-type");
            listed.and_then(|one| one.values).unwrap_or_default()
        };
        claims.list(&ListParams::default()).await.unwrap().items.into_iter().map(types).collect()
    })
    .unwrap()
}

fn objects() -> Vec<Value> {
    vec![
        json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}),
        json!({
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "slots"},
            "spec": {
                "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-4x-amd64-linux"]}],
                "capacity": {"example.com/slots": "4"},
            },
        }),
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [],
            }}},
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "slotted", "namespace": "default"},
            "spec": {"containers": [{
                "name": "main", "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": "1", "example.com/slots": "2"}, "limits": {"example.com/slots": "2"}},
            }]},
        }),
    ]
}
