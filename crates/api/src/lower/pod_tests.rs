//! Pods as JSON in, facts out.

use expect_test::expect;
use model::{LabelOperator, NamespaceScope, PodTerm, Rule, Selector, SpreadConstraint};
use serde_json::{Value, json};

use super::*;

/// A pod for which the scheduler found no node, with some fields set; a path is dotted.
fn pod_with(changes: &[(&str, Value)]) -> PodFacts {
    let mut pod = json!({
        "metadata": {"namespace": "shop", "name": "web-1", "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    });
    for (path, value) in changes {
        let field = path.split('.').fold(&mut pod, |at, part| &mut at[part]);
        *field = value.clone();
    }
    PodFacts::lower(&serde_json::from_value(pod).unwrap(), &Vocabulary::core()).unwrap()
}

fn owned_by(api_version: &str, kind: &str) -> Value {
    json!([{"apiVersion": api_version, "kind": kind, "name": "owner", "uid": "u-owner"}])
}

/// PROV-04, PROV-05, PROV-06: which pods we look for a node for.
#[test]
fn provisionable_pods() {
    let scheduled = |status: &str, reason: &str| json!([{"type": "PodScheduled", "status": status, "reason": reason}]);
    let table = [
        ("nothing", Value::Null, true),
        ("spec.schedulerName", json!("another-scheduler"), true),
        ("status.conditions", Value::Null, false),
        ("status.conditions", scheduled("False", "SchedulingGated"), false),
        ("status.conditions", scheduled("True", ""), false),
        ("status.nominatedNodeName", json!("n1"), false),
        ("status.nominatedNodeName", json!(""), true),
        ("spec.nodeName", json!("n1"), false),
        ("spec.nodeName", json!(""), true),
        ("metadata.ownerReferences", owned_by("apps/v1", "DaemonSet"), false),
        ("metadata.ownerReferences", owned_by("v1", "Node"), false),
        ("metadata.ownerReferences", owned_by("apps/v1", "ReplicaSet"), true),
        ("metadata.ownerReferences", owned_by("apps/v1", "StatefulSet"), true),
        ("metadata.ownerReferences", owned_by("example.com/v1", "DaemonSet"), true),
        ("metadata.deletionTimestamp", json!("2026-01-01T00:00:00Z"), false),
        ("status.phase", json!("Failed"), false),
    ];
    for (path, value, expected) in table {
        let pod = pod_with(&[(path, value.clone())]);
        assert_eq!(pod.is_provisionable(), expected, "{path} = {value}");
    }
    let nominated = ("status.nominatedNodeName", json!("n1"));
    let pod = pod_with(&[nominated, ("spec.preemptionPolicy", json!("Never"))]);
    assert!(pod.is_provisionable(), "nobody makes room for a pod that makes nobody leave");
}

/// Which pods need another node when theirs goes.
#[test]
fn reschedulable_pods() {
    let (finished, going) =
        (("status.phase", json!("Succeeded")), ("metadata.deletionTimestamp", json!("2026-01-01T00:00:00Z")));
    let owner =
        |kind: &str| ("metadata.ownerReferences", owned_by(if kind == "Node" { "v1" } else { "apps/v1" }, kind));
    let table = [
        (vec![owner("ReplicaSet")], true),
        (vec![owner("ReplicaSet"), finished.clone()], false),
        (vec![owner("ReplicaSet"), going.clone()], false),
        (vec![owner("StatefulSet")], true),
        (vec![owner("StatefulSet"), going.clone()], true),
        (vec![owner("StatefulSet"), going.clone(), finished], false),
        (vec![owner("DaemonSet")], false),
        (vec![owner("Node")], false),
    ];
    for (changes, expected) in table {
        assert_eq!(pod_with(&changes).is_reschedulable(), expected, "{changes:?}");
    }
}

const SELECTOR: &str = "spec.nodeSelector";
const REQUIRED: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
const PREFERRED: &str = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";

/// Reads `zone In a b, team Exists`.
fn term(text: &str) -> Value {
    let expression = |one: &str| {
        let words: Vec<&str> = one.split(' ').collect();
        json!({"key": words[0], "operator": words[1], "values": words[2..]})
    };
    json!({"matchExpressions": text.split(", ").filter(|one| !one.is_empty()).map(expression).collect::<Vec<_>>()})
}

fn terms(texts: &[&str]) -> Value {
    texts.iter().map(|text| term(text)).collect()
}

fn rendered(pod: &PodFacts) -> String {
    let alternatives: Vec<String> = pod.class.alternatives.iter().map(ToString::to_string).collect();
    let faults: Vec<String> = pod.faults.iter().map(|fault| format!("! {fault}")).collect();
    [alternatives.join(" | "), faults.join(" ")].join(" ").trim().to_owned()
}

/// What makes a pod unplannable, in the words that its event will have.
#[test]
fn faults_are_told_in_words() {
    let restricted =
        |key: &str| format!("! label \"{key}\" is restricted; select a well-known or custom label instead");
    let fields = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]);
    let keeps_away = "! configured to not run on a Karpenter provisioned node".to_owned();
    let table = [
        (REQUIRED, fields, "! node selector term with matchFields is not supported".to_owned()),
        (SELECTOR, json!({"kubernetes.io/hostname": "n1"}), restricted("kubernetes.io/hostname")),
        (REQUIRED, terms(&["kubernetes.io/hostname In n1"]), restricted("kubernetes.io/hostname")),
        (SELECTOR, json!({"karpenter.sh/registered": "true"}), restricted("karpenter.sh/registered")),
        (REQUIRED, terms(&["team In a", "sub.karpenter.sh/x Exists"]), restricted("sub.karpenter.sh/x")),
        (REQUIRED, terms(&["karpenter.sh/nodepool DoesNotExist"]), keeps_away),
        (REQUIRED, terms(&["cpus Gt many"]), "! the node affinity expression on \"cpus\" cannot be read".to_owned()),
        (REQUIRED, terms(&[""]), "! required node affinity has no term that could match a node".to_owned()),
        (SELECTOR, json!({"karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot"}), String::new()),
        (SELECTOR, json!({"node-restriction.kubernetes.io/team": "a"}), String::new()),
        (PREFERRED, json!([{"weight": 1, "preference": term("kubernetes.io/hostname In n1")}]), String::new()),
    ];
    for (path, value, expected) in table {
        let faults: Vec<String> =
            pod_with(&[(path, value.clone())]).faults.iter().map(|fault| format!("! {fault}")).collect();
        assert_eq!(faults.join(" "), expected, "{path} = {value}");
    }
}

/// Node selector and affinity terms make the alternatives; those that contradict themselves are none.
#[test]
fn alternatives() {
    let none = json!({});
    let fault =
        |key: &str| format!("! node selector and required node affinity contradict each other on label \"{key}\"");
    let web = json!({"team": "web"});
    let table = [
        (&none, None, String::new()),
        (&web, None, "team In [web]".to_owned()),
        (
            &web,
            Some(terms(&["zone In a", "zone In b, rank Gt 4"])),
            "team In [web], zone In [a] | rank Exists >=5, team In [web], zone In [b]".to_owned(),
        ),
        (&none, Some(terms(&["", "zone In a"])), "zone In [a]".to_owned()),
        (&json!({"beta.kubernetes.io/arch": "arm64"}), None, "kubernetes.io/arch In [arm64]".to_owned()),
        (&web, Some(terms(&["team In db web"])), "team In [web]".to_owned()),
        (&web, Some(terms(&["team In db", "zone In a"])), "team In [web], zone In [a]".to_owned()),
        (&web, Some(terms(&["team In db", "team DoesNotExist"])), format!("team In [web] {}", fault("team"))),
        (&none, Some(terms(&["rank Gt 4, rank Lt 4"])), fault("rank")),
        (&none, Some(terms(&["team Exists, team NotIn a, team DoesNotExist"])), fault("team")),
        (&none, Some(terms(&["team NotIn a, team DoesNotExist"])), "team DoesNotExist".to_owned()),
        (
            &json!({"kubernetes.io/arch": "arm64", "beta.kubernetes.io/arch": "amd64"}),
            None,
            format!("kubernetes.io/arch DoesNotExist {}", fault("kubernetes.io/arch")),
        ),
    ];
    for (selector, required, expected) in table {
        let mut changes = vec![(SELECTOR, selector.clone())];
        changes.extend(required.map(|required| (REQUIRED, required)));
        assert_eq!(rendered(&pod_with(&changes)), expected, "{changes:?}");
    }
}

/// Wishes keep their weight; those that cannot be read, contradict themselves or what the pod demands are dropped.
#[test]
fn preferences() {
    let wish = |weight: i32, text: &str| json!({"weight": weight, "preference": term(text)});
    let wishes = json!([
        wish(5, "zone In b"),
        wish(50, "arch In arm64, zone In a"),
        wish(10, "rank Gt many"),
        wish(10, "zone In a, zone In b"),
        wish(10, "team In db"),
    ]);
    let pod = pod_with(&[(SELECTOR, json!({"team": "web"})), (PREFERRED, wishes)]);
    let found: Vec<String> =
        pod.class.preferences.iter().map(|wish| format!("{}: {}", wish.weight, wish.requirements)).collect();
    assert_eq!(found, ["5: zone In [b]", "50: arch In [arm64], zone In [a]"]);
    assert_eq!(pod.faults, BTreeSet::new());
}

#[test]
fn equal_pods_have_equal_classes() {
    let first = pod_with(&[]);
    let replica = [
        ("metadata.name", json!("web-2")),
        ("metadata.uid", json!("u-2")),
        ("metadata.creationTimestamp", json!("2026-02-01T00:00:00Z")),
        ("metadata.labels", json!({"pod-template-hash": "1"})),
        ("metadata.annotations", json!({"karpenter.sh/do-not-disrupt": "true"})),
        (
            "spec.containers",
            json!([{"name": "other", "image": "x",
            "resources": {"requests": {"cpu": "1000m", "memory": "0"}}}]),
        ),
        ("status.conditions", Value::Null),
    ];
    assert_eq!(pod_with(&replica).class, first.class);
    let different = [
        ("spec.priority", json!(5)),
        ("spec.tolerations", json!([{"key": "gpu", "operator": "Exists"}])),
        (SELECTOR, json!({"team": "web"})),
        ("spec.containers", json!([{"name": "c", "resources": {"requests": {"cpu": "2"}}}])),
    ];
    for change in different {
        assert_ne!(pod_with(std::slice::from_ref(&change)).class, first.class, "{change:?}");
    }
}

/// Claims of the pod, of a container or of an init container.
#[test]
fn resource_claims_are_rules_that_nobody_plans() {
    let claims = json!([{"name": "gpu"}]);
    let container = json!([{"name": "c", "resources": {"claims": claims}}]);
    let table = [
        ("spec.resourceClaims", claims, true),
        ("spec.containers", container.clone(), true),
        ("spec.initContainers", container, true),
        ("spec.resourceClaims", json!([]), false),
    ];
    for (path, value, claimed) in table {
        let found = pod_with(&[(path, value.clone())]).class.unplanned_rules.clone();
        assert_eq!(found, claimed.then_some(Rule::ResourceClaim).into_iter().collect(), "{path} = {value}");
    }
}

fn shown_selector(selector: &Selector) -> String {
    let Selector::All(all) = selector else { return "nothing".to_owned() };
    let one = |one: &model::LabelRequirement| match one.operator {
        LabelOperator::In => format!("{}={}", one.key, one.values.join("|")),
        LabelOperator::NotIn => format!("{}!={}", one.key, one.values.join("|")),
        other => format!("{other:?} {}", one.key),
    };
    format!("[{}]", all.iter().map(one).collect::<Vec<_>>().join(" "))
}

fn shown_spread(list: &[SpreadConstraint]) -> String {
    let one = |one: &SpreadConstraint| {
        let SpreadConstraint { topology_key, max_skew, min_domains, selector, .. } = one;
        let policies = format!("affinity {:?}, taints {:?}", one.node_affinity_policy, one.node_taints_policy);
        format!("{topology_key} {max_skew} of {min_domains}, {policies}: {}\n", shown_selector(selector))
    };
    list.iter().map(one).collect()
}

/// TOPO-09: the defaults of a constraint, and labels that the pod and others must share.
#[test]
fn topology_spread() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let constraints = json!([
        {"maxSkew": 1, "topologyKey": "failure-domain.beta.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector},
        {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3,
            "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "labelSelector": selector,
            "matchLabelKeys": ["hash", "unknown", "app"]},
        {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"},
        {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}},
        {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}},
    ]);
    let labels = json!({"app": "web", "hash": "1"});
    let pod = pod_with(&[("spec.topologySpreadConstraints", constraints), ("metadata.labels", labels)]);
    expect![[r#"
        topology.kubernetes.io/zone 1 of 1, affinity Honor, taints Ignore: [app=web]
        rack 2 of 3, affinity Ignore, taints Honor: [app=web hash=1]
        rack 1 of 1, affinity Honor, taints Ignore: nothing
        rack 1 of 1, affinity Honor, taints Ignore: nothing
    "#]]
    .assert_eq(&shown_spread(&pod.class.spread));
    expect![[r#"
        rack 1 of 1, affinity Honor, taints Ignore: []
    "#]]
    .assert_eq(&shown_spread(&pod.class.soft_spread));
}

fn shown_term(term: &PodTerm) -> String {
    let NamespaceScope { listed, selector } = &term.namespaces;
    let listed: Vec<&str> = listed.iter().map(|name| &**name).collect();
    let selected = selector.as_ref().map(|selector| format!(" and {}", shown_selector(selector))).unwrap_or_default();
    format!("{} {} in {}{selected}", term.topology_key, shown_selector(&term.selector), listed.join(","))
}

/// TOPO-26: whom a pod wants to be near or away from, and in which namespaces.
#[test]
fn pod_affinity() {
    let term = |more: Value| {
        let mut term = json!({"topologyKey": "beta.kubernetes.io/os", "labelSelector": {"matchLabels": {"app": "db"}}});
        term.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        term
    };
    let table = [
        (json!({}), "kubernetes.io/os [app=db] in shop"),
        (json!({"namespaces": []}), "kubernetes.io/os [app=db] in shop"),
        (json!({"namespaces": ["b", "a"]}), "kubernetes.io/os [app=db] in a,b"),
        (json!({"namespaceSelector": {}}), "kubernetes.io/os [app=db] in  and []"),
        (
            json!({"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "x"}}}),
            "kubernetes.io/os [app=db] in a and [team=x]",
        ),
        (
            json!({"matchLabelKeys": ["hash", "unknown"], "mismatchLabelKeys": ["tenant"]}),
            "kubernetes.io/os [app=db hash=1 tenant!=t] in shop",
        ),
        (json!({"labelSelector": null}), "kubernetes.io/os nothing in shop"),
    ];
    let (required, preferred) =
        ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution");
    for (more, expected) in table {
        let rule =
            json!({required: [term(more.clone())], preferred: [{"weight": 7, "podAffinityTerm": term(more.clone())}]});
        let labels = json!({"hash": "1", "tenant": "t"});
        let changes =
            [("spec.affinity", json!({"podAffinity": rule, "podAntiAffinity": rule})), ("metadata.labels", labels)];
        let pod = pod_with(&changes);
        let class = &pod.class;
        let hard = [&class.affinity, &class.anti_affinity].map(|terms| shown_term(&terms[0]));
        let soft = [&class.soft_affinity, &class.soft_anti_affinity]
            .map(|terms| (terms[0].weight, shown_term(&terms[0].term)));
        assert_eq!(hard, [expected, expected], "{more}");
        assert_eq!(soft, [(7, expected.to_owned()), (7, expected.to_owned())], "{more}");
        assert_eq!(pod.kind.anti_affinity, class.anti_affinity);
    }
}

/// Ports of containers and sidecars; init containers are gone before anybody else uses the port.
#[test]
fn host_ports() {
    let container = |ports: Value| json!({"name": "c", "ports": ports});
    let port = |host: i32| json!({"containerPort": 80, "hostPort": host});
    let sidecar = json!({"name": "s", "restartPolicy": "Always", "ports": [port(90)]});
    let containers = json!([
        container(json!([port(80), port(0), {"containerPort": 1}])),
        container(json!([{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1", "protocol": "UDP"}, port(80)])),
    ]);
    let pod = pod_with(&[
        ("spec.containers", containers),
        ("spec.initContainers", json!([container(json!([port(70)])), sidecar])),
    ]);
    let found: Vec<String> =
        pod.class.host_ports.iter().map(|one| format!("{}:{}/{}", one.address, one.port, one.protocol)).collect();
    assert_eq!(found, [":80/", ":90/", "10.0.0.1:80/UDP"]);
}

/// Claims that a pod mounts; ephemeral volumes have claims that are named after the pod.
#[test]
fn volume_claims() {
    let volumes = json!([
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "ephemeral": {}},
        {"name": "c", "emptyDir": {}},
    ]);
    let pod = pod_with(&[("spec.volumes", volumes)]);
    assert_eq!(pod.volume_claims.iter().map(|name| &**name).collect::<Vec<_>>(), ["data", "web-1-b"]);
}

/// Only the owner that controls the pod is asked about it.
#[test]
fn controllers() {
    let owned = |api: &str, kind: &str, controls: bool| json!([{"apiVersion": api, "kind": kind, "name": "owner", "uid": "u", "controller": controls}]);
    let table = [
        (owned("apps/v1", "ReplicaSet", true), Some(ControllerKind::ReplicaSet)),
        (owned("apps/v1", "StatefulSet", true), Some(ControllerKind::StatefulSet)),
        (owned("apps/v1", "DaemonSet", true), Some(ControllerKind::DaemonSet)),
        (owned("v1", "ReplicationController", true), Some(ControllerKind::ReplicationController)),
        (owned("apps/v1", "ReplicaSet", false), None),
        (owned("batch/v1", "Job", true), Some(ControllerKind::Job)),
        (owned("example.com/v1", "ReplicaSet", true), None),
    ];
    for (owners, kind) in table {
        let pod = pod_with(&[("metadata.ownerReferences", owners.clone())]);
        assert_eq!(pod.controller.map(|controller| controller.kind), kind, "{owners}");
    }
}

/// A duration counts from the start of the pod; other values protect nothing, and are known as such.
#[test]
fn protection() {
    let time = |text: &str| text.parse::<Timestamp>().unwrap();
    let (start, end) = ("2026-01-01T00:00:00Z", time("2026-01-01T01:30:00Z"));
    let unreadable = |problem: &str| Protection::Unreadable { problem: problem.into() };
    let table = [
        (None, Some(start), Protection::None),
        (Some("true"), None, Protection::Always),
        (Some("1h30m"), Some(start), Protection::Until(Some(end))),
        (Some("1h30m"), None, Protection::Until(None)),
        (
            Some("false"),
            Some(start),
            unreadable("failed to parse \"false\" as a duration: time: invalid duration \"false\""),
        ),
        (Some("0s"), Some(start), unreadable("duration \"0s\" must be positive")),
        (Some("-1h"), Some(start), unreadable("duration \"-1h\" must be positive")),
        (
            Some("5"),
            Some(start),
            unreadable("failed to parse \"5\" as a duration: time: missing unit in duration \"5\""),
        ),
    ];
    for (annotation, started, expected) in table {
        let mut changes = vec![("status.startTime", started.map_or(Value::Null, |text| json!(text)))];
        let annotations = annotation.map(|text| json!({"karpenter.sh/do-not-disrupt": text}));
        changes.extend(annotations.map(|map| ("metadata.annotations", map)));
        assert_eq!(pod_with(&changes).protection, expected, "{annotation:?} {started:?}");
    }
    let until = Protection::Until(Some(end));
    assert!(until.is_active(time("2026-01-01T01:29:59Z")));
    assert!(!until.is_active(end));
    assert!(Protection::Until(None).is_active(end) && Protection::Always.is_active(end));
    assert!(!unreadable("").is_active(end) && !Protection::None.is_active(end));
}
