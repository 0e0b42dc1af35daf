//! Requirements on several labels together, and whether two sets of them can be met by one node.

use std::fmt;
use std::sync::Arc;

use crate::names::{Shared, shared};
use crate::{Requirement, Text, Vocabulary, labels};

/// Requirements by label key; adding a second requirement for a key narrows the first.
///
/// Kept as a sorted list: sets are small, built once and compared by the million. Copies share it until one is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirements(List);

static SETS: Shared<Requirements> = Shared::new();

/// Nothing where there are none.
type List = Option<Arc<Vec<(Text, Requirement)>>>;

/// Where a label was found in one set, or between which others it was missing: sets of one origin are much alike.
#[derive(Clone, Copy, Debug, Default)]
pub struct Near<'a> {
    position: usize,
    before: Option<&'a Text>,
    after: Option<&'a Text>,
}

/// What a label that one side does not mention means.
#[derive(Clone, Copy, Debug)]
pub enum Undefined<'a> {
    /// The node exists: a label it does not carry is absent.
    IsAbsent,
    /// The node is still to come: well-known labels will get a value, others are absent.
    MayBeGiven(&'a Vocabulary),
}

/// Why two sets of requirements cannot be met together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mismatch {
    /// A label is asked for that nobody defines.
    Undefined {
        /// The label.
        key: Text,
        /// A label that was perhaps meant.
        meant: Option<Text>,
    },
    /// No value satisfies both sides.
    Disjoint {
        /// The label.
        key: Text,
        /// What was asked for.
        wanted: Box<Requirement>,
        /// What there is.
        offered: Box<Requirement>,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined { key, meant } => {
                write!(formatter, "label \"{key}\" does not have known values")?;
                meant.iter().try_for_each(|meant| write!(formatter, " (typo of \"{meant}\"?)"))
            }
            Self::Disjoint { key, wanted, offered } => {
                write!(formatter, "key {key}, {key} {wanted} not in {key} {offered}")
            }
        }
    }
}

impl Requirements {
    /// No requirements.
    pub fn none() -> Self {
        Self::default()
    }

    /// Each label as a requirement for exactly its value.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a Text, &'a Text)>) -> Self {
        let mut requirements = Self::none();
        for (key, value) in labels {
            requirements.add(key, Requirement::is(Text::clone(value)));
        }
        requirements
    }

    /// Narrows by one more requirement. Old spellings of well-known keys are taken for the new ones.
    pub fn add(&mut self, key: &str, requirement: Requirement) {
        let key = labels::current_spelling(key);
        match self.position(key) {
            Ok(position) => {
                let present = &mut self.list_mut()[position].1;
                *present = present.intersection(&requirement);
            }
            Err(position) => self.list_mut().insert(position, (shared(key), requirement)),
        }
    }

    fn list(&self) -> &[(Text, Requirement)] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    fn list_mut(&mut self) -> &mut Vec<(Text, Requirement)> {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// Where the list is kept: sets at one address are equal. Different addresses say nothing.
    pub fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |list| Arc::as_ptr(list).addr())
    }

    /// The one copy of a set that is stated again and again, such as a zone and a capacity type.
    ///
    /// Nothing but speed depends on it, as with [`shared`].
    #[must_use]
    pub(crate) fn into_shared(self) -> Self {
        SETS.copy_of(&self, || self.clone())
    }

    /// The same set with the one copy of each requirement that others state too.
    #[must_use]
    pub(crate) fn with_shared_parts(mut self) -> Self {
        if !self.is_empty() {
            self.list_mut().iter_mut().for_each(|(_, requirement)| *requirement = requirement.clone().into_shared());
        }
        self
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.list().binary_search_by(|(known, _)| (**known).cmp(key))
    }

    /// This set narrowed by one more requirement.
    #[must_use]
    pub fn with(mut self, key: &str, requirement: Requirement) -> Self {
        self.add(key, requirement);
        self
    }

    /// Narrows by another set.
    pub fn add_all(&mut self, others: &Self) {
        for (key, requirement) in others.list() {
            match self.position(key) {
                Ok(position) => {
                    let present = &mut self.list_mut()[position].1;
                    *present = present.intersection(requirement);
                }
                Err(position) => self.list_mut().insert(position, (Text::clone(key), requirement.clone())),
            }
        }
    }

    /// The two sets taken together.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        let mut both = self.clone();
        both.add_all(others);
        both
    }

    /// Forgets a label.
    pub fn remove(&mut self, key: &str) {
        if let Ok(position) = self.position(key) {
            self.list_mut().remove(position);
            self.0.take_if(|list| list.is_empty());
        }
    }

    /// Forgets all labels but some.
    pub fn retain(&mut self, is_kept: impl Fn(&Text) -> bool) {
        if self.list().iter().any(|(key, _)| !is_kept(key)) {
            self.list_mut().retain(|(key, _)| is_kept(key));
            self.0.take_if(|list| list.is_empty());
        }
    }

    /// The requirement for a label.
    pub fn get(&self, key: &str) -> Option<&Requirement> {
        self.position(key).ok().map(|position| &self.list()[position].1)
    }

    /// The requirement for a label, sought first where a set like this one had it or would have had it.
    pub fn get_near<'s>(&'s self, key: &Text, near: &mut Near<'s>) -> Option<&'s Requirement> {
        let is_known = |position: usize, known: Option<&Text>| match (self.list().get(position), known) {
            (Some((key, _)), Some(known)) => Text::ptr_eq(key, known),
            (found, known) => found.is_none() && known.is_none(),
        };
        let Near { position, before, after } = *near;
        if let Some((_, requirement)) = self.list().get(position).filter(|(known, _)| Text::ptr_eq(known, key)) {
            return Some(requirement);
        }
        if (before.is_some() || after.is_some())
            && is_known(position, after)
            && (position == 0 || is_known(position - 1, before))
        {
            return None;
        }
        match self.position(key) {
            Ok(position) => {
                *near = Near { position, before: None, after: None };
                Some(&self.list()[position].1)
            }
            Err(position) => {
                let before = position.checked_sub(1).map(|before| &self.list()[before].0);
                *near = Near { position, before, after: self.list().get(position).map(|(key, _)| key) };
                None
            }
        }
    }

    /// All requirements in the order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Text, &Requirement)> {
        self.list().iter().map(|(key, requirement)| (key, requirement))
    }

    /// A label that must be there and for which no value is left.
    pub fn contradiction(&self) -> Option<&Text> {
        self.list().iter().find(|(_, requirement)| requirement.is_impossible()).map(|(key, _)| key)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether something described by `self` can satisfy `wanted`: the first reason why not.
    pub fn satisfy(&self, wanted: &Self, undefined: Undefined<'_>) -> Result<(), Mismatch> {
        for (key, requirement) in wanted.list() {
            let given_later = match undefined {
                Undefined::IsAbsent => false,
                Undefined::MayBeGiven(vocabulary) => vocabulary.is_well_known(key),
            };
            if self.position(key).is_err() && !given_later && !requirement.admits_absence() {
                return Err(Mismatch::Undefined { key: Text::clone(key), meant: self.near_miss(key, undefined) });
            }
        }
        self.intersect(wanted)
    }

    /// Whether the labels that both sides mention can agree; labels only one side mentions are ignored.
    pub fn intersect(&self, wanted: &Self) -> Result<(), Mismatch> {
        for (key, requirement) in wanted.list() {
            let Some(present) = self.get(key) else { continue };
            if !present.agrees_with(requirement) {
                let (wanted, offered) = (Box::new(requirement.clone()), Box::new(present.clone()));
                return Err(Mismatch::Disjoint { key: Text::clone(key), wanted, offered });
            }
        }
        Ok(())
    }

    fn near_miss(&self, key: &str, undefined: Undefined<'_>) -> Option<Text> {
        let suffix = key.rsplit('/').next().unwrap_or(key);
        let near = |known: &str| known.contains(key) || known.rsplit('/').next() == Some(suffix);
        let well_known = match undefined {
            Undefined::IsAbsent => None,
            Undefined::MayBeGiven(vocabulary) => vocabulary.well_known().find(|known| near(known)).cloned(),
        };
        well_known.or_else(|| self.list().iter().map(|(known, _)| known).find(|known| near(known)).cloned())
    }
}

impl fmt::Display for Requirements {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.list().iter().filter(|(key, _)| &**key != labels::HOSTNAME);
        let texts: Vec<String> = shown.map(|(key, requirement)| format!("{key} {requirement}")).collect();
        formatter.write_str(&texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operator;

    fn one(key: &str, operator: Operator, values: &[&str]) -> Requirements {
        Requirements::none().with(key, Requirement::new(operator, values.iter().copied()).unwrap())
    }

    /// REQ-07: a custom label that nobody defines is absent.
    #[test]
    fn undefined_custom_labels_satisfy_only_absence() {
        let vocabulary = Vocabulary::core();
        let table = [
            (Operator::In, &["a"][..], false),
            (Operator::Exists, &[], false),
            (Operator::Gt, &["1"], false),
            (Operator::NotIn, &["a"], true),
            (Operator::DoesNotExist, &[], true),
        ];
        for (operator, values, fits) in table {
            let wanted = one("team", operator, values);
            for undefined in [Undefined::IsAbsent, Undefined::MayBeGiven(&vocabulary)] {
                assert_eq!(Requirements::none().satisfy(&wanted, undefined).is_ok(), fits, "{wanted}");
            }
        }
    }

    /// REQ-08: a new node will get its zone, an existing node without one has none.
    #[test]
    fn undefined_well_known_labels_are_given_to_new_nodes_only() {
        let (wanted, vocabulary) = (one(labels::ZONE, Operator::In, &["a"]), Vocabulary::core());
        assert!(Requirements::none().satisfy(&wanted, Undefined::MayBeGiven(&vocabulary)).is_ok());
        assert!(Requirements::none().satisfy(&wanted, Undefined::IsAbsent).is_err());
    }

    /// REQ-09, REQ-20: the sentences people read.
    #[test]
    fn mismatches_are_told_in_words() {
        let vocabulary = Vocabulary::core();
        let table = [
            (
                one("zone", Operator::In, &["a"]),
                "label \"zone\" does not have known values (typo of \"topology.kubernetes.io/zone\"?)",
            ),
            (one("team", Operator::In, &["a"]), "label \"team\" does not have known values"),
            (
                one(labels::ARCH, Operator::In, &["arm64"]),
                "key kubernetes.io/arch, kubernetes.io/arch In [arm64] not in kubernetes.io/arch In [amd64]",
            ),
        ];
        let offered = one(labels::ARCH, Operator::In, &["amd64"]);
        for (wanted, sentence) in table {
            let mismatch = offered.satisfy(&wanted, Undefined::MayBeGiven(&vocabulary)).unwrap_err();
            assert_eq!(mismatch.to_string(), sentence);
        }
    }

    /// REQ-10
    #[test]
    fn old_spellings_of_keys_are_understood() {
        let wanted = one("failure-domain.beta.kubernetes.io/zone", Operator::In, &["a"]);
        assert_eq!(wanted.to_string(), "topology.kubernetes.io/zone In [a]");
    }

    /// REQ-19: an instance type that does not mention a label is not excluded by it.
    #[test]
    fn plain_intersection_ignores_labels_of_one_side() {
        assert!(Requirements::none().intersect(&one("team", Operator::In, &["a"])).is_ok());
    }
}
