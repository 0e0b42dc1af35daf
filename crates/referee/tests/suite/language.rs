//! Clusters as text, one object per line.
//!
//! ```text
//! gates comparison                    # tolerations with Gt and Lt count
//! node NAME words..                   # 4 CPU, 8Gi memory, 110 pods and its host name unless said otherwise
//! pod  NAME @NODE words..             # a bound pod
//! try  NAME words..                   # the pod that is asked about
//! ```
//!
//! Words of both: `cpu=1`, `memory=1Gi`, `use:nvidia.com/gpu=1`, `zone=a`, `label:key=value`.
//! Of nodes: `pods=3`, `cordoned`, `taint=key=value:Effect`, `attach:driver=2`.
//! Of pods: `ns=other`, `at=node`, `select:key=value`, `term=key,Op,value+key,Op,value`, `field=Op,name`,
//! `tolerate=key:Effect`, `tolerate=key=value:Effect`, `tolerate=key>7:Effect`, `port=80`, `port=UDP/10.0.0.1/80`,
//! `spread=key/1/app=web` with `/min=2`, `/taints`, `/anywhere` behind it, `with=key/app=web[/ns]`,
//! `without=key/app=web[/ns]`, `volume=driver/handle`, `bound-in=driver/handle/zone`, `made-in=driver/handle/zone`,
//! `zoned=driver/handle/zone`, `alone=driver/handle`, `unbound`, `priority=5`, `never-preempts`, `terminating`.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    Effect, NodeName, PodKey, ResourceName, Resources, Taint, Text, Toleration, TolerationOperator, labels,
    parse_quantity,
};
use referee::{
    Blocker, Gates, HostPort, Inclusion, LabelOperator, LabelRequirement, Namespaces, NodeFacts, NodeTerm,
    PodAffinityTerm, PodFacts, Selector, Situation, SpreadConstraint, VolumeFacts, VolumePlace, ZoneLabel,
};

/// A cluster and the pod that is asked about.
pub(crate) fn read(text: &str) -> (Situation, PodFacts) {
    let gates = Gates { taint_toleration_comparison_operators: text.contains("gates comparison") };
    let mut situation = Situation::new(gates);
    let mut asked = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["gates", "comparison"] => {}
            ["node", name, rest @ ..] => situation.put_node(node(name, rest)),
            ["pod", name, at, rest @ ..] => {
                let node = NodeName::new(at.strip_prefix('@').unwrap());
                situation.bind(node, Arc::new(pod(name, rest)));
            }
            ["try", name, rest @ ..] => asked = Some(pod(name, rest)),
            _ => panic!("`{line}` is no line of the language"),
        }
    }
    (situation, asked.expect("a `try` line"))
}

fn amount(resources: &mut Resources, name: &str, text: &str) {
    let name = ResourceName::new(name);
    let amount = parse_quantity(&name, text).unwrap();
    resources.set(name, amount);
}

fn node(name: &str, words: &[&str]) -> NodeFacts {
    let mut node = NodeFacts::new(NodeName::new(name));
    node.labels.insert(Text::from(labels::HOSTNAME), Text::from(name));
    for (resource, text) in [("cpu", "4"), ("memory", "8Gi"), ("pods", "110")] {
        amount(&mut node.allocatable, resource, text);
    }
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "cordoned" => node.unschedulable = true,
            "taint" => node.taints.push(taint(value)),
            "zone" => drop(node.labels.insert(Text::from(labels::ZONE), Text::from(value))),
            "cpu" | "memory" | "pods" => amount(&mut node.allocatable, key, value),
            _ => match key.split_once(':').unwrap_or_else(|| panic!("`{word}` is no word of a node")) {
                ("use", resource) => amount(&mut node.allocatable, resource, value),
                ("label", key) => drop(node.labels.insert(Text::from(key), Text::from(value))),
                ("attach", driver) => drop(node.attach_limits.insert(Text::from(driver), value.parse().unwrap())),
                _ => panic!("`{word}` is no word of a node"),
            },
        }
    }
    node
}

fn taint(text: &str) -> Taint {
    let (key, effect) = text.split_once(':').unwrap();
    let (key, value) = key.split_once('=').unwrap_or((key, ""));
    Taint::new(key, value, Effect::parse(effect).unwrap())
}

fn pod(name: &str, words: &[&str]) -> PodFacts {
    let namespace = words.iter().find_map(|word| word.strip_prefix("ns=")).unwrap_or("default");
    let mut pod = PodFacts::new(PodKey::new(namespace, name));
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "ns" => {}
            "cpu" | "memory" => amount(&mut pod.requests, key, value),
            "at" => pod.node_name = Some(NodeName::new(value)),
            "term" => pod.node_terms.get_or_insert_default().push(term(value)),
            "field" => pod.node_terms.get_or_insert_default().push(field_term(value)),
            "tolerate" => pod.tolerations.push(toleration(value)),
            "port" => pod.host_ports.push(port(value)),
            "spread" => pod.spread.push(spread(value)),
            "with" => pod.affinity.push(affinity(namespace, value)),
            "without" => pod.anti_affinity.push(affinity(namespace, value)),
            "volume" | "bound-in" | "made-in" | "zoned" | "alone" => pod.volumes.push(volume(key, value)),
            "unbound" => pod.blocker = Some(Blocker::UnboundImmediateClaims),
            "priority" => pod.priority = value.parse().unwrap(),
            "never-preempts" => pod.may_preempt = false,
            "terminating" => pod.terminating = true,
            _ => match key.split_once(':').unwrap_or_else(|| panic!("`{word}` is no word of a pod")) {
                ("use", resource) => amount(&mut pod.requests, resource, value),
                ("label", key) => drop(pod.labels.insert(Text::from(key), Text::from(value))),
                ("select", key) => drop(pod.node_selector.insert(Text::from(key), Text::from(value))),
                _ => panic!("`{word}` is no word of a pod"),
            },
        }
    }
    pod
}

/// `key,Op,value,value`
fn requirement(text: &str) -> LabelRequirement {
    let mut parts = text.split(',');
    let key = Text::from(parts.next().unwrap());
    let operator = LabelOperator::parse(parts.next().unwrap()).unwrap();
    LabelRequirement { key, operator, values: parts.map(Text::from).collect() }
}

fn term(text: &str) -> NodeTerm {
    let labels = text.split('+').filter(|part| !part.is_empty()).map(requirement).collect();
    NodeTerm { labels, fields: Vec::new() }
}

fn field_term(text: &str) -> NodeTerm {
    let fields = text.split('+').map(|part| requirement(&format!("metadata.name,{part}"))).collect();
    NodeTerm { labels: Vec::new(), fields }
}

fn toleration(text: &str) -> Toleration {
    use TolerationOperator::{Equal, Exists, GreaterThan, LessThan};
    let (left, effect) = text.split_once(':').unwrap();
    let split = |operator, sign| left.split_once(sign).map(|(key, value)| (operator, key, value));
    let parts = split(Equal, '=').or_else(|| split(GreaterThan, '>')).or_else(|| split(LessThan, '<'));
    let (operator, key, value) = parts.unwrap_or((Exists, left, ""));
    let key = (!key.is_empty()).then(|| Text::from(key));
    Toleration { key, operator, value: Text::from(value), effect: Effect::parse(effect) }
}

fn port(text: &str) -> HostPort {
    let parts: Vec<&str> = text.split('/').collect();
    let (protocol, address, port) = match parts.as_slice() {
        [port] => ("", "", port),
        [protocol, address, port] => (*protocol, *address, port),
        _ => panic!("`{text}` is no port"),
    };
    HostPort { address: Text::from(address), protocol: Text::from(protocol), port: port.parse().unwrap() }
}

/// `app=web`, `*` for everything, `-` for no selector.
fn selector(text: &str) -> Selector {
    match text {
        "-" => Selector::Nothing,
        "*" => Selector::All(Vec::new()),
        _ => {
            let (key, value) = text.split_once('=').unwrap();
            Selector::All(vec![LabelRequirement::is(key, value)])
        }
    }
}

fn topology(text: &str) -> Text {
    Text::from(match text {
        "zone" => labels::ZONE,
        "host" => labels::HOSTNAME,
        other => other,
    })
}

fn spread(text: &str) -> SpreadConstraint {
    let parts: Vec<&str> = text.split('/').collect();
    let mut constraint = SpreadConstraint {
        topology_key: topology(parts[0]),
        max_skew: parts[1].parse().unwrap(),
        min_domains: 1,
        selector: selector(parts[2]),
        node_affinity_policy: Inclusion::Honor,
        node_taints_policy: Inclusion::Ignore,
    };
    for part in &parts[3..] {
        match *part {
            "taints" => constraint.node_taints_policy = Inclusion::Honor,
            "anywhere" => constraint.node_affinity_policy = Inclusion::Ignore,
            other => constraint.min_domains = other.strip_prefix("min=").unwrap().parse().unwrap(),
        }
    }
    constraint
}

fn affinity(own_namespace: &str, text: &str) -> PodAffinityTerm {
    let parts: Vec<&str> = text.split('/').collect();
    let namespaces = match parts.get(2) {
        None => Namespaces::only(own_namespace),
        Some(&"*") => Namespaces::All,
        Some(namespace) => Namespaces::only(*namespace),
    };
    PodAffinityTerm { topology_key: topology(parts[0]), selector: selector(parts[1]), namespaces }
}

fn volume(kind: &str, text: &str) -> VolumeFacts {
    let parts: Vec<&str> = text.split('/').collect();
    let zone = parts.get(2).copied().unwrap_or_default();
    let in_zone =
        || Some(vec![NodeTerm { labels: vec![LabelRequirement::is(labels::ZONE, zone)], fields: Vec::new() }]);
    let place = match kind {
        "bound-in" => VolumePlace::Bound(in_zone()),
        "made-in" => VolumePlace::WaitsForPod(in_zone()),
        _ => VolumePlace::Bound(None),
    };
    let zoned = ZoneLabel { key: Text::from(labels::ZONE), values: BTreeSet::from([Text::from(zone)]) };
    VolumeFacts {
        driver: Text::from(parts[0]),
        handle: Text::from(parts[1]),
        place,
        zone_labels: if kind == "zoned" { vec![zoned] } else { Vec::new() },
        one_pod_only: kind == "alone",
    }
}
