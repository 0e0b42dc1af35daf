//! The requirements algebra against sets that are written out value by value.
#![allow(clippy::unwrap_used)]

use model::{Operator, Requirement, Requirements, Undefined};

/// Everything that a label can be here: absent, a listed word, a number in or out of reach, or something unheard of.
fn world() -> Vec<Option<String>> {
    let words = ["a", "b", "c", "unheard of"].into_iter().map(ToOwned::to_owned);
    let numbers = (-4..=14).map(|number: i32| number.to_string());
    std::iter::once(None).chain(words.chain(numbers).map(Some)).collect()
}

/// A small generator, so that every run tries the same.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn value(&mut self) -> String {
        match self.below(3) {
            0 => ["a", "b", "c"][usize::try_from(self.below(3)).unwrap()].to_owned(),
            _ => (i64::try_from(self.below(13)).unwrap() - 1).to_string(),
        }
    }

    /// An operator with its values, as a person would write them.
    fn written(&mut self) -> (Operator, Vec<String>) {
        use Operator::{DoesNotExist, Exists, Gt, Gte, In, Lt, Lte, NotIn};
        let operator = [In, In, NotIn, NotIn, Exists, DoesNotExist, Gt, Gte, Lt, Lte];
        let operator = operator[usize::try_from(self.below(10)).unwrap()];
        let values = match operator {
            In | NotIn => (0..=self.below(3)).map(|_| self.value()).collect(),
            Exists | DoesNotExist => Vec::new(),
            Gt | Gte | Lt | Lte => vec![(i64::try_from(self.below(12)).unwrap() - 1).to_string()],
        };
        (operator, values)
    }
}

/// What the words say, without any algebra.
fn means((operator, values): &(Operator, Vec<String>), label: Option<&str>) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    let compared = |holds: fn(i64, i64) -> bool| {
        label.and_then(number).zip(number(&values[0])).is_some_and(|(label, bound)| holds(label, bound))
    };
    match operator {
        Operator::In => label.is_some_and(|label| values.iter().any(|value| value == label)),
        Operator::NotIn => label.is_none_or(|label| !values.iter().any(|value| value == label)),
        Operator::Exists => label.is_some(),
        Operator::DoesNotExist => label.is_none(),
        Operator::Gt => compared(|label, bound| label > bound),
        Operator::Gte => compared(|label, bound| label >= bound),
        Operator::Lt => compared(|label, bound| label < bound),
        Operator::Lte => compared(|label, bound| label <= bound),
    }
}

fn admits(requirement: &Requirement, label: Option<&str>) -> bool {
    label.map_or_else(|| requirement.admits_absence(), |label| requirement.admits(label))
}

/// Up to four requirements on one label mean, taken together, what each of them means; and whether two sets agree is
/// whether some label satisfies both.
#[test]
fn requirements_mean_what_their_words_say() {
    let world = world();
    let mut chance = Chance(7);
    for _ in 0..40_000 {
        let written: Vec<_> = (0..=chance.below(3)).map(|_| chance.written()).collect();
        let parts: Vec<Requirement> = written
            .iter()
            .map(|(operator, values)| Requirement::new(*operator, values.iter().map(String::as_str)).unwrap())
            .collect();
        let all = parts.iter().skip(1).fold(parts[0].clone(), |sum, part| sum.intersection(part));
        for label in &world {
            let meant = written.iter().all(|one| means(one, label.as_deref()));
            assert_eq!(admits(&all, label.as_deref()), meant, "{written:?} together {all} on {label:?}");
        }
        let satisfiable = world.iter().any(|label| written.iter().all(|one| means(one, label.as_deref())));
        assert_eq!(all.is_impossible(), !satisfiable, "{written:?}: {all}");
        let other = chance.written();
        let requirement = Requirement::new(other.0, other.1.iter().map(String::as_str)).unwrap();
        let together = world.iter().any(|label| admits(&all, label.as_deref()) && means(&other, label.as_deref()));
        assert_eq!(all.agrees_with(&requirement), together, "{all} and {requirement}");
        let node = Requirements::none().with("team", all.clone());
        let wanted = Requirements::none().with("team", requirement);
        assert_eq!(node.satisfy(&wanted, Undefined::IsAbsent).is_ok(), together, "{node} for {wanted}");
    }
}
