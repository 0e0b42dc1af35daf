//! No eviction by us against a PodDisruptionBudget, and no deletion but by a node's deadline.
//!
//! The API server refuses evictions that a budget forbids. This check does not trust its arithmetic: it counts ready
//! pods itself, at the time of every eviction that succeeded. Seeds draw budgets with a whole `minAvailable`; other forms
//! are not counted here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use sim::{Change, ObjectKey, Record, Verb};

use super::timeline::{Timeline, is_true, text};
use super::{Rule, Violation};

pub(super) fn check(timeline: &Timeline) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut seen = Seen::default();
    let mut steps = timeline.steps.iter().peekable();
    let ours = timeline.own_writes().filter(|record| record.resource == "pods");
    for record in ours {
        // The state just before the write: every change with an earlier revision.
        while let Some(step) = steps.next_if(|step| step.event.revision < record.revision) {
            seen.fold(step.event.change, &step.event.key, &step.object);
        }
        found.extend(judge(&seen, record));
    }
    found
}

#[derive(Default)]
struct Seen {
    pods: BTreeMap<ObjectKey, Arc<Value>>,
    budgets: BTreeMap<ObjectKey, Arc<Value>>,
    /// Instances whose claim had a deadline. A deletion that was asked for in its time may arrive when the claim is gone.
    limited: BTreeSet<String>,
    /// By node, its instance. A claim knows the name of its node only if whoever registered it lived to write it down.
    instances: BTreeMap<String, String>,
}

impl Seen {
    fn fold(&mut self, change: Change, key: &ObjectKey, object: &Arc<Value>) {
        if key.resource == "nodeclaims" && has_deadline(object) {
            self.limited.insert(text(object, "/status/providerID").to_owned());
        }
        if key.resource == "nodes" {
            self.instances.insert(key.name.clone(), text(object, "/spec/providerID").to_owned());
        }
        let objects = match key.resource.as_str() {
            "pods" => &mut self.pods,
            "poddisruptionbudgets" => &mut self.budgets,
            _ => return,
        };
        match change {
            Change::Deleted => objects.remove(key),
            Change::Added | Change::Modified => objects.insert(key.clone(), Arc::clone(object)),
        };
    }

    fn pod(&self, record: &Record) -> Option<&Value> {
        let same = |key: &&ObjectKey| key.namespace == record.namespace && Some(&key.name) == record.name.as_ref();
        self.pods.iter().find(|(key, _)| same(key)).map(|(_, pod)| &**pod)
    }

    /// Whether the node's time is limited, so that its pods may be deleted.
    fn is_limited(&self, node: &str) -> bool {
        self.instances.get(node).is_some_and(|instance| self.limited.contains(instance))
    }
}

fn has_deadline(claim: &Value) -> bool {
    let annotations = claim.pointer("/metadata/annotations");
    annotations.is_some_and(|found| found.get("karpenter.sh/nodeclaim-termination-timestamp").is_some())
}

fn judge(seen: &Seen, record: &Record) -> Option<Violation> {
    let pod = seen.pod(record)?;
    let name = record.name.as_deref().unwrap_or_default();
    let violation = |detail: String| Some(Violation { rule: Rule::NoBudgetBroken, at: record.at, detail });
    let is_eviction = record.verb == Verb::Create && record.subresource.as_deref() == Some("eviction");
    let is_deletion = record.verb == Verb::Delete && record.subresource.is_none();
    if is_deletion && !seen.is_limited(text(pod, "/spec/nodeName")) {
        return violation(format!("deleted pod `{name}`, whose node has no deadline"));
    }
    // A pod that is going or not ready does not count as available, so its end takes nothing from the budget.
    let takes_nothing = !is_eviction || pod.pointer("/metadata/deletionTimestamp").is_some() || !is_true(pod, "Ready");
    if takes_nothing {
        return None;
    }
    for (key, budget) in seen.budgets.iter().filter(|(key, _)| key.namespace == record.namespace) {
        let selects = |pod: &Value| selects(budget, pod);
        if !selects(pod) {
            continue;
        }
        let matched: Vec<&Value> = seen
            .pods
            .iter()
            .filter(|(pod, _)| pod.namespace == key.namespace)
            .map(|(_, pod)| &**pod)
            .filter(|pod| selects(pod))
            .collect();
        let healthy = matched
            .iter()
            .filter(|pod| is_true(pod, "Ready") && pod.pointer("/metadata/deletionTimestamp").is_none())
            .count();
        if let Some(minimum) = budget.pointer("/spec/minAvailable").and_then(Value::as_u64)
            && (healthy as u64) <= minimum
        {
            return violation(format!(
                "evicted pod `{name}` with {healthy} of {minimum} healthy pods in budget `{}`",
                key.name
            ));
        }
    }
    None
}

fn selects(budget: &Value, pod: &Value) -> bool {
    let wanted = budget.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let labels = pod.pointer("/metadata/labels");
    wanted.is_some_and(|wanted| {
        wanted.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    })
}
