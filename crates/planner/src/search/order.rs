//! Whether pods with rules can come to their nodes one after the other, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use super::{Node, Search, Site};
use crate::rules::{HostLimit, NearRule, Rules};
use crate::tallies::{Domain, KeyId, TallyId};

/// So many pods of a kind on a node.
#[derive(Clone, Copy)]
struct Party {
    kind: usize,
    node: usize,
}

struct Order<'o, 's, 'a> {
    search: &'o Search<'s, 'a>,
    parties: Vec<Party>,
    /// What was left where there was no way on.
    dead: BTreeSet<Vec<usize>>,
    by_domain: BTreeMap<(TallyId, Domain), u32>,
    by_host: BTreeMap<(TallyId, usize), u32>,
    totals: BTreeMap<TallyId, u32>,
    found: Vec<(usize, usize)>,
}

/// An order of all pods with rules: first those whose domain a rule settles, then those with rules about their host.
pub(super) fn find(search: &Search<'_, '_>) -> Option<Vec<(usize, usize)>> {
    let rules = |kind: usize| &search.kinds[kind].stance.rules;
    let mut order = Order {
        search,
        parties: Vec::new(),
        dead: BTreeSet::new(),
        by_domain: BTreeMap::new(),
        by_host: BTreeMap::new(),
        totals: BTreeMap::new(),
        found: Vec::new(),
    };
    let phases: [&dyn Fn(usize) -> bool; 2] =
        [&|kind| rules(kind).come_first(), &|kind| !rules(kind).come_first() && !rules(kind).is_free()];
    for phase in phases {
        let mut left = Vec::new();
        order.parties.clear();
        order.dead.clear();
        for (node, content) in search.nodes.iter().enumerate() {
            for kind in (0..search.kinds.len()).filter(|kind| content.pods[*kind] > 0 && phase(*kind)) {
                order.parties.push(Party { kind, node });
                left.push(content.pods[kind]);
            }
        }
        if !order.go(&mut left) {
            return None;
        }
    }
    Some(order.found)
}

impl Order<'_, '_, '_> {
    fn go(&mut self, left: &mut Vec<usize>) -> bool {
        if left.iter().all(|count| *count == 0) {
            return true;
        }
        if self.dead.contains(left) {
            return false;
        }
        for index in 0..self.parties.len() {
            let party = self.parties[index];
            if left[index] == 0 || !self.welcomes(party) {
                continue;
            }
            left[index] -= 1;
            self.count(party, true);
            self.found.push((party.kind, party.node));
            if self.go(left) {
                return true;
            }
            self.found.pop();
            self.count(party, false);
            left[index] += 1;
        }
        self.dead.insert(left.clone());
        false
    }

    fn count(&mut self, party: Party, comes: bool) {
        let search = self.search;
        let looks = &search.solver.looks[search.kinds[party.kind].class];
        let node = &search.nodes[party.node];
        let change = |count: &mut u32| *count = if comes { *count + 1 } else { *count - 1 };
        if search.kinds[party.kind].stance.rules.come_first() {
            for tally in &looks.counted {
                change(self.totals.entry(*tally).or_insert(0));
                if let Some(domain) = node.domains.get(&search.solver.tallies.get(*tally).key)
                    && self.counts_on(*tally, node)
                {
                    change(self.by_domain.entry((*tally, *domain)).or_insert(0));
                }
            }
        }
        for tally in &looks.counted_by_host {
            change(self.totals.entry(*tally).or_insert(0));
            change(self.by_host.entry((*tally, party.node)).or_insert(0));
        }
    }

    fn counts_on(&self, tally: TallyId, node: &Node) -> bool {
        match node.site {
            Site::Place(place) => self.search.solver.tallies.counts_on(tally, place),
            Site::New { .. } => true,
        }
    }

    fn in_domain(&self, tally: TallyId, domain: Domain) -> u32 {
        let planned = self.by_domain.get(&(tally, domain)).copied().unwrap_or(0);
        self.search.solver.tallies.get(tally).count(domain) + planned
    }

    fn on_host(&self, tally: TallyId, node: usize) -> u32 {
        let planned = self.by_host.get(&(tally, node)).copied().unwrap_or(0);
        let base = match self.search.nodes[node].site {
            Site::Place(place) => self.search.solver.tallies.get(tally).count(Domain(place)),
            Site::New { .. } => 0,
        };
        base + planned
    }

    fn total(&self, tally: TallyId) -> u32 {
        self.search.solver.tallies.get(tally).total + self.totals.get(&tally).copied().unwrap_or(0)
    }

    fn welcomes(&self, party: Party) -> bool {
        let rules: &Rules = &self.search.kinds[party.kind].stance.rules;
        let node = &self.search.nodes[party.node];
        let domain = |key: KeyId| node.domains.get(&key).copied();
        let spread = rules.spread.iter().all(|rule| {
            let Some(domain) = domain(rule.key) else { return false };
            let few = rule.domains.len() < usize::try_from(rule.min_domains).unwrap_or(usize::MAX);
            let emptiest = rule.domains.iter().map(|domain| self.in_domain(rule.tally, *domain)).min().unwrap_or(0);
            let emptiest = if few { 0 } else { emptiest };
            let after = i64::from(self.in_domain(rule.tally, domain)) + i64::from(rule.counts_itself);
            after - i64::from(emptiest) <= i64::from(rule.max_skew)
        });
        let near = rules.near.iter().all(|rule| {
            let first = self.total(rule.tally) == 0 && rule.counts_itself;
            domain(rule.key).is_some_and(|domain| first || self.in_domain(rule.tally, domain) > 0)
        });
        let host =
            |limit: &HostLimit| self.on_host(limit.tally, party.node) + u32::from(limit.counts_itself) <= limit.most;
        let host_near = |rule: &NearRule| {
            let first = self.total(rule.tally) == 0 && rule.counts_itself;
            first || self.on_host(rule.tally, party.node) > 0
        };
        spread && near && rules.host.iter().all(host) && rules.host_near.iter().all(host_near)
    }
}
