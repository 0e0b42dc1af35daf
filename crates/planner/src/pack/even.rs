//! Pods that are spread so evenly that every plan has some of them in each domain.

use std::collections::BTreeMap;

use super::shapes::Shape;
use crate::interner::Want;
use crate::rules::SpreadRule;
use crate::solver::Solver;
use crate::tallies::TallyId;

/// How many pods of a class every plan has in each domain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Even {
    pub(super) least: i64,
    pub(super) most: i64,
}

/// Classes that are spread evenly.
pub(super) type Evenly = BTreeMap<usize, Even>;

impl Solver<'_> {
    /// The classes among some orders whose pods are all there, with nobody else who counts for their spreading.
    pub(super) fn evenly_spread(&mut self, orders: &[usize]) -> Evenly {
        let mut pinned: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for order in orders.iter().filter(|order| self.orders[**order].pin != Want::NOTHING) {
            pinned.entry(self.orders[*order].class).or_default().push(*order);
        }
        let mut even = Evenly::new();
        if pinned.is_empty() {
            return even;
        }
        let mut counting: BTreeMap<TallyId, usize> = BTreeMap::new();
        for tally in self.looks.iter().flat_map(|looks| &looks.counted) {
            *counting.entry(*tally).or_default() += 1;
        }
        for (class, orders) in pinned {
            let Some(rule) = self.rule_of_all(class, &orders) else { continue };
            let pods = i64::try_from(self.classes[class].pods.len()).unwrap_or(i64::MAX);
            let is_alone =
                counting.get(&rule.tally) == Some(&1) && i64::from(self.tallies.get(rule.tally).total) == pods;
            let domains = i64::try_from(rule.domains.len()).unwrap_or(i64::MAX);
            // No domain has more than the emptiest and the skew.
            let uneven = i64::from(rule.max_skew).saturating_mul(domains - 1);
            let least = pods.saturating_sub(uneven).saturating_add(domains - 1) / domains.max(1);
            if is_alone && rule.counts_itself && least > 0 && orders.len() == rule.domains.len() {
                even.insert(class, Even { least, most: pods - least * (domains - 1) });
            }
        }
        even
    }

    /// The one rule that settles domains for a class, if no reading goes without it and all pods are in these orders.
    fn rule_of_all(&mut self, class: usize, orders: &[usize]) -> Option<SpreadRule> {
        let stances = self.stances(class);
        let rule = stances.last()?.rules.spread.first()?.clone();
        let plain = |order: &usize| {
            let order = &self.orders[*order];
            order.settled == 0 && order.stance.rules.keys == [rule.key]
        };
        let pods: usize = orders.iter().map(|order| self.orders[*order].pods.len()).sum();
        (orders.iter().all(plain) && pods == self.classes[class].pods.len()).then_some(rule)
    }

    /// What pods are worth together, whichever domains those are in that may choose.
    pub(super) fn worth_anywhere(&self, shapes: &[Shape], duals: &[f64], even: &Evenly) -> f64 {
        let mut worth = 0.0;
        let mut by_domain: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (shape, dual) in shapes.iter().zip(duals) {
            for order in &shape.orders {
                let class = self.orders[*order].class;
                if shape.pin != Want::NOTHING {
                    by_domain.entry(class).or_default().push(*dual);
                } else {
                    worth += self.orders[*order].remaining() as f64 * dual;
                }
            }
        }
        for (class, duals) in by_domain {
            let least = even.get(&class).map_or(0, |even| even.least);
            let lowest = duals.iter().copied().fold(f64::INFINITY, f64::min);
            let others = self.classes[class].pods.len() as f64 - (least * duals.len() as i64) as f64;
            worth += duals.iter().sum::<f64>() * least as f64 + others * lowest;
        }
        worth
    }
}
