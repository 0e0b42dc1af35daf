//! What a reading demands of the pods around it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{
    Inclusion, Labels, NamespaceScope, PodClass, PodTerm, Requirements, Selector, SpreadConstraint, Stage, Text, labels,
};

use crate::classes::Class;
use crate::interner::Wants;
use crate::menus::{MenuId, PoolView};
use crate::places::PlaceView;
use crate::readings::Reading;
use crate::tallies::{Counted, Domain, KeyId, NodeFilter, Subject, Tallies, TallyId};

/// Pods of a selection may not pile up in one domain.
#[derive(Clone, Debug)]
pub(crate) struct SpreadRule {
    pub(crate) tally: TallyId,
    pub(crate) key: KeyId,
    pub(crate) max_skew: u32,
    pub(crate) min_domains: u32,
    /// Whether the pod counts itself.
    pub(crate) counts_itself: bool,
    /// The domains among which the emptiest is sought.
    pub(crate) domains: Rc<BTreeSet<Domain>>,
}

/// A pod of the selection must be in the same domain.
#[derive(Clone, Debug)]
pub(crate) struct NearRule {
    pub(crate) tally: TallyId,
    pub(crate) key: KeyId,
    /// Whether the pod is one of those it wants to be near: then it may be the first.
    pub(crate) counts_itself: bool,
}

/// At most so many pods of the selection on one node, the pod itself included if it is one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostLimit {
    pub(crate) tally: TallyId,
    pub(crate) most: u32,
    pub(crate) counts_itself: bool,
    /// Anti-affinity, which works both ways; spreading minds only those who are there already.
    is_exclusive: bool,
}

impl HostLimit {
    /// Whether at most one pod that has this limit goes on a node.
    pub(crate) fn is_solitary(&self) -> bool {
        self.counts_itself && self.most == 1
    }

    /// Whether the limit keeps all others of the selection away, whoever comes first.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }
}

/// No pod of the selection in the same domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwayRule {
    pub(crate) tally: TallyId,
    pub(crate) key: KeyId,
}

/// What one reading of a class demands of the pods around it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) spread: Vec<SpreadRule>,
    pub(crate) near: Vec<NearRule>,
    pub(crate) away: Vec<AwayRule>,
    pub(crate) host: Vec<HostLimit>,
    pub(crate) host_near: Vec<NearRule>,
    /// Labels whose value must be settled for a new node with this pod.
    pub(crate) keys: Vec<KeyId>,
    /// Whether others want to share a host with such a pod.
    pub(crate) is_sought_on_host: bool,
}

impl Rules {
    /// Whether the pod does not care what is around it, and nobody cares for it.
    pub(crate) fn is_free(&self) -> bool {
        self.keys.is_empty() && self.host.is_empty() && self.host_near.is_empty() && !self.is_sought_on_host
    }

    /// Whether the pod comes before those whom only their host concerns: its domain is settled, or others want to join it.
    pub(crate) fn come_first(&self) -> bool {
        !self.keys.is_empty() || self.is_sought_on_host
    }

    /// Whether a node can be filled with such pods without a look at any other node.
    pub(crate) fn are_settled_by_filling(&self) -> bool {
        self.keys.is_empty() && self.host_near.is_empty() && !self.is_sought_on_host
    }
}

/// How the pods of one class look to the rules of all.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Tallies that count such a pod, by domain.
    pub(crate) counted: Vec<TallyId>,
    /// Tallies that count such a pod, by host.
    pub(crate) counted_by_host: Vec<TallyId>,
    /// Owners of terms that keep such a pod away.
    repelled_by: Vec<TallyId>,
    /// Labels by which others want to be near such a pod.
    sought_by: Vec<KeyId>,
    is_sought_on_host: bool,
}

/// The tallies by which some class wants to be near somebody, each with the labels that bind those who do: whoever is
/// sought on its host has to settle these for them.
pub(crate) type Sought = BTreeMap<TallyId, BTreeSet<KeyId>>;

/// Everything needed to turn readings into rules.
pub(crate) struct Rulebook<'r, 'a> {
    pub(crate) tallies: &'r mut Tallies<'a>,
    pub(crate) places: &'r [PlaceView<'a>],
    pub(crate) pools: &'r mut [PoolView<'a>],
    pub(crate) wants: &'r mut Wants,
}

fn spelled(key: &Text) -> Text {
    let current = labels::current_spelling(key);
    if current == &**key { Text::clone(key) } else { Text::from(current) }
}

fn owners(term: &PodTerm) -> Subject {
    Subject { key: spelled(&term.topology_key), counted: Counted::Owners(term.clone()), filter: NodeFilter::default() }
}

fn selected(term: &PodTerm) -> Subject {
    let counted = Counted::Selected(term.namespaces.clone(), term.selector.clone());
    Subject { key: spelled(&term.topology_key), counted, filter: NodeFilter::default() }
}

fn spread_over(constraint: &SpreadConstraint, spec: &PodClass, namespace: &Text) -> Subject {
    // An empty selector counts nobody, as in the kube-scheduler.
    let selector = if constraint.selector.is_everything() { Selector::Nothing } else { constraint.selector.clone() };
    let honors = |policy: Inclusion| policy == Inclusion::Honor;
    let stated = spec.alternatives.iter().all(|alternative| !alternative.is_empty());
    let alternatives =
        if honors(constraint.node_affinity_policy) && stated { spec.alternatives.clone() } else { Vec::new() };
    let tolerations = honors(constraint.node_taints_policy).then(|| spec.tolerations.clone());
    let keys = if spec.spread.len() > 1 {
        spec.spread.iter().map(|other| spelled(&other.topology_key)).collect()
    } else {
        BTreeSet::new()
    };
    let filter = NodeFilter { alternatives, tolerations, keys };
    let counted = Counted::Selected(NamespaceScope::only(Text::clone(namespace)), selector);
    Subject { key: spelled(&constraint.topology_key), counted, filter }
}

impl Rulebook<'_, '_> {
    /// Opens every tally that any reading of these classes, or any running pod, may ask for.
    pub(crate) fn open(&mut self, classes: &[Class<'_>], terms_of_bound: &[&PodTerm]) {
        let Self { tallies, places, .. } = self;
        for class in classes {
            let spec = class.spec.as_ref();
            for constraint in spec.spread.iter().chain(&spec.soft_spread) {
                tallies.number(spread_over(constraint, spec, class.namespace), places);
            }
            let wishes = spec.soft_affinity.iter().chain(&spec.soft_anti_affinity).map(|wish| &wish.term);
            for term in spec.affinity.iter().chain(&spec.anti_affinity).chain(wishes) {
                tallies.number(selected(term), places);
            }
            for term in &spec.anti_affinity {
                tallies.number(owners(term), places);
            }
        }
        for term in terms_of_bound {
            tallies.number(owners(term), places);
        }
    }

    /// How pods with these labels and terms look.
    pub(crate) fn looks(&self, namespace: &Text, labels: &Labels, spec: &PodClass) -> Looks {
        let mut looks = Looks::default();
        for number in (0..self.tallies.len()).map(TallyId) {
            let tally = self.tallies.get(number);
            let speaks = || self.tallies.speaks_of(&tally.subject.counted, namespace, labels);
            let counts = match &tally.subject.counted {
                Counted::Selected(..) => speaks(),
                Counted::Owners(term) => {
                    if speaks() {
                        looks.repelled_by.push(number);
                    }
                    spec.anti_affinity.contains(term)
                }
            };
            if counts && Tallies::is_host(&tally.subject.key) {
                looks.counted_by_host.push(number);
            } else if counts {
                looks.counted.push(number);
            }
        }
        looks
    }

    /// Labels by which some class wants to be near pods that look like this, or by which it is bound once it shares
    /// their host.
    pub(crate) fn seek(&self, looks: &mut Looks, sought: &Sought) {
        let found = looks.counted.iter().filter(|tally| sought.contains_key(tally));
        let mut keys: BTreeSet<KeyId> = found.map(|tally| self.tallies.get(*tally).key).collect();
        keys.extend(looks.counted_by_host.iter().filter_map(|tally| sought.get(tally)).flatten());
        looks.sought_by = keys.into_iter().collect();
        looks.is_sought_on_host = looks.counted_by_host.iter().any(|tally| sought.contains_key(tally));
    }

    /// The tallies by whose domains these classes want to be near somebody.
    pub(crate) fn sought(&mut self, classes: &[Class<'_>]) -> Sought {
        let mut sought = Sought::new();
        for class in classes.iter().filter(|class| !class.spec.affinity.is_empty()) {
            let keys = self.keys_of(class);
            for term in &class.spec.affinity {
                let tally = self.tallies.number(selected(term), self.places);
                sought.entry(tally).or_default().extend(&keys);
            }
        }
        sought
    }

    /// Labels, other than the host, that decide where pods of a class may be, by rules that must hold.
    fn keys_of(&mut self, class: &Class<'_>) -> BTreeSet<KeyId> {
        let spec = class.spec.as_ref();
        let spread = spec.spread.iter().map(|constraint| spread_over(constraint, spec, class.namespace));
        let subjects: Vec<Subject> =
            spread.chain(spec.affinity.iter().chain(&spec.anti_affinity).map(selected)).collect();
        let own: Vec<TallyId> = subjects.into_iter().map(|subject| self.tallies.number(subject, self.places)).collect();
        let looks = self.looks(class.namespace, &class.labels, spec);
        let all = own.into_iter().chain(looks.repelled_by).map(|tally| self.tallies.get(tally));
        all.filter(|tally| !Tallies::is_host(&tally.subject.key)).map(|tally| tally.key).collect()
    }

    /// The rules of a reading.
    pub(crate) fn rules(&mut self, class: &Class<'_>, looks: &Looks, reading: &Reading) -> Rules {
        let mut rules = Rules::default();
        for constraint in &reading.spread {
            self.add_spread(&mut rules, class, looks, constraint);
        }
        for term in &reading.near {
            let tally = self.tallies.number(selected(term), self.places);
            let key = self.tallies.get(tally).key;
            let on_host = Tallies::is_host(&self.tallies.get(tally).subject.key);
            let counts_itself = looks.counted.contains(&tally) || looks.counted_by_host.contains(&tally);
            let rule = NearRule { tally, key, counts_itself };
            if on_host { rules.host_near.push(rule) } else { rules.near.push(rule) }
        }
        for term in &reading.away {
            let tally = self.tallies.number(selected(term), self.places);
            self.add_away(&mut rules, looks, tally);
        }
        for tally in &looks.repelled_by {
            self.add_away(&mut rules, looks, *tally);
        }
        let own = rules.spread.iter().map(|rule| rule.key);
        let own = own.chain(rules.near.iter().map(|rule| rule.key)).chain(rules.away.iter().map(|rule| rule.key));
        let mut keys: BTreeSet<KeyId> = own.chain(looks.sought_by.iter().copied()).collect();
        // Who comes first is counted by those who follow, so that it must be settled where.
        if looks.is_sought_on_host || !keys.is_empty() {
            keys.extend(looks.counted.iter().map(|tally| self.tallies.get(*tally).key));
        }
        rules.keys = keys.into_iter().collect();
        rules.is_sought_on_host = looks.is_sought_on_host;
        rules
    }

    fn add_away(&self, rules: &mut Rules, looks: &Looks, tally: TallyId) {
        let key = self.tallies.get(tally).key;
        if Tallies::is_host(&self.tallies.get(tally).subject.key) {
            let counts_itself = looks.counted_by_host.contains(&tally);
            rules.host.push(HostLimit { tally, most: u32::from(counts_itself), counts_itself, is_exclusive: true });
        } else {
            rules.away.push(AwayRule { tally, key });
        }
    }

    fn add_spread(&mut self, rules: &mut Rules, class: &Class<'_>, looks: &Looks, constraint: &SpreadConstraint) {
        let tally = self.tallies.number(spread_over(constraint, class.spec, class.namespace), self.places);
        let key = self.tallies.get(tally).key;
        if Tallies::is_host(&self.tallies.get(tally).subject.key) {
            let counts_itself = looks.counted_by_host.contains(&tally);
            rules.host.push(HostLimit { tally, most: constraint.max_skew, counts_itself, is_exclusive: false });
            return;
        }
        // The pod counts for itself by its labels, even where the selector counts nobody else.
        let counts_itself = constraint.selector.matches(&class.labels);
        let domains = Rc::new(self.domains(class, constraint, tally));
        let max_skew = constraint.max_skew;
        // A promised node may turn out to be in a domain of its own, empty as it is.
        let promised = |place: usize| self.places[place].place.stage == Stage::Promised;
        let open = |place: &usize| promised(*place) && self.tallies.domain_of_place(key, *place).is_none();
        let min_domains =
            if (0..self.places.len()).any(|place| open(&place)) { u32::MAX } else { constraint.min_domains };
        rules.spread.push(SpreadRule { tally, key, max_skew, min_domains, counts_itself, domains });
    }

    /// The domains that a constraint looks at: of nodes that count, and of nodes that pools can make for such pods.
    fn domains(&mut self, class: &Class<'_>, constraint: &SpreadConstraint, tally: TallyId) -> BTreeSet<Domain> {
        let mut domains = self.tallies.domains_of_places(tally);
        let key = self.tallies.get(tally).key;
        let name = Text::clone(self.tallies.key_name(key));
        let nothing = [Requirements::none()];
        let alternatives = match constraint.node_affinity_policy {
            Inclusion::Honor => class.spec.alternatives.as_slice(),
            Inclusion::Ignore => &nothing,
        };
        for alternative in alternatives {
            let want = self.wants.number(alternative);
            for pool in self.pools.iter_mut() {
                if !self.tallies.get(tally).subject.filter.admits_taints(&pool.pool.taints) {
                    continue;
                }
                let Some(menu) = pool.join(MenuId::OWN, want, self.wants) else { continue };
                for value in pool.values(menu, &name).iter() {
                    domains.insert(self.tallies.domain(key, value));
                }
            }
        }
        domains
    }
}
