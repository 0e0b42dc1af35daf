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
        text_expected.assert_eq(&(told.join("\n") + "\n" + &text::summary(&summary, Paint::Never)));
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
        daemons: Vec::new(),
    }
}

fn pods(range: std::ops::Range<usize>) -> Vec<PodKey> {
    range.map(|index| PodKey::new("default", format!("web-{index}"))).collect()
}

fn planned(pods: Vec<PodKey>) -> PlannedClaim {
    PlannedClaim {
        pool: PoolName::new("default"),
        requirements: Requirements::none(),
        types: vec![TypeName::new("m.large"), TypeName::new("m.xlarge")],
        requests: Resources::none().with(ResourceName::cpu(), 2000),
        price: Price::from_dollars(0.03),
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
    scene.check(3600.0, &expect![[r#""#]], &expect![[r#""#]]);
}

#[test]
fn refusals_are_told_until_they_change() {
    let mut scene = Scene::default();
    let refusal = |mismatch: &str| {
        let key = Text::from(mismatch);
        let refusal = Refusal::Incompatible { mismatch: model::Mismatch::Undefined { key, meant: None } };
        PoolRefusal { pool: PoolName::new("default"), refusal }
    };
    let class = Arc::new(PodClass {
        priority: 0,
        requests: Resources::none(),
        alternatives: vec![Requirements::none()],
        preferences: Vec::new(),
        tolerations: Vec::new(),
        unplanned_rules: std::collections::BTreeSet::new(),
    });
    let plan = |refusal: PoolRefusal| Plan {
        unplaced: vec![Unplaced { class: Arc::clone(&class), pods: pods(0..2), refusals: vec![refusal] }],
        ..Plan::default()
    };
    scene.pod(1.0, Change::Added, "web-0", None);
    scene.pod(1.1, Change::Added, "web-1", None);
    scene.plan(3.0, &plan(refusal("team")));
    scene.plan(13.0, &plan(refusal("team")));
    scene.plan(23.0, &plan(refusal("zone")));
    scene.check(60.0, &expect![[r#""#]], &expect![[r#""#]]);
}
