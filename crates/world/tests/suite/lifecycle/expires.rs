//! Lives that are over, and ends that have a deadline.

use serde_json::{Value, json};

use super::stage::{Stage, budget, claim, fillers, is_running, play, pod, pool, with};

/// LIFE-25, LIFE-26: a node goes when its life is over, whatever budgets and annotations say, and its pods get another.
/// Its life is as long as it was when it began. (That the longer life makes the node drift is not told here.)
#[test]
fn a_life_ends_as_it_was_begun() {
    play(async |stage| {
        let short = pool(json!({"expireAfter": "1h"}));
        let closed = json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}});
        stage.apply(with(short.clone(), &closed)).await;
        stage.apply(fillers(1)).await;
        stage.until_all_running(1).await;
        let (name, _) = stage.claims().await.pop_first().unwrap();
        let (node, _) = stage.nodes().await.pop_first().unwrap();
        stage.patch_node(&node, json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}})).await;
        stage
            .apply(with(with(short, &closed), &json!({"spec": {"template": {"spec": {"expireAfter": "Never"}}}})))
            .await;
        stage.wait(55 * 60).await;
        assert!(stage.claim(&name).await.unwrap().metadata.deletion_timestamp.is_none());
        stage.until_claim_gone(&name).await;
        let minutes = stage.now().as_secs_f64() / 60.0;
        assert!((60.0..61.0).contains(&minutes), "gone after {minutes} minutes");
        assert_eq!(stage.metric("karpenter_nodeclaims_disrupted_total", "reason=\"expired\""), 1.0);
        stage.until_all_running(1).await;
        let (_, next) = stage.claims().await.pop_first().unwrap();
        assert_eq!(next.spec.expire_after.text(), "Never");
    });
}

/// LIFE-22: a deadline that somebody has set before stands, and the claim has nothing to tell.
#[test]
fn a_deadline_that_is_set_stands() {
    play(async |stage| {
        const KEY: &str = "karpenter.sh/nodeclaim-termination-timestamp";
        const LATE: &str = "2999-01-01T00:00:00Z";
        let node = stage.ready_claim("solo", json!({"terminationGracePeriod": "60s"})).await;
        stage.patch_claim("solo", json!({"metadata": {"annotations": {KEY: LATE}}})).await;
        let held = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        stage.apply(pod("held", &held)).await;
        stage.until_running("held").await;
        stage.delete_claim("solo").await;
        stage.wait(5 * 60).await;
        assert_eq!(stage.claim("solo").await.unwrap().metadata.annotations.unwrap()[KEY], LATE);
        assert!(stage.pod("held").await.unwrap().metadata.deletion_timestamp.is_none());
        let told = stage.events("TerminationGracePeriodExpiring").await;
        let expected = format!("Node/{node}: All pods will be deleted by {LATE}");
        assert!(!told.is_empty() && told.iter().all(|event| *event == expected), "{told:?}");
    });
}

/// LIFE-22, TERM-16: a grace period of nothing is a deadline as well, and not the same as none.
#[test]
fn no_grace_at_all_is_a_deadline() {
    play(async |stage| {
        stage.ready_claim("solo", json!({"terminationGracePeriod": "0s"})).await;
        let held = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": {"terminationGracePeriodSeconds": 30}});
        stage.apply(pod("held", &held)).await;
        stage.until_running("held").await;
        stage.delete_claim("solo").await;
        stage.wait(1).await;
        let metadata = stage.claim("solo").await.unwrap().metadata;
        let deadline = metadata.deletion_timestamp.unwrap().0.to_string();
        assert_eq!(metadata.annotations.unwrap()["karpenter.sh/nodeclaim-termination-timestamp"], deadline);
        let told = stage.events("TerminationGracePeriodExpiring").await;
        assert!(told.contains(&format!("NodeClaim/solo: All pods will be deleted by {deadline}")), "{told:?}");
        let took = stage.until_claim_gone("solo").await;
        assert!(took.as_secs() < 60 && stage.pod("held").await.is_none(), "{took:?}");
        let graces: Vec<Value> =
            forced_out(stage).into_iter().map(|options| options["gracePeriodSeconds"].clone()).collect();
        assert!(!graces.is_empty() && graces.iter().all(|grace| *grace == json!(1)), "{graces:?}");
    });
}

/// LIFE-22: a claim whose node never joined has a deadline too.
#[test]
fn a_claim_without_a_node_has_its_deadline() {
    play(async |stage| {
        stage.order(|orders| {
            orders.made_by_hand = Some("kwok://nobody".to_owned());
            orders.promised_ends = 2;
        });
        stage.apply(claim("solo", json!({"terminationGracePeriod": "60s"}))).await;
        stage.until_condition("solo", "Launched", "True").await;
        stage.delete_claim("solo").await;
        stage.wait(2).await;
        let metadata = stage.claim("solo").await.unwrap().metadata;
        let deadline = (metadata.deletion_timestamp.unwrap().0 + jiff::SignedDuration::from_secs(60)).to_string();
        assert_eq!(metadata.annotations.unwrap()["karpenter.sh/nodeclaim-termination-timestamp"], deadline);
        let told = stage.events("TerminationGracePeriodExpiring").await;
        assert_eq!(told, [format!("NodeClaim/solo: All pods will be deleted by {deadline}")]);
    });
}

/// What pods whose time was up were ended with.
fn forced_out(stage: &Stage) -> Vec<Value> {
    stage.writes().into_iter().filter(|(write, _)| write == "delete pods").map(|(_, options)| options).collect()
}

/// LIFE-22, TERM-13, TERM-06: the deadline is written down and told; a pod that will not leave keeps its own grace
/// before it, and then goes.
#[test]
fn a_deadline_ends_what_will_not_end() {
    play(async |stage| {
        let node = stage.ready_claim("solo", json!({"terminationGracePeriod": "60s"})).await;
        let held = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": {"terminationGracePeriodSeconds": 30}});
        stage.apply(pod("held", &held)).await;
        stage.until_running("held").await;
        let uid = stage.pod("held").await.unwrap().metadata.uid.unwrap();
        let began = stage.now().as_secs();
        stage.delete_claim("solo").await;
        stage.wait(2).await;
        let claim = stage.claim("solo").await.unwrap();
        let deadline = claim.metadata.deletion_timestamp.unwrap().0 + jiff::SignedDuration::from_secs(60);
        let annotations = claim.metadata.annotations.unwrap();
        assert_eq!(annotations["karpenter.sh/nodeclaim-termination-timestamp"], deadline.to_string());
        let told = stage.events("TerminationGracePeriodExpiring").await;
        assert!(told.contains(&format!("NodeClaim/solo: All pods will be deleted by {deadline}")), "{told:?}");
        assert!(told.contains(&format!("Node/{node}: All pods will be deleted by {deadline}")), "{told:?}");
        stage
            .until("the pod's end to begin", async || {
                stage.pod("held").await.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some())
            })
            .await;
        let (seconds, grace) = (stage.now().as_secs() - began, 30);
        assert!((29..=32).contains(&seconds), "after {seconds} s of 60, with a grace of {grace}");
        let [options] = forced_out(stage).try_into().unwrap();
        assert_eq!(options["preconditions"]["uid"], uid, "no later pod of the same name");
        assert!((28..=30).contains(&options["gracePeriodSeconds"].as_i64().unwrap()), "{options}");
        stage.wait(1).await;
        let told = stage.events("Disrupted").await.pop().unwrap();
        let begin = "Pod/held: Deleting the pod to accommodate the terminationTime 20";
        let end = "seconds of grace-period of its 30 terminationGracePeriodSeconds. This bypasses the PDB of the pod and \
                   the do-not-disrupt annotation.";
        assert!(told.starts_with(begin) && told.ends_with(end), "{told}");
        stage.until_claim_gone("solo").await;
        assert!(stage.now().as_secs() - began <= 75, "{:?}", stage.now());
    });
}

/// TERM-14: a pod whose time is up goes while one of an earlier wave is still held back.
#[test]
fn a_deadline_waits_for_no_wave() {
    play(async |stage| {
        stage.ready_claim("solo", json!({"terminationGracePeriod": "60s"})).await;
        stage.apply(pod("web", &json!({}))).await;
        stage.apply(budget("none", "web", &json!({"maxUnavailable": 0}))).await;
        let spec = json!({"priorityClassName": "system-cluster-critical", "terminationGracePeriodSeconds": 40});
        stage.apply(pod("dns", &json!({"spec": spec}))).await;
        stage.until_all_running(2).await;
        let began = stage.now().as_secs();
        stage.delete_claim("solo").await;
        stage
            .until("the critical pod's end to begin", async || {
                stage.pod("dns").await.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some())
            })
            .await;
        let seconds = stage.now().as_secs() - began;
        assert!((19..=22).contains(&seconds), "after {seconds} s of 60, with a grace of 40");
        assert!(is_running(&stage.pod("web").await.unwrap()), "its budget holds it until its own time is up");
    });
}

/// TERM-15: a pod whose own end would come after the deadline is asked to end by it; one that ends earlier is not asked twice.
#[test]
fn a_deadline_hurries_pods_that_are_ending() {
    for (grace, is_hurried) in [(600, true), (20, false)] {
        play(async |stage| {
            stage.ready_claim("solo", json!({"terminationGracePeriod": "60s"})).await;
            let slow = json!({"metadata": {"annotations": {"sim.karpenter.sh/stop-for": "10m"}},
                "spec": {"terminationGracePeriodSeconds": grace}});
            stage.apply(pod("slow", &slow)).await;
            stage.until_running("slow").await;
            let pods: kube::Api<k8s_openapi::api::core::v1::Pod> =
                kube::Api::namespaced(stage.world.client(), "default");
            pods.delete("slow", &kube::api::DeleteParams::default()).await.unwrap();
            let ends = async || stage.pod("slow").await.unwrap().metadata.deletion_timestamp.unwrap().0;
            let first = ends().await;
            stage.delete_claim("solo").await;
            stage.wait(5).await;
            let deadline = stage.claim("solo").await.unwrap().metadata.deletion_timestamp.unwrap().0
                + jiff::SignedDuration::from_secs(60);
            let last = ends().await;
            assert_eq!((first > deadline, last < first, last <= deadline), (is_hurried, is_hurried, true), "{grace}");
            let asked = forced_out(stage);
            assert_eq!(asked.len(), usize::from(is_hurried), "{grace}: {asked:?}");
            let took = stage.until_claim_gone("solo").await;
            assert!(took.as_secs() <= 75, "{grace}: {took:?}");
        });
    }
}
