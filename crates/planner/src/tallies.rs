//! How many pods of which selection are where: the memory behind spreading, affinity and anti-affinity.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    BoundKind, Effect, Labels, NamespaceScope, PlaceId, PodTerm, Requirements, Selector, Snapshot, Stage, Taint, Text,
    Toleration, Undefined, labels,
};

use crate::places::PlaceView;

/// A tally by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TallyId(pub(crate) usize);

/// A topology label by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyId(pub(crate) usize);

/// A value of a topology label by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Domain(pub(crate) usize);

/// Which pods are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counted {
    /// Those that a rule selects.
    Selected(NamespaceScope, Selector),
    /// Those that have this term of anti-affinity themselves.
    Owners(PodTerm),
}

/// On which nodes pods are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeFilter {
    /// One of these must hold; none means every node.
    pub(crate) alternatives: Vec<Requirements>,
    /// Whose taints these cover; `None` does not look at taints.
    pub(crate) tolerations: Option<Vec<Toleration>>,
    /// Labels that the node must have.
    pub(crate) keys: BTreeSet<Text>,
}

impl NodeFilter {
    pub(crate) fn admits_taints(&self, taints: &[Taint]) -> bool {
        let hard = |taint: &&Taint| taint.effect != Effect::PreferNoSchedule;
        self.tolerations.as_ref().is_none_or(|tolerations| {
            let covered = |taint: &Taint| tolerations.iter().any(|toleration| toleration.tolerates(taint));
            taints.iter().filter(hard).all(covered)
        })
    }

    fn admits(&self, place: &model::Place) -> bool {
        let known = |key: &Text| place.requirements.get(key).is_some_and(|own| own.single_value().is_some());
        let labelled = self.keys.iter().all(|key| &**key == labels::HOSTNAME || known(key));
        let meets = |wanted: &Requirements| place.requirements.satisfy(wanted, Undefined::IsAbsent).is_ok();
        labelled
            && (self.alternatives.is_empty() || self.alternatives.iter().any(meets))
            && self.admits_taints(&place.taints)
    }
}

/// What a tally counts: pods, by the values of one label, on some nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    pub(crate) key: Text,
    pub(crate) counted: Counted,
    pub(crate) filter: NodeFilter,
}

/// The counts of one subject.
pub(crate) struct Tally {
    pub(crate) subject: Subject,
    pub(crate) key: KeyId,
    /// By domain, for labels that several nodes share; by place, for the host name.
    counts: Vec<u32>,
    /// All counted pods, wherever they are.
    pub(crate) total: u32,
    /// Places on nodes that count; empty when all do.
    counting: Vec<bool>,
}

/// A topology label with the values that places and pools know.
struct Key {
    name: Text,
    values: Vec<Text>,
    numbers: BTreeMap<Text, Domain>,
    /// The domain of each place.
    of_place: Vec<Option<Domain>>,
}

/// All tallies of a placement.
pub(crate) struct Tallies<'a> {
    snapshot: &'a Snapshot,
    keys: Vec<Key>,
    numbers: BTreeMap<Subject, TallyId>,
    tallies: Vec<Tally>,
    /// The places of each kind of running pods, looked up once.
    seats: Vec<Option<Vec<(usize, u32)>>>,
    /// Nodes among the places, in the order of their names.
    nodes: Vec<(&'a str, usize)>,
}

impl<'a> Tallies<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, places: &[PlaceView<'a>]) -> Self {
        let seats = snapshot.bound.iter().map(|_| None).collect();
        let mut nodes: Vec<(&'a str, usize)> = Vec::with_capacity(places.len());
        for (index, view) in places.iter().enumerate() {
            if let PlaceId::Node(name) = &view.place.id {
                nodes.push((name.as_str(), index));
            }
        }
        nodes.sort_unstable();
        Self { snapshot, keys: Vec::new(), numbers: BTreeMap::new(), tallies: Vec::new(), seats, nodes }
    }

    pub(crate) fn len(&self) -> usize {
        self.tallies.len()
    }

    pub(crate) fn is_host(key: &str) -> bool {
        key == labels::HOSTNAME
    }

    /// The number of a subject; running pods are counted when it is new.
    pub(crate) fn number(&mut self, subject: Subject, places: &[PlaceView<'_>]) -> TallyId {
        if let Some(known) = self.numbers.get(&subject) {
            return *known;
        }
        let key = self.key(&subject.key, places);
        let number = TallyId(self.tallies.len());
        self.numbers.insert(subject.clone(), number);
        let counting = if subject.filter == NodeFilter::default() {
            Vec::new()
        } else {
            places.iter().map(|view| view.place.stage == Stage::Promised || subject.filter.admits(view.place)).collect()
        };
        let counts = vec![0; if Self::is_host(&subject.key) { places.len() } else { self.keys[key.0].values.len() }];
        self.tallies.push(Tally { subject, key, counts, total: 0, counting });
        self.count_bound(number);
        number
    }

    /// The number of a topology label.
    pub(crate) fn key(&mut self, name: &Text, places: &[PlaceView<'_>]) -> KeyId {
        if let Some(known) = self.keys.iter().position(|key| key.name == *name) {
            return KeyId(known);
        }
        let mut key =
            Key { name: Text::clone(name), values: Vec::new(), numbers: BTreeMap::new(), of_place: Vec::new() };
        for view in places {
            let value = if Self::is_host(name) { None } else { view.place.requirements.get(name) };
            let domain = value.and_then(|value| value.single_value()).map(|value| key.domain(value));
            key.of_place.push(domain);
        }
        self.keys.push(key);
        KeyId(self.keys.len() - 1)
    }

    pub(crate) fn key_name(&self, key: KeyId) -> &Text {
        &self.keys[key.0].name
    }

    pub(crate) fn domain_name(&self, key: KeyId, domain: Domain) -> &Text {
        &self.keys[key.0].values[domain.0]
    }

    /// The number of a value.
    pub(crate) fn domain(&mut self, key: KeyId, value: &Text) -> Domain {
        self.keys[key.0].domain(value)
    }

    pub(crate) fn domain_of_place(&self, key: KeyId, place: usize) -> Option<Domain> {
        self.keys[key.0].of_place[place]
    }

    /// The domains of a place, by label.
    pub(crate) fn domains_of_place(&self, place: usize) -> BTreeMap<KeyId, Domain> {
        let domain = |(key, known): (usize, &Key)| Some((KeyId(key), known.of_place[place]?));
        self.keys.iter().enumerate().filter_map(domain).collect()
    }

    /// Whether the node of a place counts for a tally.
    pub(crate) fn counts_on(&self, tally: TallyId, place: usize) -> bool {
        self.tallies[tally.0].counts_on(place)
    }

    pub(crate) fn get(&self, tally: TallyId) -> &Tally {
        &self.tallies[tally.0]
    }

    /// Counts pods that this plan puts into a domain.
    pub(crate) fn add(&mut self, tally: TallyId, domain: Domain, pods: u32) {
        let tally = &mut self.tallies[tally.0];
        if tally.counts.len() <= domain.0 {
            tally.counts.resize(domain.0 + 1, 0);
        }
        tally.counts[domain.0] += pods;
        tally.total += pods;
    }

    /// Counts pods of which only the host is settled.
    pub(crate) fn add_somewhere(&mut self, tally: TallyId, pods: u32) {
        self.tallies[tally.0].total += pods;
    }

    /// Counts pods that this plan puts onto a place.
    pub(crate) fn add_on_place(&mut self, tally: TallyId, place: usize, pods: u32) {
        if !self.tallies[tally.0].counts_on(place) {
            return;
        }
        if Self::is_host(&self.tallies[tally.0].subject.key) {
            self.add(tally, Domain(place), pods);
        } else if let Some(domain) = self.domain_of_place(self.tallies[tally.0].key, place) {
            self.add(tally, domain, pods);
        }
    }

    /// The domains of places whose nodes count for a tally.
    pub(crate) fn domains_of_places(&self, tally: TallyId) -> BTreeSet<Domain> {
        let tally = &self.tallies[tally.0];
        let places = self.keys[tally.key.0].of_place.iter().enumerate();
        places.filter(|(place, _)| tally.counts_on(*place)).filter_map(|(_, domain)| *domain).collect()
    }

    /// Whether a rule about these pods speaks of a pod.
    pub(crate) fn speaks_of(&self, counted: &Counted, namespace: &Text, labels: &Labels) -> bool {
        let (scope, selector) = match counted {
            Counted::Selected(scope, selector) => (scope, selector),
            Counted::Owners(term) => (&term.namespaces, &term.selector),
        };
        scope.contains(namespace, self.snapshot.namespaces.get(namespace)) && selector.matches(labels)
    }

    fn counts_kind(&self, counted: &Counted, kind: &BoundKind) -> bool {
        match counted {
            Counted::Selected(..) => self.speaks_of(counted, &kind.namespace, &kind.labels),
            Counted::Owners(term) => kind.anti_affinity.contains(term),
        }
    }

    fn count_bound(&mut self, number: TallyId) {
        let bound = &self.snapshot.bound;
        for (index, (kind, nodes)) in bound.iter().enumerate() {
            if !self.counts_kind(&self.tallies[number.0].subject.counted, kind) {
                continue;
            }
            let seats = self.seats[index].take().unwrap_or_else(|| seats(nodes, &self.nodes));
            seats.iter().for_each(|(place, pods)| self.add_on_place(number, *place, *pods));
            self.seats[index] = Some(seats);
        }
    }
}

impl Key {
    fn domain(&mut self, value: &Text) -> Domain {
        if let Some(known) = self.numbers.get(value) {
            return *known;
        }
        let number = Domain(self.values.len());
        self.values.push(Text::clone(value));
        self.numbers.insert(Text::clone(value), number);
        number
    }
}

impl Tally {
    pub(crate) fn count(&self, domain: Domain) -> u32 {
        self.counts.get(domain.0).copied().unwrap_or(0)
    }

    fn counts_on(&self, place: usize) -> bool {
        self.counting.get(place).copied().unwrap_or(true)
    }
}

/// The places of running pods. Both lists are in the order of node names, so one walk along both finds all.
fn seats(pods: &BTreeMap<model::NodeName, u32>, nodes: &[(&str, usize)]) -> Vec<(usize, u32)> {
    let mut found = Vec::with_capacity(pods.len());
    let mut known = nodes.iter().peekable();
    for (name, count) in pods {
        while known.next_if(|(node, _)| *node < name.as_str()).is_some() {}
        if let Some((_, place)) = known.next_if(|(node, _)| *node == name.as_str()) {
            found.push((*place, *count));
        }
    }
    found
}
