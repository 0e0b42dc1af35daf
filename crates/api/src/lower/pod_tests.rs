//! Pods as JSON in, facts out.

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

/// Rules that the planner does not know are kept as such; soft ones are not rules.
#[test]
fn unplanned_rules() {
    let near = json!([{"topologyKey": "kubernetes.io/hostname"}]);
    let spread = |when: &str| json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when}]);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let (together, apart) =
        (format!("spec.affinity.podAffinity.{required}"), format!("spec.affinity.podAntiAffinity.{required}"));
    let soft = json!([{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]);
    let port = |host: i32| json!([{"name": "c", "ports": [{"containerPort": 80, "hostPort": host}]}]);
    let volume = |source: &str, value: Value| json!([{"name": "v", source: value}]);
    let table = [
        ("spec.topologySpreadConstraints", spread("DoNotSchedule"), Some(Rule::TopologySpread)),
        ("spec.topologySpreadConstraints", spread("ScheduleAnyway"), None),
        (together.as_str(), near.clone(), Some(Rule::PodAffinity)),
        (together.as_str(), json!([]), None),
        (apart.as_str(), near, Some(Rule::PodAntiAffinity)),
        ("spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution", soft.clone(), None),
        ("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution", soft, None),
        ("spec.volumes", volume("persistentVolumeClaim", json!({"claimName": "d"})), Some(Rule::PersistentVolume)),
        ("spec.volumes", volume("ephemeral", json!({})), Some(Rule::PersistentVolume)),
        ("spec.volumes", volume("emptyDir", json!({})), None),
        ("spec.containers", port(8080), Some(Rule::HostPort)),
        ("spec.containers", port(0), None),
        ("spec.resourceClaims", json!([{"name": "gpu"}]), Some(Rule::ResourceClaim)),
    ];
    for (path, value, expected) in table {
        let found = pod_with(&[(path, value.clone())]).class.unplanned_rules.clone();
        assert_eq!(found, expected.into_iter().collect(), "{path} = {value}");
    }
}

/// A duration counts from the start of the pod; other values protect nothing, and are known as such.
#[test]
fn protection() {
    let time = |text: &str| text.parse::<Timestamp>().unwrap();
    let (start, end) = ("2026-01-01T00:00:00Z", time("2026-01-01T01:30:00Z"));
    let table = [
        (None, Some(start), Protection::None),
        (Some("true"), None, Protection::Always),
        (Some("1h30m"), Some(start), Protection::Until(Some(end))),
        (Some("1h30m"), None, Protection::Until(None)),
        (Some("false"), Some(start), Protection::Unreadable),
        (Some("0s"), Some(start), Protection::Unreadable),
        (Some("-1h"), Some(start), Protection::Unreadable),
        (Some("soon"), Some(start), Protection::Unreadable),
        (Some(""), Some(start), Protection::Unreadable),
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
    assert!(!Protection::Unreadable.is_active(end) && !Protection::None.is_active(end));
}
