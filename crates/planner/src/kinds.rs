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

/// More sets than this are not remembered: looking for one among them would take longer than asking.
const REPEATED_MAX: usize = 64;

/// What was answered for sets of requirements that are stated again and again, one after the other.
///
/// Types list their offerings in one order, so that the set that comes next is mostly the one that came next before.
struct Repeated<T> {
    /// By the address of the set.
    known: Vec<(usize, T)>,
    next: usize,
}

impl<T: Copy> Repeated<T> {
    fn new() -> Self {
        Self { known: Vec::new(), next: 0 }
    }

    fn of(&mut self, stated: &Requirements, ask: impl FnOnce() -> T) -> T {
        let address = stated.address();
        let is_same = |(known, _): &(usize, T)| *known == address;
        let (before, after) = self.known.split_at(self.next.min(self.known.len()));
        let ahead = after.iter().position(is_same).map(|ahead| before.len() + ahead);
        if let Some(position) = ahead.or_else(|| before.iter().position(is_same)) {
            self.next = position + 1;
            return self.known[position].1;
        }
        let answer = ask();
        if self.known.len() < REPEATED_MAX {
            self.known.push((address, answer));
            self.next = self.known.len();
        }
        answer
    }
}

/// Asks types for the lowest price at which they meet some demands.
pub(crate) struct Pricing<'a, 't> {
    of_types: Vec<Demand<'a, 't>>,
    of_offerings: Vec<Demand<'a, 't>>,
    /// Whether what offerings state meets the demands of these.
    met: Repeated<bool>,
}

/// The labels by which a type's offerings differ.
pub(crate) fn offered_keys<'t>(kinds: impl Iterator<Item = &'t InstanceType>) -> BTreeSet<&'t Text> {
    let (mut seen, mut keys) = (Repeated::new(), BTreeSet::new());
    for offering in kinds.flat_map(|kind| &kind.offerings) {
        seen.of(&offering.requirements, || keys.extend(offering.requirements.iter().map(|(key, _)| key)));
    }
    keys
}

impl<'a, 't> Pricing<'a, 't> {
    /// Asks for everything.
    pub(crate) fn of(requirements: &'a Requirements, offered: &BTreeSet<&Text>) -> Self {
        let of_offerings = requirements.iter().filter(|(key, _)| offered.contains(key)).map(Demand::new).collect();
        Self { of_types: requirements.iter().map(Demand::new).collect(), of_offerings, met: Repeated::new() }
    }

    /// Asks types that are known to agree for their offerings, about labels by which these differ.
    pub(crate) fn of_offerings(requirements: &'a Requirements) -> Self {
        let of_offerings = requirements.iter().map(Demand::new).collect();
        Self { of_types: Vec::new(), of_offerings, met: Repeated::new() }
    }

    /// The lowest price of the type under the demands; none when it does not meet them or is not for sale.
    pub(crate) fn price(&mut self, kind: &'t InstanceType) -> Option<Price> {
        if !self.of_types.iter_mut().all(|demand| demand.is_met(&kind.requirements)) {
            return None;
        }
        let Self { of_offerings, met, .. } = self;
        let mut lowest: Option<Price> = None;
        for offering in &kind.offerings {
            let stated = &offering.requirements;
            let mut is_met = || met.of(stated, || of_offerings.iter_mut().all(|demand| demand.is_met(stated)));
            let is_dearer = lowest.is_some_and(|lowest| lowest <= offering.price);
            if !is_dearer && offering.is_launchable() && is_met() {
                lowest = Some(offering.price);
            }
        }
        lowest
    }
}
