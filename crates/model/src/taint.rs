//! Taints and tolerations.

use std::fmt;

use crate::Text;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away if they can.
    PreferNoSchedule,
    /// New pods stay away and running ones leave.
    NoExecute,
}

impl Effect {
    /// Reads the Kubernetes spelling.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "NoSchedule" => Some(Self::NoSchedule),
            "PreferNoSchedule" => Some(Self::PreferNoSchedule),
            "NoExecute" => Some(Self::NoExecute),
            _ => None,
        }
    }

    /// The Kubernetes spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A taint on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Key.
    pub key: Text,
    /// Value, empty when absent.
    pub value: Text,
    /// Effect.
    pub effect: Effect,
}

impl Taint {
    /// A taint from its parts.
    pub fn new(key: impl Into<Text>, value: impl Into<Text>, effect: Effect) -> Self {
        Self { key: key.into(), value: value.into(), effect }
    }

    /// Taints are told apart by key and effect; the value does not matter.
    pub fn same_place_as(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.value.is_empty() { "" } else { "=" };
        write!(formatter, "{}{separator}{}:{}", self.key, self.value, self.effect.as_str())
    }
}

/// How a toleration compares with a taint's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TolerationOperator {
    /// Any value.
    Exists,
    /// This value.
    Equal,
    /// The taint's value is a larger integer.
    GreaterThan,
    /// The taint's value is a smaller integer.
    LessThan,
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// Key; `None` tolerates every key.
    pub key: Option<Text>,
    /// How values compare.
    pub operator: TolerationOperator,
    /// Value, empty when absent.
    pub value: Text,
    /// Effect; `None` tolerates every effect.
    pub effect: Option<Effect>,
}

impl Toleration {
    /// A toleration of everything with one effect.
    pub fn of_effect(effect: Effect) -> Self {
        Self { key: None, operator: TolerationOperator::Exists, value: Text::from(""), effect: Some(effect) }
    }

    /// Whether this toleration covers the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let effect_fits = self.effect.is_none_or(|effect| effect == taint.effect);
        let key_fits = self.key.as_ref().is_none_or(|key| *key == taint.key);
        effect_fits && key_fits && self.value_fits(taint)
    }

    fn value_fits(&self, taint: &Taint) -> bool {
        let integers = || Some((taint.value.parse::<i64>().ok()?, self.value.parse::<i64>().ok()?));
        match self.operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => self.value == taint.value,
            TolerationOperator::GreaterThan => integers().is_some_and(|(taint, own)| taint > own),
            TolerationOperator::LessThan => integers().is_some_and(|(taint, own)| taint < own),
        }
    }
}

/// The first taint that no toleration covers.
pub fn first_untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints.iter().find(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(key: &str, operator: TolerationOperator, value: &str, effect: Option<Effect>) -> Toleration {
        let key = (!key.is_empty()).then(|| Text::from(key));
        Toleration { key, operator, value: Text::from(value), effect }
    }

    #[test]
    fn tolerations_cover_taints_by_key_value_and_effect() {
        use TolerationOperator::{Equal, Exists, GreaterThan, LessThan};
        let taint = Taint::new("gpu", "7", Effect::NoSchedule);
        let table = [
            (toleration("gpu", Equal, "7", None), true),
            (toleration("gpu", Equal, "8", None), false),
            (toleration("gpu", Exists, "", Some(Effect::NoSchedule)), true),
            (toleration("gpu", Exists, "", Some(Effect::NoExecute)), false),
            (toleration("", Exists, "", None), true),
            (toleration("cpu", Exists, "", None), false),
            (toleration("gpu", GreaterThan, "6", None), true),
            (toleration("gpu", LessThan, "6", None), false),
            (toleration("gpu", LessThan, "x", None), false),
        ];
        for (toleration, covered) in table {
            assert_eq!(toleration.tolerates(&taint), covered, "{toleration:?}");
        }
    }
}
