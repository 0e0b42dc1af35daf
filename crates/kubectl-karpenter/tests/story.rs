//! A story told from hand-written changes and plans: what is seen is what is told, and nothing else.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use expect_test::{Expect, expect};
use kubectl_karpenter::paint::Paint;
use kubectl_karpenter::story::Teller;
use kubectl_karpenter::{json, text};
use model::{
    CapacityType, InstanceType, Nomination, Offering, PlaceId, Plan, PlannedClaim, PodClass, PodKey, Pool, PoolName,
    PoolRefusal, Price, Refusal, Requirement, Requirements, ResourceName, Resources, Revision, Snapshot, Text,
    TypeName, Unplaced, Vocabulary, labels,
};
use serde_json::{Value, json};
use sim::{Change, ObjectKey, StoreEvent};

/// A teller with a pen: every change and plan is a line here.
#[derive(Default)]
struct Scene {
    teller: Teller,
}

fn at(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

impl Scene {
    fn change(&mut self, seconds: f64, change: Change, (group, resource): (&str, &str), object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let key = ObjectKey::new(group, resource, text("/metadata/namespace"), text("/metadata/name").unwrap());
        let object = Bytes::from(object.to_string());
        self.teller.change(at(seconds), &StoreEvent { revision: 1, change, key, object });
    }

    fn pod(&mut self, seconds: f64, change: Change, name: &str, node: Option<&str>) {
        let scheduled = if node.is_some() { "True" } else { "False" };
        let pod = json!({
            "kind": "Pod",
            "metadata": {
                "namespace": "default", "name": name, "labels": {"pod-template-hash": "5d4f"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d4f", "controller": true}],
            },
            "spec": {"nodeName": node},
            "status": {"conditions": [{"type": "PodScheduled", "status": scheduled, "reason": "Unschedulable"}]},
        });
        self.change(seconds, change, ("", "pods"), &pod);
    }

    fn claim(&mut self, seconds: f64, change: Change, name: &str, conditions: &[&str]) {
        let conditions: Vec<Value> = conditions.iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
        let is_bought = !conditions.is_empty();
        let is_going = conditions.len() > 3;
        let claim = json!({
            "kind": "NodeClaim",
            "metadata": {
                "name": name,
                "labels": {
                    "karpenter.sh/nodepool": "default",
                    "node.kubernetes.io/instance-type": is_bought.then_some("m.large"),
                    "topology.kubernetes.io/zone": is_bought.then_some("b"),
                    "karpenter.sh/capacity-type": is_bought.then_some("spot"),
                },
                "deletionTimestamp": is_going.then_some("2026-01-01T00:10:00Z"),
            },
            "spec": {"requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m.large", "m.xlarge"]},
            ]},
            "status": {"conditions": conditions, "nodeName": is_bought.then(|| format!("node-of-{name}"))},
        });
        self.change(seconds, change, ("karpenter.sh", "nodeclaims"), &claim);
    }

    fn plan(&mut self, seconds: f64, plan: &Plan) {
        self.teller.plan(at(seconds), &snapshot(), plan);
    }

    fn check(mut self, end: f64, text_expected: &Expect, json_expected: &Expect) {
        let (lines, summary) = (self.teller.finish(), self.teller.summary(at(end)));
        let told: Vec<String> = lines.iter().map(|line| text::line(line, Paint::Never)).collect();
        text_expected.assert_eq(&(told.join("\n") + "\n" + &text::summary(&summary, Paint::Never) + "\n"));
        let told: Vec<String> = lines.iter().map(json::line).collect();
        json_expected.assert_eq(&(told.join("\n") + "\n" + &json::summary(&summary) + "\n"));
    }
}

fn kind(name: &str, price: f64) -> Arc<InstanceType> {
    let offering = |zone: &str, capacity: CapacityType, price: f64| Offering {
        requirements: Requirements::none()
            .with(labels::ZONE, Requirement::is(Text::from(zone)))
            .with(labels::CAPACITY_TYPE, Requirement::is(Text::from(capacity.as_str()))),
        price: Price::from_dollars(price),
        available: true,
        reservation_capacity: None,
    };
    let offerings = vec![
        offering("a", CapacityType::OnDemand, price),
        offering("a", CapacityType::Spot, price * 0.4),
        offering("b", CapacityType::Spot, price * 0.3),
    ];
    let capacity = Resources::none().with(ResourceName::cpu(), 4000);
    InstanceType::new(TypeName::new(name), Requirements::none(), capacity, Resources::none(), offerings)
}

fn snapshot() -> Snapshot {
    let pool = Pool {
        name: PoolName::new("default"),
        weight: 0,
        requirements: Requirements::none(),
        taints: Vec::new(),
        limits: Resources::none(),
        in_use: Resources::none(),
        types: [kind("m.large", 0.1), kind("m.xlarge", 0.2), kind("m.huge", 9.0)].into(),
    };
    Snapshot {
        revision: Revision(1),
        vocabulary: Arc::new(Vocabulary::core()),
        pools: vec![Arc::new(pool)],
        places: Vec::new(),
        pending: Vec::new(),
        seats: std::collections::BTreeMap::new(),
        bound: model::BoundPods::default(),
        namespaces: Arc::default(),
        daemons: Vec::new(),
    }
}

fn pods(range: std::ops::Range<usize>) -> Vec<PodKey> {
    range.map(|index| PodKey::new("default", format!("web-{index}"))).collect()
}

fn planned(pods: Vec<PodKey>) -> PlannedClaim {
    PlannedClaim {
        pool: PoolName::new("default"),
        requirements: Arc::new(Requirements::none()),
        types: [TypeName::new("m.large"), TypeName::new("m.xlarge")].into(),
        requests: Resources::none().with(ResourceName::cpu(), 2000),
        price: Price::from_dollars(0.03),
        min_values_relaxed: false,
        pods,
    }
}

fn deployment(replicas: u64) -> Value {
    json!({
        "kind": "Deployment",
        "metadata": {"namespace": "default", "name": "web", "generation": replicas},
        "spec": {"replicas": replicas},
    })
}

#[test]
fn pods_get_nodes_and_the_nodes_go() {
    let mut scene = Scene::default();
    scene.change(0.0, Change::Added, ("apps", "deployments"), &deployment(0));
    scene.change(60.0, Change::Modified, ("apps", "deployments"), &deployment(4));
    for index in 0..4 {
        scene.pod(60.1 + index as f64 / 100.0, Change::Added, &format!("web-{index}"), None);
    }
    scene.plan(62.0, &Plan { claims: vec![planned(pods(0..2)), planned(pods(2..4))], ..Plan::default() });
    scene.claim(62.2, Change::Added, "default-x", &[]);
    scene.claim(62.3, Change::Added, "default-y", &[]);
    // The next plan says the same of the same pods: no news.
    let place = PlaceId::Claim(model::ClaimName::new("default-x"));
    scene.plan(63.0, &Plan { nominations: vec![Nomination { place, pods: pods(0..2) }], ..Plan::default() });
    for (name, later) in [("default-x", 0.0), ("default-y", 0.4)] {
        scene.claim(64.0 + later, Change::Modified, name, &["Launched"]);
        scene.claim(90.0 + later * 10.0, Change::Modified, name, &["Launched", "Registered"]);
        scene.claim(100.0 + later, Change::Modified, name, &["Launched", "Registered", "Initialized"]);
    }
    for index in 0..4 {
        let node = if index < 2 { "node-of-default-x" } else { "node-of-default-y" };
        scene.pod(101.0, Change::Modified, &format!("web-{index}"), Some(node));
    }
    for index in 0..4 {
        scene.pod(600.0, Change::Deleted, &format!("web-{index}"), Some("any"));
    }
    for name in ["default-x", "default-y"] {
        let going = ["Launched", "Registered", "Initialized", "InstanceTerminating"];
        scene.claim(664.0, Change::Modified, name, &going);
        scene.claim(670.0, Change::Deleted, name, &going);
    }
    scene.check(3600.0, &expect![[r#"
        00:00:00  applied       Deployment web
        00:01:00  scaled        Deployment web from 0 to 4
        00:01:00  pending       4 pods (web) fit no node
        00:01:02  decided       2 nodes of nodepool default for 4 pods (web): 2 cpu each
                                m.large spot in b at $0.0300/h, the cheapest of 2 listed types
                                runner-up m.xlarge spot in b at $0.0600/h; on-demand from $0.1000/h (m.large)
        00:01:04  launched      2 nodeclaims as m.large spot in b at $0.0300/h each
                                default-x, default-y
        00:01:30  registered    default-x as node-of-default-x, 26s after launch
        00:01:34  registered    default-y as node-of-default-y, 29s after launch
        00:01:40  initialized   2 nodes, 36s after launch at most
        00:01:41  bound         4 pods (web) to 2 nodes after waiting 40s at most
        00:10:00  emptied       2 nodes have no pods left
                                node-of-default-x, node-of-default-y
        00:11:04  removing      2 nodes because they are empty
                                node-of-default-x, node-of-default-y
        00:11:10  removed       2 nodes after 19m59s in all for $0.0100
                                node-of-default-x, node-of-default-y

        Summary after 01:00:00 of virtual time
          pods    4 got a node, 0 pending
          waited  p50 40.9s, p99 40.9s from creation to binding
          nodes   2 launched, 0 left, 0.33 node-hours
          cost    $0.0100
    "#]], &expect![[r#"
        {"event":"applied","at":0.0,"objects":[{"kind":"Deployment","namespace":"default","name":"web"}]}
        {"event":"scaled","at":60.0,"kind":"Deployment","namespace":"default","name":"web","from":0,"to":4}
        {"event":"pending","at":60.1,"workload":"web","pods":["web-0","web-1","web-2","web-3"]}
        {"event":"decided","at":62.0,"pool":"default","nodes":2,"pods":{"web":4},"requests":{"cpu":"2"},"types":2,"instanceType":"m.large","zone":"b","capacityType":"spot","pricePerHourUsd":0.03,"runnerUp":{"instanceType":"m.xlarge","zone":"b","capacityType":"spot","pricePerHourUsd":0.06},"otherCapacityTypes":[{"instanceType":"m.large","zone":"a","capacityType":"on-demand","pricePerHourUsd":0.1}]}
        {"event":"launched","at":64.0,"pool":"default","claims":["default-x","default-y"],"instanceType":"m.large","zone":"b","capacityType":"spot","pricePerHourUsd":0.03,"asDecided":true}
        {"event":"registered","at":90.0,"pool":"default","machines":[{"claim":"default-x","node":"node-of-default-x"}],"afterSeconds":26.0}
        {"event":"registered","at":94.0,"pool":"default","machines":[{"claim":"default-y","node":"node-of-default-y"}],"afterSeconds":29.6}
        {"event":"initialized","at":100.0,"pool":"default","machines":[{"claim":"default-x","node":"node-of-default-x"},{"claim":"default-y","node":"node-of-default-y"}],"afterSeconds":36.0}
        {"event":"bound","at":101.0,"workload":"web","pods":["web-0","web-1","web-2","web-3"],"nodes":["node-of-default-x","node-of-default-y"],"waitedSeconds":40.9}
        {"event":"emptied","at":600.0,"pool":"default","nodes":["node-of-default-x","node-of-default-y"]}
        {"event":"removing","at":664.0,"pool":"default","machines":[{"claim":"default-x","node":"node-of-default-x"},{"claim":"default-y","node":"node-of-default-y"}],"pods":0,"reason":"empty"}
        {"event":"removed","at":670.0,"pool":"default","machines":[{"claim":"default-x","node":"node-of-default-x"},{"claim":"default-y","node":"node-of-default-y"}],"nodeHours":0.3332,"costUsd":0.009997}
        {"event":"summary","pendingPods":0,"nodes":0,"nodeHours":0.3332,"costUsd":0.009997,"podWaitSeconds":{"p50":40.88,"p99":40.9}}
    "#]]);
}

#[test]
fn refusals_are_told_until_they_change() {
    let mut scene = Scene::default();
    let refusal = |mismatch: &str| {
        let key = Text::from(mismatch);
        let refusal = Refusal::Incompatible { mismatch: model::Mismatch::Undefined { key, meant: None } };
        PoolRefusal { pool: PoolName::new("default"), refusal }
    };
    let class = Arc::new(PodClass::plain(Resources::none()));
    let plan = |refusal: PoolRefusal| Plan {
        unplaced: vec![Unplaced {
            class: Arc::clone(&class),
            pods: pods(0..2),
            refusals: vec![refusal],
            places: Vec::new(),
        }],
        ..Plan::default()
    };
    scene.pod(1.0, Change::Added, "web-0", None);
    scene.pod(1.1, Change::Added, "web-1", None);
    scene.plan(3.0, &plan(refusal("team")));
    scene.plan(13.0, &plan(refusal("team")));
    scene.plan(23.0, &plan(refusal("zone")));
    scene.check(60.0, &expect![[r#"
        00:00:01  pending       2 pods (web) fit no node
        00:00:03  refused       2 pods (web) get no node
                                nodepool "default": incompatible requirements, label "team" does not have known values
        00:00:23  refused       2 pods (web) get no node
                                nodepool "default": incompatible requirements, label "zone" does not have known values

        Summary after 00:01:00 of virtual time
          pods    0 got a node, 2 pending
          waited  p50 58.9s, p99 59.0s from creation to binding
          nodes   0 launched, 0 left, 0.00 node-hours
          cost    $0.0000
    "#]], &expect![[r#"
        {"event":"pending","at":1.0,"workload":"web","pods":["web-0","web-1"]}
        {"event":"refused","at":3.0,"workload":"web","pods":["web-0","web-1"],"reasons":["nodepool \"default\": incompatible requirements, label \"team\" does not have known values"]}
        {"event":"refused","at":23.0,"workload":"web","pods":["web-0","web-1"],"reasons":["nodepool \"default\": incompatible requirements, label \"zone\" does not have known values"]}
        {"event":"summary","pendingPods":2,"nodes":0,"nodeHours":0.0,"costUsd":0.0,"podWaitSeconds":{"p50":58.9,"p99":59.0}}
    "#]]);
}
