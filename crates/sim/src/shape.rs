//! What strategic merge patches ask about a kind, answered from its schema.

use crate::patch::{ListRule, Shape};

/// A place in a built-in kind.
pub(crate) struct PatchShape<'a>(pub(crate) schema::Shape<'a>);

impl Shape for PatchShape<'_> {
    fn field(&self, name: &str) -> Option<Box<dyn Shape + '_>> {
        self.0.field(name).map(|shape| Box::new(PatchShape(shape)) as Box<dyn Shape + '_>)
    }

    fn item(&self) -> Option<Box<dyn Shape + '_>> {
        self.0.items().map(|shape| Box::new(PatchShape(shape)) as Box<dyn Shape + '_>)
    }

    fn list_rule(&self) -> ListRule<'_> {
        let rule = self.0.rule();
        match (rule.merge, rule.merge_key) {
            (true, Some(key)) => ListRule::MergeByKey(key),
            (true, None) => ListRule::MergeSet,
            (false, _) => ListRule::Replace,
        }
    }
}
