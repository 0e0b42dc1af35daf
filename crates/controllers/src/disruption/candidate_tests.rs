//! Every reason, alone and in order.

use model::{ClaimName, InstanceType, PlaceId, Requirements, Resources, TypeName, Vocabulary};
use serde_json::{Value, json};
use state::{ManagedKind, Object};

use super::*;

const NOW: i64 = 1_000;

/// Claim `c` with node `n` of pool `p`, which is all that a candidate needs, changed by words:
///
/// `unjoined`, `foreign`, `going`, `unregistered`, `uninitialized`, `nominated`, `protected`, `unpooled`, `poolless`,
/// `unsold`; pods `pod:<words>` and budgets `pdb:<name>/<allowed>[/always]` that select the pods labelled `app=<name>`.
/// Words of a pod, separated by commas: `daemon`, `static`, `hold=<annotation>`, `started=<second>`, `done`, `going`,
/// `unready`, `tolerant`, and any number of names of budgets that select it.
fn cluster(words: &str) -> Cluster {
    let managed = ManagedKind { group: "g".to_owned(), kind: "K".to_owned() };
    let mut cluster = Cluster::new(Arc::new(Vocabulary::core()), managed);
    let has = |word: &str| words.split(' ').any(|found| found == word);
    let class = json!({"group": "g", "kind": "K", "name": "default"});
    let gone = has("going").then_some("2026-01-01T00:00:00Z");
    if !has("poolless") {
        let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
            "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": class}}}});
        cluster.apply(Object::Pool(Arc::new(serde_json::from_value(pool).unwrap())));
    }
    if !has("unsold") {
        let none = Resources::none;
        let kind = InstanceType::new(TypeName::new("m"), Requirements::none(), none(), none(), Vec::new());
        cluster.set_types(PoolName::new("p"), Arc::from([kind]));
    }
    if !has("foreign") {
        let claim = without_nulls(json!({"name": "c", "uid": "c", "deletionTimestamp": gone}));
        let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": claim,
            "spec": {"requirements": [], "nodeClassRef": class}, "status": {"providerID": "kwok://n"}});
        cluster.apply(Object::Claim(Arc::new(serde_json::from_value(claim).unwrap())));
    }
    if !has("unjoined") {
        let stage = |word: &str| (!has(word)).then_some("true");
        let labels = without_nulls(json!({
            "karpenter.sh/registered": stage("unregistered"), "karpenter.sh/initialized": stage("uninitialized"),
            "karpenter.sh/nodepool": (!has("unpooled")).then_some("p")}));
        let annotations = without_nulls(json!({"karpenter.sh/do-not-disrupt": has("protected").then_some("true")}));
        let node = json!({"metadata": {"name": "n", "uid": "n", "labels": labels, "annotations": annotations},
            "spec": {"providerID": "kwok://n"}});
        let node = NodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap();
        cluster.apply(Object::Node(Arc::new(node)));
    }
    if has("nominated") {
        cluster.nominate(PlaceId::Claim(ClaimName::new("c")), Timestamp::MIN..Timestamp::from_second(NOW + 1).unwrap());
    }
    for (number, word) in words.split(' ').enumerate() {
        match word.split_once(':') {
            Some(("pod", words)) => drop(cluster.apply(pod(number, words))),
            Some(("pdb", words)) => drop(cluster.apply(budget(words))),
            _ => {}
        }
    }
    cluster
}

fn without_nulls(mut object: Value) -> Value {
    object.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    object
}

fn pod(number: usize, words: &str) -> Object {
    let mut pod = json!({
        "metadata": {"name": format!("pod-{number}"), "namespace": "shop", "uid": format!("{number}"),
            "annotations": {}, "labels": {}},
        "spec": {"nodeName": "n", "containers": []},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let owner = |version: &str, kind: &str| json!([{"apiVersion": version, "kind": kind, "name": "o", "uid": "o"}]);
    for word in words.split(',') {
        match word.split_once('=').unwrap_or((word, "")) {
            ("daemon", _) => pod["metadata"]["ownerReferences"] = owner("apps/v1", "DaemonSet"),
            ("static", _) => pod["metadata"]["ownerReferences"] = owner("v1", "Node"),
            ("hold", value) => pod["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = json!(value),
            ("started", second) => {
                let started = Timestamp::from_second(second.parse().unwrap()).unwrap();
                pod["status"]["startTime"] = json!(started.to_string());
            }
            ("done", _) => pod["status"]["phase"] = json!("Succeeded"),
            ("going", _) => pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            ("unready", _) => pod["status"]["conditions"][0]["status"] = json!("False"),
            ("tolerant", _) => pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]),
            (budget, _) => pod["metadata"]["labels"][budget] = json!("yes"),
        }
    }
    let pod = PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core());
    Object::Pod(Arc::new(pod.unwrap()))
}

fn budget(words: &str) -> Object {
    let words: Vec<&str> = words.split('/').collect();
    let policy = if words.contains(&"always") { "AlwaysAllow" } else { "IfHealthyBudget" };
    let budget = json!({"metadata": {"name": words[0], "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {words[0]: "yes"}}, "unhealthyPodEvictionPolicy": policy},
        "status": {"disruptionsAllowed": words[1].parse::<i32>().unwrap(), "currentHealthy": 0, "desiredHealthy": 0,
            "expectedPods": 0}});
    Object::Budget(Arc::new(BudgetFacts::lower(&serde_json::from_value(budget).unwrap()).unwrap()))
}

fn judge(words: &str) -> String {
    let cluster = cluster(words);
    let machine = cluster.tracked().next().unwrap();
    let judged = candidate(&cluster, &machine, Timestamp::from_second(NOW).unwrap());
    judged.map_or_else(|blocked| blocked.to_string(), |_| "may go".to_owned())
}

/// CAND-01, CAND-11: what speaks against a machine itself, reboots aside, which nobody asks for yet. Each line has all
/// the reasons that come later as well.
#[test]
fn machines_are_judged_in_order() {
    let later = ["nominated", "protected", "unpooled poolless", "pod:hold=true"];
    let after = |count: usize| later[count..].join(" ");
    let table = [
        (format!("foreign going {}", after(0)), "node isn't managed by karpenter"),
        (format!("unjoined going {}", after(0)), "nodeclaim does not have an associated node"),
        (format!("going unregistered uninitialized {}", after(0)), "node is deleting or marked for deletion"),
        (format!("unregistered uninitialized {}", after(0)), "node isn't initialized nor registered"),
        (format!("uninitialized {}", after(0)), "node isn't initialized"),
        (after(0), "node is nominated for a pending pod"),
        (after(1), "disruption is blocked through the \"karpenter.sh/do-not-disrupt\" annotation"),
        (after(2), "node doesn't have required label (label=karpenter.sh/nodepool)"),
        (format!("poolless {}", after(3)), "NodePool not found (NodePool=p)"),
        (format!("unsold {}", after(3)), "NodePool not found (NodePool=p)"),
        (after(3), "pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=shop/pod-0)"),
        (String::new(), "may go"),
    ];
    for (words, expected) in table {
        assert_eq!(judge(&words), expected, "{words}");
    }
}

/// CAND-03, CAND-04: pods that ask to be left alone, daemons and static pods among them, for as long as they asked.
#[test]
fn pods_can_ask_to_be_left_alone() {
    let held = "pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=shop/pod-0)";
    let table = [
        ("pod:hold=true", held),
        ("pod:hold=true,daemon", held),
        ("pod:hold=true,static", held),
        ("pod:hold=true,tolerant", held),
        ("pod:hold=true,done", "may go"),
        ("pod:hold=true,going", "may go"),
        ("pod:hold=10m,started=500", held),
        ("pod:hold=10m,started=400", "may go"),
        ("pod:hold=10m", held),
        ("pod:hold=false", "may go"),
        ("pod:hold=0s,started=999", "may go"),
        ("pod:hold=soon,started=999", "may go"),
    ];
    for (words, expected) in table {
        assert_eq!(judge(words), expected, "{words}");
    }
}

/// CAND-07, CAND-08, CAND-09, CAND-10: budgets of pods that would be evicted.
#[test]
fn budgets_block() {
    let blocked = "pdb prevents pod evictions (PodDisruptionBudget=[shop/web])";
    let several = "eviction does not support multiple PDBs (PodDisruptionBudget(s)=[shop/all shop/web])";
    let table = [
        ("pod:web pdb:web/0", blocked),
        ("pod:web pdb:web/1", "may go"),
        ("pod:other pdb:web/0", "may go"),
        ("pod:web,all pdb:web/1 pdb:all/1", several),
        ("pod:web,all,unready pdb:web/1/always pdb:all/1/always", several),
        ("pod:web,unready pdb:web/0/always", "may go"),
        ("pod:web pdb:web/0/always", blocked),
        ("pod:web,unready pdb:web/0", blocked),
        ("pod:web,daemon pdb:web/0", blocked),
        ("pod:web,static pdb:web/0", "may go"),
        ("pod:web,tolerant pdb:web/0", "may go"),
        ("pod:web,done pdb:web/0", "may go"),
        ("pod:web,going pdb:web/0", "may go"),
        ("pod:web pod:hold=true pdb:web/0", "pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=shop/pod-1)"),
    ];
    for (words, expected) in table {
        assert_eq!(judge(words), expected, "{words}");
    }
}

#[test]
fn events_have_sentences() {
    assert_eq!(Blocked::Uninitialized.sentence(), "Node isn't initialized");
    assert_eq!(Blocked::NoPool { pool: PoolName::new("p") }.sentence(), "NodePool not found (NodePool=p)");
}
