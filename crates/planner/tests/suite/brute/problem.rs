//! A snapshot boiled down to numbers: kinds of pods, nodes that are there, nodes that could be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Labels, NodeName, Pool, Price, ResourceName, Resources, Snapshot, Text, labels};
use referee::{
    NewNode, NodeFacts, PodFacts, Question, Situation, new_nodes, pending_pods, reachable_domains, situation,
};

/// Pods that nothing tells apart but their names.
pub(crate) struct Kind {
    pub(super) pods: Vec<Arc<PodFacts>>,
    pub(super) priority: i32,
    pub(super) requests: Vec<i64>,
    /// Nodes that could take one if rules between waiting pods are left aside.
    pub(super) nodes: Vec<bool>,
    /// Candidates that could.
    pub(super) candidates: u128,
}

/// A node that is there.
pub(super) struct Existing {
    pub(super) name: NodeName,
    pub(super) labels: Labels,
    pub(super) free: Vec<i64>,
}

/// A node that could be made.
pub(super) struct Candidate {
    pub(super) new: NewNode,
    /// Its pool's place among the pools.
    pub(super) pool: usize,
    pub(super) price: Price,
    pub(super) free: Vec<i64>,
}

/// Candidates of one pool that no rule between pods tells apart.
pub(super) struct Group {
    pub(super) pool: usize,
    pub(super) labels: Labels,
    pub(super) members: u128,
}

/// Everything the search needs to know.
pub(crate) struct Problem {
    pub(super) base: Situation,
    pub(super) domains: Vec<NodeFacts>,
    /// In the order in which they are tried.
    pub(super) pools: Vec<Arc<Pool>>,
    pub(super) kinds: Vec<Kind>,
    pub(super) existing: Vec<Existing>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) groups: Vec<Group>,
    /// Labels within whose domains two kinds exclude each other.
    pub(super) conflicts: Vec<Vec<BTreeSet<Text>>>,
    /// After each kind, the kinds about which nothing is open any more; see [`settled`].
    pub(super) settled: Vec<Option<Vec<usize>>>,
    /// Whether a rule depends on who comes first.
    pub(super) has_order: bool,
}

impl Problem {
    pub(crate) fn new(snapshot: &Snapshot, overhead: Price) -> Self {
        let base = situation(snapshot);
        let mut pools = snapshot.pools.clone();
        pools.sort_by(|one, other| other.weight.cmp(&one.weight).then_with(|| other.name.cmp(&one.name)));
        let pods = pending_pods(snapshot);
        let resources: BTreeSet<ResourceName> = pods
            .iter()
            .flat_map(|pod| pod.requests.iter().filter(|(_, amount)| *amount > 0).map(|(name, _)| name.clone()))
            .collect();
        let amounts = |of: &Resources| resources.iter().map(|name| of.get(name)).collect::<Vec<i64>>();
        let existing = base.nodes().map(|node| Existing {
            name: node.name.clone(),
            labels: node.labels.clone(),
            free: amounts(&free_of(&base, node)),
        });
        let existing: Vec<Existing> = existing.collect();
        let mut candidates = Vec::new();
        for (index, pool) in pools.iter().enumerate() {
            // A stand-in for the daemons takes one seat, which is part of what is free.
            let seat = Resources::none().with(ResourceName::pods(), 1);
            candidates.extend(new_nodes(snapshot, pool).into_iter().map(|new| Candidate {
                pool: index,
                price: new.price.plus(overhead),
                free: amounts(&new.node.allocatable.minus(&seat)),
                new,
            }));
        }
        assert!(candidates.len() <= 128, "at most 128 ways to buy a node");
        let groups = groups(&candidates, &topology_keys(&pods));
        let kinds = kinds(&base, &pods, &existing, &candidates, &amounts);
        let has_order = pods.iter().any(|pod| !pod.spread.is_empty() || !pod.affinity.is_empty());
        let conflicts = conflicts(&kinds);
        let domains = reachable_domains(snapshot);
        let settled = settled(&kinds);
        Self { base, domains, pools, kinds, existing, candidates, groups, conflicts, settled, has_order }
    }

    /// The cheapest of some candidates.
    pub(super) fn cheapest(&self, among: u128) -> Option<usize> {
        bits(among).min_by_key(|index| self.candidates[*index].price)
    }
}

/// The positions of the ones.
pub(super) fn bits(mut mask: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(index)
    })
}

fn free_of(base: &Situation, node: &NodeFacts) -> Resources {
    let mut free = Resources::none();
    for (name, amount) in node.allocatable.iter() {
        let taken =
            if *name == ResourceName::pods() { base.pod_count(&node.name) } else { base.requested(&node.name, name) };
        free.set(name.clone(), amount.saturating_sub(taken));
    }
    free
}

fn topology_keys(pods: &[PodFacts]) -> BTreeSet<Text> {
    let spread = pods.iter().flat_map(|pod| &pod.spread).map(|constraint| &constraint.topology_key);
    let terms = pods.iter().flat_map(|pod| pod.affinity.iter().chain(&pod.anti_affinity));
    let keys = spread.chain(terms.map(|term| &term.topology_key));
    keys.filter(|key| &***key != labels::HOSTNAME).cloned().collect()
}

fn groups(candidates: &[Candidate], keys: &BTreeSet<Text>) -> Vec<Group> {
    let mut groups: BTreeMap<(usize, Labels), u128> = BTreeMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let told = candidate.new.node.labels.iter().filter(|(key, _)| keys.contains(*key));
        let labels: Labels = told.map(|(key, value)| (key.clone(), value.clone())).collect();
        *groups.entry((candidate.pool, labels)).or_default() |= 1 << index;
    }
    groups.into_iter().map(|((pool, labels), members)| Group { pool, labels, members }).collect()
}

fn kinds(
    base: &Situation,
    pods: &[PodFacts],
    existing: &[Existing],
    candidates: &[Candidate],
    amounts: &dyn Fn(&Resources) -> Vec<i64>,
) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for pod in pods {
        let twin = |kind: &&mut Kind| {
            let first = &kind.pods[0];
            let renamed = PodFacts { key: first.key.clone(), volumes: first.volumes.clone(), ..pod.clone() };
            renamed == **first
                && pod.key.namespace == first.key.namespace
                && pod.volumes.is_empty() == first.volumes.is_empty()
                && pod.volumes.iter().zip(&first.volumes).all(|(one, other)| one.place == other.place)
        };
        if let Some(kind) = kinds.iter_mut().find(twin) {
            kind.pods.push(Arc::new(pod.clone()));
            continue;
        }
        // Without the rules that depend on who else comes.
        let alone = PodFacts { spread: Vec::new(), affinity: Vec::new(), ..pod.clone() };
        let question = Question::new(base, &alone);
        let nodes = existing.iter().map(|node| question.objections(&node.name).is_empty()).collect();
        let fits = |candidate: &Candidate| {
            let mut trial = base.clone();
            let name = NodeName::new("a new node");
            candidate.new.join(&mut trial, &name);
            Question::new(&trial, &alone).objections(&name).is_empty()
        };
        let fitting = candidates.iter().enumerate().filter(|(_, candidate)| fits(candidate));
        kinds.push(Kind {
            pods: vec![Arc::new(pod.clone())],
            priority: pod.priority,
            requests: amounts(&pod.requests),
            nodes,
            candidates: fitting.fold(0, |mask, (index, _)| mask | 1 << index),
        });
    }
    // Those whom rules speak of first, then those with rules: what is ruled out need not be tried with all the others.
    let spoken_of = |kind: &Kind| kinds.iter().any(|other| heeds(other, kind));
    let rank = |kind: &Kind| match (is_ruled(kind), spoken_of(kind)) {
        (false, true) => 0,
        (true, _) => 1,
        (false, false) => 2,
    };
    let ranks: Vec<i32> = kinds.iter().map(rank).collect();
    let mut ranked: Vec<(i32, Kind)> = ranks.into_iter().zip(kinds).collect();
    ranked.sort_by_key(|(rank, kind)| (*rank, std::cmp::Reverse((kind.priority, kind.requests.clone()))));
    ranked.into_iter().map(|(_, kind)| kind).collect()
}

/// Whether rules of a kind depend on who is there already.
fn is_ruled(kind: &Kind) -> bool {
    !kind.pods[0].spread.is_empty() || !kind.pods[0].affinity.is_empty()
}

/// Whether such a rule of one kind speaks of the other.
fn heeds(one: &Kind, other: &Kind) -> bool {
    let (one, other) = (&one.pods[0], &other.pods[0]);
    let by_spread = one
        .spread
        .iter()
        .any(|constraint| one.key.namespace == other.key.namespace && constraint.selector.matches(&other.labels));
    by_spread || one.affinity.iter().any(|term| term.matches(other))
}

/// After each kind, the kinds so far whose rules depend on nobody who comes later, if this kind with rules is one of
/// them: whether they can come about is settled.
fn settled(kinds: &[Kind]) -> Vec<Option<Vec<usize>>> {
    let after = |last: usize| {
        let mut closed: Vec<usize> = (0..=last).collect();
        loop {
            let open = |kind: &usize| {
                (0..kinds.len()).any(|other| !closed.contains(&other) && heeds(&kinds[*kind], &kinds[other]))
            };
            let Some(position) = closed.iter().position(open) else { break };
            closed.remove(position);
        }
        (is_ruled(&kinds[last]) && closed.contains(&last)).then_some(closed)
    };
    (0..kinds.len()).map(after).collect()
}

/// Who keeps whom away, and from what: ports share no host, and anti-affinity works both ways.
fn conflicts(kinds: &[Kind]) -> Vec<Vec<BTreeSet<Text>>> {
    let one_way = |one: &PodFacts, other: &PodFacts| {
        let terms = one.anti_affinity.iter().filter(|term| term.matches(other));
        terms.map(|term| term.topology_key.clone()).collect::<BTreeSet<Text>>()
    };
    let both = |one: &Kind, other: &Kind| {
        let (one, other) = (&one.pods[0], &other.pods[0]);
        let mut keys = one_way(one, other);
        keys.extend(one_way(other, one));
        let ports = || one.host_ports.iter().flat_map(|port| other.host_ports.iter().map(move |it| (port, it)));
        if ports().any(|(port, it)| port.collides_with(it)) {
            keys.insert(Text::from(labels::HOSTNAME));
        }
        keys
    };
    kinds.iter().map(|one| kinds.iter().map(|other| both(one, other)).collect()).collect()
}
