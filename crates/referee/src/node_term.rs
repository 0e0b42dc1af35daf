//! Node selectors, as the kube-scheduler reads them.

use model::{LabelOperator, LabelRequirement, Labels, NodeName, Text};

/// The only field of a node that can be selected by.
const METADATA_NAME: &str = "metadata.name";

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
        !empty && by_labels && self.fields.iter().all(|requirement| matches_name(requirement, name))
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

/// Whether a node's name meets a demand on its fields. A demand that the API would not accept is met by nobody.
fn matches_name(demand: &LabelRequirement, node: &NodeName) -> bool {
    let [name] = demand.values.as_slice() else { return false };
    let known = &*demand.key == METADATA_NAME;
    match demand.operator {
        LabelOperator::In => known && **name == *node.as_str(),
        LabelOperator::NotIn => known && **name != *node.as_str(),
        LabelOperator::Exists | LabelOperator::DoesNotExist | LabelOperator::Gt | LabelOperator::Lt => false,
    }
}
