//! How the instance types of a pool fall short of what a pod wants: of its labels, of its size, of its price tag.

use std::fmt;

use crate::{Requirements, Resources, format_quantity, labels};

/// What one type has of what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeFit {
    /// Its labels agree.
    pub labels: bool,
    /// It is large enough.
    pub size: bool,
    /// It is for sale with the wanted zone and capacity type.
    pub sale: bool,
}

/// What all types together lack, the plainest reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TypeGap {
    /// None has the labels, none is large enough and none is for sale.
    Everything,
    /// None has the labels, and none is large enough.
    LabelsAndSize,
    /// None has the labels, and none is for sale.
    LabelsAndSale,
    /// None is large enough, and none is for sale.
    SizeAndSale,
    /// None has the labels.
    Labels,
    /// None is large enough.
    Size,
    /// None is for sale.
    Sale,
    /// Those that have the labels and are large enough are not for sale.
    SaleOfFitting,
    /// Those that are large enough and for sale do not have the labels.
    LabelsOfSold,
    /// Those that have the labels and are for sale are not large enough.
    SizeOfSold,
    /// Some have each of the three, but none has two of them.
    Combination,
}

impl TypeGap {
    /// What is missing from types none of which has everything.
    pub fn of(types: impl IntoIterator<Item = TypeFit>) -> Self {
        let types: Vec<TypeFit> = types.into_iter().collect();
        let any = |has: fn(&TypeFit) -> bool| types.iter().any(has);
        match (any(|fit| fit.labels), any(|fit| fit.size), any(|fit| fit.sale)) {
            (false, false, false) => Self::Everything,
            (false, false, true) => Self::LabelsAndSize,
            (false, true, false) => Self::LabelsAndSale,
            (true, false, false) => Self::SizeAndSale,
            (false, true, true) => Self::Labels,
            (true, false, true) => Self::Size,
            (true, true, false) => Self::Sale,
            (true, true, true) if any(|fit| fit.labels && fit.size) => Self::SaleOfFitting,
            (true, true, true) if any(|fit| fit.size && fit.sale) => Self::LabelsOfSold,
            (true, true, true) if any(|fit| fit.labels && fit.sale) => Self::SizeOfSold,
            (true, true, true) => Self::Combination,
        }
    }
}

impl fmt::Display for TypeGap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Everything => {
                "no instance type met the scheduling requirements or had enough resources or had a required offering"
            }
            Self::LabelsAndSize => "no instance type met the scheduling requirements or had enough resources",
            Self::LabelsAndSale => "no instance type met the scheduling requirements or had a required offering",
            Self::SizeAndSale => "no instance type had enough resources or had a required offering",
            Self::Labels => "no instance type met all requirements",
            Self::Size => "no instance type has enough resources",
            Self::Sale => "no instance type has the required offering",
            Self::SaleOfFitting => {
                "no instance type which met the scheduling requirements and had enough resources, had a required offering"
            }
            Self::LabelsOfSold => {
                "no instance type which had enough resources and the required offering met the scheduling requirements"
            }
            Self::SizeOfSold => {
                "no instance type which met the scheduling requirements and the required offering had the required resources"
            }
            Self::Combination => "no instance type met the requirements/resources/offering tuple",
        })
    }
}

/// A search among the types of a pool that found nothing: what was sought, and what was missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeSearch {
    /// What all types together lack.
    pub gap: TypeGap,
    /// The labels that were sought: the pool's and the pod's.
    pub requirements: Requirements,
    /// The size that was sought.
    pub requests: Resources,
}

impl TypeSearch {
    /// A search that found nothing. Labels that every usable node has need no word.
    pub fn new(gap: TypeGap, mut requirements: Requirements, requests: Resources) -> Self {
        requirements.remove(labels::INITIALIZED);
        requirements.remove(labels::REGISTERED);
        Self { gap, requirements, requests }
    }

    /// What was sought, as the end of a sentence.
    pub(crate) fn sought(&self) -> String {
        let amount = |(name, amount)| format!("\"{name}\":\"{}\"", format_quantity(name, amount));
        let amounts: Vec<String> = self.requests.iter().map(amount).collect();
        format!("requirements={}, resources={{{}}}", self.requirements, amounts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PROV-62: which of the three no type has, alone or together with another; `l`, `s` and `o` are what a type has of
    /// labels, size and offering.
    #[test]
    fn the_plainest_reason_is_told() {
        let table = [
            (
                "- -",
                "no instance type met the scheduling requirements or had enough resources or had a required offering",
            ),
            ("o -", "no instance type met the scheduling requirements or had enough resources"),
            ("s -", "no instance type met the scheduling requirements or had a required offering"),
            ("l -", "no instance type had enough resources or had a required offering"),
            ("s o", "no instance type met all requirements"),
            ("so -", "no instance type met all requirements"),
            ("l o", "no instance type has enough resources"),
            ("lo -", "no instance type has enough resources"),
            ("l s", "no instance type has the required offering"),
            (
                "ls o",
                "no instance type which met the scheduling requirements and had enough resources, had a required offering",
            ),
            (
                "so l",
                "no instance type which had enough resources and the required offering met the scheduling requirements",
            ),
            (
                "lo s",
                "no instance type which met the scheduling requirements and the required offering had the required resources",
            ),
            ("l s o", "no instance type met the requirements/resources/offering tuple"),
        ];
        for (types, expected) in table {
            let has = |text: &str, letter| text.contains(letter);
            let fit = |text: &str| TypeFit { labels: has(text, 'l'), size: has(text, 's'), sale: has(text, 'o') };
            assert_eq!(TypeGap::of(types.split(' ').map(fit)).to_string(), expected, "{types}");
        }
    }
}
