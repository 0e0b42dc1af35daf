//! Overlays, from the API server to the claim.

use std::time::Duration;

use api::NodeClaim;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use world::{Action, CloudKind, ControllerSettings, Player, World, WorldSettings, run_in_virtual_time, sleep_until};

use crate::kwok_world::{KwokWorld, condition, node_class, pod, pool, tell};
use crate::lifecycle::provider::Script;

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

fn priced(name: &str, weight: u32, price: &str) -> Value {
    let requirements =
        json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["s-4x-amd64-linux"]}]);
    json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name},
        "spec": {"requirements": requirements, "price": price, "weight": weight}})
}

async fn told(story: &KwokWorld, name: &str) -> Option<String> {
    let overlays: Api<api::NodeOverlay> = Api::all(story.world.client());
    let overlay = overlays.get(name).await.unwrap();
    condition(overlay.status.as_ref()?.conditions.as_ref(), "ValidationSucceeded")
}

/// OVL-02, OVL-03, OVL-08: every overlay says what became of it, written once for each change; a pool whose class is
/// missing keeps nobody waiting.
#[test]
fn overlays_say_what_became_of_them() {
    tell("NodeOverlay", async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        let mut lost = pool("lost", json!({}));
        lost["spec"]["template"]["spec"]["nodeClassRef"]["name"] = json!("missing");
        story.apply(vec![node_class(), pool("default", json!({})), lost, priced("one", 5, "0.5")]).await;
        story.sleep(10).await;
        assert_eq!(told(story, "one").await.unwrap(), "True ValidationSucceeded: ");
        story.apply(vec![priced("two", 5, "0.4"), priced("heavy", 9, "0.3")]).await;
        let mut odd = priced("odd", 1, "1");
        odd["spec"]["requirements"] =
            json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["leased"]}]);
        story.apply(vec![odd]).await;
        story.sleep(10).await;
        assert_eq!(told(story, "heavy").await.unwrap(), "True ValidationSucceeded: ");
        assert_eq!(told(story, "two").await.unwrap(), "True ValidationSucceeded: ");
        assert_eq!(told(story, "one").await.unwrap(), "False Conflict: conflict with another overlay");
        assert!(told(story, "odd").await.unwrap().starts_with("False RuntimeValidation: invalid value: "));
        let writes = story.calls("patch nodeoverlays/status");
        story.sleep(24 * 3600).await;
        assert_eq!(story.calls("patch nodeoverlays/status"), writes, "nothing changed, nothing is written");
        let overlays: Api<api::NodeOverlay> = Api::all(story.world.client());
        overlays.delete("two", &DeleteParams::default()).await.unwrap();
        story.sleep(10).await;
        assert_eq!(told(story, "one").await.unwrap(), "True ValidationSucceeded: ");
    });
}

/// OVL-07, OVL-08: a pool of which nobody says what it can buy is not planned with and keeps neither an overlay nor
/// another pool waiting; once it is said, the pool is planned with as overlays have it.
#[test]
fn a_pool_without_an_answer_blocks_nobody() {
    run_in_virtual_time(7, async {
        let world = World::start(WorldSettings::new(7, CloudKind::Kwok));
        let provider = Script::default();
        provider.order(|orders| orders.sells_nothing_to = Some("alpha".to_owned()));
        let settings =
            ControllerSettings { around: Some(provider.around(world.clock())), ..ControllerSettings::default() };
        let settings = settings.with("DISABLE_LEADER_ELECTION", "true").with("FEATURE_GATES", "NodeOverlay=true");
        let _controller = world.start_controller("alpha", &settings).unwrap();
        let player = Player::new(&world);
        let (alpha, omega) = (pool("alpha", json!({"weight": 10})), pool("omega", json!({})));
        let first = pod("first", "3", None, &json!({}));
        player.perform(&Action::Apply(vec![node_class(), alpha, omega, priced("one", 5, "0.5"), first])).await.unwrap();
        let claims: Api<NodeClaim> = Api::all(world.client());
        let made = async || -> Vec<String> {
            let made = |claim: NodeClaim| {
                let of = |map: Option<std::collections::BTreeMap<String, String>>, key: &str| {
                    map.and_then(|map| map.get(key).cloned()).unwrap_or_default()
                };
                let pool = of(claim.metadata.labels, "karpenter.sh/nodepool");
                format!("{pool} {}", of(claim.metadata.annotations, "karpenter.sh/price-overlay-applied"))
            };
            claims.list(&ListParams::default()).await.unwrap().items.into_iter().map(made).collect()
        };
        sleep_until(world.clock(), Duration::from_secs(30)).await;
        assert_eq!(made().await, ["omega true"]);
        let overlays: Api<api::NodeOverlay> = Api::all(world.client());
        let said = overlays.get("one").await.unwrap().status.and_then(|status| status.conditions);
        assert_eq!(condition(said.as_ref(), "ValidationSucceeded").unwrap(), "True ValidationSucceeded: ");
        provider.order(|orders| orders.sells_nothing_to = None);
        player.perform(&Action::Apply(vec![pod("second", "3", None, &json!({}))])).await.unwrap();
        sleep_until(world.clock(), Duration::from_secs(60)).await;
        let mut found = made().await;
        found.sort();
        assert_eq!(found, ["alpha true", "omega true"]);
    })
    .unwrap();
}

/// OVL-09: the claim tells that a price was changed by an overlay.
#[test]
fn claims_are_marked() {
    tell("NodeOverlay", async |story: &KwokWorld| {
        let _controller = story.start("alpha");
        let web = pod("web", "1", None, &json!({}));
        story.apply(vec![node_class(), pool("default", json!({})), priced("one", 5, "0.5"), web]).await;
        story.sleep(60).await;
        let claims = story.claims().await;
        let annotations = claims[0].metadata.annotations.as_ref().unwrap();
        assert_eq!(annotations.get("karpenter.sh/price-overlay-applied").map(String::as_str), Some("true"));
        assert_eq!(annotations.get("karpenter.sh/capacity-overlay-applied"), None);
    });
}

/// How often nodes were looked at that may no longer be needed.
fn looks(controller: &world::Controller) -> u64 {
    let metrics = controller.metrics();
    let lines = metrics.lines().filter(|line| line.contains("reconcile_total{controller=\"disruption\""));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// OVL-10: another price makes nodes worth another look.
#[test]
fn an_overlay_makes_nodes_worth_another_look() {
    tell("NodeOverlay", async |story: &KwokWorld| {
        let controller = story.start("alpha");
        story.apply(vec![node_class(), pool("default", json!({})), pod("web", "1", None, &json!({}))]).await;
        story.sleep(600).await;
        let before = looks(&controller);
        story.sleep(600).await;
        assert_eq!(looks(&controller), before, "nothing happened");
        for (step, price) in ["0.5", "0.6"].into_iter().enumerate() {
            story.apply(vec![priced("one", 5, price)]).await;
            story.sleep(60).await;
            assert!(looks(&controller) > before + u64::try_from(step).unwrap(), "price {price}");
        }
    });
}

/// Without the gate overlays are neither read nor written.
#[test]
fn without_the_gate_nobody_asks_for_overlays() {
    for (gate, expected) in [("", false), ("NodeOverlay", true)] {
        tell(gate, async |story: &KwokWorld| {
            let _controller = story.start("alpha");
            story.sleep(60).await;
            let asked = story
                .world
                .server()
                .history()
                .iter()
                .any(|record| record.resource == "nodeoverlays" && record.actor == world::accounts::KARPENTER);
            assert_eq!(asked, expected, "{gate}");
        });
    }
}
