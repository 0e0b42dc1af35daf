//! Buffers and what they refer to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::lower::{Headroom, PodTemplateFacts, WorkloadFacts, WorkloadKind};
use jiff::Timestamp;
use model::{BufferKey, ClaimName, NodeName, PlaceId, Purpose, Vocabulary};
use serde_json::{Value, json};
use state::{Cluster, Key, Kind, ManagedKind, Object, Wake};

fn cluster() -> Cluster {
    let managed = ManagedKind { group: "g".to_owned(), kind: "K".to_owned() };
    Cluster::new(Arc::new(Vocabulary::core()), managed).with_buffers()
}

fn buffer(namespace: &str, name: &str, spec: &Value, version: u64) -> Object {
    let buffer = json!({"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata":
        {"name": name, "namespace": namespace, "uid": format!("{namespace}-{name}"), "resourceVersion": version.to_string()},
        "spec": spec});
    Object::Buffer(Arc::new(serde_json::from_value(buffer).unwrap()))
}

fn template(namespace: &str, cpu: &str) -> Object {
    let found = json!({"metadata": {"name": "small", "namespace": namespace, "generation": 1}, "template": pods(cpu)});
    let found = PodTemplateFacts::lower(&serde_json::from_value(found).unwrap(), &Vocabulary::core());
    Object::PodTemplate(Arc::new(found.unwrap()))
}

fn deployment(replicas: i32, ready: i32) -> Object {
    let found = json!({"metadata": {"name": "web", "namespace": "shop"}, "status": {"readyReplicas": ready},
        "spec": {"replicas": replicas, "selector": {}, "template": pods("1")}});
    let found = WorkloadFacts::deployment(&serde_json::from_value(found).unwrap(), &Vocabulary::core());
    Object::Workload(Arc::new(found.unwrap()))
}

fn pods(cpu: &str) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
}

fn woken(wakes: &[Wake]) -> String {
    let name = |wake: &Wake| match wake {
        Wake::Buffer(key) => key.to_string(),
        other => panic!("{other:?}"),
    };
    wakes.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// BUF-10, BUF-20: a buffer is looked at when it changes, and when what it refers to comes, changes or goes. A workload
/// that only reports its progress wakes nobody, and neither does a namesake elsewhere.
#[test]
fn buffers_follow_what_they_refer_to() {
    let mut cluster = cluster();
    let (of_template, of_workload) =
        (json!({"podTemplateRef": {"name": "small"}}), json!({"scalableRef": {"kind": "Deployment", "name": "web"}}));
    let steps = [
        (buffer("shop", "fixed", &of_template, 1), "shop/fixed"),
        (buffer("shop", "scaled", &of_workload, 1), "shop/scaled"),
        (buffer("shop", "scaled", &of_workload, 2), "shop/scaled"),
        (buffer("shop", "scaled", &of_workload, 1), ""),
        (template("shop", "1"), "shop/fixed"),
        (template("shop", "1"), ""),
        (template("shop", "2"), "shop/fixed"),
        (template("elsewhere", "1"), ""),
        (deployment(1, 0), "shop/scaled"),
        (deployment(1, 1), ""),
        (deployment(2, 1), "shop/scaled"),
    ];
    for (step, expected) in steps {
        assert_eq!(woken(&cluster.apply(step.clone())), expected, "{step:?}");
    }
    let gone = Key::Workload(WorkloadKind::Deployment, "shop".into(), "web".into());
    assert_eq!(woken(&cluster.remove(&gone)), "shop/scaled");
    assert_eq!(woken(&cluster.remove(&Key::PodTemplate("shop".into(), "small".into()))), "shop/fixed");
    assert_eq!(woken(&cluster.finish_list(Kind::Buffer, &BTreeSet::new())), "shop/fixed shop/scaled");
    assert_eq!(cluster.buffers().count(), 0);
}

/// Room is planned for after it was said to be wanted, and until its buffer is gone.
#[test]
fn room_is_planned_like_pods() {
    let mut cluster = cluster();
    let key = BufferKey::new("shop", "fixed");
    cluster.apply(buffer("shop", "fixed", &json!({"podTemplateRef": {"name": "small"}}), 1));
    let Object::PodTemplate(found) = template("shop", "1") else { panic!("a template") };
    let headroom = Headroom { buffer: key.clone(), template: Arc::clone(&found.template), count: 2 };
    let planned = |cluster: &mut Cluster| {
        let snapshot = cluster.snapshot(Timestamp::UNIX_EPOCH);
        assert!(snapshot.pending.iter().all(|pod| pod.purpose == Purpose::Headroom));
        snapshot.pending.len()
    };
    assert_eq!(planned(&mut cluster), 0);
    assert!(cluster.set_headroom(&key, Some(headroom.clone())));
    assert!(!cluster.set_headroom(&key, Some(headroom)), "no news");
    assert_eq!(planned(&mut cluster), 2);
    cluster.remove(&Key::Buffer(key));
    assert_eq!(planned(&mut cluster), 0);
}

/// A place that held room and does not any more may be looked at by those who take empty nodes away.
#[test]
fn places_know_whether_they_hold_room() {
    let mut cluster = cluster();
    let (claim, node) = (ClaimName::new("c"), NodeName::new("n"));
    assert!(!cluster.holds_headroom(&claim, &node));
    assert!(!cluster.set_held(BTreeMap::from([(PlaceId::Claim(claim.clone()), 1)])));
    assert!(cluster.holds_headroom(&claim, &node));
    assert!(!cluster.holds_headroom(&ClaimName::new("other"), &NodeName::new("other")));
    let joined = BTreeMap::from([(PlaceId::Node(node.clone()), 1)]);
    assert!(cluster.set_held(joined.clone()), "the claim is free of it");
    assert!(cluster.holds_headroom(&claim, &node));
    assert!(!cluster.set_held(joined));
}
