//! Clusters and plans as text.
//!
//! One line per object, `#` begins a comment. Short keys stand for well-known labels: `zone`, `arch`, `os`, `type`,
//! `capacity`, `pool`. A requirement is `key:Operator:value|value`.
//!
//! ```text
//! type   m.large cpu=2 mem=8Gi arch=amd64 a:0.10 spot:b:0.03 !c:0.10      (! = not for sale)
//! pool   default weight=10 limit.cpu=8 used.cpu=2 require=arch:In:amd64 taint=gpu=yes:NoSchedule label=team=a
//! node   n1 pool=default cpu=4 used.cpu=2 daemons.cpu=100m label=zone=a taint=gpu=yes:NoSchedule
//! joining n2 ...                                                          (a node that is not usable yet)
//! claim  c1 ... require=zone:In:a|b                                       (a claim without a node)
//! daemon logs cpu=100m select=team=a tolerate=gpu
//! pod    web*3 cpu=1 priority=5 select=zone=a affinity=arch:In:arm64 or=arch:In:amd64 prefer=50:zone:In:b
//! show   requests requirements                                            (say more about claims)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use expect_test::Expect;
use model::{
    ClaimName, Daemon, Effect, InstanceType, NodeName, Offering, Operator, PendingGroup, Place, PlaceId, Plan,
    PodClass, PodKey, Pool, PoolName, Preference, Price, Requirement, Requirements, ResourceName, Resources, Revision,
    Rule, Snapshot, Stage, Taint, Text, Toleration, TolerationOperator, TypeName, Vocabulary, labels, parse_quantity,
};
use planner::{PlaceConfig, place};

/// Compares the plan for a scenario with what is expected of it.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "expect![..] reads better at the call sites without a reference")]
pub(crate) fn check(text: &str, expected: Expect) {
    expected.assert_eq(&planned(text));
}

/// The plan for a scenario, as text.
pub(crate) fn planned(text: &str) -> String {
    let scenario = Scenario::parse(text);
    let plan = place(&scenario.snapshot, &PlaceConfig::default());
    scenario.render(&plan)
}

/// A parsed scenario.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) snapshot: Snapshot,
    show: BTreeSet<String>,
}

/// The words of a line after the first two.
struct Words<'a> {
    line: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn unknown(&self, word: &str, hint: &str) -> ! {
        panic!("unknown word `{word}` in `{}`: {hint}", self.line)
    }

    /// Splits `key=value` words.
    fn pairs(&self, hint: &str) -> Vec<(&'a str, &'a str)> {
        let pair = |word: &&'a str| word.split_once('=').unwrap_or_else(|| self.unknown(word, hint));
        self.words.iter().map(pair).collect()
    }
}

impl Scenario {
    /// Reads a scenario; a word it does not know is a mistake in the test.
    pub(crate) fn parse(text: &str) -> Self {
        let lines =
            text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).filter(|line| !line.is_empty());
        let (mut types, mut pools, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let (mut pending, mut daemons, mut show) = (Vec::new(), Vec::new(), BTreeSet::new());
        for line in lines {
            let mut words = line.split_whitespace();
            let (kind, name) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let words = Words { line, words: words.collect() };
            match kind {
                "type" => types.push(instance_type(name, &words)),
                "pool" => pools.push(pool(name, &words)),
                "node" => places.push(Arc::new(existing(name, Stage::Ready, &words))),
                "joining" => places.push(Arc::new(existing(name, Stage::Joining, &words))),
                "claim" => places.push(Arc::new(existing(name, Stage::Promised, &words))),
                "daemon" => daemons.push(Arc::new(Daemon { name: Text::from(name), class: Arc::new(class(&words)) })),
                "pod" => pending.push(group(name, &words)),
                "show" => show.extend([name].iter().chain(&words.words).map(ToString::to_string)),
                _ => words.unknown(kind, "a line begins with type, pool, node, joining, claim, daemon, pod or show"),
            }
        }
        let types: Arc<[Arc<InstanceType>]> = types.into();
        let pools = pools.into_iter().map(|pool| Arc::new(Pool { types: Arc::clone(&types), ..pool })).collect();
        let vocabulary = Arc::new(Vocabulary::core());
        let snapshot = Snapshot { revision: Revision(1), vocabulary, pools, places, pending, daemons };
        Self { snapshot, show }
    }

    /// One line per claim, nomination, refusal and barren pool.
    pub(crate) fn render(&self, plan: &Plan) -> String {
        let mut lines = Vec::new();
        for claim in &plan.claims {
            let types: Vec<&str> = claim.types.iter().map(TypeName::as_str).collect();
            let zones = self.zones(claim);
            let (types, zones) = (types.join("|"), zones.join("|"));
            lines.push(format!("{} {types} {zones} ${}: {}", claim.pool, claim.price.dollars(), names(&claim.pods)));
            if self.show.contains("requests") {
                lines.push(format!("  requests {}", claim.requests));
            }
            if self.show.contains("requirements") {
                lines.push(format!("  requirements {}", claim.requirements));
            }
        }
        lines.extend(
            plan.nominations.iter().map(|nomination| format!("{}: {}", nomination.place, names(&nomination.pods))),
        );
        for unplaced in &plan.unplaced {
            lines.push(format!("nowhere: {}", names(&unplaced.pods)));
            lines.extend(unplaced.refusals.iter().map(|refusal| format!("  {refusal}")));
        }
        lines.extend(plan.barren_pools.iter().map(|refusal| format!("barren {refusal}")));
        lines.join("\n")
    }

    /// The zones in which the claim can be bought.
    fn zones(&self, claim: &model::PlannedClaim) -> Vec<Text> {
        let pool = self.snapshot.pools.iter().find(|pool| pool.name == claim.pool).unwrap();
        let listed = pool.types.iter().filter(|kind| claim.types.contains(&kind.name));
        let offerings = listed.flat_map(|kind| kind.offerings_for(&claim.requirements));
        let zones: BTreeSet<Text> = offerings.filter_map(|offering| offering.zone().cloned()).collect();
        zones.into_iter().collect()
    }
}

fn names(pods: &[PodKey]) -> String {
    pods.iter().map(|pod| &*pod.name).collect::<Vec<_>>().join(" ")
}

/// The label that a short key stands for.
fn long_key(key: &str) -> &str {
    match key {
        "zone" => labels::ZONE,
        "arch" => labels::ARCH,
        "os" => labels::OS,
        "type" => labels::INSTANCE_TYPE,
        "capacity" => labels::CAPACITY_TYPE,
        "pool" => labels::NODE_POOL,
        _ => key,
    }
}

fn resource(key: &str) -> Option<ResourceName> {
    match key {
        "cpu" | "pods" | "nodes" => Some(ResourceName::new(key)),
        "mem" => Some(ResourceName::memory()),
        "gpu" => Some(ResourceName::new("nvidia.com/gpu")),
        _ => None,
    }
}

/// Sets a resource if the key names one.
fn set(resources: &mut Resources, key: &str, value: &str) -> bool {
    let Some(name) = resource(key) else { return false };
    let amount = parse_quantity(&name, value).unwrap();
    resources.set(name, amount);
    true
}

fn requirement(text: &str) -> (String, Requirement) {
    let mut parts = text.splitn(3, ':');
    let key = long_key(parts.next().unwrap()).to_owned();
    let operator = parts.next().and_then(Operator::parse);
    let operator = operator.unwrap_or_else(|| panic!("`{text}`: write a requirement as key:Operator:value|value"));
    let values: Vec<&str> = parts.next().map_or_else(Vec::new, |values| values.split('|').collect());
    (key, Requirement::new(operator, values).unwrap())
}

fn label(text: &str) -> (String, Requirement) {
    let (key, value) = text.split_once('=').unwrap_or_else(|| panic!("`{text}`: write a label as key=value"));
    (long_key(key).to_owned(), Requirement::is(value))
}

fn taint(text: &str) -> Taint {
    let (rest, effect) = text.rsplit_once(':').unwrap_or_else(|| panic!("`{text}`: write a taint as key=value:Effect"));
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    Taint::new(key, value, Effect::parse(effect).unwrap())
}

fn instance_type(name: &str, words: &Words<'_>) -> Arc<InstanceType> {
    let mut capacity = Resources::none().with(ResourceName::pods(), 110);
    let mut overhead = Resources::none();
    let mut known: BTreeMap<String, Requirement> = BTreeMap::new();
    known.insert("arch".to_owned(), Requirement::is("amd64"));
    known.insert("os".to_owned(), Requirement::is("linux"));
    let (mut offerings, mut zones, mut capacity_types) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for word in &words.words {
        if let Some((key, value)) = word.split_once('=') {
            match (key, key.strip_prefix("overhead.")) {
                ("arch" | "os", _) => drop(known.insert(key.to_owned(), Requirement::is(value))),
                ("label", _) => known.extend([label(value)]),
                (_, Some(key)) if set(&mut overhead, key, value) => {}
                _ if set(&mut capacity, key, value) => {}
                _ => words.unknown(word, "a type has resources, overhead.*, arch, os, label and offerings"),
            }
            continue;
        }
        let (available, word) = word.strip_prefix('!').map_or((true, *word), |word| (false, word));
        let parts: Vec<&str> = word.split(':').collect();
        let (capacity_type, zone, price) = match parts[..] {
            [zone, price] => ("on-demand", zone, price),
            [capacity_type, zone, price] => (capacity_type, zone, price),
            _ => words.unknown(word, "write an offering as zone:price or capacity:zone:price"),
        };
        zones.insert(zone);
        capacity_types.insert(capacity_type);
        let requirements = Requirements::none()
            .with(labels::ZONE, Requirement::is(zone))
            .with(labels::CAPACITY_TYPE, Requirement::is(capacity_type));
        let price = Price::from_dollars(price.parse().unwrap());
        offerings.push(Offering { requirements, price, available, reservation_capacity: None });
    }
    let mut requirements = Requirements::none()
        .with(labels::INSTANCE_TYPE, Requirement::is(name))
        .with(labels::ZONE, Requirement::any_of(zones))
        .with(labels::CAPACITY_TYPE, Requirement::any_of(capacity_types));
    known.into_iter().for_each(|(key, requirement)| requirements.add(long_key(&key), requirement));
    InstanceType::new(TypeName::new(name), requirements, capacity, overhead, offerings)
}

fn pool(name: &str, words: &Words<'_>) -> Pool {
    let mut pool = Pool {
        name: PoolName::new(name),
        weight: 0,
        requirements: Requirements::none().with(labels::NODE_POOL, Requirement::is(name)),
        taints: Vec::new(),
        limits: Resources::none(),
        in_use: Resources::none(),
        types: Arc::from([]),
    };
    let hint = "a pool has weight, limit.*, used.*, require, label and taint";
    for (key, value) in words.pairs(hint) {
        let (limit, used) = (key.strip_prefix("limit."), key.strip_prefix("used."));
        match (key, limit, used) {
            ("weight", ..) => pool.weight = value.parse().unwrap(),
            ("require" | "label", ..) => {
                let (key, requirement) = if key == "label" { label(value) } else { requirement(value) };
                pool.requirements.add(&key, requirement);
            }
            ("taint", ..) => pool.taints.push(taint(value)),
            (_, Some(key), _) if set(&mut pool.limits, key, value) => {}
            (_, _, Some(key)) if set(&mut pool.in_use, key, value) => {}
            _ => words.unknown(key, hint),
        }
    }
    pool
}

fn existing(name: &str, stage: Stage, words: &Words<'_>) -> Place {
    let promised = stage == Stage::Promised;
    let mut place = Place {
        id: if promised { PlaceId::Claim(ClaimName::new(name)) } else { PlaceId::Node(NodeName::new(name)) },
        pool: None,
        stage,
        requirements: Requirements::none(),
        taints: Vec::new(),
        allocatable: Resources::none().with(ResourceName::pods(), 110),
        used: Resources::none(),
        used_by_daemons: Resources::none(),
    };
    let hint = "a place has resources, used.*, daemons.*, pool, label, require and taint";
    for (key, value) in words.pairs(hint) {
        let (used, daemons) = (key.strip_prefix("used."), key.strip_prefix("daemons."));
        match (key, used, daemons) {
            ("pool", ..) => {
                place.pool = Some(PoolName::new(value));
                place.requirements.add(labels::NODE_POOL, Requirement::is(value));
            }
            ("label" | "require", ..) => {
                let (key, requirement) = if key == "label" { label(value) } else { requirement(value) };
                place.requirements.add(&key, requirement);
            }
            ("taint", ..) => place.taints.push(taint(value)),
            (_, Some(key), _) if set(&mut place.used, key, value) => {}
            (_, _, Some(key)) if set(&mut place.used_by_daemons, key, value) => {}
            _ if set(&mut place.allocatable, key, value) => {}
            _ => words.unknown(key, hint),
        }
    }
    place
}

fn class(words: &Words<'_>) -> PodClass {
    let mut requests = Resources::none().with(ResourceName::pods(), 1);
    let (mut priority, mut selector, mut terms) = (0, Requirements::none(), vec![Requirements::none()]);
    let (mut preferences, mut tolerations, mut unplanned_rules) = (Vec::new(), Vec::new(), BTreeSet::new());
    let hint = "a pod has resources, priority, select, affinity, or, prefer, tolerate and rule";
    for (key, value) in words.pairs(hint) {
        match key {
            "priority" => priority = value.parse().unwrap(),
            "select" => {
                let (key, requirement) = label(value);
                selector.add(&key, requirement);
            }
            "affinity" | "or" => {
                if key == "or" {
                    terms.push(Requirements::none());
                }
                let (key, requirement) = requirement(value);
                terms.last_mut().unwrap().add(&key, requirement);
            }
            "prefer" => {
                let (weight, rest) =
                    value.split_once(':').unwrap_or_else(|| words.unknown(value, "prefer=weight:key:.."));
                let (key, requirement) = requirement(rest);
                let requirements = Requirements::none().with(&key, requirement);
                preferences.push(Preference { weight: weight.parse().unwrap(), requirements });
            }
            "tolerate" => tolerations.push(toleration(value)),
            "rule" => drop(unplanned_rules.insert(rule(value))),
            _ if set(&mut requests, key, value) => {}
            _ => words.unknown(key, hint),
        }
    }
    let alternatives = terms.iter().map(|term| selector.and(term)).collect();
    PodClass { priority, requests, alternatives, preferences, tolerations, unplanned_rules }
}

fn toleration(text: &str) -> Toleration {
    let (rest, effect) = text.split_once(':').map_or((text, None), |(rest, effect)| (rest, Effect::parse(effect)));
    let (key, value) = rest.split_once('=').map_or((rest, None), |(key, value)| (key, Some(value)));
    let operator = if value.is_some() { TolerationOperator::Equal } else { TolerationOperator::Exists };
    Toleration { key: Some(Text::from(key)), operator, value: Text::from(value.unwrap_or("")), effect }
}

fn rule(text: &str) -> Rule {
    match text {
        "spread" => Rule::TopologySpread,
        "hostport" => Rule::HostPort,
        _ => panic!("`{text}`: a rule is spread or hostport"),
    }
}

fn group(name: &str, words: &Words<'_>) -> PendingGroup {
    let key = |name: String| PodKey::new("default", name);
    let pods = match name.split_once('*') {
        Some((name, count)) => (0..count.parse::<u32>().unwrap()).map(|index| key(format!("{name}-{index}"))).collect(),
        None => vec![key(name.to_owned())],
    };
    PendingGroup { class: Arc::new(class(words)), pods }
}
