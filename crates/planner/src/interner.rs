//! Small numbers for things that are compared often.

use std::collections::BTreeMap;

use model::Requirements;

/// A set of demands on labels, by number. [`Want::NOTHING`] demands nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Want(pub(crate) u32);

impl Want {
    pub(crate) const NOTHING: Self = Self(0);
}

/// All demands of a placement, each once.
pub(crate) struct Wants {
    numbers: BTreeMap<Requirements, Want>,
    wants: Vec<Requirements>,
}

impl Wants {
    pub(crate) fn new() -> Self {
        let none = Requirements::none();
        Self { numbers: BTreeMap::from([(none.clone(), Want::NOTHING)]), wants: vec![none] }
    }

    pub(crate) fn number(&mut self, requirements: &Requirements) -> Want {
        if requirements.is_empty() {
            return Want::NOTHING;
        }
        if let Some(known) = self.numbers.get(requirements) {
            return *known;
        }
        let number = Want(u32::try_from(self.wants.len()).unwrap_or(u32::MAX));
        self.wants.push(requirements.clone());
        self.numbers.insert(requirements.clone(), number);
        number
    }

    pub(crate) fn get(&self, want: Want) -> &Requirements {
        &self.wants[want.0 as usize]
    }
}
