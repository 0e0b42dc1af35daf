//! Which nodes have a label: most pods of a large cluster select a few of its nodes.

use std::collections::{BTreeMap, BTreeSet};

use model::Text;
use referee::{Labels, NodeFacts};

/// Nodes by label and value.
#[derive(Debug, Default)]
pub(crate) struct Labelled(BTreeMap<(Text, Text), BTreeSet<Text>>);

impl Labelled {
    /// Takes over the change of a node.
    pub(crate) fn exchange(&mut self, name: &Text, before: Option<&NodeFacts>, after: Option<&NodeFacts>) {
        if before.map(|node| &node.labels) == after.map(|node| &node.labels) {
            return;
        }
        for (key, value) in before.iter().flat_map(|node| &node.labels) {
            let label = (key.clone(), value.clone());
            if let Some(names) = self.0.get_mut(&label) {
                names.remove(name);
                if names.is_empty() {
                    self.0.remove(&label);
                }
            }
        }
        for (key, value) in after.iter().flat_map(|node| &node.labels) {
            self.0.entry((key.clone(), value.clone())).or_default().insert(name.clone());
        }
    }

    /// The nodes with the rarest of these labels; nothing if no label is asked for.
    pub(crate) fn fewest(&self, selector: &Labels) -> Option<&BTreeSet<Text>> {
        const NONE: &BTreeSet<Text> = &BTreeSet::new();
        let nodes_of = |(key, value): (&Text, &Text)| self.0.get(&(key.clone(), value.clone())).unwrap_or(NONE);
        selector.iter().map(nodes_of).min_by_key(|names| names.len())
    }
}

#[cfg(test)]
mod tests {
    use model::{NodeName, Resources};

    use super::*;

    fn node(labels: &[(&str, &str)]) -> NodeFacts {
        NodeFacts {
            name: NodeName::new("n"),
            labels: labels_of(labels),
            taints: Vec::new(),
            unschedulable: false,
            allocatable: Resources::none(),
            attach_limits: BTreeMap::new(),
        }
    }

    fn labels_of(labels: &[(&str, &str)]) -> Labels {
        labels.iter().map(|(key, value)| (Text::from(*key), Text::from(*value))).collect()
    }

    #[test]
    fn nodes_are_found_by_the_rarest_label() {
        let mut labelled = Labelled::default();
        let (red, blue) = (node(&[("team", "red"), ("os", "linux")]), node(&[("team", "blue"), ("os", "linux")]));
        labelled.exchange(&"one".into(), None, Some(&red));
        labelled.exchange(&"two".into(), None, Some(&blue));
        let found = |labelled: &Labelled, selector: &[(&str, &str)]| {
            let names = labelled.fewest(&labels_of(selector)).map(|names| names.iter().map(ToString::to_string));
            names.map(|names| names.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(found(&labelled, &[]), None);
        assert_eq!(found(&labelled, &[("os", "linux")]).as_deref(), Some("one two"));
        assert_eq!(found(&labelled, &[("os", "linux"), ("team", "red")]).as_deref(), Some("one"));
        assert_eq!(found(&labelled, &[("team", "green")]).as_deref(), Some(""));
        labelled.exchange(&"one".into(), Some(&red), Some(&blue));
        labelled.exchange(&"two".into(), Some(&blue), None);
        assert_eq!(found(&labelled, &[("team", "blue")]).as_deref(), Some("one"));
        assert_eq!(found(&labelled, &[("team", "red")]).as_deref(), Some(""));
    }
}
