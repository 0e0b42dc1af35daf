//! Objects from the words of a line, by way of the JSON that an API server would send.

use std::sync::Arc;

use api::lower::{
    AttachmentFacts, BudgetFacts, CsiNodeFacts, DaemonFacts, GroupingFacts, GroupingKind, NamespaceFacts,
    NodeClassFacts, NodeClassReadiness, NodeFacts, OverlayFacts, PodFacts, StorageClassFacts, VolumeClaimFacts,
    VolumeFacts,
};
use jiff::Timestamp;
use model::{
    AttachLimits, InstanceType, Offering, PoolName, Price, Requirement, Requirements, Resources, TypeName, Vocabulary,
    labels,
};
use serde_json::{Map, Value, json};
use state::{Key, Object};

/// The words of a line after kind and name: `key=value`, or a flag.
pub(crate) struct Words<'a> {
    pub(crate) line: &'a str,
    pub(crate) words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.words.contains(&flag)
    }

    pub(crate) fn all(&self, key: &str) -> Vec<&'a str> {
        let value = |word: &&'a str| word.strip_prefix(key)?.strip_prefix('=');
        self.words.iter().filter_map(value).collect()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.all(key).into_iter().next()
    }

    /// Every word must be known: a misspelt one would prove nothing.
    pub(crate) fn expect(&self, known: &[&str]) {
        for word in &self.words {
            let key = word.split('=').next().unwrap_or(word);
            assert!(known.contains(&key), "unknown word `{word}` in `{}`, use one of {known:?}", self.line);
        }
    }

    fn labels(&self, key: &str) -> Map<String, Value> {
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap_or_else(|| panic!("no label in `{}`", self.line));
            (full_key(name).to_owned(), json!(value))
        };
        self.all(key).into_iter().map(pair).collect()
    }

    fn taints(&self, key: &str) -> Vec<Value> {
        let taint = |text: &str| {
            let (key, effect) = text.split_once(':').unwrap_or_else(|| panic!("no effect in `{}`", self.line));
            json!({"key": full_key(key), "effect": effect})
        };
        self.all(key).into_iter().map(taint).collect()
    }

    fn requirements(&self) -> Vec<Value> {
        let requirement = |text: &str| {
            let parts: Vec<&str> = text.split(':').collect();
            let values: Vec<&str> = parts.get(2).into_iter().flat_map(|values| values.split('|')).collect();
            json!({"key": full_key(parts[0]), "operator": parts[1], "values": values})
        };
        self.all("require").into_iter().map(requirement).collect()
    }

    fn amounts(&self, prefix: &str) -> Map<String, Value> {
        let amount = |(short, long): &(&str, &str)| {
            self.get(&format!("{prefix}{short}")).map(|amount| ((*long).to_owned(), json!(amount)))
        };
        RESOURCES.iter().filter_map(amount).collect()
    }

    fn deletion(&self) -> Value {
        if self.has("going") { json!("2026-01-01T00:00:00Z") } else { Value::Null }
    }
}

/// Somebody calls zone a `az-1`.
pub(crate) fn vocabulary() -> Vocabulary {
    Vocabulary::core().with_value(labels::ZONE, "az-1", "a")
}

const RESOURCES: [(&str, &str); 3] = [("cpu", "cpu"), ("mem", "memory"), ("gpu", "nvidia.com/gpu")];

fn full_key(short: &str) -> &str {
    match short {
        "zone" => labels::ZONE,
        "pool" => labels::NODE_POOL,
        "type" => labels::INSTANCE_TYPE,
        "registered" => labels::REGISTERED,
        "initialized" => labels::INITIALIZED,
        "not-ready" => "node.kubernetes.io/not-ready",
        "readiness" => "readiness.k8s.io/network",
        "hostname" => labels::HOSTNAME,
        _ => short,
    }
}

/// An object, and which incarnation and version of it the line is about.
pub(crate) fn object(kind: &str, name: &str, words: &Words<'_>, uid: &str, version: u64) -> Object {
    let base = json!({"name": name, "uid": uid, "resourceVersion": version.to_string(),
        "deletionTimestamp": words.deletion()});
    match kind {
        "pod" => Object::Pod(Arc::new(pod(base, words))),
        "node" => Object::Node(Arc::new(node(base, words))),
        "claim" => Object::Claim(Arc::new(serde_json::from_value(claim(base, words)).unwrap())),
        "pool" => Object::Pool(Arc::new(serde_json::from_value(pool(base, words)).unwrap())),
        "class" => {
            words.expect(&[]);
            let readiness = NodeClassReadiness::Ready;
            let facts = NodeClassFacts { kind: KIND.to_owned(), name: name.to_owned(), generation: 1, readiness };
            Object::NodeClass(Arc::new(facts))
        }
        "daemon" => {
            words.expect(&["cpu", "mem", "gpu"]);
            let template = json!({"spec": {"containers": containers(words)}});
            let set = json!({"metadata": {"namespace": "shop", "name": name},
                "spec": {"selector": {}, "template": template}});
            let set = serde_json::from_value(set).unwrap();
            Object::Daemon(Arc::new(DaemonFacts::lower(&set, &vocabulary()).unwrap()))
        }
        "budget" => Object::Budget(Arc::new(budget(name, words))),
        "pvc" => Object::VolumeClaim(Arc::new(volume_claim(base, words))),
        "pv" => Object::Volume(Arc::new(volume(base, words))),
        "storageclass" => Object::StorageClass(Arc::new(storage_class(base, words))),
        "csinode" => Object::CsiNode(Arc::new(csi_node(base, words))),
        "attachment" => Object::Attachment(Arc::new(attachment(base, words))),
        "namespace" => {
            words.expect(&["label"]);
            let namespace = json!({"metadata": with(base, json!({"labels": words.labels("label")}))});
            Object::Namespace(NamespaceFacts::lower(&serde_json::from_value(namespace).unwrap()).unwrap())
        }
        "overlay" => Object::Overlay(Arc::new(overlay(base, words))),
        _ if grouping_kind(kind).is_some() => Object::Grouping(Arc::new(grouping(kind, base, words))),
        _ => panic!("unknown kind in `{}`", words.line),
    }
}

/// The key of an object of a script.
pub(crate) fn key(kind: &str, name: &str) -> Key {
    match kind {
        "pod" => Key::Pod(model::PodKey::new("shop", name)),
        "node" => Key::Node(model::NodeName::new(name)),
        "claim" => Key::Claim(model::ClaimName::new(name)),
        "pool" => Key::Pool(PoolName::new(name)),
        "class" => Key::NodeClass(KIND.to_owned(), name.to_owned()),
        "daemon" => Key::Daemon(format!("shop/{name}").into()),
        "budget" => Key::Budget("shop".to_owned(), name.to_owned()),
        "pvc" => Key::VolumeClaim("shop".into(), name.into()),
        "pv" => Key::Volume(name.into()),
        "storageclass" => Key::StorageClass(name.into()),
        "csinode" => Key::CsiNode(model::NodeName::new(name)),
        "attachment" => Key::Attachment(name.into()),
        "namespace" => Key::Namespace(name.into()),
        "overlay" => Key::Overlay(name.into()),
        _ if grouping_kind(kind).is_some() => Key::Grouping(grouping_kind(kind).unwrap(), "shop".into(), name.into()),
        _ => panic!("unknown kind `{kind}`"),
    }
}

/// A type that is sold to every pool.
pub(crate) fn instance_type(name: &str, words: &Words<'_>) -> Arc<InstanceType> {
    words.expect(&["cpu", "mem", "gpu", "attach", "offer"]);
    let capacity: std::collections::BTreeMap<String, _> = serde_json::from_value(words.amounts("").into()).unwrap();
    let offerings: Vec<Offering> = words.all("offer").into_iter().map(offering).collect();
    let zones = offerings.iter().filter_map(|offering| offering.zone().cloned());
    let mut requirements = Requirements::none().with(labels::INSTANCE_TYPE, Requirement::is(name));
    if !offerings.is_empty() {
        requirements.add(labels::ZONE, Requirement::any_of(zones));
    }
    let capacity = api::lower::resources(&capacity);
    let limit = |text: &str| {
        let (driver, count) = text.split_once(':').unwrap();
        (model::Text::from(driver), count.parse().unwrap())
    };
    let limits: AttachLimits = words.all("attach").into_iter().map(limit).collect();
    InstanceType::new(TypeName::new(name), requirements, capacity, Resources::none(), offerings)
        .with_attach_limits(limits)
}

/// `zone:price`, or `!zone:price` when it is sold out
fn offering(text: &str) -> Offering {
    let sold_out = text.strip_prefix('!');
    let (zone, price) = sold_out.unwrap_or(text).split_once(':').unwrap();
    let requirements = Requirements::none().with(labels::ZONE, Requirement::is(zone));
    let price = Price::from_dollars(price.parse().unwrap());
    Offering { requirements, price, available: sold_out.is_none(), reservation_capacity: None }
}

fn overlay(base: Value, words: &Words<'_>) -> OverlayFacts {
    words.expect(&["weight", "require", "price", "adjust", "cpu", "gpu"]);
    let overlay = json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": base,
        "spec": {"requirements": words.requirements(), "price": words.get("price"),
            "priceAdjustment": words.get("adjust"), "capacity": words.amounts(""),
            "weight": words.get("weight").map(|weight| weight.parse::<i32>().unwrap())},
    });
    OverlayFacts::lower(&serde_json::from_value(overlay).unwrap(), &vocabulary()).unwrap()
}

fn grouping_kind(kind: &str) -> Option<GroupingKind> {
    match kind {
        "service" => Some(GroupingKind::Service),
        "replicationcontroller" => Some(GroupingKind::ReplicationController),
        "replicaset" => Some(GroupingKind::ReplicaSet),
        "statefulset" => Some(GroupingKind::StatefulSet),
        _ => None,
    }
}

fn grouping(kind: &str, base: Value, words: &Words<'_>) -> GroupingFacts {
    words.expect(&["select", "none"]);
    let metadata = with(base, json!({"namespace": "shop"}));
    let equal = if words.has("none") { Value::Null } else { words.labels("select").into() };
    let plain = json!({"metadata": metadata, "spec": {"selector": equal}});
    let labelled = json!({"metadata": metadata, "spec": {"selector": {"matchLabels": equal}, "serviceName": "s",
        "template": {}}});
    let lowered = match kind {
        "service" => GroupingFacts::service(&serde_json::from_value(plain).unwrap()),
        "replicationcontroller" => GroupingFacts::replication_controller(&serde_json::from_value(plain).unwrap()),
        "replicaset" => GroupingFacts::replica_set(&serde_json::from_value(labelled).unwrap()),
        _ => GroupingFacts::stateful_set(&serde_json::from_value(labelled).unwrap()),
    };
    lowered.unwrap()
}

fn volume_claim(base: Value, words: &Words<'_>) -> VolumeClaimFacts {
    words.expect(&["volume", "class", "bound", "lost", "going"]);
    let bound = words.has("bound").then(|| json!({"pv.kubernetes.io/bind-completed": "yes"}));
    let claim = json!({
        "metadata": with(base, json!({"namespace": "shop", "annotations": bound})),
        "spec": {"volumeName": words.get("volume"), "storageClassName": words.get("class")},
        "status": {"phase": if words.has("lost") { "Lost" } else { "Pending" }},
    });
    VolumeClaimFacts::lower(&serde_json::from_value(claim).unwrap()).unwrap()
}

fn volume(base: Value, words: &Words<'_>) -> VolumeFacts {
    words.expect(&["zone", "host", "driver", "local", "going"]);
    let term =
        |key: &str, value: &str| json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]});
    let zones = words.all("zone").into_iter().map(|zone| term(labels::ZONE, zone));
    let hosts = words.all("host").into_iter().map(|host| term(labels::HOSTNAME, host));
    let terms: Vec<Value> = zones.chain(hosts).collect();
    let affinity = (!terms.is_empty()).then(|| json!({"required": {"nodeSelectorTerms": terms}}));
    let volume = json!({"metadata": base, "spec": {
        "nodeAffinity": affinity,
        "csi": words.get("driver").map(|driver| json!({"driver": driver, "volumeHandle": "h"})),
        "local": words.has("local").then(|| json!({"path": "/data"})),
    }});
    VolumeFacts::lower(&serde_json::from_value(volume).unwrap()).unwrap()
}

fn storage_class(base: Value, words: &Words<'_>) -> StorageClassFacts {
    words.expect(&["driver", "zone", "key", "immediate"]);
    let term = |key: &str, value: &str| json!({"matchLabelExpressions": [{"key": key, "values": [value]}]});
    let zones = words.all("zone").into_iter().map(|zone| term(labels::ZONE, zone));
    let others = words.all("key").into_iter().map(|key| term(key, "x"));
    let class = json!({
        "metadata": base,
        "provisioner": words.get("driver").unwrap_or("none"),
        "volumeBindingMode": if words.has("immediate") { "Immediate" } else { "WaitForFirstConsumer" },
        "allowedTopologies": zones.chain(others).collect::<Vec<_>>(),
    });
    StorageClassFacts::lower(&serde_json::from_value(class).unwrap()).unwrap()
}

fn attachment(base: Value, words: &Words<'_>) -> AttachmentFacts {
    words.expect(&["on", "volume"]);
    let source = json!({"persistentVolumeName": words.get("volume")});
    let spec = json!({"attacher": "ebs", "nodeName": words.get("on").unwrap_or("node0"), "source": source});
    AttachmentFacts::lower(&serde_json::from_value(json!({"metadata": base, "spec": spec})).unwrap()).unwrap()
}

fn csi_node(base: Value, words: &Words<'_>) -> CsiNodeFacts {
    words.expect(&["limit"]);
    let driver = |text: &str| {
        let (name, count) = text.split_once(':').unwrap_or((text, ""));
        json!({"name": name, "nodeID": "n", "allocatable": {"count": count.parse::<i32>().ok()}})
    };
    let drivers: Vec<Value> = words.all("limit").into_iter().map(driver).collect();
    let node = json!({"metadata": base, "spec": {"drivers": drivers}});
    CsiNodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap()
}

const KIND: &str = "KWOKNodeClass";

fn with(mut base: Value, fields: Value) -> Value {
    let (Value::Object(base_fields), Value::Object(fields)) = (&mut base, fields) else { panic!("not objects") };
    base_fields.extend(fields);
    base
}

fn containers(words: &Words<'_>) -> Value {
    let port = |port: &str| json!({"containerPort": 1, "hostPort": port.parse::<u16>().unwrap()});
    let ports: Vec<Value> = words.all("port").into_iter().map(port).collect();
    json!([{"name": "c", "resources": {"requests": words.amounts("")}, "ports": ports}])
}

fn volumes(words: &Words<'_>) -> Vec<Value> {
    let claimed = |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    let ephemeral = |name: &str| json!({"name": name, "ephemeral": {}});
    let claims = words.all("volume").into_iter().map(claimed);
    claims.chain(words.all("ephemeral").into_iter().map(ephemeral)).collect()
}

fn apart(words: &Words<'_>) -> Value {
    let term = |app: &str| json!({"topologyKey": labels::ZONE, "labelSelector": {"matchLabels": {"app": app}}});
    let terms: Vec<Value> = words.all("apart").into_iter().map(term).collect();
    json!({"requiredDuringSchedulingIgnoredDuringExecution": terms})
}

fn spread(words: &Words<'_>) -> Vec<Value> {
    let constraint =
        |key: &str| json!({"maxSkew": 1, "topologyKey": full_key(key), "whenUnsatisfiable": "DoNotSchedule"});
    words.all("spread").into_iter().map(constraint).collect()
}

fn pod(base: Value, words: &Words<'_>) -> PodFacts {
    let known =
        ["cpu", "mem", "gpu", "on", "owner", "label", "select", "protect", "born", "going", "done", "ready", "new"];
    words.expect(&[&known[..], &["by", "port", "volume", "ephemeral", "apart", "spread", "nominated"]].concat());
    let born = Timestamp::from_second(words.get("born").map_or(0, |seconds| seconds.parse().unwrap())).unwrap();
    let owner = |kind: &str| json!([{"apiVersion": if kind == "Node" { "v1" } else { "apps/v1" }, "kind": kind, "name": "o", "uid": "o"}]);
    let made_by = |text: &str| {
        let (kind, name) = text.split_once('/').unwrap();
        let version = if kind == "ReplicationController" { "v1" } else { "apps/v1" };
        json!([{"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": true}])
    };
    let owners = words.get("owner").map(owner).or_else(|| words.get("by").map(made_by));
    let protect = words.get("protect").map(|value| json!({"karpenter.sh/do-not-disrupt": value}));
    let metadata = json!({"namespace": "shop", "creationTimestamp": born.to_string(), "labels": words.labels("label"),
        "annotations": protect, "ownerReferences": owners});
    let mut conditions = Vec::new();
    if !words.has("new") && words.get("on").is_none() {
        conditions.push(json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}));
    }
    if words.has("ready") {
        conditions.push(json!({"type": "Ready", "status": "True"}));
    }
    let phase = if words.has("done") { "Succeeded" } else { "Running" };
    let pod = json!({
        "metadata": with(base, metadata),
        "spec": {"nodeName": words.get("on"), "nodeSelector": words.labels("select"), "containers": containers(words),
            "volumes": volumes(words), "affinity": {"podAntiAffinity": apart(words)},
            "topologySpreadConstraints": spread(words)},
        "status": {"phase": phase, "conditions": conditions, "startTime": "1970-01-01T00:00:00Z",
            "nominatedNodeName": words.get("nominated")},
    });
    PodFacts::lower(&serde_json::from_value(pod).unwrap(), &vocabulary()).unwrap()
}

fn node(base: Value, words: &Words<'_>) -> NodeFacts {
    words.expect(&["cpu", "mem", "gpu", "provider", "label", "taint", "going"]);
    let node = json!({
        "metadata": with(base, json!({"labels": words.labels("label")})),
        "spec": {"providerID": words.get("provider"), "taints": words.taints("taint")},
        "status": {"capacity": words.amounts(""), "allocatable": words.amounts("")},
    });
    NodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap()
}

fn claim(base: Value, words: &Words<'_>) -> Value {
    let known = ["cpu", "mem", "gpu", "capacity.cpu", "request.cpu", "pool", "provider", "label", "taint", "startup"];
    words.expect(&[&known[..], &["require", "kind", "going"]].concat());
    let mut own_labels = words.labels("label");
    own_labels.extend(words.get("pool").map(|pool| (labels::NODE_POOL.to_owned(), json!(pool))));
    let allocatable = words.amounts("");
    let mut capacity = allocatable.clone();
    capacity.extend(words.amounts("capacity."));
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": with(base, json!({"labels": own_labels})),
        "spec": {
            "nodeClassRef": class_reference(words), "requirements": words.requirements(),
            "resources": {"requests": words.amounts("request.")},
            "taints": words.taints("taint"), "startupTaints": words.taints("startup"),
        },
        "status": {"providerID": words.get("provider"), "allocatable": allocatable, "capacity": capacity},
    })
}

fn pool(base: Value, words: &Words<'_>) -> Value {
    words.expect(&[
        "label",
        "require",
        "taint",
        "limit.cpu",
        "weight",
        "replicas",
        "kind",
        "group",
        "unready",
        "going",
    ]);
    let number = |key: &str| words.get(key).map(|number| number.parse::<i64>().unwrap());
    let ready = json!({"type": "Ready", "status": if words.has("unready") { "False" } else { "True" },
        "reason": "Told", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let mut spec = json!({
        "template": {
            "metadata": {"labels": words.labels("label")},
            "spec": {"nodeClassRef": class_reference(words), "requirements": words.requirements(),
                "taints": words.taints("taint")},
        },
        "limits": words.amounts("limit."),
    });
    for key in ["weight", "replicas"] {
        number(key).iter().for_each(|number| spec[key] = json!(number));
    }
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": base, "spec": spec,
        "status": {"conditions": [ready]}})
}

fn class_reference(words: &Words<'_>) -> Value {
    let group = words.get("group").unwrap_or("karpenter.kwok.sh");
    json!({"group": group, "kind": words.get("kind").unwrap_or(KIND), "name": "default"})
}

fn budget(name: &str, words: &Words<'_>) -> BudgetFacts {
    words.expect(&["select", "max", "spares-unready"]);
    let max = words.get("max").map(|max| max.parse::<i32>().map_or_else(|_| json!(max), |number| json!(number)));
    let policy = words.has("spares-unready").then_some("AlwaysAllow");
    let budget = json!({
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"selector": {"matchLabels": words.labels("select")}, "maxUnavailable": max,
            "unhealthyPodEvictionPolicy": policy},
    });
    BudgetFacts::lower(&serde_json::from_value(budget).unwrap()).unwrap()
}
