//! One label's requirement: a set of admitted values.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::Text;
use crate::names::Shared;

/// How a requirement is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values.
    NotIn,
    /// Any value, but present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// An integer above the value.
    Gt,
    /// An integer below the value.
    Lt,
    /// An integer not below the value.
    Gte,
    /// An integer not above the value.
    Lte,
}

impl Operator {
    /// Reads the Kubernetes spelling.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "In" => Some(Self::In),
            "NotIn" => Some(Self::NotIn),
            "Exists" => Some(Self::Exists),
            "DoesNotExist" => Some(Self::DoesNotExist),
            "Gt" => Some(Self::Gt),
            "Lt" => Some(Self::Lt),
            "Gte" => Some(Self::Gte),
            "Lte" => Some(Self::Lte),
            _ => None,
        }
    }

    /// The Kubernetes spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
            Self::Gte => "Gte",
            Self::Lte => "Lte",
        }
    }
}

/// The values a label may take: a listed set, or everything but a listed set, perhaps within integer bounds.
///
/// Copies share what they say: hundreds of instance types say the same of a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement(Arc<Values>);

static REQUIREMENTS: Shared<Requirement> = Shared::new();

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Values {
    /// In order, each once.
    values: Vec<Text>,
    /// Whether `values` are the excluded ones.
    complement: bool,
    lower: Option<i64>,
    upper: Option<i64>,
    /// Whether the label has to be there. Without it, an empty set of values asks for the label's absence; with it,
    /// nothing can satisfy the requirement.
    demands_presence: bool,
    min_values: Option<u32>,
}

impl Values {
    fn listed(values: Vec<Text>, complement: bool) -> Self {
        Self { values, complement, lower: None, upper: None, demands_presence: true, min_values: None }
    }

    fn any() -> Self {
        Self::listed(Vec::new(), true)
    }

    fn absent() -> Self {
        Self { demands_presence: false, ..Self::impossible() }
    }

    fn impossible() -> Self {
        Self::listed(Vec::new(), false)
    }

    fn bounded(lower: Option<i64>, upper: Option<i64>) -> Self {
        Self { lower, upper, ..Self::any() }
    }

    fn within_bounds(&self, value: &str) -> bool {
        if self.lower.is_none() && self.upper.is_none() {
            return true;
        }
        let Ok(number) = value.parse::<i64>() else { return false };
        self.lower.is_none_or(|lower| number >= lower) && self.upper.is_none_or(|upper| number <= upper)
    }
}

impl Requirement {
    /// A requirement as written; `None` when a numeric operator lacks its one integer.
    pub fn new<V: Into<Text>>(operator: Operator, values: impl IntoIterator<Item = V>) -> Option<Self> {
        let values = sorted(values.into_iter().map(Into::into).collect());
        let number = || match values.len() {
            1 => values.first().and_then(|value| value.parse::<i64>().ok()),
            _ => None,
        };
        let values = match operator {
            Operator::In => Values::listed(values, false),
            Operator::NotIn => Values { demands_presence: false, ..Values::listed(values, true) },
            Operator::Exists => Values::any(),
            Operator::DoesNotExist => Values::absent(),
            Operator::Gt => {
                number()?.checked_add(1).map_or_else(Values::impossible, |lower| Values::bounded(Some(lower), None))
            }
            Operator::Gte => Values::bounded(Some(number()?), None),
            Operator::Lt => {
                number()?.checked_sub(1).map_or_else(Values::impossible, |upper| Values::bounded(None, Some(upper)))
            }
            Operator::Lte => Values::bounded(None, Some(number()?)),
        };
        Some(Self::of(values))
    }

    fn of(values: Values) -> Self {
        Self(Arc::new(values))
    }

    /// The one copy of a requirement that is stated again and again.
    #[must_use]
    pub(crate) fn into_shared(self) -> Self {
        REQUIREMENTS.copy_of(&self, || self.clone())
    }

    /// Exactly one value.
    pub fn is(value: impl Into<Text>) -> Self {
        Self::of(Values::listed(vec![value.into()], false))
    }

    /// One of several values.
    pub fn any_of<V: Into<Text>>(values: impl IntoIterator<Item = V>) -> Self {
        Self::of(Values::listed(sorted(values.into_iter().map(Into::into).collect()), false))
    }

    /// Any value at all.
    pub fn exists() -> Self {
        Self::of(Values::any())
    }

    /// The label is absent.
    pub fn does_not_exist() -> Self {
        Self::of(Values::absent())
    }

    /// The same requirement with a demand for that many distinct values among instance types.
    #[must_use]
    pub fn with_min_values(mut self, min_values: Option<u32>) -> Self {
        if self.0.min_values != min_values {
            Arc::make_mut(&mut self.0).min_values = min_values;
        }
        self
    }

    /// The demanded number of distinct values.
    pub fn min_values(&self) -> Option<u32> {
        self.0.min_values
    }

    /// Whether nothing can satisfy this: a value is demanded, and none is left.
    pub fn is_impossible(&self) -> bool {
        self.0.demands_presence && !self.0.complement && self.0.values.is_empty()
    }

    /// Whether the label has to be there.
    pub fn demands_presence(&self) -> bool {
        self.0.demands_presence
    }

    /// The operator that describes this set; bounded ranges report as `Exists`, impossible ones as `DoesNotExist`.
    pub fn operator(&self) -> Operator {
        match (self.0.complement, self.0.values.is_empty()) {
            (true, true) => Operator::Exists,
            (true, false) => Operator::NotIn,
            (false, true) => Operator::DoesNotExist,
            (false, false) => Operator::In,
        }
    }

    /// Whether an absent label satisfies this requirement.
    pub fn admits_absence(&self) -> bool {
        !self.0.demands_presence
    }

    /// Whether the value is admitted.
    pub fn admits(&self, value: &str) -> bool {
        (self.lists(value) != self.0.complement) && self.0.within_bounds(value)
    }

    fn lists(&self, value: &str) -> bool {
        // Values of one label mostly differ in length already, which is cheaper to see than which one comes first.
        if self.0.values.len() <= FEW_VALUES {
            return self.0.values.iter().any(|known| **known == *value);
        }
        self.0.values.binary_search_by(|known| (**known).cmp(value)).is_ok()
    }

    /// The values that both list.
    fn common<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a Text> {
        let (few, many) = if self.0.values.len() <= other.0.values.len() { (self, other) } else { (other, self) };
        few.0.values.iter().filter(|value| many.lists(value))
    }

    /// The values that only this one lists.
    fn beyond<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a Text> {
        self.0.values.iter().filter(|value| !other.lists(value))
    }

    /// The listed values: the admitted ones of `In`, the excluded ones of `NotIn`.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Text> {
        self.0.values.iter()
    }

    /// The inclusive integer bounds.
    pub fn bounds(&self) -> (Option<i64>, Option<i64>) {
        (self.0.lower, self.0.upper)
    }

    /// The one admitted value, if there is exactly one.
    pub fn single_value(&self) -> Option<&Text> {
        if self.0.complement || self.0.values.len() != 1 { None } else { self.0.values.first() }
    }

    /// What both requirements admit.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        if Arc::ptr_eq(&self.0, &other.0) {
            return self.clone();
        }
        let min_values = self.0.min_values.max(other.0.min_values);
        let lower = self.0.lower.max(other.0.lower);
        let upper = [self.0.upper, other.0.upper].into_iter().flatten().min();
        let demands_presence = self.0.demands_presence || other.0.demands_presence;
        if lower.zip(upper).is_some_and(|(lower, upper)| lower > upper) {
            return Self::of(Values { demands_presence, min_values, ..Values::impossible() });
        }
        let complement = self.0.complement && other.0.complement;
        let mut values: Vec<Text> = match (self.0.complement, other.0.complement) {
            (true, true) => sorted(self.0.values.iter().chain(&other.0.values).cloned().collect()),
            (true, false) => other.beyond(self).cloned().collect(),
            (false, true) => self.beyond(other).cloned().collect(),
            (false, false) => self.common(other).cloned().collect(),
        };
        let bounds = Values::bounded(lower, upper);
        values.retain(|value| bounds.within_bounds(value));
        if complement && is_exhausted(lower, upper, values.iter()) {
            return Self::of(Values { demands_presence, min_values, ..Values::impossible() });
        }
        // A listed set needs no bounds any more: they have done their work on the values.
        let (lower, upper) = if complement { (lower, upper) } else { (None, None) };
        Self::of(Values { values, complement, lower, upper, demands_presence, min_values })
    }

    /// Whether one node can satisfy both: with a value, or without the label when neither minds.
    pub fn agrees_with(&self, other: &Self) -> bool {
        (self.admits_absence() && other.admits_absence()) || self.intersects(other)
    }

    /// Whether at least one value satisfies both.
    pub fn intersects(&self, other: &Self) -> bool {
        // The usual question, asked of every type: listed values have no bounds of their own.
        if !self.0.complement && !other.0.complement {
            return self.common(other).next().is_some();
        }
        let lower = self.0.lower.max(other.0.lower);
        let upper = [self.0.upper, other.0.upper].into_iter().flatten().min();
        if lower.zip(upper).is_some_and(|(lower, upper)| lower > upper) {
            return false;
        }
        match (self.0.complement, other.0.complement) {
            (true, true) => !is_exhausted(lower, upper, self.0.values.iter().chain(&other.0.values)),
            (false, true) => self.beyond(other).any(|value| other.0.within_bounds(value)),
            (true, false) => other.beyond(self).any(|value| self.0.within_bounds(value)),
            (false, false) => self.common(other).next().is_some(),
        }
    }
}

fn sorted(mut values: Vec<Text>) -> Vec<Text> {
    values.sort_unstable();
    values.dedup();
    values
}

/// Whether every integer between two bounds is excluded.
fn is_exhausted<'a>(lower: Option<i64>, upper: Option<i64>, excluded: impl Iterator<Item = &'a Text>) -> bool {
    let (Some(lower), Some(upper)) = (lower, upper) else { return false };
    let number = |value: &Text| value.parse::<i64>().ok().filter(|number| number.to_string() == **value);
    let numbers: BTreeSet<i64> =
        excluded.filter_map(number).filter(|number| (lower..=upper).contains(number)).collect();
    i128::from(upper) - i128::from(lower) < numbers.len() as i128
}

/// So many values are looked through one by one.
const FEW_VALUES: usize = 8;

/// At most this many values are printed.
const SHOWN_VALUES: usize = 5;

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.operator().as_str())?;
        if !self.0.values.is_empty() {
            let shown: Vec<&str> = self.0.values.iter().take(SHOWN_VALUES).map(|value| &**value).collect();
            write!(formatter, " [{}", shown.join(" "))?;
            if self.0.values.len() > SHOWN_VALUES {
                write!(formatter, " and {} others", self.0.values.len() - SHOWN_VALUES)?;
            }
            formatter.write_str("]")?;
        }
        if let Some(lower) = self.0.lower {
            write!(formatter, " >={lower}")?;
        }
        if let Some(upper) = self.0.upper {
            write!(formatter, " <={upper}")?;
        }
        if let Some(min_values) = self.0.min_values {
            write!(formatter, " minValues {min_values}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `In a b`, `Gt 4`, `Exists`.
    fn read(text: &str) -> Requirement {
        let mut words = text.split(' ');
        let operator = Operator::parse(words.next().unwrap()).unwrap();
        Requirement::new(operator, words).unwrap()
    }

    /// REQ-01, REQ-02, REQ-03, REQ-04: the intersection of two requirements on one label.
    #[test]
    fn intersections() {
        let table = [
            ("In a b", "In b c", "In [b]"),
            ("In a b", "In c", "DoesNotExist"),
            ("In a b", "NotIn a", "In [b]"),
            ("NotIn a", "NotIn b", "NotIn [a b]"),
            ("Exists", "In a", "In [a]"),
            ("Exists", "DoesNotExist", "DoesNotExist"),
            ("Exists", "NotIn a", "NotIn [a]"),
            ("Gt 4", "Exists", "Exists >=5"),
            ("Gt 4", "Gte 5", "Exists >=5"),
            ("Lt 4", "Lte 3", "Exists <=3"),
            ("Gt 4", "Lt 5", "DoesNotExist"),
            ("Gt 4", "Lt 6", "Exists >=5 <=5"),
            ("In 4 5 x", "Gt 4", "In [5]"),
            ("NotIn 7 2", "Gte 5", "NotIn [7] >=5"),
        ];
        for (left, right, expected) in table {
            let (left, right) = (read(left), read(right));
            assert_eq!(left.intersection(&right).to_string(), expected, "{left} and {right}");
            assert_eq!(right.intersection(&left).to_string(), expected, "{right} and {left}");
            let empty = expected == "DoesNotExist";
            assert_eq!(left.intersects(&right), !empty, "{left} meets {right}");
            assert_eq!(right.intersects(&left), !empty, "{right} meets {left}");
        }
    }

    /// A label that must be there and may have no value is a contradiction, not a demand for absence.
    #[test]
    fn contradictions_are_not_absence() {
        let table = [
            ("In a", "In b", true, false),
            ("Exists", "DoesNotExist", true, false),
            ("Gt 4", "Lt 4", true, false),
            ("Exists", "NotIn a", false, false),
            ("NotIn a", "NotIn b", false, true),
            ("NotIn a", "DoesNotExist", false, true),
        ];
        for (left, right, impossible, admits_absence) in table {
            let both = read(left).intersection(&read(right));
            assert_eq!((both.is_impossible(), both.admits_absence()), (impossible, admits_absence), "{left} {right}");
        }
    }

    /// REQ-05
    #[test]
    fn the_larger_min_values_wins() {
        let (two, three) = (read("Exists").with_min_values(Some(2)), read("In a b c").with_min_values(Some(3)));
        assert_eq!(two.intersection(&three).min_values(), Some(3));
        assert_eq!(three.intersection(&read("Exists")).min_values(), Some(3));
    }

    #[test]
    fn numeric_operators_want_one_integer() {
        for values in [vec![], vec!["x"], vec!["1", "2"]] {
            assert_eq!(Requirement::new(Operator::Gt, values), None);
        }
        let above_all = Requirement::new(Operator::Gt, [i64::MAX.to_string()]).unwrap();
        assert_eq!(above_all.operator(), Operator::DoesNotExist);
    }
}
