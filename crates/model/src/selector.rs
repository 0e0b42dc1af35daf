//! Selectors over the labels of pods and namespaces.

use std::collections::BTreeMap;

use crate::Text;

/// Labels by key.
pub type Labels = BTreeMap<Text, Text>;

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelOperator {
    /// Present, and one of the values.
    In,
    /// Absent, or none of the values.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// Present, and an integer above the one value.
    Gt,
    /// Present, and an integer below the one value.
    Lt,
}

impl LabelOperator {
    /// Reads the Kubernetes spelling.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "In" => Some(Self::In),
            "NotIn" => Some(Self::NotIn),
            "Exists" => Some(Self::Exists),
            "DoesNotExist" => Some(Self::DoesNotExist),
            "Gt" => Some(Self::Gt),
            "Lt" => Some(Self::Lt),
            _ => None,
        }
    }
}

/// A demand on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelRequirement {
    /// Label key, or the name of a field where fields are selected.
    pub key: Text,
    /// Comparison.
    pub operator: LabelOperator,
    /// Values to compare with.
    pub values: Vec<Text>,
}

impl LabelRequirement {
    /// The label has exactly this value.
    pub fn is(key: impl Into<Text>, value: impl Into<Text>) -> Self {
        Self { key: key.into(), operator: LabelOperator::In, values: vec![value.into()] }
    }

    /// Whether a set of labels meets the demand.
    pub fn matches(&self, labels: &Labels) -> bool {
        let found = labels.get(&self.key);
        match self.operator {
            LabelOperator::In => found.is_some_and(|value| self.values.contains(value)),
            LabelOperator::NotIn => found.is_none_or(|value| !self.values.contains(value)),
            LabelOperator::Exists => found.is_some(),
            LabelOperator::DoesNotExist => found.is_none(),
            LabelOperator::Gt => self.integers(found).is_some_and(|(label, bound)| label > bound),
            LabelOperator::Lt => self.integers(found).is_some_and(|(label, bound)| label < bound),
        }
    }

    /// The label and the one value it is compared with, when both are integers.
    fn integers(&self, label: Option<&Text>) -> Option<(i64, i64)> {
        let [bound] = self.values.as_slice() else { return None };
        Some((label?.parse().ok()?, bound.parse().ok()?))
    }
}

/// A selector over labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    /// No selector was given: it matches nothing.
    Nothing,
    /// Every requirement must hold; with none it matches everything.
    All(Vec<LabelRequirement>),
}

impl Selector {
    /// Whether a set of labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => requirements.iter().all(|requirement| requirement.matches(labels)),
        }
    }

    /// Whether the selector selects everything.
    pub fn is_everything(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    /// The label keys that decide.
    pub fn keys(&self) -> impl Iterator<Item = &Text> {
        let requirements = match self {
            Self::Nothing => &[][..],
            Self::All(requirements) => requirements.as_slice(),
        };
        requirements.iter().map(|requirement| &requirement.key)
    }
}
