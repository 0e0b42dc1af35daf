//! Corners of a pool: the combinations of zones and other topology labels that a new node can be made in.

use std::cmp::Reverse;

use model::{Price, Requirement, Requirements, Text};

use crate::interner::{Want, Wants};
use crate::menus::{MenuId, PoolView};
use crate::rules::{AwayRule, NearRule, Rules, SpreadRule};
use crate::tallies::{Domain, KeyId, Tallies};

/// A value for each of some topology labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) domains: Vec<(KeyId, Domain)>,
    /// The same as a demand on labels.
    pub(crate) pin: Want,
    /// What can be bought there.
    pub(crate) menu: MenuId,
}

impl Cell {
    fn domain(&self, key: KeyId) -> Option<Domain> {
        self.domains.iter().find(|(known, _)| *known == key).map(|(_, domain)| *domain)
    }
}

/// Every cell of a menu for these labels, in the order of the labels' values.
pub(crate) fn cells(
    pool: &mut PoolView<'_>,
    menu: MenuId,
    keys: &[KeyId],
    tallies: &mut Tallies<'_>,
    wants: &mut Wants,
) -> Vec<Cell> {
    let mut found = vec![(Vec::new(), Requirements::none(), menu)];
    for key in keys {
        let name = Text::clone(tallies.key_name(*key));
        let mut next = Vec::new();
        for (domains, requirements, menu) in found {
            for value in pool.values(menu, &name).iter() {
                let pin = Requirements::none().with(&name, Requirement::is(Text::clone(value)));
                let Some(narrowed) = pool.join(menu, wants.number(&pin), wants) else { continue };
                let mut domains: Vec<(KeyId, Domain)> = domains.clone();
                domains.push((*key, tallies.domain(*key, value)));
                next.push((domains, requirements.and(&pin), narrowed));
            }
        }
        found = next;
    }
    let finish = |(domains, requirements, menu): (_, Requirements, _)| {
        let pin = wants.number(&requirements);
        Cell { domains, pin, menu }
    };
    found.into_iter().map(finish).collect()
}

/// Whether a spread constraint lets one more pod into a domain.
pub(crate) fn spread_allows(rule: &SpreadRule, domain: Domain, tallies: &Tallies<'_>) -> bool {
    let tally = tallies.get(rule.tally);
    let few = rule.domains.len() < usize::try_from(rule.min_domains).unwrap_or(usize::MAX);
    let emptiest = if few { 0 } else { rule.domains.iter().map(|domain| tally.count(*domain)).min().unwrap_or(0) };
    let after = i64::from(tally.count(domain)) + i64::from(rule.counts_itself);
    after - i64::from(emptiest) <= i64::from(rule.max_skew)
}

/// Whether somebody to join is in a domain, or nobody is anywhere and the pod may be the first.
pub(crate) fn near_allows(rule: &NearRule, domain: Domain, tallies: &Tallies<'_>) -> bool {
    let tally = tallies.get(rule.tally);
    tally.count(domain) > 0 || (tally.total == 0 && rule.counts_itself)
}

/// Whether nobody to stay away from is in a domain.
pub(crate) fn away_allows(rule: &AwayRule, domain: Domain, tallies: &Tallies<'_>) -> bool {
    tallies.get(rule.tally).count(domain) == 0
}

/// Whether the rules let one more pod into the domains that `domain_of` tells; a node without a label has none.
pub(crate) fn allowed(rules: &Rules, tallies: &Tallies<'_>, domain_of: impl Fn(KeyId) -> Option<Domain>) -> bool {
    let spread = |rule: &SpreadRule| domain_of(rule.key).is_some_and(|domain| spread_allows(rule, domain, tallies));
    let near = |rule: &NearRule| domain_of(rule.key).is_some_and(|domain| near_allows(rule, domain, tallies));
    let away = |rule: &AwayRule| domain_of(rule.key).is_none_or(|domain| away_allows(rule, domain, tallies));
    rules.spread.iter().all(spread) && rules.near.iter().all(near) && rules.away.iter().all(away)
}

/// The cell for one more pod: where the fewest of its kind are, then where it is cheapest, then where least was put so
/// far. `price_in` tells what the cheapest node for the pod costs in a cell, if there is one.
pub(crate) fn choose<'c>(
    cells: &'c [Cell],
    rules: &Rules,
    tallies: &Tallies<'_>,
    prices: &[Option<Price>],
    load_of: impl Fn(&Cell) -> u64,
) -> Option<&'c Cell> {
    let rank = |(index, cell): (usize, &'c Cell)| {
        if !allowed(rules, tallies, |key| cell.domain(key)) {
            return None;
        }
        let price = prices.get(index).copied().flatten()?;
        let count = |rule: &SpreadRule| cell.domain(rule.key).map_or(0, |domain| tallies.get(rule.tally).count(domain));
        let crowd: u32 = rules.spread.iter().map(count).sum();
        let company: u32 = rules
            .near
            .iter()
            .map(|rule| cell.domain(rule.key).map_or(0, |domain| tallies.get(rule.tally).count(domain)))
            .sum();
        Some(((crowd, Reverse(company), price, load_of(cell), index), cell))
    };
    cells.iter().enumerate().filter_map(rank).min_by(|left, right| left.0.cmp(&right.0)).map(|(_, cell)| cell)
}
