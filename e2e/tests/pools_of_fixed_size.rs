//! Pools of fixed size, from the first node to the last, and what pools say about themselves.

use anyhow::{Context, Result};
use api::{NodeClaim, NodePool};
use e2e::seen::{condition, is_ready, is_running};
use e2e::{Bed, Controller, ControllerSettings, Seen, Target, Wait};
use e2e::{inflate, kwok_node_class, node_pool, wait_for};
use kube::ResourceExt;

e2e::cluster_tests! {
    a_pool_is_scaled_up_and_down,
    a_limit_holds_and_a_deleted_pool_takes_its_nodes_along,
}

/// Machines of four CPUs. The KWOK provider wants types to be listed.
fn fixed(extra: &str) -> String {
    let listed = "      - key: node.kubernetes.io/instance-type
        operator: In
        values: [s-4x-amd64-linux]
";
    node_pool("fixed", &format!("{listed}{extra}"))
}

async fn started<B: Bed>(bed: &B, pool: &str) -> Result<B::Controller> {
    bed.apply(&[kwok_node_class("default"), pool.to_owned()].join("---\n")).await?;
    let settings = ControllerSettings::default().with("FEATURE_GATES", "StaticCapacity=true");
    bed.start_controller("controller", &settings).await
}

fn all_ready(count: usize) -> impl Fn(&Seen<NodeClaim>) -> bool {
    move |claims| claims.len() == count && claims.values().all(is_ready)
}

fn counts(nodes: i64, cpu: &str) -> impl Fn(&Seen<NodePool>) -> bool {
    move |pools| {
        let status = pools.get("fixed").and_then(|pool| pool.status.as_ref());
        status.is_some_and(|status| {
            let found = status.resources.as_ref().and_then(|resources| resources.get("cpu"));
            status.nodes == nodes && found.is_some_and(|found| found.0 == cpu)
        })
    }
}

/// STAT-01, STAT-03, STAT-08, OBS-02, API-47: `kubectl scale nodepool` makes and ends nodes; pods run on them and keep
/// theirs while an empty one goes; the pool counts what it has, and says that its nodes join.
async fn a_pool_is_scaled_up_and_down(bed: &impl Bed) -> Result<()> {
    let controller = started(bed, &fixed("  replicas: 1\n")).await?;
    let first = wait_for(bed.claims(), "a ready claim", all_ready(1)).await?;
    let claim = first.values().next().context("a claim")?;
    assert!(claim.spec.resources.is_none(), "{:?}", claim.spec.resources);
    wait_for(bed.pools(), "a pool whose nodes join", |pools| {
        condition(&pools["fixed"], "NodeRegistrationHealthy").is_some_and(|text| text.starts_with("True"))
    })
    .await?;
    bed.apply(&inflate(3)).await?;
    let pods =
        wait_for(bed.pods(), "three running pods", |pods| pods.len() == 3 && pods.values().all(is_running)).await?;
    let home = claim.status.as_ref().and_then(|status| status.node_name.clone());
    assert!(pods.values().all(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name == home)), "{home:?}");

    bed.scale_pool("fixed", 4).await?;
    wait_for(bed.claims(), "four ready claims", all_ready(4)).await?;
    wait_for(bed.pools(), "the pool's count", counts(4, "16")).await?;
    if let Some(table) = bed.kubectl(&["get", "nodepool", "fixed", "-o", "wide"])? {
        assert!(table.contains(" 16 "), "{table}");
    }
    bed.scale_pool("fixed", 1).await?;
    let left = wait_for(bed.claims(), "one claim", |claims| claims.len() == 1).await?;
    assert_eq!(left.keys().collect::<Vec<_>>(), first.keys().collect::<Vec<_>>(), "the one with pods stays");
    let stayed = bed.pods().list(&kube::api::ListParams::default()).await?;
    assert!(stayed.iter().all(|pod| pods.get(&pod.name_any()).is_some_and(|before| before.uid() == pod.uid())));
    bed.scale("inflate", 0).await?;
    bed.scale_pool("fixed", 0).await?;
    wait_for(bed.nodes(), "no nodes", |nodes| nodes.is_empty()).await?;
    wait_for(bed.pools(), "the pool's count", counts(0, "0")).await?;
    controller.stop().await
}

/// STAT-02, STAT-09: no more nodes than the limit, whatever the replicas; with the pool goes everything.
async fn a_limit_holds_and_a_deleted_pool_takes_its_nodes_along(bed: &impl Bed) -> Result<()> {
    let controller = started(bed, &fixed("  replicas: 5\n  limits:\n    nodes: 2\n")).await?;
    wait_for(bed.claims(), "two ready claims", all_ready(2)).await?;
    let going = wait_for(bed.claims(), "claims", |claims| !claims.is_empty()).await?;
    let (name, _) = going.first_key_value().context("a claim")?;
    bed.delete(Target::Claim(name), Wait::UntilGone).await?;
    let replaced =
        wait_for(bed.claims(), "two ready claims", |claims| all_ready(2)(claims) && !claims.contains_key(name)).await?;
    assert_eq!(replaced.len(), 2);
    let metrics = controller.metrics().await?;
    let made =
        "karpenter_nodeclaims_created_total{reason=\"provisioned\",nodepool=\"fixed\",min_values_relaxed=\"false\"} 3";
    assert!(metrics.contains(made), "two, and one for the one that went:\n{metrics}");
    bed.delete(Target::Pool("fixed"), Wait::UntilGone).await?;
    wait_for(bed.claims(), "no claims", |claims| claims.is_empty()).await?;
    wait_for(bed.nodes(), "no nodes", |nodes| nodes.is_empty()).await?;
    let metrics = controller.metrics().await?;
    assert!(metrics.contains(made), "none was made since:\n{metrics}");
    controller.stop().await
}
