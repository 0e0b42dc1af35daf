//! `minValues`: a pool may ask that its claims list types of enough different kinds.

use std::collections::BTreeSet;

use model::{Monotony, Requirement, Requirements, Text};

use crate::menus::{MenuId, PoolView};

/// How many different values a pool wants for some labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variety(Vec<(Text, u32)>);

impl Variety {
    pub(crate) fn of(requirements: &Requirements) -> Self {
        let wanted = |(key, requirement): (&Text, &Requirement)| Some((Text::clone(key), requirement.min_values()?));
        Self(requirements.iter().filter_map(wanted).collect())
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Where types fall short of what is wanted.
    pub(crate) fn lacks(
        &self,
        pool: &PoolView<'_>,
        menu: MenuId,
        kinds: impl Iterator<Item = usize> + Clone,
    ) -> Vec<Monotony> {
        let lack = |(key, wanted): &(Text, u32)| {
            let found = count(pool, menu, key, kinds.clone());
            (found < *wanted).then(|| Monotony { key: Text::clone(key), wanted: *wanted, found })
        };
        self.0.iter().filter_map(lack).collect()
    }

    /// The same, lowered to what types can give.
    pub(crate) fn lowered(&self, lacks: &[Monotony]) -> Self {
        let lower = |(key, wanted): &(Text, u32)| {
            let lack = lacks.iter().find(|lack| lack.key == *key);
            (Text::clone(key), lack.map_or(*wanted, |lack| lack.found))
        };
        Self(self.0.iter().map(lower).collect())
    }

    /// Requirements that state this variety.
    pub(crate) fn stated_in(&self, requirements: &Requirements) -> Requirements {
        let mut stated = Requirements::none();
        for (key, requirement) in requirements.iter() {
            let wanted = self.0.iter().find(|(known, _)| known == key).map(|(_, wanted)| *wanted);
            stated.add(key, requirement.clone().with_min_values(wanted));
        }
        stated
    }
}

/// How many values of a label the types have that the menu still admits.
fn count(pool: &PoolView<'_>, menu: MenuId, key: &Text, kinds: impl Iterator<Item = usize>) -> u32 {
    let admitted = pool.menu(menu).requirements.get(key);
    let mut values: BTreeSet<&Text> = BTreeSet::new();
    for kind in kinds {
        let stated = pool.kinds[kind].kind.requirements.get(key).into_iter().flat_map(Requirement::values);
        values.extend(stated.filter(|value| admitted.is_none_or(|admitted| admitted.admits(value))));
    }
    u32::try_from(values.len()).unwrap_or(u32::MAX)
}
