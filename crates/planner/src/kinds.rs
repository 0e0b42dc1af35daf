//! Questions that are asked of hundreds of instance types in a row.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::{InstanceType, Near, Price, Requirement, Requirements, Text};

use crate::interner::Index;

/// A demand with the place where its label was last found: types of one provider have their labels in one order.
struct Demand<'a, 't> {
    key: &'a Text,
    requirement: &'a Requirement,
    near: Near<'t>,
}

impl<'a, 't> Demand<'a, 't> {
    fn new((key, requirement): (&'a Text, &'a Requirement)) -> Self {
        Self { key, requirement, near: Near::default() }
    }

    fn is_met(&mut self, stated: &'t Requirements) -> bool {
        let stated = stated.get_near(self.key, &mut self.near);
        stated.is_none_or(|stated| stated.agrees_with(self.requirement))
    }
}

/// What types state about one label: hundreds of types state a few things.
pub(crate) struct Statements<'t> {
    /// Each once.
    stated: Vec<Option<&'t Requirement>>,
    /// By type, the position in the list above.
    by_kind: Vec<usize>,
}

impl<'t> Statements<'t> {
    pub(crate) fn about(key: &Text, kinds: impl Iterator<Item = &'t InstanceType>) -> Self {
        let (mut stated, mut near) = (Vec::new(), Near::default());
        let mut numbers: Index<Option<&Requirement>> = Index::default();
        let number = |kind: &'t InstanceType| {
            let own = kind.requirements.get_near(key, &mut near);
            *numbers.entry(own).or_insert_with(|| {
                stated.push(own);
                stated.len() - 1
            })
        };
        let by_kind = kinds.map(number).collect();
        Self { stated, by_kind }
    }

    /// By type, whether it agrees with a requirement for the label; nothing when all do.
    pub(crate) fn agreeing(&self, requirement: &Requirement) -> Option<Rc<[bool]>> {
        let agrees = |stated: &Option<&Requirement>| stated.is_none_or(|stated| stated.agrees_with(requirement));
        let agreeing: Vec<bool> = self.stated.iter().map(agrees).collect();
        let differ = agreeing.contains(&false);
        differ.then(|| self.by_kind.iter().map(|stated| agreeing[*stated]).collect())
    }
}

/// Asks types for the lowest price at which they meet some demands.
pub(crate) struct Pricing<'a, 't> {
    of_types: Vec<Demand<'a, 't>>,
    of_offerings: Vec<Demand<'a, 't>>,
}

/// The labels by which a type's offerings differ.
pub(crate) fn offered_keys<'t>(kinds: impl Iterator<Item = &'t InstanceType>) -> BTreeSet<&'t Text> {
    let offerings = kinds.flat_map(|kind| &kind.offerings);
    // Most offerings repeat the keys of the one before them.
    let mut keys: Vec<&Text> = Vec::new();
    for key in offerings.flat_map(|offering| offering.requirements.iter().map(|(key, _)| key)) {
        if !keys.iter().any(|known| Text::ptr_eq(known, key)) {
            keys.push(key);
        }
    }
    keys.into_iter().collect()
}

impl<'a, 't> Pricing<'a, 't> {
    /// Asks for everything.
    pub(crate) fn of(requirements: &'a Requirements, offered: &BTreeSet<&Text>) -> Self {
        let of_offerings = requirements.iter().filter(|(key, _)| offered.contains(key)).map(Demand::new).collect();
        Self { of_types: requirements.iter().map(Demand::new).collect(), of_offerings }
    }

    /// Asks types that are known to agree for their offerings, about labels by which these differ.
    pub(crate) fn of_offerings(requirements: &'a Requirements) -> Self {
        Self { of_types: Vec::new(), of_offerings: requirements.iter().map(Demand::new).collect() }
    }

    /// The lowest price of the type under the demands; none when it does not meet them or is not for sale.
    pub(crate) fn price(&mut self, kind: &'t InstanceType) -> Option<Price> {
        if !self.of_types.iter_mut().all(|demand| demand.is_met(&kind.requirements)) {
            return None;
        }
        let mut lowest: Option<Price> = None;
        for offering in &kind.offerings {
            let is_dearer = lowest.is_some_and(|lowest| lowest <= offering.price);
            if !is_dearer
                && offering.is_launchable()
                && self.of_offerings.iter_mut().all(|demand| demand.is_met(&offering.requirements))
            {
                lowest = Some(offering.price);
            }
        }
        lowest
    }
}
