//! Requirements and taints of pools and claims, in both directions.

use model::{Effect, Operator, Requirement, Requirements, Taint, Text};

use super::selector::nothing;

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
        requirements.add(&one.key, requirement(one).unwrap_or_else(nothing));
    }
    requirements
}

/// The way back: requirements as a claim states them, sorted by key. Bounds become `Gte` and `Lte`, and where neither
/// operator nor values say that the label has to be there, `Exists` says so.
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
        match requirement.bounds() {
            (None, None) => match requirement.operator() {
                Operator::NotIn | Operator::DoesNotExist if requirement.demands_presence() => {
                    written.push(one(crate::Operator::Exists, Vec::new()));
                    written.push(negative(&one, requirement));
                }
                Operator::NotIn | Operator::DoesNotExist => written.push(negative(&one, requirement)),
                Operator::Exists => written.push(one(crate::Operator::Exists, Vec::new())),
                _ => written.push(one(crate::Operator::In, listed(requirement))),
            },
            (lower, upper) => {
                written.extend(lower.map(|bound| one(crate::Operator::Gte, vec![bound.to_string()])));
                written.extend(upper.map(|bound| one(crate::Operator::Lte, vec![bound.to_string()])));
            }
        }
    }
    written
}

fn listed(requirement: &Requirement) -> Vec<String> {
    requirement.values().map(ToString::to_string).collect()
}

fn negative(
    one: &impl Fn(crate::Operator, Vec<String>) -> crate::Requirement,
    requirement: &Requirement,
) -> crate::Requirement {
    match requirement.operator() {
        Operator::NotIn => one(crate::Operator::NotIn, listed(requirement)),
        _ => one(crate::Operator::DoesNotExist, Vec::new()),
    }
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

    /// What is written reads back as what it was.
    #[test]
    fn presence_is_written_too() {
        use crate::Operator::{DoesNotExist, Exists, In, NotIn};
        let (exists, not_a) = (written(Exists, &[]), written(NotIn, &["a"]));
        let table = [
            (vec![not_a.clone()], "NotIn"),
            (vec![exists.clone(), not_a], "Exists NotIn"),
            (vec![written(DoesNotExist, &[])], "DoesNotExist"),
            (vec![exists.clone(), written(DoesNotExist, &[])], "Exists DoesNotExist"),
            (vec![written(In, &["a"]), exists], "In"),
        ];
        for (stated, expected) in table {
            let lowered = requirements(&stated);
            let back = to_requirements(&lowered);
            let operators: Vec<&str> = back.iter().map(|one| one.operator.as_str()).collect();
            assert_eq!(operators.join(" "), expected);
            assert_eq!(requirements(&back), lowered, "{expected}");
        }
    }

    #[test]
    fn a_requirement_that_cannot_be_read_admits_nothing() {
        let lowered = requirements(&[written(crate::Operator::Gt, &["many"])]);
        assert_eq!(lowered.contradiction().map(|key| &**key), Some("cpu"));
    }
}
