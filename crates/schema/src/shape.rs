//! The shape of a built-in kind, for strategic merge patches.

use crate::typed::{Arena, Node, NodeKind};

/// What is known about the values at one place of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    place: Option<(&'a Arena, usize)>,
    rule: ListRule<'a>,
}

/// How a patch treats what is at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListRule<'a> {
    /// Whether a list is merged item by item instead of replaced (`merge`).
    pub merge: bool,
    /// Whether the patch names all keys that stay (`retainKeys`).
    pub retain_keys: bool,
    /// The field by which items of a merged list are told apart; none for lists of plain values.
    pub merge_key: Option<&'a str>,
}

impl<'a> Shape<'a> {
    pub(crate) fn of(arena: &'a Arena, node: usize) -> Self {
        Self { place: Some((arena, node)), rule: ListRule::default() }
    }

    /// A shape of which nothing is known: that of custom kinds.
    pub(crate) fn unknown() -> Self {
        Self { place: None, rule: ListRule::default() }
    }

    /// The shape of a field, or of a value of a map under that key. None if the kind has no such field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Self> {
        let (arena, node) = self.place?;
        match &arena.node(node).kind {
            NodeKind::Struct(fields) => {
                let field = fields.get(name)?;
                let rule = ListRule {
                    merge: field.patch.merge,
                    retain_keys: field.patch.retain_keys,
                    merge_key: field.patch.merge_key.as_deref(),
                };
                Some(Self { place: Some((arena, field.node)), rule })
            }
            NodeKind::Map(value) => Some(Self::of(arena, *value)),
            _ => None,
        }
    }

    /// The shape of the items of a list.
    #[must_use]
    pub fn items(&self) -> Option<Self> {
        let (arena, node) = self.place?;
        match arena.node(node) {
            Node { kind: NodeKind::List(item), .. } => Some(Self::of(arena, *item)),
            _ => None,
        }
    }

    /// How a patch treats what is here: for the list or map under the field that this shape was got by.
    #[must_use]
    pub fn rule(&self) -> ListRule<'a> {
        self.rule
    }

    /// Whether anything is known: false for custom kinds, which take no strategic merge patch.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.place.is_some()
    }
}
