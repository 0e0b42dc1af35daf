//! The judge of plans: `referee`, which shares no code with the planner beyond the words of the model.

use model::{Plan, Snapshot};

/// Panics with every rule that the plan breaks.
pub(crate) fn judge(snapshot: &Snapshot, plan: &Plan) {
    let violations: Vec<String> = referee::audit(snapshot, plan).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    assert_eq!(plan.price(), referee::reckoned_price(snapshot, plan), "the price is that of the offerings");
}
