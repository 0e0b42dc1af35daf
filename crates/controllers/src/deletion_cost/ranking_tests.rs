//! Nodes in, costs of their pods out.

use model::{Offering, Price, Requirement, Requirements, Resources, TypeName, Vocabulary};
use serde_json::{Value, json};
use state::{ManagedKind, Object};

use super::*;

/// Reads lines such as
///
/// ```text
/// pool p budget=1 budget=0:Drifted after=Never static
///   (a budget may be for one reason only; it is 100 % and `consolidateAfter` 0s unless said otherwise)
/// node a p cost=4 going tainted drifted held unsold plain  (pods follow: name, then `/` and what makes them)
///   pod/Job pod/ReplicaSet pod/StatefulSet pod/bare pod/system pod/owned pod/held  pod=<annotation>
/// ```
///
/// and writes, for each node in the order of the round, what its pods are to say.
fn check(text: &str, expected: &[&str]) {
    let cluster = cluster(text);
    let now = Timestamp::from_second(1_000).unwrap();
    let round = round(&cluster, &rank(&cluster, now));
    let told = |write: &Write| {
        let wanted = match write.wanted {
            Wanted::Cost(cost) => cost.to_string(),
            Wanted::Nothing => "cleared".to_owned(),
        };
        format!("{} {wanted}", write.pod.name)
    };
    assert_eq!(round.writes.iter().map(told).collect::<Vec<_>>(), expected, "{text}");
}

fn cluster(text: &str) -> Cluster {
    let managed = ManagedKind { group: "g".to_owned(), kind: "K".to_owned() };
    let mut cluster = Cluster::new(Arc::new(Vocabulary::core()), managed);
    let mut types: BTreeMap<PoolName, Vec<Arc<InstanceType>>> = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key));
        let has = |word: &str| words.contains(&word);
        if words[0] == "pool" {
            let budgets = words.iter().filter_map(|word| word.strip_prefix("budget=")).map(budget).collect();
            let pool = pool(words[1], budgets, value("after="), has("static"));
            cluster.apply(Object::Pool(Arc::new(serde_json::from_value(pool).unwrap())));
            continue;
        }
        let (name, pool) = (words[1], PoolName::new(words[2]));
        let sold = types.entry(pool.clone()).or_default();
        if !has("unsold") {
            sold.push(kind(name, value("cost=").map_or(1.0, |cost| cost.parse().unwrap())));
        }
        cluster.set_types(pool, sold.clone().into());
        machine(name, words[2], &has).into_iter().for_each(|object| drop(cluster.apply(object)));
        for word in words.iter().filter(|word| word.contains('/')) {
            cluster.apply(pod(name, word));
        }
    }
    cluster
}

fn budget(text: &str) -> Value {
    match text.split_once(':') {
        Some((nodes, reason)) => json!({"nodes": nodes, "reasons": [reason]}),
        None => json!({"nodes": text}),
    }
}

fn pool(name: &str, budgets: Vec<Value>, after: Option<&str>, is_static: bool) -> Value {
    let budgets = if budgets.is_empty() { vec![budget("100%")] } else { budgets };
    let class = json!({"group": "g", "kind": "K", "name": "default"});
    let mut spec = json!({
        "disruption": {"consolidateAfter": after.unwrap_or("0s"), "budgets": budgets},
        "template": {"spec": {"requirements": [], "nodeClassRef": class}}});
    if is_static {
        spec["replicas"] = json!(1);
    }
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec})
}

fn kind(node: &str, dollars: f64) -> Arc<InstanceType> {
    let requirements = Requirements::none()
        .with(labels::ZONE, Requirement::is("a"))
        .with(labels::CAPACITY_TYPE, Requirement::is("spot"));
    let price = Price::from_dollars(dollars);
    let offering = Offering { requirements, price, available: true, reservation_capacity: None };
    let (name, none) = (TypeName::new(format!("type-{node}")), Resources::none);
    InstanceType::new(name, Requirements::none(), none(), none(), vec![offering])
}

fn machine(name: &str, pool: &str, has: &impl Fn(&str) -> bool) -> Vec<Object> {
    let time = "2026-01-01T00:00:00Z";
    let class = json!({"group": "g", "kind": "K", "name": "default"});
    let drifted = json!([{"type": "Drifted", "status": if has("drifted") { "True" } else { "False" },
        "reason": "Drifted", "message": "", "lastTransitionTime": time}]);
    let provider = format!("kwok://{name}");
    let mut claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "uid": name, "labels": {"karpenter.sh/nodepool": pool}},
        "spec": {"requirements": [], "nodeClassRef": class}, "status": {"providerID": provider, "conditions": drifted}});
    if has("going") {
        claim["metadata"]["deletionTimestamp"] = json!(time);
    }
    let mut node = json!({"metadata": {"name": name, "uid": name, "annotations": {}, "labels": {
            "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "karpenter.sh/nodepool": pool,
            "node.kubernetes.io/instance-type": format!("type-{name}"), "topology.kubernetes.io/zone": "a",
            "karpenter.sh/capacity-type": "spot"}},
        "spec": {"providerID": provider}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    if has("held") {
        node["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = json!("true");
    }
    if has("tainted") {
        node["spec"]["taints"] = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
    }
    let node = NodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap();
    vec![Object::Claim(Arc::new(serde_json::from_value(claim).unwrap())), Object::Node(Arc::new(node))]
}

fn pod(node: &str, word: &str) -> Object {
    let (word, said) = word.split_once('=').map_or((word, None), |(word, said)| (word, Some(said)));
    let (name, maker) = word.split_once('/').unwrap();
    let owner = |version: &str, kind: &str, controls: bool| json!([{"apiVersion": version, "kind": kind, "name": "o", "uid": "o", "controller": controls}]);
    let (namespace, owners) = match maker {
        "bare" => ("shop", json!([])),
        "system" => ("kube-system", json!([])),
        "owned" => ("shop", owner("apps/v1", "ReplicaSet", false)),
        "Job" => ("shop", owner("batch/v1", "Job", true)),
        "held" => ("shop", owner("apps/v1", "ReplicaSet", true)),
        kind => ("shop", owner("apps/v1", kind, true)),
    };
    let mut pod = json!({"metadata": {"name": name, "namespace": namespace, "uid": name, "ownerReferences": owners,
        "annotations": {}}, "spec": {"nodeName": node, "containers": []}, "status": {"phase": "Running"}});
    if maker == "held" {
        pod["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = json!("true");
    }
    if let Some(said) = said {
        pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] = json!(said);
    }
    Object::Pod(Arc::new(PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core()).unwrap()))
}

/// PDC-01: nodes that are going, drifted nodes, the rest by savings, and those that are cleared.
#[test]
fn nodes_are_ranked_by_group_then_savings() {
    check(
        "pool p
         node a p cost=1 a1/ReplicaSet
         node b p cost=4 b1/ReplicaSet
         node c p cost=4 c1/ReplicaSet c2/ReplicaSet
         node d p cost=1 drifted d1/ReplicaSet
         node e p cost=2 drifted e1/ReplicaSet
         node f p cost=9 going f1/ReplicaSet
         node g p cost=9 tainted g1/ReplicaSet
         node h p cost=9 held h1/ReplicaSet=-7",
        &["f1 -2147483648", "g1 -2147483648", "e1 -5", "d1 -4", "b1 -3", "c1 -2", "c2 -2", "a1 -1", "h1 cleared"],
    );
    check("pool p\nnode b p a/ReplicaSet\nnode a p b/ReplicaSet", &["b -2", "a -1"]);
}

/// PDC-01: who is cleared, and who is not.
#[test]
fn some_nodes_are_cleared() {
    for (rest, cost) in [
        ("pod/ReplicaSet=1", "-1"),
        ("pod/ReplicaSet=1 other/Job daemon/DaemonSet", "-1"),
        ("pod/ReplicaSet=1 other/StatefulSet", "cleared"),
        ("pod/ReplicaSet=1 other/bare", "cleared"),
        ("pod/ReplicaSet=1 other/owned", "cleared"),
        ("pod/ReplicaSet=1 other/system", "-1"),
        ("pod/ReplicaSet=1 other/DaemonSet held", "cleared"),
        ("pod/held=1", "cleared"),
        ("pod/ReplicaSet=1 unsold", "cleared"),
        ("pod/ReplicaSet=1 going held", "-2147483648"),
    ] {
        check(&format!("pool p\nnode a p {rest}"), &[&format!("pod {cost}")]);
    }
    for (pool, rest, cost) in [
        ("after=Never", "", "cleared"),
        ("after=Never", "drifted", "-1"),
        ("after=Never static", "drifted", "cleared"),
        ("static", "drifted", "-1"),
        ("budget=0", "", "cleared"),
        ("budget=0", "drifted", "cleared"),
    ] {
        check(&format!("pool p {pool}\nnode a p {rest} pod/ReplicaSet=1"), &[&format!("pod {cost}")]);
    }
    check("node a lost pod/ReplicaSet=1", &["pod cleared"]);
}

/// PDC-01: a pool gets as many ranks as its budgets would let nodes go, the best of them, and each pool its own.
#[test]
fn budgets_bound_the_ranks() {
    check(
        "pool p budget=1
         pool q
         node a p cost=1 a1/ReplicaSet=1
         node b p cost=3 b1/ReplicaSet
         node c q cost=2 c1/ReplicaSet",
        &["b1 -2", "c1 -1", "a1 cleared"],
    );
    check(
        "pool p budget=1
         node a p going a1/ReplicaSet
         node b p b1/ReplicaSet=1",
        &["a1 -2147483648", "b1 cleared"],
    );
}

/// PDC-01: drifted nodes are ranked within what budgets allow for drift, all others within what they allow for
/// consolidation.
#[test]
fn each_group_has_its_own_budget() {
    for (budget, drifted, ordinary) in [
        ("budget=0:Drifted", "cleared", "-1"),
        ("budget=0:Underutilized", "-1", "cleared"),
        ("budget=0:Empty", "-2", "-1"),
        ("budget=0:Unhealthy", "-2", "-1"),
    ] {
        let text = format!("pool p {budget}\nnode a p drifted a1/ReplicaSet=9\nnode b p b1/ReplicaSet=9");
        let mut expected = [format!("a1 {drifted}"), format!("b1 {ordinary}")];
        expected.sort_by_key(|line| line.ends_with("cleared"));
        check(&text, &expected.each_ref().map(String::as_str));
    }
}

/// PDC-03: only pods of ReplicaSets are written about, whatever people wrote there before.
#[test]
fn only_pods_of_replica_sets_are_annotated() {
    check("pool p\nnode a p one/ReplicaSet=12 two/Job three/system", &["one -1"]);
    check("pool p\nnode a p two/Job=5", &[]);
}

/// PDC-02: nodes that are going are always written about, of the others fifty, and those that say what they should are
/// not counted.
#[test]
fn a_round_is_bounded() {
    let node = |number: usize, rest: &str| format!("node n{number:03} p {rest} p{number:03}/ReplicaSet");
    let lines = |count: usize, rest: &str| (0..count).map(|number| node(number, rest)).collect::<Vec<_>>().join("\n");
    let count = |text: &str| {
        let cluster = cluster(text);
        let round = round(&cluster, &rank(&cluster, Timestamp::from_second(1_000).unwrap()));
        assert_eq!(round.nodes.values().sum::<usize>(), round.writes.len());
        round.writes.len()
    };
    assert_eq!(count(&format!("pool p\n{}", lines(60, ""))), 50);
    assert_eq!(count(&format!("pool p\n{}", lines(60, "going"))), 60);
    let said = |first_silent: i32| {
        let line = |number: i32| {
            let line = node(usize::try_from(number).unwrap(), "");
            if number < first_silent { format!("{line}={}", number - 60) } else { line }
        };
        format!("pool p\n{}", (0..60).map(line).collect::<Vec<_>>().join("\n"))
    };
    assert_eq!([count(&said(60)), count(&said(30)), count(&said(5))], [0, 30, 50]);
    // Ranked nodes come first; what they leave of the bound is for those that are cleared.
    let both = format!("pool p budget=45\n{}", lines(60, "").replace("/ReplicaSet", "/ReplicaSet=9"));
    assert_eq!(count(&both), 50);
}
