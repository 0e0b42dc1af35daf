//! Evicting pods: deleting them if their disruption budget allows it.

use crate::call::{Call, Reply};
use crate::delete::{self, Options};
use crate::pods::set_condition;
use crate::selector::label_selector_matches;
use crate::status_body::{Cause, GroupResource, Status};
use crate::store::{CollectionId, Stored};
use crate::times;
use crate::write::{self, text};
use serde_json::{Value, json};
use std::sync::Arc;

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const SEVERAL_BUDGETS: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
/// How many evictions a budget may have on its books that its controller has not confirmed.
const UNCONFIRMED_MAX: usize = 2000;
/// When a client may try again after a budget that is not up to date.
const RETRY_SECONDS: u32 = 10;

/// Evicts a pod.
pub(crate) fn create(call: &mut Call<'_>) -> Result<Reply, Status> {
    let options = options(call)?;
    let stored = call.existing()?;
    let pod = stored.value();
    if !ignores_budgets(&pod, &stored) {
        match budgets(call, &stored).as_slice() {
            [] => {}
            [budget] => spend(call, &pod, budget, options.dry_run)?,
            // A failure in a success's clothes: the real server answers so.
            _ => {
                let status = Status::server_failure(SEVERAL_BUDGETS);
                return Ok(Reply::Status { code: 201, status, changed: None });
            }
        }
    }
    let marked = if options.dry_run { stored.clone() } else { mark(call, &stored, &options)? };
    // The mark is a change of this call's own, so a wish for the version before it is fulfilled.
    let options =
        Options { resource_version: options.resource_version.map(|_| marked.header.revision.to_string()), ..options };
    let deleted = delete::delete_one(call, &marked, &options)?;
    Ok(Reply::Status { code: 201, status: Status::success(201, None), changed: Some(deleted.object) })
}

/// Reads the eviction: how to delete, in the body or the query.
fn options(call: &mut Call<'_>) -> Result<Options, Status> {
    let dry_run = call.query.dry_run()?;
    let eviction = write::decoded_body(call, ["policy", "v1", "Eviction"])?;
    if text(&eviction["metadata"], "name") != call.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = delete::from_body(&eviction["deleteOptions"])?;
    options.dry_run |= dry_run;
    Ok(options)
}

/// Pods that do not run, or are going already, disrupt nothing.
fn ignores_budgets(pod: &Value, stored: &Stored) -> bool {
    stored.header.deleting || matches!(text(&pod["status"], "phase"), "Succeeded" | "Failed" | "Pending")
}

fn budgets_id() -> CollectionId {
    CollectionId::new("policy", "poddisruptionbudgets")
}

fn budgets(call: &Call<'_>, pod: &Stored) -> Vec<Arc<Stored>> {
    let all = call.store.collection(&budgets_id()).into_iter().flat_map(|budgets| budgets.objects.values());
    all.filter(|budget| budget.header.namespace == pod.header.namespace)
        .filter(|budget| label_selector_matches(&budget.value()["spec"]["selector"], &pod.header.labels))
        .cloned()
        .collect()
}

/// Takes one disruption from the budget, unless the pod does not count.
fn spend(call: &mut Call<'_>, pod: &Value, stored: &Stored, dry_run: bool) -> Result<(), Status> {
    let mut budget = stored.value();
    if !is_ready(pod) && lets_unready_go(&budget) {
        return Ok(());
    }
    refuse_spent(&budget)?;
    if dry_run {
        return Ok(());
    }
    let now = times::seconds(call.store.now());
    let left = number(&budget["status"], "disruptionsAllowed") - 1;
    budget["status"]["disruptionsAllowed"] = json!(left);
    if left == 0 {
        set_insufficient(&mut budget, &now);
    }
    budget["status"]["disruptedPods"][call.name()] = json!(now);
    call.store.put(&budgets_id(), budget);
    Ok(())
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// A pod that is not ready may go if the budget says so, or if the others are enough.
fn lets_unready_go(budget: &Value) -> bool {
    let (healthy, desired) = (number(&budget["status"], "currentHealthy"), number(&budget["status"], "desiredHealthy"));
    text(&budget["spec"], "unhealthyPodEvictionPolicy") == "AlwaysAllow" || (healthy >= desired && desired > 0)
}

fn refuse_spent(budget: &Value) -> Result<(), Status> {
    let name = text(&budget["metadata"], "name");
    let status = &budget["status"];
    let refuse = |retry: u32, message: String| {
        let cause = Cause { reason: "DisruptionBudget".to_owned(), message, field: String::new() };
        Err(Status::too_many_requests(REFUSED, retry, cause))
    };
    let forbid = |why: &str| {
        let resource = GroupResource { group: "policy", resource: "poddisruptionbudget" };
        Err(Status::forbidden(resource, name, why))
    };
    if number(status, "observedGeneration") < number(&budget["metadata"], "generation") {
        return refuse(RETRY_SECONDS, format!("The disruption budget {name} is still being processed by the server."));
    }
    if number(status, "disruptionsAllowed") < 0 {
        return forbid("pdb disruptions allowed is negative");
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > UNCONFIRMED_MAX) {
        return forbid("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if number(status, "disruptionsAllowed") == 0 {
        return refuse(0, reason_of_zero(name, status));
    }
    Ok(())
}

fn reason_of_zero(name: &str, status: &Value) -> String {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let condition = conditions.find(|condition| {
        condition["type"] == "DisruptionAllowed"
            && condition["status"] == "False"
            && !text(condition, "message").is_empty()
    });
    let (healthy, desired) = (number(status, "currentHealthy"), number(status, "desiredHealthy"));
    match condition {
        Some(condition) if text(condition, "reason") == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            text(condition, "message")
        ),
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            text(condition, "reason"),
            text(condition, "message")
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Says in the budget's conditions that nothing is left.
fn set_insufficient(budget: &mut Value, now: &str) {
    let generation = budget["status"]["observedGeneration"].clone();
    let mut condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": now,
    });
    let conditions = match budget["status"]["conditions"].as_array_mut() {
        Some(conditions) => conditions,
        None => {
            budget["status"]["conditions"] = json!([condition]);
            return;
        }
    };
    match conditions.iter_mut().find(|known| known["type"] == "DisruptionAllowed") {
        Some(known) => {
            if known["status"] == "False" {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}

/// Writes on the pod why it goes.
fn mark(call: &mut Call<'_>, stored: &Arc<Stored>, options: &Options) -> Result<Arc<Stored>, Status> {
    delete::check_preconditions(call.info, stored, options)?;
    let mut pod = stored.value();
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    });
    set_condition(&mut pod, condition, &times::seconds(call.store.now()));
    if pod == stored.value() {
        return Ok(stored.clone());
    }
    Ok(call.store.put(&call.id(), pod))
}

fn number(object: &Value, field: &str) -> i64 {
    object[field].as_i64().unwrap_or(0)
}
