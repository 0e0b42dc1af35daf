//! Ends of nodes: how they go on, and what they do not wait for.

use kube::ResourceExt;
use serde_json::json;
use world::ControllerSettings;

use super::stage::{claim, is_running, node, play, play_with, pod};

const PROTECTED: &str = "karpenter.sh/do-not-disrupt";

/// TERM-01, TERM-02: a node that goes with its claim is closed to new pods and load balancers within three seconds. A taint
/// of ours with another effect gives way, those of others stay.
#[test]
fn a_node_that_goes_is_closed() {
    play(async |stage| {
        let other = json!({"key": "example.com/own", "value": "x", "effect": "NoSchedule"});
        let name = stage.ready_claim("solo", json!({"taints": [other]})).await;
        let milder = json!({"key": "karpenter.sh/disrupted", "value": "soon", "effect": "PreferNoSchedule"});
        stage.patch_node(&name, json!({"spec": {"taints": [milder, other]}})).await;
        stage.delete_claim("solo").await;
        stage.wait(3).await;
        let node = stage.node(&name).await.unwrap();
        assert!(node.metadata.deletion_timestamp.is_some());
        assert_eq!(node.labels()["node.kubernetes.io/exclude-from-external-load-balancers"], "karpenter");
        let closed = json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"});
        assert_eq!(serde_json::to_value(node.spec.unwrap().taints).unwrap(), json!([other, closed]));
    });
}

/// TERM-02: a claim goes with its node, at once and not only when the node is gone.
#[test]
fn a_claim_goes_with_its_node() {
    play(async |stage| {
        let name = stage.ready_claim("solo", json!({})).await;
        stage.apply(pod("held", &json!({"metadata": {"annotations": {PROTECTED: "true"}}}))).await;
        stage.until_running("held").await;
        stage.delete_node(&name).await;
        stage.wait(3).await;
        assert!(stage.claim("solo").await.unwrap().metadata.deletion_timestamp.is_some());
        assert!(stage.node(&name).await.is_some() && is_running(&stage.pod("held").await.unwrap()));
    });
}

/// LIFE-21: a node that is open to pods is drained although its claim does not say that it joined: the process that opened it
/// died before it could write that down.
#[test]
fn an_open_node_is_drained_whatever_its_claim_says() {
    play_with("patch nodes #1 kill-after", async |stage| {
        stage.apply(claim("solo", json!({}))).await;
        stage
            .until("the node is open", async || {
                stage.nodes().await.values().any(|node| node.labels().contains_key("karpenter.sh/registered"))
            })
            .await;
        assert_ne!(stage.condition("solo", "Registered").await.as_deref(), Some("True Registered: "));
        let held = json!({"metadata": {"annotations": {PROTECTED: "true"}}});
        stage.apply(pod("held", &held)).await;
        stage.until_running("held").await;
        stage.delete_claim("solo").await;
        let settings = ControllerSettings::default().with("DISABLE_LEADER_ELECTION", "true");
        let _successor = stage.world.start_controller("beta", &settings).unwrap();
        stage.wait(60).await;
        assert!(stage.condition("solo", "InstanceTerminating").await.is_none());
        assert!(is_running(&stage.pod("held").await.unwrap()) && stage.claim("solo").await.is_some());
    });
}

/// LIFE-21, CP-01: an instance whose node never joined is ended like any other. What fails is tried again; nothing is said
/// to end before the provider has promised it, and the claim stays until the instance is gone.
#[test]
fn an_instance_without_a_node_is_ended() {
    play(async |stage| {
        stage.order(|orders| {
            orders.made_by_hand = Some("kwok://nobody".to_owned());
            orders.failed_ends = usize::MAX;
        });
        stage.apply(claim("solo", json!({}))).await;
        stage.until_condition("solo", "Launched", "True").await;
        stage.delete_claim("solo").await;
        stage.wait(60).await;
        assert_eq!(stage.condition("solo", "InstanceTerminating").await, None);
        let failed = stage.script.ends_of("solo").len();
        assert!((5..=8).contains(&failed), "asked {failed} times, more and more slowly");
        stage.order(|orders| {
            orders.failed_ends = 0;
            orders.promised_ends = 2;
        });
        stage.until_condition("solo", "InstanceTerminating", "True InstanceTerminating: ").await;
        stage.until_claim_gone("solo").await;
        let ends = stage.script.ends_of("solo").split_off(failed);
        let pauses: Vec<u64> = ends.windows(2).map(|two| (two[1] - two[0]).as_secs_f64().round() as u64).collect();
        assert_eq!(pauses, [5, 5], "{ends:?}");
    });
}

const DRAINING: &str = "Unknown Draining: Draining| absent| absent| True Ready: ";
const OVER: &str = "True Drained: | True VolumesDetached: | True InstanceTerminating: | True Ready: ";

/// LIFE-21, TERM-12, TERM-22: conditions tell how far an end is; the provider is asked every five seconds, and nothing
/// is let go before it says that the instance is gone.
#[test]
fn an_end_goes_on_step_by_step() {
    play(async |stage| {
        let node = stage.ready_claim("solo", json!({})).await;
        stage.order(|orders| orders.promised_ends = 3);
        stage.delete_claim("solo").await;
        let mut seen: Vec<String> = Vec::new();
        stage
            .until("the node's end", async || {
                stage.node(&node).await.is_none_or(|node| node.metadata.deletion_timestamp.is_some())
            })
            .await;
        let began = stage.now();
        let mut drained = None;
        while stage.claim("solo").await.is_some() {
            let mut line = Vec::new();
            for kind in ["Drained", "VolumesDetached", "InstanceTerminating", "Ready"] {
                line.push(stage.condition("solo", kind).await.unwrap_or("absent".to_owned()));
            }
            if line[0].starts_with("True") && drained.is_none() {
                drained = Some(stage.now() - began);
            }
            let line = line.join("| ");
            if stage.claim("solo").await.is_none() {
                // It may have gone between two questions.
                break;
            }
            if seen.last() != Some(&line) {
                seen.push(line);
            }
            if line_is_over(&seen) {
                assert!(stage.node(&node).await.is_some() || stage.script.ends_of("solo").len() > 3);
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(seen, [DRAINING, OVER]);
        // Its beginning was seen up to half a second late.
        let drained = drained.unwrap().as_secs_f64();
        assert!((4.5..6.5).contains(&drained), "a drain takes at least five seconds: {drained}");
        assert_eq!(stage.metric("karpenter_nodes_drained_total", ""), 1.0);
        let ends = stage.script.ends_of("solo");
        let pauses: Vec<u64> = ends.windows(2).map(|two| (two[1] - two[0]).as_secs_f64().round() as u64).collect();
        assert_eq!(pauses[..3], [5, 5, 5], "{ends:?}");
        assert!(stage.node(&node).await.is_none());
    });
}

fn line_is_over(seen: &[String]) -> bool {
    seen.last().is_some_and(|line| line == OVER)
}

/// LIFE-19: the end of a claim is that of its node first. For as long as a pod is waited for there, the instance runs.
#[test]
fn an_instance_outlives_the_drain_of_its_node() {
    play(async |stage| {
        let node = stage.ready_claim("solo", json!({})).await;
        let held = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        stage.apply(pod("held", &held)).await;
        stage.until_running("held").await;
        stage.delete_claim("solo").await;
        stage.wait(15 * 60).await;
        assert!(stage.node(&node).await.is_some_and(|node| node.metadata.deletion_timestamp.is_some()));
        assert!(stage.script.ends_of("solo").is_empty(), "the instance is left alone");
        stage.pod_api().delete("held", &kube::api::DeleteParams::default()).await.unwrap();
        stage.until("the instance's end", async || !stage.script.ends_of("solo").is_empty()).await;
        stage.until_claim_gone("solo").await;
        assert!(stage.node(&node).await.is_none());
    });
}

/// TERM-19: a node that is silent and whose instance is gone has nothing left to drain.
#[test]
fn a_lost_node_is_not_drained() {
    play(async |stage| {
        let node = stage.ready_claim("solo", json!({})).await;
        let held = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": {"tolerations": [{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]}});
        stage.apply(pod("held", &held)).await;
        stage.until_running("held").await;
        stage.silence(&node).await;
        stage.order(|orders| orders.knows_nothing = true);
        stage.delete_node(&node).await;
        let took = stage.until("the node's end", async || stage.node(&node).await.is_none()).await;
        assert!(took.as_secs() < 5, "{took:?}");
        stage.until_claim_gone("solo").await;
    });
}

/// TERM-02: a claim goes with its node at once, be there nothing left to drain.
#[test]
fn a_claim_goes_with_a_node_that_is_lost() {
    play(async |stage| {
        let name = stage.ready_claim("solo", json!({})).await;
        stage.silence(&name).await;
        stage.order(|orders| orders.knows_nothing = true);
        stage.delete_node(&name).await;
        stage.wait(3).await;
        let claim = stage.claim("solo").await;
        assert!(claim.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some()));
        stage.until_claim_gone("solo").await;
        assert_eq!(stage.metric("karpenter_nodeclaims_disrupted_total", "garbage_collected"), 0.0);
    });
}

/// TERM-20: as long as the kubelet of a node is heard it is drained, whatever the provider says.
#[test]
fn a_ready_node_is_drained_although_its_instance_is_said_to_be_gone() {
    play(async |stage| {
        let node = stage.ready_claim("solo", json!({})).await;
        let held = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        stage.apply(pod("held", &held)).await;
        stage.until_running("held").await;
        stage.order(|orders| orders.knows_nothing = true);
        stage.delete_node(&node).await;
        stage.wait(15 * 60).await;
        assert!(stage.node(&node).await.is_some() && stage.pod("held").await.is_some());
        stage.pod_api().delete("held", &kube::api::DeleteParams::default()).await.unwrap();
        stage.until("the node's end", async || stage.node(&node).await.is_none()).await;
    });
}

/// LIFE-18: a node of a class that is not the provider's is not ours to let go, be the class of the same group.
#[test]
fn the_end_of_a_node_of_another_class_is_left_alone() {
    play(async |stage| {
        let relative = json!({"metadata": {"finalizers": ["karpenter.sh/termination"],
            "labels": {"karpenter.kwok.sh/othernodeclass": "default"}}, "spec": {"taints": []}});
        stage.apply(node("relative", "other://i-1", &relative)).await;
        stage.delete_node("relative").await;
        stage.wait(20 * 60).await;
        assert!(stage.node("relative").await.is_some());
        assert!(!stage.writes().iter().any(|(write, _)| write.contains("nodes")));
    });
}

/// TERM-24: a node of another provider is not ours to drain or to let go, whatever its finalizer is called.
#[test]
fn the_end_of_a_foreign_node_is_left_alone() {
    play(async |stage| {
        let foreign = json!({"metadata": {"finalizers": ["karpenter.sh/termination"],
            "labels": {"karpenter.k8s.aws/ec2nodeclass": "default"}}, "spec": {"taints": []}});
        stage.apply(node("foreign", "aws:///a/i-1", &foreign)).await;
        stage.apply(pod("web", &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "foreign"}}}))).await;
        stage.until_running("web").await;
        let before = stage.node("foreign").await.unwrap();
        stage.delete_node("foreign").await;
        stage.wait(20 * 60).await;
        let after = stage.node("foreign").await.unwrap();
        assert_eq!((&after.metadata.labels, &after.spec), (&before.metadata.labels, &before.spec));
        assert!(is_running(&stage.pod("web").await.unwrap()), "nobody evicts it");
        let written: Vec<String> = stage.writes().into_iter().map(|(write, _)| write).collect();
        assert!(!written.iter().any(|write| write.contains("nodes") || write.contains("pods")), "{written:?}");
    });
}

/// TERM-21: a node of ours whose claim is gone, or that two claims say is theirs, is drained and let go. Neither of the two
/// goes with it, nor is anybody asked to end an instance.
#[test]
fn a_node_without_one_claim_ends_all_the_same() {
    play(async |stage| {
        let ours = json!({"metadata": {"finalizers": ["karpenter.sh/termination"],
            "labels": {"karpenter.kwok.sh/kwoknodeclass": "default"}}, "spec": {"taints": []}});
        stage.apply(node("left", "kwok://left", &ours)).await;
        stage.apply(node("disputed", "kwok://disputed", &ours)).await;
        stage.order(|orders| {
            orders.made_by_hand = Some("kwok://disputed".to_owned());
            orders.machines_stay = true;
        });
        for name in ["one", "two"] {
            stage.apply(claim(name, json!({}))).await;
            stage.until_condition(name, "Launched", "True").await;
        }
        for name in ["left", "disputed"] {
            let bound = json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": name}}});
            stage.apply(pod(name, &bound)).await;
            stage.until_running(name).await;
            stage.delete_node(name).await;
            stage.until("the node's end", async || stage.node(name).await.is_none()).await;
            assert!(stage.pod(name).await.is_none(), "{name} was evicted");
        }
        for name in ["one", "two"] {
            let claim = stage.claim(name).await.unwrap();
            assert!(claim.metadata.deletion_timestamp.is_none() && stage.script.ends_of(name).is_empty(), "{name}");
        }
    });
}
