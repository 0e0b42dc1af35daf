//! Whether a node has what its instance type promised.

use std::time::Duration;

use api::lower::{NodeFacts, resources};
use api::node_claim::conditions;
use api::{NodeClaim, ResourceList};
use model::format_quantity;

use super::draft::ClaimDraft;
use super::name_of;
use crate::context::Context;
use crate::events::{Notice, Quiet, Tone, about};
use crate::work::Next;

/// How often a node that lacks something is complained about.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10 * 60);
/// A node with less than this share of what was expected lacks something.
const LEAST_SHARE: f64 = 0.9;

/// Compares an initialized node with what its claim expects, and says so in the condition `ConsistentStateFound`.
pub(super) fn step(context: &Context, draft: &mut ClaimDraft) -> Next {
    let node = context.cluster().node_of(draft.claim()).cloned();
    let Some(node) = node.filter(|_| draft.is_true(conditions::INITIALIZED)) else { return Next::OnChange };
    let claim = draft.claim().clone();
    let expected = draft.status().capacity.clone().unwrap_or_default();
    let issues = issues(&claim, &expected, &node);
    if issues.is_empty() {
        draft.conditions(|conditions| conditions.set_true(conditions::CONSISTENT_STATE_FOUND));
        return Next::OnChange;
    }
    let (reason, message) = ("ConsistencyCheckFailed", "Consistency Check Failed");
    draft.conditions(|conditions| conditions.set_false(conditions::CONSISTENT_STATE_FOUND, reason, message));
    for issue in issues {
        tracing::info!(NodeClaim.name = %name_of(&claim), issue, "failed consistency check");
        let notice = Notice {
            about: about::claim(&claim),
            tone: Tone::Warning,
            reason: "FailedConsistencyCheck",
            message: issue,
            quiet: Quiet::of_words(COMPLAIN_EVERY),
        };
        context.recorder.publish(context.now(), notice);
    }
    Next::After(COMPLAIN_EVERY)
}

/// What was asked for and promised, and is there in noticeably smaller amounts.
fn issues(claim: &NodeClaim, promised: &ResourceList, node: &NodeFacts) -> Vec<String> {
    let requests = claim.spec.resources.as_ref().and_then(|wanted| wanted.requests.as_ref());
    let requests = requests.map(resources).unwrap_or_default();
    let promised = resources(promised);
    let asked = requests.iter().filter(|(name, amount)| *amount != 0 && promised.get(name) != 0);
    let issue = |(name, _): (&model::ResourceName, i64)| {
        let (expected, found) = (promised.get(name), node.capacity.get(name));
        #[expect(clippy::cast_precision_loss, reason = "a share needs no last digit")]
        let share = found as f64 / expected as f64;
        (share < LEAST_SHARE).then(|| {
            let (expected, found) = (format_quantity(name, expected), format_quantity(name, found));
            let percent = share * 100.0;
            format!("expected {expected} of resource {name}, but found {found} ({percent:.1}% of expected)")
        })
    };
    asked.filter_map(issue).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    fn check(promised: Value, found: Value, expected: &Expect) {
        let claim: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"},
            "spec": {"resources": {"requests": {"cpu": "1", "memory": "1Gi", "pods": "0"}}, "requirements": [],
                "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}},
            "status": {"capacity": promised},
        }))
        .unwrap();
        let node = json!({"metadata": {"name": "n"}, "status": {"capacity": found}});
        let node = NodeFacts::lower(&serde_json::from_value(node).unwrap()).unwrap();
        let promised = claim.status.clone().unwrap().capacity.unwrap();
        expected.assert_eq(&issues(&claim, &promised, &node).join("\n"));
    }

    /// LIFE-27: less than nine tenths of what was asked for and promised is worth a complaint.
    #[test]
    fn a_node_that_lacks_something_is_found() {
        let promised = || json!({"cpu": "4", "memory": "10Gi", "pods": "110", "ephemeral-storage": "20Gi"});
        check(promised(), json!({"cpu": "4", "memory": "10Gi"}), &expect![""]);
        check(promised(), json!({"cpu": "3600m", "memory": "9Gi"}), &expect![""]);
        check(
            promised(),
            json!({"cpu": "3599m", "memory": "5Gi"}),
            &expect![[r"
                expected 4 of resource cpu, but found 3599m (90.0% of expected)
                expected 10Gi of resource memory, but found 5Gi (50.0% of expected)"]],
        );
        check(
            promised(),
            json!({"memory": "10Gi"}),
            &expect!["expected 4 of resource cpu, but found 0 (0.0% of expected)"],
        );
        check(json!({}), json!({}), &expect![""]);
    }
}
