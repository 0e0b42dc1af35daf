//! Label selectors, as the kube-scheduler reads them.

use model::{NodeName, Text};

use crate::Labels;

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
    /// Label key, or `metadata.name` among field requirements.
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

    /// Whether a node's name meets this demand on its fields. A demand that the API would not accept is met by nobody.
    fn matches_name(&self, node: &NodeName) -> bool {
        let [name] = self.values.as_slice() else { return false };
        let known = &*self.key == METADATA_NAME;
        match self.operator {
            LabelOperator::In => known && **name == *node.as_str(),
            LabelOperator::NotIn => known && **name != *node.as_str(),
            LabelOperator::Exists | LabelOperator::DoesNotExist | LabelOperator::Gt | LabelOperator::Lt => false,
        }
    }
}

/// The only field of a node that can be selected by.
const METADATA_NAME: &str = "metadata.name";

/// A selector over the labels of pods.
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
}

/// One alternative of a node selector: all of its demands together.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeTerm {
    /// Demands on labels.
    pub labels: Vec<LabelRequirement>,
    /// Demands on fields; only `metadata.name` with `In` or `NotIn` and one value means anything.
    pub fields: Vec<LabelRequirement>,
}

impl NodeTerm {
    /// Whether a node meets all demands; a term without demands is met by no node.
    pub fn matches(&self, name: &NodeName, labels: &Labels) -> bool {
        let empty = self.labels.is_empty() && self.fields.is_empty();
        let by_labels = self.labels.iter().all(|requirement| requirement.matches(labels));
        !empty && by_labels && self.fields.iter().all(|requirement| requirement.matches_name(name))
    }

    /// The node names that this term lists with `In`, if it lists any: those in every such list.
    pub(crate) fn listed_names(&self) -> Option<Vec<Text>> {
        let lists =
            self.fields.iter().filter(|field| field.operator == LabelOperator::In && &*field.key == METADATA_NAME);
        lists.map(|field| field.values.clone()).reduce(|mut common, values| {
            common.retain(|name| values.contains(name));
            common
        })
    }
}
