//! Nodes that fell ill: what a provider knows about illnesses, and the cure that only it can give.

use std::fmt;
use std::time::Duration;

use api::ConditionStatus;
use regex::Regex;

/// What is done about an ill node; the later, the more disruptive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairAction {
    /// The machine is started anew, and the node stays.
    RebootNode,
    /// Another node takes its place.
    ReplaceNode,
}

/// One illness, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairPolicy {
    /// The type of the node's condition.
    pub condition: String,
    /// The status that means ill.
    pub status: ConditionStatus,
    /// A regular expression that the condition's reason must contain. Empty for the one policy that is meant for every
    /// reason which no other policy knows.
    pub reason: String,
    /// How long the condition must last.
    pub toleration: Duration,
    /// How long pods may take to leave: nothing for what their claim says, zero for not waiting at all.
    pub drain_bound: Option<Duration>,
    /// How much it matters, up to a hundred.
    pub priority: u8,
    /// The cure.
    pub action: RepairAction,
}

/// The largest priority.
const PRIORITY_MAX: u8 = 100;

/// What is wrong with a provider's policies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepairPolicyFault {
    /// A policy for no condition.
    #[error("policy {number} names no condition")]
    NoCondition {
        /// The policy's place in the list, counted from one.
        number: usize,
    },
    /// A reason that is no regular expression.
    #[error("policy {number} for `{condition}`: the reason `{reason}` is no regular expression")]
    BadReason {
        /// The policy's place in the list, counted from one.
        number: usize,
        /// Its condition.
        condition: String,
        /// Its reason.
        reason: String,
    },
    /// A priority that is too large.
    #[error("policy {number} for `{condition}`: priority {priority} is above 100")]
    HighPriority {
        /// The policy's place in the list, counted from one.
        number: usize,
        /// Its condition.
        condition: String,
        /// Its priority.
        priority: u8,
    },
    /// None or several that are meant for every reason.
    #[error("exactly one policy must have no reason, and {found} have none")]
    Fallbacks {
        /// How many there are.
        found: usize,
    },
    /// The one that is meant for every reason does not replace the node.
    #[error("policy {number} for `{condition}`: the policy without a reason must replace the node")]
    MildFallback {
        /// The policy's place in the list, counted from one.
        number: usize,
        /// Its condition.
        condition: String,
    },
}

/// Why nodes cannot be repaired with this provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepairError {
    /// It knows of no illness.
    #[error("node repair requires the cloud provider to define RepairPolicies, but it defines none")]
    NoPolicies,
    /// What it says makes no sense.
    #[error("node repair requires valid RepairPolicies, {}", Joined(.0))]
    Invalid(Vec<RepairPolicyFault>),
}

struct Joined<'a>(&'a [RepairPolicyFault]);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(&faults.join("; "))
    }
}

/// Whether nodes can be repaired by these policies; all that is wrong with them is told at once.
pub fn check_repair_policies(policies: &[RepairPolicy]) -> Result<(), RepairError> {
    if policies.is_empty() {
        return Err(RepairError::NoPolicies);
    }
    let mut faults: Vec<RepairPolicyFault> =
        policies.iter().zip(1..).flat_map(|(policy, number)| faults_of(policy, number)).collect();
    let found = policies.iter().filter(|policy| policy.reason.is_empty()).count();
    if found != 1 {
        faults.push(RepairPolicyFault::Fallbacks { found });
    }
    if faults.is_empty() { Ok(()) } else { Err(RepairError::Invalid(faults)) }
}

fn faults_of(policy: &RepairPolicy, number: usize) -> impl Iterator<Item = RepairPolicyFault> {
    let RepairPolicy { condition, reason, priority, action, .. } = policy;
    let is_mild_fallback = reason.is_empty() && *action != RepairAction::ReplaceNode;
    [
        condition.is_empty().then_some(RepairPolicyFault::NoCondition { number }),
        Regex::new(reason).is_err().then(|| RepairPolicyFault::BadReason {
            number,
            condition: condition.clone(),
            reason: reason.clone(),
        }),
        (*priority > PRIORITY_MAX).then(|| RepairPolicyFault::HighPriority {
            number,
            condition: condition.clone(),
            priority: *priority,
        }),
        is_mild_fallback.then(|| RepairPolicyFault::MildFallback { number, condition: condition.clone() }),
    ]
    .into_iter()
    .flatten()
}

/// A machine that was not started anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RebootError {
    /// This provider cannot.
    #[error("reboot is not implemented by this cloud provider")]
    NotImplemented,
    /// It tried, and trying again does not help.
    #[error("reboot failed, {message}")]
    Failed {
        /// The provider's words.
        message: String,
    },
    /// There is no such machine.
    #[error("nodeclaim not found, {message}")]
    NotFound {
        /// The provider's words.
        message: String,
    },
    /// It may work the next time.
    #[error("{message}")]
    Unanswered {
        /// The provider's words.
        message: String,
    },
}

impl RebootError {
    /// Whether trying again is no use.
    pub fn is_final(&self) -> bool {
        match self {
            Self::NotImplemented | Self::Failed { .. } | Self::NotFound { .. } => true,
            Self::Unanswered { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(reason: &str, action: RepairAction) -> RepairPolicy {
        RepairPolicy {
            condition: "Ready".to_owned(),
            status: ConditionStatus::False,
            reason: reason.to_owned(),
            toleration: Duration::from_secs(600),
            drain_bound: Some(Duration::ZERO),
            priority: 0,
            action,
        }
    }

    /// CP-06, RPOL-01, RPOL-02: policies are checked as a whole, and everything that is wrong is told at once.
    #[test]
    fn policies_are_sound_or_all_their_faults_are_told() {
        use RepairAction::{RebootNode, ReplaceNode};
        let told = |policies: &[RepairPolicy]| match check_repair_policies(policies) {
            Ok(()) => "sound".to_owned(),
            Err(error) => error.to_string(),
        };
        let invalid = |faults: &str| format!("node repair requires valid RepairPolicies, {faults}");
        let none = "node repair requires the cloud provider to define RepairPolicies, but it defines none";
        assert_eq!(told(&[]), none);
        assert_eq!(told(&[policy("", ReplaceNode), policy(".*", RebootNode)]), "sound");
        let first = RepairPolicy { priority: 100, ..policy("", ReplaceNode) };
        assert_eq!(told(&[first]), "sound", "a hundred is the largest priority, and one policy is enough");
        let several = [policy("", ReplaceNode), policy("", ReplaceNode)];
        assert_eq!(told(&several), invalid("exactly one policy must have no reason, and 2 have none"));
        assert_eq!(
            told(&[policy("x", ReplaceNode)]),
            invalid("exactly one policy must have no reason, and 0 have none")
        );
        let nameless = RepairPolicy { condition: String::new(), ..policy("", ReplaceNode) };
        let urgent = RepairPolicy { priority: 101, ..policy("(", ReplaceNode) };
        assert_eq!(
            told(&[policy("", RebootNode), nameless, urgent]),
            invalid(
                "policy 1 for `Ready`: the policy without a reason must replace the node; policy 2 names no condition; \
                 policy 3 for `Ready`: the reason `(` is no regular expression; \
                 policy 3 for `Ready`: priority 101 is above 100; exactly one policy must have no reason, and 2 have none"
            )
        );
    }

    /// CP-08: three answers end a reboot, any other is asked for again.
    #[test]
    fn some_answers_end_a_reboot() {
        let message = || "m".to_owned();
        let table = [
            (RebootError::NotImplemented, true, "reboot is not implemented by this cloud provider"),
            (RebootError::Failed { message: message() }, true, "reboot failed, m"),
            (RebootError::NotFound { message: message() }, true, "nodeclaim not found, m"),
            (RebootError::Unanswered { message: message() }, false, "m"),
        ];
        for (error, is_final, text) in table {
            assert_eq!((error.is_final(), error.to_string().as_str()), (is_final, text));
        }
    }
}
