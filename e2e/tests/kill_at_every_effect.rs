//! The controller is killed before and after every write it makes, and started again each time. The story must end as
//! if nothing had happened: nothing launched twice, nothing leaked, nothing foreign touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use api::NodeClaim;
use e2e::kill::{KillEverywhere, KillPoint, Side};
use e2e::seen::{is_ready, is_running, is_unschedulable};
use e2e::{Bed, Controller, ControllerSettings, Target, Wait, inflate, kwok_node_class, node_pool, wait_for};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

e2e::cluster_tests! {
    the_story_goes_on_after_a_kill_at_every_effect,
}

/// Four CPUs hold three pods of one CPU. The grace period gives pods that will not leave five seconds.
const POOL: &str = "      - key: karpenter.kwok.sh/instance-cpu
        operator: In
        values: [\"4\"]
      terminationGracePeriod: 5s
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: 1s
    budgets:
    - nodes: 100%
";

const STANDALONE: &str = "apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: standalone
spec:
  nodeClassRef:
    group: karpenter.kwok.sh
    kind: KWOKNodeClass
    name: default
  requirements:
  - key: node.kubernetes.io/instance-type
    operator: In
    values: [c-2x-amd64-linux]
";

/// A pod that will not leave by itself, on a node that is already there.
const STUBBORN: &str = "apiVersion: v1
kind: Pod
metadata:
  name: stubborn
  namespace: default
  annotations:
    karpenter.sh/do-not-disrupt: \"true\"
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
    resources:
      requests:
        cpu: 500m
";

/// What must have been seen and survived, at the least; the stages between may be written together or apart.
const EXPECTED: [&str; 14] = [
    "create nodeclaims",
    "create nodes",
    "create pods/eviction",
    "delete nodeclaims",
    "delete nodes",
    "delete pods",
    "patch nodeclaims (deadline)",
    "patch nodeclaims (labels)",
    "patch nodeclaims (let go)",
    "patch nodeclaims (prepare)",
    "patch nodepools",
    "patch nodes (let go)",
    "patch nodes (register)",
    "patch nodes (taint)",
];

/// Everything that was ever there.
#[derive(Clone, Default)]
struct History {
    claims: Arc<Mutex<BTreeSet<String>>>,
    nodes: Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>,
}

impl History {
    fn record(&self, client: &Client) {
        let claims = Arc::clone(&self.claims);
        record_each(Api::all(client.clone()), move |claim: NodeClaim| {
            claims.lock().expect("no writer panics").insert(claim.name_any());
        });
        let nodes = Arc::clone(&self.nodes);
        record_each(Api::all(client.clone()), move |node: Node| {
            // The KWOK provider names a node's host after its claim.
            let host = node.labels().get("kubernetes.io/hostname").cloned().unwrap_or_default();
            let uid = node.uid().unwrap_or_default();
            nodes.lock().expect("no writer panics").entry(host).or_default().insert(uid);
        });
    }
}

/// Shows every state of every object to `note`, for as long as the runtime lives.
fn record_each<K>(api: Api<K>, note: impl Fn(K) + Send + 'static)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    tokio::spawn(async move {
        // Without a pause after each error a watch would spin for ever once its client is gone, and the runtime could
        // not end.
        let watch = watcher(api, watcher::Config::default()).default_backoff();
        let mut seen = pin!(watch.applied_objects());
        while let Some(event) = seen.next().await {
            event.into_iter().for_each(&note);
        }
    });
}

/// LIFE-01, LIFE-17: killed before and after every effect, the controller takes the story up where it was.
async fn the_story_goes_on_after_a_kill_at_every_effect(bed: &impl Bed) -> Result<()> {
    let history = History::default();
    history.record(&bed.client());
    let foreign = bed.add_foreign_node().await?;

    let manifests = [kwok_node_class("default"), node_pool("default", POOL), inflate(6), STANDALONE.to_owned()];
    bed.apply(&manifests.join("---\n")).await?;
    // One batch, whatever the pace of the machine: the claims are counted in the end.
    wait_for(bed.pods(), "six unschedulable pods", |pods| pods.len() == 6 && pods.values().all(is_unschedulable))
        .await?;

    let (plan, kills) = KillEverywhere::new();
    bed.observe_writes(&plan).await?;
    // A killed leader's lease has to run out, which takes longer than the whole story.
    let settings = ControllerSettings::default().with("DISABLE_LEADER_ELECTION", "true");
    let keeper = keep_running(bed, &settings, kills);
    let story = story(bed);
    tokio::select! {
        ended = keeper => ended?,
        ended = story => ended?,
    }

    let visited = plan.visited();
    let both =
        |effect: &str| [Side::Before, Side::After].iter().all(|side| visited.contains(&(effect.to_owned(), *side)));
    let missing: Vec<&str> = EXPECTED.into_iter().filter(|effect| !both(effect)).collect();
    assert!(missing.is_empty(), "never killed on both sides of {missing:?}; visited {visited:#?}");
    let claims = history.claims.lock().expect("no writer panics").clone();
    assert_eq!(claims.len(), 4, "two for the pods, one for those of the deleted node, one by hand: {claims:?}");
    for (claim, nodes) in
        history.nodes.lock().expect("no writer panics").iter().filter(|(claim, _)| *claim != "foreign")
    {
        assert_eq!(nodes.len(), 1, "claim {claim} was launched more than once");
    }
    bed.check_foreign_node(&foreign).await?;
    eprintln!("killed at {} points:\n{visited:#?}", visited.len());
    Ok(())
}

/// Restarts the controller whenever it was killed; ends only when it cannot be started.
async fn keep_running(
    bed: &impl Bed,
    settings: &ControllerSettings,
    mut kills: mpsc::UnboundedReceiver<KillPoint>,
) -> Result<()> {
    for run in 0.. {
        let controller = bed.start_controller(&format!("controller-{run}"), settings).await?;
        kills.recv().await.context("the plan is gone")?;
        controller.kill().await?;
        // What the dead controller had under way may have asked for further kills; they are done.
        while kills.try_recv().is_ok() {}
    }
    Ok(())
}

async fn story(bed: &impl Bed) -> Result<()> {
    let (pods, claims, nodes) = (bed.pods(), bed.claims(), bed.nodes());
    wait_for(pods.clone(), "six running pods", |pods| pods.len() == 6 && pods.values().all(is_running)).await?;
    wait_for(claims.clone(), "all claims ready", |claims| claims.len() == 3 && claims.values().all(is_ready)).await?;

    bed.apply(STUBBORN).await?;
    let placed =
        wait_for(pods.clone(), "the stubborn pod", |pods| pods.len() == 7 && pods.values().all(is_running)).await?;
    let node = placed["stubborn"].spec.as_ref().and_then(|spec| spec.node_name.clone()).context("it is bound")?;
    bed.delete(Target::Node(&node), Wait::No).await?;
    wait_for(nodes.clone(), "the node's end", |nodes| !nodes.contains_key(&node)).await?;
    wait_for(pods.clone(), "six running pods again", |pods| pods.len() == 6 && pods.values().all(is_running)).await?;

    bed.scale("inflate", 0).await?;
    bed.delete(Target::Claim("standalone"), Wait::No).await?;
    wait_for(claims, "the end of all claims", |claims| claims.is_empty()).await?;
    wait_for(nodes, "only the foreign node", |nodes| nodes.len() == 1).await?;
    Ok(())
}
