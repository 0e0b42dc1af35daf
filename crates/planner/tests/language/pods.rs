//! Pods that wait, pods that run, and daemons.

use std::sync::Arc;

use model::{
    Attachment, BoundKind, Effect, Inclusion, LabelRequirement, Labels, NamespaceScope, PendingPod, PodClass, PodKey,
    PodTerm, PodVolumes, Preference, Purpose, Requirement, Requirements, ResourceName, Resources, Rule, Selector,
    SpreadConstraint, Text, Toleration, TolerationOperator, WeightedPodTerm,
};

use super::words::{Words, counted, label, long_key, number, of_driver, port, requirement, selector, set, taint};

/// A pod as its words describe it.
pub(super) struct Described {
    pub(super) class: PodClass,
    labels: Labels,
    namespace: Text,
    volumes: PodVolumes,
    created: i64,
    purpose: Purpose,
}

const HINT: &str = "a pod has resources, ns, app, label, priority, created, headroom, select, affinity, or, prefer, \
                    tolerate, spread, near, away, port, volume, attach and rule";

/// The pods of one line.
pub(super) fn group(name: &str, words: &Words<'_>) -> Vec<PendingPod> {
    let (base, count) = counted(name);
    let Described { class, labels, namespace, volumes, created, purpose } = pod(base, words);
    let (class, labels, volumes) = (Arc::new(class), Arc::new(labels), Arc::new(volumes));
    let one = |name: String| PendingPod {
        key: PodKey::new(namespace.clone(), name),
        created,
        class: Arc::clone(&class),
        labels: Arc::clone(&labels),
        volumes: Arc::clone(&volumes),
        purpose,
    };
    match count {
        Some(count) => (0..count).map(|index| one(format!("{base}-{index}"))).collect(),
        None => vec![one(base.to_owned())],
    }
}

/// What others can see of a running pod.
pub(super) fn bound_kind(name: &str, words: &Words<'_>) -> BoundKind {
    let Described { class, labels, namespace, .. } = pod(name, words);
    BoundKind { namespace, labels: Arc::new(labels), anti_affinity: class.anti_affinity }
}

pub(super) fn pod(name: &str, words: &Words<'_>) -> Described {
    let mut described = Described {
        class: PodClass::plain(Resources::none().with(ResourceName::pods(), 1)),
        labels: Labels::from([(Text::from("app"), Text::from(name))]),
        namespace: Text::from("default"),
        volumes: PodVolumes::none(),
        created: 0,
        purpose: Purpose::Work,
    };
    let (flags, others): (Vec<&str>, Vec<&str>) = words.words.iter().partition(|word| **word == "headroom");
    if !flags.is_empty() {
        described.purpose = Purpose::Headroom;
    }
    let pairs = Words { line: words.line, words: others }.pairs(HINT);
    for (key, value) in &pairs {
        described.identify(key, value);
    }
    let mut alternatives = vec![Requirements::none()];
    let (mut selected, mut volumes) = (Requirements::none(), Vec::new());
    for (key, value) in pairs {
        match key {
            "select" => {
                let (key, requirement) = label(value);
                selected.add(&key, requirement);
            }
            "affinity" | "or" => {
                if key == "or" {
                    alternatives.push(Requirements::none());
                }
                let (key, requirement) = requirement(value);
                if let Some(last) = alternatives.last_mut() {
                    last.add(&key, requirement);
                }
            }
            "volume" => volumes.push(volume(value)),
            _ => described.word(key, value, words),
        }
    }
    described.class.alternatives = alternatives.iter().map(|term| selected.and(term)).collect();
    if !volumes.is_empty() {
        described.volumes.alternatives = volumes;
    }
    described
}

impl Described {
    /// The words that other words build upon.
    fn identify(&mut self, key: &str, value: &str) {
        match key {
            "ns" => self.namespace = Text::from(value),
            "app" => drop(self.labels.insert(Text::from("app"), Text::from(value))),
            "label" => {
                let (key, value) = value.split_once('=').unwrap_or_else(|| panic!("`{value}`: label=key=value"));
                self.labels.insert(Text::from(key), Text::from(value));
            }
            _ => {}
        }
    }

    fn word(&mut self, key: &str, value: &str, words: &Words<'_>) {
        let class = &mut self.class;
        match key {
            "ns" | "app" | "label" => {}
            "priority" => class.priority = number(value),
            "created" => self.created = number(value),
            "prefer" => {
                let parts = value.split_once(':');
                let (weight, rest) = parts.unwrap_or_else(|| words.unknown(value, "prefer=weight:key:.."));
                let (key, requirement) = requirement(rest);
                let requirements = Requirements::none().with(&key, requirement);
                class.preferences.push(Preference { weight: number(weight), requirements });
            }
            "tolerate" => class.tolerations.push(toleration(value)),
            "spread" => {
                let (constraint, soft) = self.spread(value);
                let list = if soft { &mut self.class.soft_spread } else { &mut self.class.spread };
                list.push(constraint);
            }
            "near" | "away" => {
                let (weight, term) = self.term(value);
                let class = &mut self.class;
                match (key, weight) {
                    ("near", None) => class.affinity.push(term),
                    ("near", Some(weight)) => class.soft_affinity.push(WeightedPodTerm { weight, term }),
                    (_, None) => class.anti_affinity.push(term),
                    (_, Some(weight)) => class.soft_anti_affinity.push(WeightedPodTerm { weight, term }),
                }
            }
            "port" => class.host_ports.push(port(value)),
            "attach" => {
                let (driver, handle) = of_driver(value);
                self.volumes.attachments.insert(Attachment { driver, handle: Text::from(handle) });
            }
            "rule" if value == "claim" => drop(class.unplanned_rules.insert(Rule::ResourceClaim)),
            _ if set(&mut class.requests, key, value) => {}
            _ => words.unknown(key, HINT),
        }
    }

    /// The pod's own `app`.
    fn own(&self) -> Selector {
        let app = self.labels.get("app").cloned().unwrap_or_else(|| Text::from(""));
        Selector::All(vec![LabelRequirement::is("app", app)])
    }

    /// `zone/1`, `host/2?`, and what else there is to say behind further slashes. Says also whether it is soft.
    fn spread(&self, text: &str) -> (SpreadConstraint, bool) {
        let (text, soft) = text.strip_suffix('?').map_or((text, false), |text| (text, true));
        let mut parts = text.split('/');
        let (key, skew) = (parts.next().unwrap_or(""), parts.next().unwrap_or("1"));
        let mut constraint = SpreadConstraint {
            topology_key: Text::from(long_key(key)),
            max_skew: number(skew),
            min_domains: 1,
            selector: self.own(),
            node_affinity_policy: Inclusion::Honor,
            node_taints_policy: Inclusion::Ignore,
        };
        for part in parts {
            match part.split_once('=').unwrap_or((part, "")) {
                ("taints", _) => constraint.node_taints_policy = Inclusion::Honor,
                ("anywhere", _) => constraint.node_affinity_policy = Inclusion::Ignore,
                ("min", least) => constraint.min_domains = number(least),
                ("of", _) => constraint.selector = selector(part.trim_start_matches("of=")),
                _ => panic!("`{part}` in `{text}`: a spread has min=, taints, anywhere and of="),
            }
        }
        (constraint, soft)
    }

    /// `zone`, `zone:app=web`, `50:zone:app=web`, each with `@namespaces` behind it. Says also the weight of a wish.
    fn term(&self, text: &str) -> (Option<i32>, PodTerm) {
        let (text, scope) = text.split_once('@').map_or((text, None), |(text, scope)| (text, Some(scope)));
        let (weight, text) = match text.split_once(':') {
            Some((weight, rest)) if weight.parse::<i32>().is_ok() => (Some(number(weight)), rest),
            _ => (None, text),
        };
        let (key, selected) = text.split_once(':').map_or((text, None), |(key, selected)| (key, Some(selected)));
        let namespaces = match scope {
            None => NamespaceScope::only(self.namespace.clone()),
            Some("*") => NamespaceScope::all(),
            Some(scope) => match scope.strip_prefix('?') {
                Some(labels) => NamespaceScope { listed: [].into(), selector: Some(selector(labels)) },
                None => NamespaceScope { listed: scope.split('|').map(Text::from).collect(), selector: None },
            },
        };
        let selector = selected.map_or_else(|| self.own(), selector);
        (weight, PodTerm { topology_key: Text::from(long_key(key)), selector, namespaces })
    }
}

/// `zone:a|b`, and more behind commas.
fn volume(text: &str) -> Requirements {
    let hint = || panic!("`{text}`: volume=key:value|value,key:value");
    text.split(',').fold(Requirements::none(), |all, part| {
        let (key, values) = part.split_once(':').unwrap_or_else(hint);
        all.with(long_key(key), Requirement::any_of(values.split('|')))
    })
}

/// `key`, `key=value` or either with `:Effect` behind it.
fn toleration(text: &str) -> Toleration {
    let (rest, effect) = match text.rsplit_once(':') {
        Some((rest, effect)) => (rest, Some(Effect::parse(effect).unwrap_or_else(|| taint(text).effect))),
        None => (text, None),
    };
    let (key, value) = rest.split_once('=').map_or((rest, None), |(key, value)| (key, Some(value)));
    let operator = if value.is_some() { TolerationOperator::Equal } else { TolerationOperator::Exists };
    Toleration { key: Some(Text::from(key)), operator, value: Text::from(value.unwrap_or("")), effect }
}
