//! Whether the nodes of a pool join the cluster, judged by the last few that tried. Pure.

use std::collections::VecDeque;

use api::node_pool::conditions::NODE_REGISTRATION_HEALTHY;
use api::{Condition, ConditionSet, ConditionStatus, NodePool};

/// How many outcomes are remembered.
const REMEMBERED: usize = 4;
/// So many failures among them make a pool unhealthy.
const FAILURES_MAX: usize = 2;

/// How a node that should have joined fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Registration {
    /// It joined.
    Joined,
    /// It did not, in time.
    Failed {
        /// Why, in one word.
        reason: String,
        /// Why, for people.
        message: String,
    },
}

/// The last registrations of one pool's nodes, as far as this process saw them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    /// The pool they are of; one of the same name made later starts anew.
    pool_uid: String,
    /// Whether each joined, the oldest first.
    recent: VecDeque<bool>,
    /// What the last outcome that decided anything decided.
    verdict: Option<Registration>,
}

impl Health {
    /// What a new process may conclude from what the last one wrote.
    pub(crate) fn seeded(pool: &NodePool) -> Self {
        let recent = match condition_of(pool).map(|condition| condition.status) {
            Some(ConditionStatus::True) => VecDeque::from([true]),
            Some(ConditionStatus::False) => VecDeque::from([false; FAILURES_MAX]),
            Some(ConditionStatus::Unknown) | None => VecDeque::new(),
        };
        Self { pool_uid: pool.metadata.uid.clone().unwrap_or_default(), recent, verdict: None }
    }

    /// Whether it is about this pool, and not about an earlier one of its name.
    pub(crate) fn is_of(&self, pool: &NodePool) -> bool {
        pool.metadata.uid.as_deref().unwrap_or_default() == self.pool_uid
    }

    /// One more outcome. A failure decides nothing until there are too many, and a success nothing until there are
    /// few enough.
    pub(crate) fn record(&mut self, outcome: Registration) {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(outcome == Registration::Joined);
        let failures = self.recent.iter().filter(|joined| !**joined).count();
        match &outcome {
            Registration::Joined if failures < FAILURES_MAX => self.verdict = Some(outcome),
            Registration::Failed { .. } if failures >= FAILURES_MAX => self.verdict = Some(outcome),
            Registration::Joined | Registration::Failed { .. } => {}
        }
    }

    /// Says so in the pool's conditions. When pool or class have changed since, all that is known is about something
    /// else, and is forgotten.
    pub(crate) fn write(&mut self, set: &mut ConditionSet<'_>, has_changed: bool) {
        let known = set.get(NODE_REGISTRATION_HEALTHY).map(|condition| condition.status);
        if has_changed || known.is_none() {
            self.recent.clear();
            self.verdict = None;
            set.set_awaiting(NODE_REGISTRATION_HEALTHY);
            return;
        }
        match &self.verdict {
            None => {}
            Some(Registration::Joined) => {
                set.set_true(NODE_REGISTRATION_HEALTHY);
            }
            // The first failure that made it so is what is told.
            Some(Registration::Failed { .. }) if known == Some(ConditionStatus::False) => {}
            Some(Registration::Failed { reason, message }) => {
                set.set_false(NODE_REGISTRATION_HEALTHY, reason, message);
            }
        }
    }
}

/// What a pool says about it now.
pub(crate) fn condition_of(pool: &NodePool) -> Option<&Condition> {
    let conditions = pool.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == NODE_REGISTRATION_HEALTHY)
}

#[cfg(test)]
mod tests {
    use api::condition::ConditionSubject;
    use api::node_pool::conditions::TYPES;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn pool(conditions: &[Condition]) -> NodePool {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p", "uid": "u"},
            "spec": {"template": {"spec": {"requirements": [],
                "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}}}},
            "status": {"conditions": conditions},
        }))
        .expect("a pool")
    }

    /// Tells a story and writes down what the condition says after each step: `+` a node joined, `-` one did not,
    /// `l` one was not even launched, `!` pool or class changed, `r` the process is another.
    fn story(steps: &str) -> Vec<String> {
        let mut stored = Vec::new();
        let epoch = Timestamp::UNIX_EPOCH;
        let subject = ConditionSubject { generation: 1, created_at: epoch, deleting: false, now: epoch };
        let mut health = Health::seeded(&pool(&stored));
        let failed = |reason: &str, message: &str| Registration::Failed {
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        let mut told = Vec::new();
        for step in steps.chars() {
            match step {
                '+' => health.record(Registration::Joined),
                '-' => health.record(failed("RegistrationFailed", "Failed to register node")),
                'l' => health.record(failed("LaunchFailed", "no quota")),
                'r' => health = Health::seeded(&pool(&stored)),
                _ => {}
            }
            health.write(&mut ConditionSet::open(&mut stored, TYPES, subject), step == '!');
            let found = stored.iter().find(|found| found.type_ == NODE_REGISTRATION_HEALTHY).expect("a condition");
            told.push(format!("{} {}", found.status.as_str(), found.reason));
        }
        told
    }

    fn last(steps: &str) -> String {
        story(&format!(".{steps}")).pop().expect("a step")
    }

    const UNKNOWN: &str = "Unknown AwaitingReconciliation";
    const HEALTHY: &str = "True NodeRegistrationHealthy";
    const UNHEALTHY: &str = "False RegistrationFailed";

    /// API-47, API-48: unknown at first, true after a registration, false after two failures among the last four.
    #[test]
    fn two_failures_of_four_make_a_pool_unhealthy() {
        let table = [
            ("", UNKNOWN),
            ("+", HEALTHY),
            ("-", UNKNOWN),
            ("--", UNHEALTHY),
            ("+-", HEALTHY),
            ("+--", UNHEALTHY),
            ("--+", UNHEALTHY),
            ("--++", UNHEALTHY),
            ("--+++", HEALTHY),
            ("-+++-", HEALTHY),
            ("++++--", UNHEALTHY),
            ("ll", "False LaunchFailed"),
            ("-l", "False LaunchFailed"),
            ("--l", UNHEALTHY),
        ];
        for (steps, expected) in table {
            assert_eq!(last(steps), expected, "{steps}");
        }
    }

    /// API-49: a change of pool or class starts anew; what was before does not count.
    #[test]
    fn a_change_starts_anew() {
        for (steps, expected) in
            [("+!", UNKNOWN), ("--!", UNKNOWN), ("--!+", HEALTHY), ("-!-", UNKNOWN), ("--!--", UNHEALTHY)]
        {
            assert_eq!(last(steps), expected, "{steps}");
        }
    }

    /// API-50: another process goes on from what the condition says: one success, or two failures.
    #[test]
    fn another_process_goes_on_from_the_condition() {
        let table = [
            ("+r", HEALTHY),
            ("+r-", HEALTHY),
            ("+r--", UNHEALTHY),
            ("--r", UNHEALTHY),
            ("--r++", UNHEALTHY),
            ("--r+++", HEALTHY),
            ("-r-", UNKNOWN),
        ];
        for (steps, expected) in table {
            assert_eq!(last(steps), expected, "{steps}");
        }
    }

    /// API-46: whether a pool is ready does not depend on it.
    #[test]
    fn readiness_does_not_depend_on_it() {
        assert!(!TYPES.dependents.contains(&NODE_REGISTRATION_HEALTHY));
        let mut stored = Vec::new();
        let epoch = Timestamp::UNIX_EPOCH;
        let subject = ConditionSubject { generation: 1, created_at: epoch, deleting: false, now: epoch };
        let mut set = ConditionSet::open(&mut stored, TYPES, subject);
        for dependent in TYPES.dependents {
            set.set_true(dependent);
        }
        set.set_false(NODE_REGISTRATION_HEALTHY, "RegistrationFailed", "Failed to register node");
        assert!(set.is_true("Ready"));
    }

    #[test]
    fn a_later_pool_of_the_same_name_is_another() {
        let mut other = pool(&[]);
        let health = Health::seeded(&other);
        assert!(health.is_of(&other));
        other.metadata.uid = Some("v".to_owned());
        assert!(!health.is_of(&other));
    }
}
