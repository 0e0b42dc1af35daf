//! Requirements and taints of pools and claims, in both directions.

use model::{Effect, Operator, Requirement, Requirements, Taint, Text};

/// One requirement as the algebra sees it; `None` when a numeric operator lacks its one integer.
pub fn requirement(written: &crate::Requirement) -> Option<Requirement> {
    let operator = Operator::parse(written.operator.as_str())?;
    let values = written.values().iter().map(|value| Text::from(value.as_str()));
    let min_values = written.min_values.and_then(|count| u32::try_from(count).ok());
    Requirement::new(operator, values).map(|requirement| requirement.with_min_values(min_values))
}

/// Requirements of a pool or claim; one that cannot be read admits nothing, so that a mistake makes no nodes.
pub fn requirements<'a>(written: impl IntoIterator<Item = &'a crate::Requirement>) -> Requirements {
    let mut requirements = Requirements::none();
    for one in written {
        requirements.add(&one.key, requirement(one).unwrap_or_else(Requirement::does_not_exist));
    }
    requirements
}

/// The way back: requirements as a claim states them, sorted by key. Bounds become `Gte` and `Lte`.
pub fn to_requirements(requirements: &Requirements) -> Vec<crate::Requirement> {
    let mut written = Vec::new();
    for (key, requirement) in requirements.iter() {
        let min_values = requirement.min_values().and_then(|count| i32::try_from(count).ok());
        let one = |operator, values: Vec<String>| crate::Requirement {
            key: key.to_string(),
            operator,
            values: (!values.is_empty()).then_some(values),
            min_values,
        };
        let values = || requirement.values().map(ToString::to_string).collect::<Vec<_>>();
        match requirement.bounds() {
            (None, None) => written.push(match requirement.operator() {
                Operator::NotIn => one(crate::Operator::NotIn, values()),
                Operator::Exists => one(crate::Operator::Exists, Vec::new()),
                Operator::DoesNotExist => one(crate::Operator::DoesNotExist, Vec::new()),
                _ => one(crate::Operator::In, values()),
            }),
            (lower, upper) => {
                written.extend(lower.map(|bound| one(crate::Operator::Gte, vec![bound.to_string()])));
                written.extend(upper.map(|bound| one(crate::Operator::Lte, vec![bound.to_string()])));
            }
        }
    }
    written
}

/// Taints of a pool or claim as rules.
pub fn taints<'a>(written: impl IntoIterator<Item = &'a crate::Taint>) -> Vec<Taint> {
    let lower = |taint: &crate::Taint| {
        let effect = Effect::parse(taint.effect.as_str())?;
        Some(Taint::new(taint.key.as_str(), taint.value.as_deref().unwrap_or_default(), effect))
    };
    written.into_iter().filter_map(lower).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(operator: crate::Operator, values: &[&str]) -> crate::Requirement {
        let values = values.iter().map(ToString::to_string).collect();
        crate::Requirement { key: "cpu".to_owned(), operator, values: Some(values), min_values: None }
    }

    /// REQ-06: a bounded requirement is written as its two inclusive bounds.
    #[test]
    fn bounds_are_written_inclusively() {
        let both = [written(crate::Operator::Gt, &["4"]), written(crate::Operator::Lt, &["9"])];
        let back: Vec<String> = to_requirements(&requirements(&both))
            .iter()
            .map(|one| format!("{} {} {:?}", one.key, one.operator.as_str(), one.values()))
            .collect();
        assert_eq!(back, ["cpu Gte [\"5\"]", "cpu Lte [\"8\"]"]);
    }

    #[test]
    fn a_requirement_that_cannot_be_read_admits_nothing() {
        let lowered = requirements(&[written(crate::Operator::Gt, &["many"])]);
        assert_eq!(lowered.to_string(), "cpu DoesNotExist");
    }
}
