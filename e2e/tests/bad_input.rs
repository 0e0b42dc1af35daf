//! What cannot work says so, names the field and the fix, and never stops the rest.

use anyhow::{Context, Result};
use api::NodePool;
use e2e::seen::{condition, is_running};
use e2e::{Bed, Controller, ControllerSettings, Seen};
use e2e::{inflate, kwok_node_class, node_pool, wait_for, wait_until};
use k8s_openapi::api::core::v1::Event;

e2e::cluster_tests! {
    broken_pools_say_so_and_do_not_stop_the_others,
    pods_without_a_node_are_told_why,
}

fn pod(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: default
spec:
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
    resources:
      requests:
        cpu: \"1\"
{spec}---
"
    )
}

/// API-41, API-45, API-58: three pools that cannot work and one that cannot be read stand beside one that can.
async fn broken_pools_say_so_and_do_not_stop_the_others(bed: &impl Bed) -> Result<()> {
    let bad_value = "      - key: example.com/team
        operator: In
        values: [\"not a label value!\"]
";
    let classless = node_pool("classless", "").replace("name: default", "name: missing");
    let unreadable = node_pool("unreadable", "      expireAfter: 99999999999999999999h\n");
    bed.apply(
        &[
            kwok_node_class("default"),
            node_pool("good", ""),
            node_pool("bad-value", bad_value),
            classless,
            unreadable,
            inflate(1),
        ]
        .join("---\n"),
    )
    .await?;
    let controller = bed.start_controller("controller", &ControllerSettings::default()).await?;
    wait_for(bed.pods(), "a running pod", |pods| pods.len() == 1 && pods.values().all(is_running)).await?;
    // The unreadable pool is read as plain JSON here; our own type would fail as the controller's does.
    let judged = |name: &'static str, type_: &'static str, wanted: &'static str| {
        let api = kube::Api::<kube::core::DynamicObject>::all_with(
            bed.client(),
            &kube::api::ApiResource::erase::<NodePool>(&()),
        );
        wait_for(api, wanted, move |pools| {
            let Some(pool) = pools.get(name) else { return false };
            let pool = serde_json::to_value(pool).and_then(serde_json::from_value::<NodePool>);
            pool.is_ok_and(|pool| condition(&pool, type_).is_some_and(|text| text.contains(wanted)))
        })
    };
    judged("bad-value", "ValidationSucceeded", "False NodePoolValidationFailed: ").await?;
    judged("bad-value", "ValidationSucceeded", "example.com/team").await?;
    judged("bad-value", "Ready", "False UnhealthyDependents: ValidationSucceeded=False").await?;
    judged("classless", "NodeClassReady", "False NodeClassNotFound: NodeClass not found on cluster").await?;
    judged("good", "Ready", "True Ready: ").await?;
    wait_until("a line about the unreadable pool", async || {
        let is_told =
            |log: &str| log.lines().any(|line| line.contains("cannot be read") && line.contains("unreadable"));
        controller.log().is_none_or(|log| is_told(&log)).then_some(())
    })
    .await?;
    wait_until("the count of unreadable objects", async || {
        let counted = "karpenter_watch_malformed_objects_total{kind=\"NodePool\"} 1";
        controller.metrics().await.ok().filter(|text| text.contains(counted))
    })
    .await?;
    Ok(())
}

fn told(events: &Seen<Event>, pod: &str) -> Option<String> {
    let about = |event: &&Event| {
        let is_ours = event.source.as_ref().and_then(|source| source.component.as_deref()) == Some("karpenter");
        is_ours
            && event.involved_object.name.as_deref() == Some(pod)
            && event.reason.as_deref() == Some("FailedScheduling")
    };
    events.values().find(about).and_then(|event| event.message.clone())
}

/// REQ-15, REQ-16, PROV-07, PROV-08: each pod that gets no node is told why, with the fix.
async fn pods_without_a_node_are_told_why(bed: &impl Bed) -> Result<()> {
    let limited = "      - key: karpenter.kwok.sh/instance-cpu
        operator: In
        values: [\"2\"]
  limits:
    cpu: 2
";
    let pods = [
        pod("fits", ""),
        pod("elsewhere", "  nodeSelector:\n    topology.kubernetes.io/zone: nowhere\n"),
        pod("host", "  nodeSelector:\n    kubernetes.io/hostname: n1\n"),
        pod(
            "field",
            "  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchFields:
          - key: metadata.name
            operator: In
            values: [n1]
",
        ),
        pod(
            "aloof",
            "  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - key: karpenter.sh/nodepool
            operator: DoesNotExist
",
        ),
    ];
    bed.apply(&[kwok_node_class("default"), node_pool("default", limited), pods.concat()].join("---\n")).await?;
    let controller = bed.start_controller("controller", &ControllerSettings::default()).await?;
    wait_for(bed.pods(), "the pod that fits", |pods| pods.get("fits").is_some_and(is_running)).await?;
    bed.apply(&pod("over-limit", "")).await?;
    let table = [
        ("elsewhere", "nodepool \"default\": no instance type met the scheduling requirements"),
        ("host", "label \"kubernetes.io/hostname\" is restricted"),
        ("field", "node selector term with matchFields is not supported"),
        ("over-limit", "exceed limits for nodepool, cpu: 2 wanted, 0 there; raise spec.limits or free capacity"),
    ];
    for (name, wanted) in table {
        wait_for(bed.events(), wanted, |events| told(events, name).is_some_and(|message| message.contains(wanted)))
            .await?;
    }
    let events = wait_for(bed.events(), "any events", |events| !events.is_empty()).await?;
    assert_eq!(told(&events, "aloof"), None, "a pod that wants to stay away is no news");
    assert_eq!(bed.claims().list(&kube::api::ListParams::default()).await?.items.len(), 1, "the limit holds");
    wait_until("the gauge of ignored pods", async || {
        controller.metrics().await.ok().filter(|text| text.contains("karpenter_scheduler_ignored_pods_count 3"))
    })
    .await
    .context("host, field and aloof")?;
    Ok(())
}
