//! Questions that are asked of hundreds of instance types in a row.

use std::collections::BTreeSet;

use model::{InstanceType, Near, Price, Requirement, Requirements, Text};

/// A demand with the place where its label was last found: types of one provider have their labels in one order.
struct Demand<'a, 't> {
    key: &'a Text,
    requirement: &'a Requirement,
    near: Near<'t>,
}

impl<'a, 't> Demand<'a, 't> {
    fn all(requirements: &'a Requirements, is_meant: impl Fn(&Text) -> bool) -> Vec<Self> {
        let meant = requirements.iter().filter(|(key, _)| is_meant(key));
        meant.map(|(key, requirement)| Self { key, requirement, near: Near::default() }).collect()
    }

    fn is_met(&mut self, stated: &'t Requirements) -> bool {
        let stated = stated.get_near(self.key, &mut self.near);
        stated.is_none_or(|stated| stated.agrees_with(self.requirement))
    }
}

/// Asks types for the lowest price at which they meet some demands.
pub(crate) struct Pricing<'a, 't> {
    of_types: Vec<Demand<'a, 't>>,
    of_offerings: Vec<Demand<'a, 't>>,
    /// Whether what is asked anew can change the price.
    reprices: bool,
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
        Self {
            of_types: Demand::all(requirements, |_| true),
            of_offerings: Demand::all(requirements, |key| offered.contains(key)),
            reprices: true,
        }
    }

    /// Asks types that met the same demands before for what is new about some labels.
    pub(crate) fn of_news(
        requirements: &'a Requirements,
        is_new: impl Fn(&Text) -> bool,
        offered: &BTreeSet<&Text>,
    ) -> Self {
        let reprices = requirements.iter().any(|(key, _)| is_new(key) && offered.contains(key));
        let offered = |key: &Text| reprices && offered.contains(key);
        Self { of_types: Demand::all(requirements, is_new), of_offerings: Demand::all(requirements, offered), reprices }
    }

    /// The lowest price of the type under the demands; none when it does not meet them or is not for sale.
    pub(crate) fn price(&mut self, kind: &'t InstanceType, before: Option<Price>) -> Option<Price> {
        if !self.of_types.iter_mut().all(|demand| demand.is_met(&kind.requirements)) {
            return None;
        }
        if !self.reprices {
            return before;
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
