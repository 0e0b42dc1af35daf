use api::lower::PodFacts;
use model::Vocabulary;
use serde_json::{Value, json};

use super::*;
use crate::metrics::{Build, Naming};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A pod made at second 0, with its phase and when its conditions came to hold.
fn pod(uid: &str, phase: &str, conditions: &[(&str, i64)]) -> PodFacts {
    pod_with(uid, phase, conditions, &json!({"containers": []}))
}

fn pod_with(uid: &str, phase: &str, conditions: &[(&str, i64)], spec: &Value) -> PodFacts {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, second)| json!({"type": kind, "status": "True", "lastTransitionTime": at(*second).to_string()}))
        .collect();
    let waiting = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
    let conditions = if conditions.is_empty() { vec![waiting] } else { conditions };
    let pod = json!({
        "metadata": {"namespace": "n", "name": "p", "uid": uid, "creationTimestamp": at(0).to_string()},
        "spec": spec, "status": {"phase": phase, "conditions": conditions},
    });
    PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core()).unwrap()
}

fn key() -> PodKey {
    PodKey::new("n", "p")
}

fn told(waits: &Waits, now: i64) -> Vec<String> {
    let mut page = Page::default();
    waits.tell(at(now), &mut page);
    let text = page.into_text();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.replace("karpenter_pods_", "").replace("_time_seconds", "")).collect()
}

/// From creation to readiness, every wait is told while it lasts and counted once when it is over.
#[test]
fn waits_are_told_and_then_counted() {
    let mut waits = Waits::default();
    assert_eq!(waits.note(&key(), Some(&pod("u", "Pending", &[])), at(2)), []);
    let name = r#"{name="p",namespace="n""#;
    assert_eq!(
        told(&waits, 5),
        [
            format!("unstarted{name}}} 5"),
            format!(r#"unbound{name},dynamic_resources="false"}} 5"#),
            format!("provisioning_scheduling_undecided{name}}} 3"),
        ]
    );
    assert_eq!(waits.decide([&key()], [], at(6)), [4.0], "seen at 2, decided at 6");
    assert_eq!(waits.decide([&key()], [], at(9)), Vec::<f64>::new(), "only the first plan counts");
    assert_eq!(
        told(&waits, 10),
        [
            format!("unstarted{name}}} 10"),
            format!("provisioning_unstarted{name}}} 4"),
            format!(r#"unbound{name},dynamic_resources="false"}} 10"#),
            format!(r#"provisioning_unbound{name},dynamic_resources="false"}} 4"#),
        ]
    );
    let bound = pod("u", "Pending", &[("PodScheduled", 20)]);
    let expected = Waited::Bound { seconds: 20.0, since_plan: Some(14.0), uses_dynamic_resources: false };
    assert_eq!(waits.note(&key(), Some(&bound), at(20)), [expected]);
    assert_eq!(told(&waits, 21).len(), 2, "it is bound, but not ready");
    let running = pod("u", "Running", &[("PodScheduled", 20), ("Ready", 30)]);
    let expected = Waited::Started { seconds: 30.0, since_plan: Some(24.0) };
    assert_eq!(waits.note(&key(), Some(&running), at(31)), [expected]);
    assert_eq!(told(&waits, 40), Vec::<String>::new());
    assert_eq!(waits.note(&key(), Some(&running), at(41)), [], "once");
}

/// MET-01: waits of pods with claims for devices are told and counted apart.
#[test]
fn waits_for_devices_are_told_apart() {
    let spec = json!({"containers": [], "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]});
    let mut waits = Waits::default();
    waits.note(&key(), Some(&pod_with("u", "Pending", &[], &spec)), at(2));
    waits.decide([&key()], [], at(6));
    let apart = r#"{name="p",namespace="n",dynamic_resources="true"}"#;
    let found = told(&waits, 10);
    for expected in [format!("unbound{apart} 10"), format!("provisioning_unbound{apart} 4")] {
        assert!(found.contains(&expected), "{expected} in {found:?}");
    }
    let bound = pod_with("u", "Pending", &[("PodScheduled", 20)], &spec);
    let [waited] = &waits.note(&key(), Some(&bound), at(20))[..] else { panic!("one wait is over") };
    let word = |text: &str| text.to_owned();
    let build = Build { version: word("v"), goversion: word("g"), goarch: word("a"), commit: word("c") };
    let metrics = Metrics::new(&build, Naming::default());
    waited.count(&metrics);
    let text = metrics.scrape();
    for expected in [
        r#"karpenter_pods_bound_duration_seconds_sum{dynamic_resources="true"} 20"#,
        r#"karpenter_pods_provisioning_bound_duration_seconds_sum{dynamic_resources="true"} 14"#,
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected}\n{text}");
    }
}

/// OBS-01: where a pod is and how, in labels; of a pod that is nowhere, nothing about a node.
#[test]
fn pods_say_where_they_are() {
    let node = json!({"metadata": {"name": "one", "uid": "one", "labels": {
        "karpenter.sh/nodepool": "web", "topology.kubernetes.io/zone": "a", "kubernetes.io/arch": "arm64",
        "karpenter.sh/capacity-type": "spot", "node.kubernetes.io/instance-type": "m"}}});
    let node = Arc::new(NodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap());
    let written = |pod: &PodFacts, node: Option<&Arc<NodeFacts>>| {
        let labels = state(pod, node);
        labels.map(|(label, value)| format!("{label}={value}")).join(" ")
    };
    assert_eq!(
        written(&pod("u", "Pending", &[]), None),
        "name=p namespace=n owner= node= scheduled=false nodepool= zone= arch= capacity_type= instance_type= \
         phase=Pending ready=false managed=false"
    );
    let spec = json!({"containers": [], "nodeName": "one"});
    let running = pod_with("u", "Running", &[("PodScheduled", 1), ("Ready", 2)], &spec);
    assert_eq!(
        written(&running, Some(&node)),
        "name=p namespace=n owner= node=one scheduled=true nodepool=web zone=a arch=arm64 capacity_type=spot \
         instance_type=m phase=Running ready=true managed=true"
    );
}

/// Pods that were not seen waiting, that end, that go, or that are another of the same name are not counted.
#[test]
fn only_waits_that_were_seen_are_counted() {
    let ready = [("PodScheduled", 20), ("Ready", 30)];
    let mut waits = Waits::default();
    assert_eq!(waits.note(&key(), Some(&pod("u", "Running", &ready)), at(31)), []);
    waits.note(&key(), Some(&pod("u", "Pending", &[])), at(1));
    assert_eq!(waits.note(&key(), Some(&pod("v", "Running", &ready)), at(31)), []);
    waits.note(&key(), Some(&pod("v", "Pending", &[])), at(1));
    waits.note(&key(), Some(&pod("v", "Failed", &[("PodScheduled", 5)])), at(31));
    assert!(waits.0.is_empty());
    waits.note(&key(), Some(&pod("v", "Pending", &[])), at(1));
    waits.note(&key(), None, at(2));
    assert!(waits.0.is_empty());
}

/// A pod that lost its place is no longer told of as planned.
#[test]
fn a_plan_without_a_place_takes_the_earlier_one_back() {
    let mut waits = Waits::default();
    waits.note(&key(), Some(&pod("u", "Pending", &[])), at(0));
    waits.decide([&key()], [], at(1));
    waits.decide([], [&key()], at(2));
    assert!(!told(&waits, 3).iter().any(|line| line.starts_with("provisioning")));
}
