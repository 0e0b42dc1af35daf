//! The provider's own checks before a node counts as registered.

use api::NodeClaim;
use cloud::{CloudError, HookAnswer};
use futures::future::join_all;

use crate::context::Context;
use crate::work::{Next, Outcome};

/// What all hooks said, in the provider's order.
pub(super) struct Answers(Vec<(&'static str, Result<HookAnswer, CloudError>)>);

/// Asks all hooks at once.
pub(super) async fn ask(context: &Context, claim: &NodeClaim) -> Answers {
    let hooks = context.provider.registration_hooks();
    let answers = hooks.iter().map(|hook| async { (hook.name(), hook.check(claim).await) });
    Answers(join_all(answers).await)
}

impl Answers {
    /// The names of the hooks that hold the registration back, if any do.
    pub(super) fn pending(&self) -> Option<String> {
        let held = self.0.iter().filter(|(_, answer)| *answer != Ok(HookAnswer::Passed));
        let names: Vec<&str> = held.map(|(name, _)| *name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// When to ask again: as soon as the most eager hook wants, or after a pause that grows if one failed.
    pub(super) fn outcome(self) -> Outcome {
        let mut next = Next::OnChange;
        for (_, answer) in self.0 {
            next = match answer? {
                HookAnswer::Passed => next,
                HookAnswer::Pending { again: Some(again) } => next.sooner(Next::After(again)),
                HookAnswer::Pending { again: None } => next.sooner(Next::BackOff),
            };
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// LIFE-14: every hook that is not through is named, and the most eager one says when to ask again.
    #[test]
    fn hooks_hold_a_registration_back() {
        let soon = |seconds| Ok(HookAnswer::Pending { again: Some(Duration::from_secs(seconds)) });
        let failed = || Err(CloudError { attempt: "look", message: "no answer".to_owned() });
        let passed = || Ok(HookAnswer::Passed);
        let table = [
            (vec![], None, "OnChange"),
            (vec![("a", passed())], None, "OnChange"),
            (vec![("a", soon(9)), ("b", passed()), ("c", soon(3))], Some("a, c"), "After(3s)"),
            (vec![("a", soon(9)), ("b", Ok(HookAnswer::Pending { again: None }))], Some("a, b"), "BackOff"),
            (vec![("a", soon(9)), ("b", failed())], Some("a, b"), "look: no answer"),
        ];
        for (answers, pending, next) in table {
            let answers = Answers(answers);
            assert_eq!(answers.pending().as_deref(), pending);
            assert_eq!(answers.outcome().map_or_else(|error| error.to_string(), |next| format!("{next:?}")), next);
        }
    }
}
