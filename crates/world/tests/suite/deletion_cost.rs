//! Pod deletion costs, as a ReplicaSet controller would read them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use world::{
    Call, CallFault, CloudKind, Controller, ControllerSettings, Meddler, Player, World, WorldSettings,
    run_in_virtual_time,
};

use crate::lifecycle::provider::Script;

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

struct Stage {
    world: World,
    client: Client,
    controller: Controller,
}

impl Stage {
    /// A Deployment of four pods, of which three fit on a node, with deletion costs that we manage.
    fn play(meddler: Option<Arc<dyn Meddler>>, story: impl AsyncFn(&Self)) {
        Self::play_with(meddler, &Script::default(), story);
    }

    fn play_with(meddler: Option<Arc<dyn Meddler>>, provider: &Script, story: impl AsyncFn(&Self)) {
        run_in_virtual_time(7, async {
            let world = World::start(WorldSettings::new(7, CloudKind::Kwok));
            let mut settings = ControllerSettings::default()
                .with("DISABLE_LEADER_ELECTION", "true")
                .with("FEATURE_GATES", "PodDeletionCostManagement=true");
            settings.meddler = meddler.clone();
            settings.around = Some(provider.around(world.clock()));
            let controller = world.start_controller("alpha", &settings).unwrap();
            let client = world.client();
            let stage = Self { world, client, controller };
            for object in objects() {
                Player::new(&stage.world).apply(&object).await.unwrap();
            }
            story(&stage).await;
        })
        .unwrap();
    }

    async fn after(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// What the pods of each node say, nodes without a name.
    async fn costs(&self) -> Vec<Vec<Option<String>>> {
        let mut by_node: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
        for pod in self.pods().list(&ListParams::default()).await.unwrap() {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
            by_node.entry(node).or_default().push(pod.annotations().get(COST).cloned());
        }
        let mut costs: Vec<_> = by_node.into_values().collect();
        costs.sort();
        costs
    }

    fn writes(&self) -> usize {
        let history = self.world.server().history();
        let own = history.iter().filter(|call| call.actor == world::accounts::KARPENTER && call.resource == "pods");
        own.filter(|call| call.verb.as_str() == "patch").count()
    }

    fn counted(&self, result: &str) -> u64 {
        let name = format!("karpenter_pod_deletion_cost_pod_annotation_writes_total{{result=\"{result}\"}} ");
        let metrics = self.controller.metrics();
        metrics.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
    }
}

fn objects() -> Vec<Value> {
    let labels = json!({"app": "web"});
    vec![
        json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}),
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {
                "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
                "template": {"spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    "requirements": [{"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}],
                }},
            },
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 4, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels, "annotations": {"own": "kept"}},
                "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"cpu": "1"}}}]},
            }},
        }),
    ]
}

fn said(cost: &str, pods: usize) -> Vec<Option<String>> {
    vec![Some(cost.to_owned()); pods]
}

/// PDC-01, PDC-03, PDC-04: both nodes are ranked, other annotations stay, what people write is overwritten, what nobody
/// may disrupt is cleared, and a cluster in which nothing changes is left alone.
#[test]
fn pods_say_who_should_leave_first() {
    Stage::play(None, async |stage| {
        stage.after(150).await;
        let costs = stage.costs().await;
        assert_eq!(costs.iter().map(Vec::len).sum::<usize>(), 4);
        let ranks: Vec<&str> = costs.iter().flatten().map(|cost| cost.as_deref().unwrap_or("none")).collect();
        assert!(costs.len() == 2 && costs.iter().all(|node| node.iter().all(|cost| *cost == node[0])), "{costs:?}");
        assert!(ranks.contains(&"-1") && ranks.contains(&"-2"), "{ranks:?}");
        assert_eq!((stage.counted("updated"), stage.writes()), (4, 4));
        stage.after(3600).await;
        assert_eq!(stage.writes(), 4, "nothing has changed");

        let pods = stage.pods().list(&ListParams::default()).await.unwrap().items;
        assert!(pods.iter().all(|pod| pod.annotations().get("own").is_some_and(|own| own == "kept")));
        let meddled = json!({"metadata": {"annotations": {COST: "100"}}});
        let patch = |pod: &Pod, patch: &Value| {
            let (api, name, patch) = (stage.pods(), pod.name_any(), Patch::Merge(patch.clone()));
            async move { api.patch(&name, &PatchParams::default(), &patch).await.unwrap() }
        };
        patch(&pods[0], &meddled).await;
        stage.after(70).await;
        assert_eq!(stage.costs().await, costs);
        let before = stage.counted("skipped_unchanged");
        let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let same = pods.iter().filter(|pod| node(pod) == node(&pods[0])).count();
        assert_eq!(before, u64::try_from(same).unwrap() - 1, "the others of its node say what they should");

        patch(&pods[0], &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}})).await;
        stage.after(70).await;
        let costs = stage.costs().await;
        assert!(costs.contains(&said("-1", 4 - same)) && costs.contains(&vec![None; same]), "{costs:?}");
        let pods = stage.pods().list(&ListParams::default()).await.unwrap().items;
        assert!(pods.iter().all(|pod| pod.annotations().get("own").is_some_and(|own| own == "kept")), "only ours goes");
    });
}

/// PDC-04: while nothing changes, nodes are ranked every five minutes and not every minute. Each time a pool whose prices
/// are not known is asked for them.
#[test]
fn what_did_not_change_is_ranked_every_five_minutes() {
    let provider = Script::default();
    provider.order(|orders| orders.sells_nothing_to = Some("mute".to_owned()));
    Stage::play_with(None, &provider, async |stage| {
        let mut mute = objects().swap_remove(1);
        mute["metadata"]["name"] = json!("mute");
        Player::new(&stage.world).apply(&mute).await.unwrap();
        let asked = || -> u32 {
            let metrics = stage.controller.metrics();
            let name = "karpenter_nodepools_cost_tracker_errors_total{nodepool=\"mute\"} ";
            metrics.lines().find_map(|line| line.strip_prefix(name)).map_or(0, |count| count.parse().unwrap())
        };
        stage.after(300).await;
        let before = asked();
        stage.after(3000).await;
        assert_eq!(asked() - before, 10);
    });
}

/// Lets the first so many calls of one kind go wrong.
struct Wrong {
    effect: &'static str,
    fault: CallFault,
    left: Mutex<u32>,
}

impl Wrong {
    fn first(count: u32, effect: &'static str, fault: CallFault) -> Arc<Self> {
        Arc::new(Self { effect, fault, left: Mutex::new(count) })
    }

    fn left(&self) -> u32 {
        *self.left.lock().unwrap()
    }
}

impl Meddler for Wrong {
    fn meddle(&self, call: &Call<'_>) -> Option<CallFault> {
        let mut left = self.left.lock().unwrap();
        let is_hit = call.effect.as_str() == self.effect && *left > 0;
        *left -= u32::from(is_hit);
        is_hit.then_some(self.fault)
    }
}

/// PDC-05: who loses a race leaves the pod alone until the next round; other failures are tried again at once.
#[test]
fn writes_that_go_wrong_are_counted() {
    for (fault, result, until) in [(CallFault::Conflicts, "skipped_conflict", 70), (CallFault::Fails, "error", 10)] {
        Stage::play(Some(Wrong::first(2, "patch pods", fault)), async |stage| {
            while stage.counted(result) < 2 {
                stage.after(1).await;
            }
            stage.after(until).await;
            assert_eq!((stage.counted(result), stage.counted("updated")), (2, 4), "{result}");
            assert!(stage.costs().await.iter().flatten().all(Option::is_some));
        });
    }
}

/// PDC-05: whoever writes a pod while we are about to has the last word, and the next round looks again.
#[test]
fn pods_that_change_meanwhile_are_left_alone() {
    let late = Wrong::first(4, "patch pods", CallFault::Late);
    Stage::play(Some(Arc::clone(&late) as Arc<dyn Meddler>), async |stage| {
        while late.left() > 0 {
            stage.after(1).await;
        }
        for pod in stage.pods().list(&ListParams::default()).await.unwrap() {
            let theirs = Patch::Merge(json!({"metadata": {"annotations": {COST: "7"}}}));
            stage.pods().patch(&pod.name_any(), &PatchParams::default(), &theirs).await.unwrap();
        }
        while stage.counted("skipped_conflict") + stage.counted("updated") < 4 {
            stage.after(1).await;
        }
        assert_eq!(stage.costs().await.concat(), said("7", 4));
        assert_eq!((stage.counted("skipped_conflict"), stage.counted("updated")), (4, 0));
        stage.after(70).await;
        assert!(stage.costs().await.concat().iter().all(|cost| cost.as_deref() != Some("7")), "ours again");
    });
}

/// PDC-05: a pod that goes before it is written is no failure.
#[test]
fn pods_that_go_are_no_failure() {
    let late = Wrong::first(4, "patch pods", CallFault::Late);
    Stage::play(Some(Arc::clone(&late) as Arc<dyn Meddler>), async |stage| {
        while late.left() == 4 {
            stage.after(1).await;
        }
        for pod in stage.pods().list(&ListParams::default()).await.unwrap() {
            let now = DeleteParams::default().grace_period(0);
            stage.pods().delete(&pod.name_any(), &now).await.unwrap();
        }
        stage.after(30).await;
        assert!(stage.counted("skipped_notfound") > 0);
        assert_eq!(stage.counted("error"), 0);
    });
}

/// PDC-05: nor is a pod that goes before its write is tried again.
#[test]
fn pods_that_went_are_not_tried_again() {
    let failing = Wrong::first(u32::MAX, "patch pods", CallFault::Fails);
    Stage::play(Some(failing), async |stage| {
        while stage.counted("error") < 4 {
            stage.after(1).await;
        }
        for pod in stage.pods().list(&ListParams::default()).await.unwrap() {
            let now = DeleteParams::default().grace_period(0);
            stage.pods().delete(&pod.name_any(), &now).await.unwrap();
        }
        stage.after(30).await;
        assert_eq!((stage.counted("skipped_notfound"), stage.counted("skipped_unchanged")), (4, 0));
    });
}

/// PDC-04: as long as budgets cannot be listed, nobody knows who may be disrupted, and nothing is written.
#[test]
fn nothing_is_written_before_budgets_are_known() {
    let blind = Wrong::first(u32::MAX, "list poddisruptionbudgets", CallFault::Fails);
    Stage::play(Some(blind), async |stage| {
        stage.after(600).await;
        assert_eq!(stage.writes(), 0);
    });
}
