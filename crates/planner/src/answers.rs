//! What the types of a pool say to demands, each asked once: pods with selectors of their own combine few demands in many
//! ways.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::{InstanceType, Price, Requirement, Requirements, Text};

use crate::interner::Hashed;
use crate::kinds::{Pricing, Statements};

/// Stands where a type has no price, at half the space of an option: there are many menus of many types.
pub(crate) const NOT_SOLD: Price = Price::MAX;

/// By type, whether it agrees with a requirement for a label.
pub(crate) type Agreeing = Rc<[bool]>;

/// By type, its lowest price, or [`NOT_SOLD`].
pub(crate) type Prices = Rc<[Price]>;

/// What the types of a pool said so far.
pub(crate) struct Answers<'a> {
    labels: Hashed<Text, Label<'a>>,
    /// By demands on labels by which offerings differ.
    prices: Hashed<Requirements, Prices>,
    /// The labels by which offerings differ.
    offered: BTreeSet<&'a Text>,
}

/// What they said about one label.
struct Label<'a> {
    statements: Statements<'a>,
    /// By requirement; nothing where all types agree.
    agreeing: Hashed<Requirement, Option<Agreeing>>,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(offered: BTreeSet<&'a Text>) -> Self {
        Self { labels: Hashed::default(), prices: Hashed::default(), offered }
    }

    /// Which types agree with a requirement for a label; nothing when all do.
    pub(crate) fn agreeing(
        &mut self,
        key: &Text,
        requirement: &Requirement,
        kinds: impl Iterator<Item = &'a InstanceType>,
    ) -> Option<Agreeing> {
        let label = self
            .labels
            .entry(Text::clone(key))
            .or_insert_with(|| Label { statements: Statements::about(key, kinds), agreeing: Hashed::default() });
        if let Some(known) = label.agreeing.get(requirement) {
            return known.clone();
        }
        let answer = label.statements.agreeing(requirement);
        label.agreeing.insert(requirement.clone(), answer.clone());
        answer
    }

    /// What types cost under some demands, as far as these are about offerings; nothing when what is wanted anew is not.
    pub(crate) fn prices<'t>(
        &mut self,
        requirements: &Requirements,
        wanted: &Requirements,
        kinds: impl Iterator<Item = &'t InstanceType>,
    ) -> Option<Prices> {
        if !wanted.iter().any(|(key, _)| self.offered.contains(key)) {
            return None;
        }
        let mut offered = requirements.clone();
        offered.retain(|key| self.offered.contains(key));
        if let Some(known) = self.prices.get(&offered) {
            return Some(Rc::clone(known));
        }
        let mut pricing = Pricing::of_offerings(&offered);
        let prices: Prices = kinds.map(|kind| pricing.price(kind).unwrap_or(NOT_SOLD)).collect();
        self.prices.insert(offered, Rc::clone(&prices));
        Some(prices)
    }
}
