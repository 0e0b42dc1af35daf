//! How many claims a static pool lacks, and which of too many go. Pure.

use std::cmp::Ordering;

use jiff::Timestamp;
use model::ClaimName;

/// What a static pool should have, and what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// How many nodes it should have.
    pub(super) replicas: usize,
    /// How many claims it may have at most, those that are going among them.
    pub(super) limit: Option<usize>,
    /// Claims that are not going.
    pub(super) active: usize,
    /// Claims that are going and not gone.
    pub(super) going: usize,
    /// Claims that were asked for and may still appear.
    pub(super) reserved: usize,
}

/// What to do about claims that a pool lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// It lacks none.
    Enough,
    /// It lacks some and may not have more.
    AtLimit,
    /// So many shall be made.
    Create(usize),
}

/// Claims that are going hold their place under the limit until they are gone; those that may still appear count as
/// if they were there, or a slow answer would be taken for a missing node.
pub(super) fn growth(census: &Census) -> Growth {
    let Census { replicas, limit, active, going, reserved } = *census;
    let lacking = replicas.saturating_sub(active + reserved);
    let room = limit.map_or(usize::MAX, |limit| limit.saturating_sub(active + going + reserved));
    match (lacking, lacking.min(room)) {
        (0, _) => Growth::Enough,
        (_, 0) => Growth::AtLimit,
        (_, count) => Growth::Create(count),
    }
}

/// How many claims a pool has too many. What may still appear does not count: nothing that runs ends for a promise.
pub(super) fn excess(census: &Census) -> usize {
    census.active.saturating_sub(census.replicas)
}

/// What would be lost with a claim, the least first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// No instance yet.
    Unlaunched,
    /// Nobody runs there but daemons that do not mind.
    Empty,
    /// Pods run there.
    Busy {
        /// One of them asked not to be disturbed.
        is_protected: bool,
        /// What moving them costs, less for a node that ends soon anyway.
        cost: f64,
    },
}

impl Load {
    fn compare(self, other: Self) -> Ordering {
        let rank = |load: Self| match load {
            Self::Unlaunched => (0, 0.0),
            Self::Empty => (1, 0.0),
            Self::Busy { is_protected: false, cost } => (2, cost),
            Self::Busy { is_protected: true, cost } => (3, cost),
        };
        let ((own, cost), (others, others_cost)) = (rank(self), rank(other));
        own.cmp(&others).then(cost.total_cmp(&others_cost))
    }
}

/// A claim that may go.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) claim: ClaimName,
    pub(super) created: Timestamp,
    pub(super) load: Load,
}

/// The first `count` to go: those with which least is lost, of equal ones the oldest.
pub(super) fn leaving(mut members: Vec<Member>, count: usize) -> Vec<ClaimName> {
    members.sort_by(|one, other| {
        let by_age = || one.created.cmp(&other.created).then_with(|| one.claim.cmp(&other.claim));
        one.load.compare(other.load).then_with(by_age)
    });
    members.into_iter().take(count).map(|member| member.claim).collect()
}

/// What is left of a node's life, as a share of it: all of it without an end.
pub(super) fn lifetime_left(created: Timestamp, length: Option<std::time::Duration>, now: Timestamp) -> f64 {
    let Some(length) = length else { return 1.0 };
    let passed = now.duration_since(created).as_secs_f64();
    // A life of no length at all is over.
    if length.is_zero() { 0.0 } else { ((length.as_secs_f64() - passed) / length.as_secs_f64()).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// STAT-01, STAT-02: what is lacking is made, as far as the limit goes; claims that are going and claims that may
    /// still appear hold their place under it.
    #[test]
    fn what_is_lacking_is_made_within_the_limit() {
        use Growth::{AtLimit, Create, Enough};
        let no = None;
        let table = [
            // (replicas, limit, active, going, reserved)
            ((3, no, 0, 0, 0), Create(3)),
            ((3, no, 2, 0, 0), Create(1)),
            ((3, no, 3, 0, 0), Enough),
            ((3, no, 5, 0, 0), Enough),
            ((0, no, 0, 0, 0), Enough),
            ((3, no, 2, 4, 0), Create(1)),
            ((3, no, 1, 0, 2), Enough),
            ((3, no, 1, 0, 1), Create(1)),
            ((10, Some(5), 0, 0, 0), Create(5)),
            ((10, Some(5), 3, 0, 0), Create(2)),
            ((10, Some(5), 5, 0, 0), AtLimit),
            ((10, Some(5), 3, 2, 0), AtLimit),
            ((10, Some(5), 3, 1, 0), Create(1)),
            ((10, Some(5), 3, 0, 2), AtLimit),
            ((10, Some(5), 3, 1, 1), AtLimit),
            ((10, Some(5), 7, 0, 0), AtLimit),
            ((10, Some(0), 0, 0, 0), AtLimit),
            ((2, Some(5), 2, 3, 0), Enough),
        ];
        for ((replicas, limit, active, going, reserved), expected) in table {
            let census = Census { replicas, limit, active, going, reserved };
            assert_eq!(growth(&census), expected, "{census:?}");
        }
    }

    /// STAT-03: what may still appear is no reason to end what is there.
    #[test]
    fn only_what_is_there_can_be_too_much() {
        for (replicas, active, reserved, expected) in [(3, 5, 0, 2), (3, 3, 2, 0), (3, 2, 4, 0), (0, 2, 0, 2)] {
            let census = Census { replicas, active, reserved, ..Census::default() };
            assert_eq!(excess(&census), expected, "{census:?}");
        }
    }

    /// `name` with its load: `unlaunched`, `empty`, a cost, or a cost with `!` for pods that asked not to be disturbed;
    /// and its age.
    fn member(text: &str) -> Member {
        let [name, load, age] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("`{text}`") };
        let load = match load {
            "unlaunched" => Load::Unlaunched,
            "empty" => Load::Empty,
            cost => Load::Busy {
                is_protected: cost.ends_with('!'),
                cost: cost.trim_end_matches('!').parse().expect("a cost"),
            },
        };
        let created = Timestamp::from_second(1000 - age.parse::<i64>().expect("an age")).expect("a time");
        Member { claim: ClaimName::new(name), created, load }
    }

    /// STAT-03: unlaunched, empty, cheap, dear, and last those that asked not to be disturbed.
    #[test]
    fn those_go_first_with_which_least_is_lost() {
        let table = [
            (&["a empty 1", "b unlaunched 1", "c 2.5 1", "d 2.5! 1", "e 0.5! 1", "f 1.5 1"][..], "b a f c e d"),
            (&["a empty 1", "b empty 3", "c empty 2"], "b c a"),
            (&["b empty 1", "a empty 1"], "a b"),
            (&["a -3 1", "b 0 1", "c empty 1"], "c a b"),
        ];
        for (members, expected) in table {
            let members: Vec<Member> = members.iter().map(|text| member(text)).collect();
            let order: Vec<String> = leaving(members.clone(), members.len()).iter().map(ToString::to_string).collect();
            assert_eq!(order.join(" "), expected);
            assert_eq!(leaving(members, 1)[0].as_str(), &expected[..1]);
        }
    }

    /// STAT-03: a node that ends soon anyway is cheaper to end.
    #[test]
    fn a_life_runs_out() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let hour = Some(Duration::from_secs(3600));
        for (length, now, expected) in [
            (None, 9_999_999, 1.0),
            (hour, 1000, 1.0),
            (hour, 1900, 0.75),
            (hour, 4600, 0.0),
            (hour, 99_999, 0.0),
            (hour, 0, 1.0),
            (Some(Duration::ZERO), 1000, 0.0),
        ] {
            let left = lifetime_left(at(1000), length, at(now));
            assert!((left - expected).abs() < 1e-9, "{length:?} at {now}: {left}");
        }
    }
}
