//! Ends of nodes: how they go on, and what they do not wait for.

use serde_json::json;

use super::stage::{claim, node, play, pod};

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
            for kind in ["Drained", "VolumesDetached", "InstanceTerminating"] {
                let state = stage.condition("solo", kind).await.unwrap_or("absent".to_owned());
                line.push(state.split(' ').next().unwrap().to_owned());
            }
            if line[0] == "True" && drained.is_none() {
                drained = Some(stage.now() - began);
            }
            let line = line.join(" ");
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
        assert_eq!(seen, ["Unknown absent absent", "True True True"]);
        // Its beginning was seen up to half a second late.
        assert!(drained.unwrap().as_secs_f64() >= 4.5, "a drain takes at least five seconds: {drained:?}");
        let ends = stage.script.ends_of("solo");
        let pauses: Vec<u64> = ends.windows(2).map(|two| (two[1] - two[0]).as_secs_f64().round() as u64).collect();
        assert_eq!(pauses[..3], [5, 5, 5], "{ends:?}");
        assert!(stage.node(&node).await.is_none());
    });
}

fn line_is_over(seen: &[String]) -> bool {
    seen.last().is_some_and(|line| line == "True True True")
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

/// TERM-21: a node of ours whose claim is gone, or that two claims say is theirs, is drained and let go.
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
    });
}
