//! NodeOverlays: what they change, and what they say about themselves.

use anyhow::{Context, Result};
use api::NodeOverlay;
use e2e::seen::{condition, is_ready};
use e2e::{Bed, Controller, ControllerSettings, Seen, Target, Wait};
use e2e::{inflate, kwok_node_class, node_pool, wait_for};
use kube::ResourceExt;

e2e::cluster_tests! {
    overlays_say_what_became_of_them,
}

fn overlay(name: &str, weight: u32, spec: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: {name}
spec:
  weight: {weight}
{spec}"
    )
}

const DEAR: &str = "m-8x-amd64-linux";
const DEAR_TYPE: &str = "  requirements:
  - key: node.kubernetes.io/instance-type
    operator: In
    values: [m-8x-amd64-linux]
";

fn says(name: &'static str, expected: &'static str) -> impl Fn(&Seen<NodeOverlay>) -> bool {
    move |overlays| {
        overlays.get(name).and_then(|overlay| condition(overlay, "ValidationSucceeded")).as_deref() == Some(expected)
    }
}

/// OVL-02, OVL-03, OVL-09: an overlay is applied, meets another of its weight, or makes no sense, and says so under the
/// shipped role; a claim that was chosen by its price tells so.
async fn overlays_say_what_became_of_them(bed: &impl Bed) -> Result<()> {
    let free = overlay("free", 10, &format!("{DEAR_TYPE}  price: \"0.0001\"\n"));
    bed.apply(&[kwok_node_class("default"), node_pool("default", ""), free].join("---\n")).await?;
    let settings = ControllerSettings::default().with("FEATURE_GATES", "NodeOverlay=true");
    let controller = bed.start_controller("controller", &settings).await?;
    wait_for(bed.overlays(), "an overlay that is applied", says("free", "True ValidationSucceeded: ")).await?;
    bed.apply(&inflate(1)).await?;
    let claims =
        wait_for(bed.claims(), "a ready claim", |claims| claims.len() == 1 && claims.values().all(is_ready)).await?;
    let claim = claims.values().next().context("a claim")?;
    let listed = claim.spec.requirements.iter().find(|one| one.key == "node.kubernetes.io/instance-type");
    let is_listed = listed.and_then(|one| one.values.as_ref()).is_some_and(|types| types.iter().any(|one| one == DEAR));
    assert!(is_listed, "the overlay made it cheapest, and the provider chooses: {listed:?}");
    assert_eq!(claim.annotations().get("karpenter.sh/price-overlay-applied").map(String::as_str), Some("true"));
    assert_eq!(claim.annotations().get("karpenter.sh/capacity-overlay-applied"), None);

    // Of two equal ones the alphabetically last is looked at first.
    bed.apply(&overlay("dear", 10, &format!("{DEAR_TYPE}  priceAdjustment: \"+10%\"\n"))).await?;
    let conflict = "False Conflict: conflict with another overlay";
    wait_for(bed.overlays(), "an overlay that meets another", says("dear", conflict)).await?;
    let odd = "  requirements:
  - key: karpenter.sh/capacity-type
    operator: In
    values: [leased]
  price: \"1\"
";
    bed.apply(&overlay("odd", 1, odd)).await?;
    let seen = wait_for(bed.overlays(), "an overlay that makes no sense", |overlays| {
        let text = overlays.get("odd").and_then(|overlay| condition(overlay, "ValidationSucceeded"));
        text.is_some_and(|text| text.starts_with("False RuntimeValidation: "))
    })
    .await?;
    assert!(condition(&seen["free"], "Ready").is_some_and(|text| text.starts_with("True")));
    assert!(condition(&seen["odd"], "Ready").is_some_and(|text| text.starts_with("False UnhealthyDependents")));
    bed.delete(Target::Overlay("free"), Wait::UntilGone).await?;
    wait_for(bed.overlays(), "no conflict any more", says("dear", "True ValidationSucceeded: ")).await?;
    controller.stop().await
}
