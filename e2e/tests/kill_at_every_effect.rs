//! The controller is killed before and after every write it makes, and started again each time. The story must end as
//! if nothing had happened: nothing launched twice, nothing leaked, nothing foreign touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use api::NodeClaim;
use e2e::proxy::{self, KillEverywhere, KillPoint, Side};
use e2e::seen::{is_ready, is_running, is_unschedulable};
use e2e::{Bed, Controller, ControllerSettings, inflate, kwok_node_class, node_pool, wait_for};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::WatchStreamExt;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc;

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
    "post nodeclaims",
    "post nodes",
    "post pods/eviction",
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
        let api: Api<NodeClaim> = Api::all(client.clone());
        tokio::spawn(async move {
            let mut seen =
                Box::pin(kube::runtime::watcher(api, kube::runtime::watcher::Config::default()).applied_objects());
            while let Some(event) = seen.next().await {
                claims.lock().expect("no writer panics").extend(event.map(|claim| claim.name_any()));
            }
        });
        let nodes = Arc::clone(&self.nodes);
        let api: Api<Node> = Api::all(client.clone());
        tokio::spawn(async move {
            let mut seen =
                Box::pin(kube::runtime::watcher(api, kube::runtime::watcher::Config::default()).applied_objects());
            while let Some(event) = seen.next().await {
                let Ok(node) = event else { continue };
                // The KWOK provider names a node's host after its claim.
                let host = node.labels().get("kubernetes.io/hostname").cloned().unwrap_or_default();
                let uid = node.uid().unwrap_or_default();
                nodes.lock().expect("no writer panics").entry(host).or_default().insert(uid);
            }
        });
    }
}

/// LIFE-01, LIFE-17: killed before and after every effect, the controller takes the story up where it was.
#[tokio::test(flavor = "multi_thread")]
async fn the_story_goes_on_after_a_kill_at_every_effect() -> Result<()> {
    let bed = Bed::start().await?;
    let history = History::default();
    history.record(&bed.client);
    let foreign = bed.add_foreign_node().await?;

    bed.apply(
        &[kwok_node_class("default"), node_pool("default", POOL), inflate(6), STANDALONE.to_owned()].join("---\n"),
    )?;
    // One batch, whatever the pace of the machine: the claims are counted in the end.
    wait_for(bed.pods(), "six unschedulable pods", |pods| pods.len() == 6 && pods.values().all(is_unschedulable))
        .await?;

    let (plan, kills) = KillEverywhere::new();
    let own = bed.controller_kubeconfig()?;
    let upstream = e2e::client(&own).await?;
    let address = proxy::start(upstream, plan.clone()).await?;
    let settings = ControllerSettings {
        kubeconfig: Some(proxy::kubeconfig(address, &bed.control_plane.log_dir())?),
        environment: Vec::new(),
    };
    // A killed leader's lease has to run out, which takes longer than the whole story.
    let settings = settings.with("DISABLE_LEADER_ELECTION", "true");
    let keeper = keep_running(&bed, &settings, kills);
    let story = story(&bed);
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
    println!("killed at {} points:\n{visited:#?}", visited.len());
    Ok(())
}

/// Restarts the controller whenever it was killed; ends only when it cannot be started.
async fn keep_running(
    bed: &Bed,
    settings: &ControllerSettings,
    mut kills: mpsc::UnboundedReceiver<KillPoint>,
) -> Result<()> {
    for run in 0.. {
        let controller = Controller::start(bed, &format!("controller-{run}"), settings)?;
        kills.recv().await.context("the proxy is gone")?;
        controller.kill()?;
        // What the dead process had under way may have asked for further kills; they are done.
        while kills.try_recv().is_ok() {}
    }
    Ok(())
}

async fn story(bed: &Bed) -> Result<()> {
    let (pods, claims, nodes) = (bed.pods(), bed.claims(), bed.nodes());
    wait_for(pods.clone(), "six running pods", |pods| pods.len() == 6 && pods.values().all(is_running)).await?;
    wait_for(claims.clone(), "all claims ready", |claims| claims.len() == 3 && claims.values().all(is_ready)).await?;

    bed.apply(STUBBORN)?;
    let placed =
        wait_for(pods.clone(), "the stubborn pod", |pods| pods.len() == 7 && pods.values().all(is_running)).await?;
    let node = placed["stubborn"].spec.as_ref().and_then(|spec| spec.node_name.clone()).context("it is bound")?;
    bed.kubectl(&["delete", "node", &node, "--wait=false"])?;
    wait_for(nodes.clone(), "the node's end", |nodes| !nodes.contains_key(&node)).await?;
    wait_for(pods.clone(), "six running pods again", |pods| pods.len() == 6 && pods.values().all(is_running)).await?;

    bed.kubectl(&["scale", "deployment", "inflate", "--replicas=0"])?;
    bed.kubectl(&["delete", "nodeclaim", "standalone", "--wait=false"])?;
    wait_for(claims, "the end of all claims", |claims| claims.is_empty()).await?;
    wait_for(nodes, "only the foreign node", |nodes| nodes.len() == 1).await?;
    Ok(())
}
