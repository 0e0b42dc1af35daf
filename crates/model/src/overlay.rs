//! Overlays: what instance types cost and have when the user knows better than the provider.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::{
    InstanceType, Offering, PoolName, Price, Requirements, ResourceName, Resources, Text, TypeName, Undefined,
};

/// How an overlay changes a price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PriceChange {
    /// To this price, whatever the provider says.
    To(Price),
    /// By so many dollars per hour, up or down.
    ByDollars(f64),
    /// By so many hundredths of the provider's price, up or down.
    ByPercent(f64),
}

impl PriceChange {
    /// Reads a plain number, a signed number or a signed percentage.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, is_percentage) = text.strip_suffix('%').map_or((text, false), |number| (number, true));
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        // The standard parser would also take `inf` and `1e9`, which the schema refuses.
        if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return None;
        }
        let amount = number.parse::<f64>().ok()?;
        match (digits.len() < number.len(), is_percentage) {
            (false, false) => Some(Self::To(Price::from_dollars(amount))),
            (true, false) => Some(Self::ByDollars(amount)),
            (true, true) => Some(Self::ByPercent(amount)),
            (false, true) => None,
        }
    }

    /// The price after the change; never below zero.
    #[must_use]
    pub fn of(self, price: Price) -> Price {
        match self {
            Self::To(price) => price,
            Self::ByDollars(dollars) => Price::from_dollars(price.dollars() + dollars),
            Self::ByPercent(percent) => Price::from_dollars(price.dollars() * (1.0 + percent / 100.0)),
        }
    }
}

/// What is changed, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    /// Name.
    pub name: Text,
    /// The heaviest overlay wins.
    pub weight: i32,
    /// Which types and offerings are changed, by their labels and those of the pool.
    pub requirements: Requirements,
    /// What happens to the price of the offerings.
    pub price: Option<PriceChange>,
    /// What the types have of these resources, instead of what the provider says.
    pub capacity: Resources,
}

/// What a provider sells to a pool.
#[derive(Clone, Debug)]
pub struct Assortment {
    /// The labels that every node of the pool gets, whatever its type: those of the template, and the pool's own.
    pub labels: Requirements,
    /// The types.
    pub types: Arc<[Arc<InstanceType>]>,
}

/// Two overlays of equal weight that want to change the same thing. The second is not applied anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayConflict {
    /// The overlay that is not applied.
    pub overlay: Text,
    /// The overlay that was there before.
    pub with: Text,
    /// The pool in which they meet first.
    pub pool: PoolName,
    /// The type on which they meet first.
    pub kind: TypeName,
}

impl fmt::Display for OverlayConflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("conflict with another overlay")
    }
}

/// What overlays changed about some types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverlayMarks {
    /// What an offering costs.
    pub price: bool,
    /// What a type has.
    pub capacity: bool,
}

impl OverlayMarks {
    /// What was changed about either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { price: self.price || other.price, capacity: self.capacity || other.capacity }
    }
}

/// What is for sale once overlays have had their say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlaid {
    /// The types of each pool; those that no overlay touches are shared with what went in.
    pub types: BTreeMap<PoolName, Arc<[Arc<InstanceType>]>>,
    /// The types of each pool that overlays touch, and how.
    pub marks: BTreeMap<PoolName, BTreeMap<TypeName, OverlayMarks>>,
    /// The overlays that were not applied.
    pub conflicts: Vec<OverlayConflict>,
}

/// Applies overlays to what is for sale, the heaviest first and of equal ones the alphabetically last.
///
/// An offering costs what the first overlay that touches it says, and a type has of each resource what the first one
/// that names the resource says. An overlay that meets another of its weight on the same offering or resource is not
/// applied to any pool, so that nothing depends on which of two equals was looked at first.
pub fn overlay<'a>(
    pools: &BTreeMap<PoolName, Assortment>,
    overlays: impl IntoIterator<Item = &'a Overlay>,
) -> Overlaid {
    let mut ordered: Vec<&Overlay> = overlays.into_iter().collect();
    ordered.sort_by_key(|overlay| Reverse((overlay.weight, Text::clone(&overlay.name))));
    let mut drafts: BTreeMap<&PoolName, Vec<Draft<'_>>> = pools
        .iter()
        .map(|(name, sold)| (name, sold.types.iter().map(|kind| Draft::new(kind, &sold.labels)).collect()))
        .collect();
    let mut conflicts = Vec::new();
    for overlay in ordered {
        match conflict(&drafts, overlay) {
            Some(found) => conflicts.push(found),
            None => drafts.values_mut().flatten().for_each(|draft| draft.change(overlay)),
        }
    }
    let mut overlaid = Overlaid { conflicts, ..Overlaid::default() };
    for (name, sold) in pools {
        let drafts = drafts.remove(name).unwrap_or_default();
        let touched = drafts.iter().filter(|draft| draft.is_touched());
        let marks: BTreeMap<TypeName, OverlayMarks> =
            touched.map(|draft| (draft.kind.name.clone(), draft.marks())).collect();
        let types =
            if marks.is_empty() { Arc::clone(&sold.types) } else { drafts.iter().map(Draft::finished).collect() };
        overlaid.types.insert(name.clone(), types);
        if !marks.is_empty() {
            overlaid.marks.insert(name.clone(), marks);
        }
    }
    overlaid
}

fn conflict(drafts: &BTreeMap<&PoolName, Vec<Draft<'_>>>, overlay: &Overlay) -> Option<OverlayConflict> {
    let all = drafts.iter().flat_map(|(pool, drafts)| drafts.iter().map(|draft| (*pool, draft)));
    let meeting = |(pool, draft): (&PoolName, &Draft<'_>)| {
        let with = draft.rival(overlay)?;
        let overlay = Text::clone(&overlay.name);
        Some(OverlayConflict { overlay, with, pool: pool.clone(), kind: draft.kind.name.clone() })
    };
    all.into_iter().find_map(meeting)
}

/// What the heaviest overlay says, and who was the last to say something.
struct Touch<V> {
    value: V,
    weight: i32,
    by: Text,
}

impl<V> Touch<V> {
    fn first(value: V, overlay: &Overlay) -> Self {
        Self { value, weight: overlay.weight, by: Text::clone(&overlay.name) }
    }

    /// A lighter overlay has no say any more, but those of its weight have to know of it.
    fn again(&mut self, overlay: &Overlay) {
        self.weight = overlay.weight;
        self.by = Text::clone(&overlay.name);
    }

    fn rival(&self, overlay: &Overlay) -> Option<Text> {
        (self.weight == overlay.weight).then(|| Text::clone(&self.by))
    }
}

/// A type of a pool while overlays are being applied.
struct Draft<'a> {
    kind: &'a Arc<InstanceType>,
    labels: Requirements,
    /// One for each offering.
    prices: Vec<Option<Touch<PriceChange>>>,
    capacity: BTreeMap<ResourceName, Touch<i64>>,
}

impl<'a> Draft<'a> {
    fn new(kind: &'a Arc<InstanceType>, labels: &Requirements) -> Self {
        let prices = kind.offerings.iter().map(|_| None).collect();
        Self { kind, labels: labels.and(&kind.requirements), prices, capacity: BTreeMap::new() }
    }

    /// Which offerings the overlay is about; none if it is not about the type.
    fn affected(&self, overlay: &Overlay) -> Vec<usize> {
        if self.labels.satisfy(&overlay.requirements, Undefined::IsAbsent).is_err() {
            return Vec::new();
        }
        let fits = |offering: &Offering| offering.requirements.intersect(&overlay.requirements).is_ok();
        let offerings = self.kind.offerings.iter().enumerate();
        offerings.filter(|(_, offering)| fits(offering)).map(|(index, _)| index).collect()
    }

    /// An overlay of equal weight that has changed what this one wants to change.
    fn rival(&self, overlay: &Overlay) -> Option<Text> {
        let affected = self.affected(overlay);
        if affected.is_empty() {
            return None;
        }
        let prices =
            affected.iter().filter(|_| overlay.price.is_some()).filter_map(|index| self.prices[*index].as_ref());
        let amounts = overlay.capacity.iter().filter_map(|(name, _)| self.capacity.get(name));
        prices.filter_map(|touch| touch.rival(overlay)).chain(amounts.filter_map(|touch| touch.rival(overlay))).next()
    }

    fn change(&mut self, overlay: &Overlay) {
        let affected = self.affected(overlay);
        if affected.is_empty() {
            return;
        }
        for (index, change) in affected.into_iter().flat_map(|index| overlay.price.map(|change| (index, change))) {
            self.prices[index].get_or_insert_with(|| Touch::first(change, overlay)).again(overlay);
        }
        for (name, amount) in overlay.capacity.iter() {
            self.capacity.entry(name.clone()).or_insert_with(|| Touch::first(amount, overlay)).again(overlay);
        }
    }

    fn is_touched(&self) -> bool {
        self.marks() != OverlayMarks::default()
    }

    fn marks(&self) -> OverlayMarks {
        OverlayMarks { price: self.prices.iter().any(Option::is_some), capacity: !self.capacity.is_empty() }
    }

    fn finished(&self) -> Arc<InstanceType> {
        if !self.is_touched() {
            return Arc::clone(self.kind);
        }
        let mut capacity = self.kind.capacity.clone();
        for (name, touch) in &self.capacity {
            capacity.set(name.clone(), touch.value);
        }
        let priced = |(offering, touch): (&Offering, &Option<Touch<PriceChange>>)| {
            let price = touch.as_ref().map_or(offering.price, |touch| touch.value.of(offering.price));
            Offering { price, ..offering.clone() }
        };
        let offerings = self.kind.offerings.iter().zip(&self.prices).map(priced).collect();
        Arc::new(self.kind.with_capacity(capacity, offerings))
    }
}

#[cfg(test)]
#[path = "overlay_tests.rs"]
mod tests;
