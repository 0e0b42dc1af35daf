//! The number behind a pod's priority class.

use crate::call::Call;
use crate::status_body::Status;
use crate::store::{CollectionId, Stored};
use crate::write::text;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a pod gets from its class, or from the default one.
struct Priority {
    class: String,
    value: i64,
    preemption: String,
}

pub(crate) fn admit(call: &Call<'_>, pod: &mut Value) -> Result<(), Status> {
    let name = text(&pod["metadata"], "name").to_owned();
    let refuse = |why: String| Status::forbidden(call.resource(), &name, &why);
    let priority = match text(&pod["spec"], "priorityClassName") {
        "" => default_priority(call),
        class => find(call, class).ok_or_else(|| refuse(format!("no PriorityClass with name {class} was found")))?,
    };
    let Some(spec) = pod["spec"].as_object_mut() else { return Ok(()) };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority.value) {
        return Err(refuse(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {} from the given PriorityClass name",
            priority.value
        )));
    }
    if let Some(given) =
        spec.get("preemptionPolicy").and_then(Value::as_str).filter(|given| *given != priority.preemption)
    {
        return Err(refuse(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {} from the given PriorityClass name",
            priority.preemption
        )));
    }
    if !priority.class.is_empty() {
        spec.insert("priorityClassName".to_owned(), json!(priority.class));
    }
    spec.insert("priority".to_owned(), json!(priority.value));
    spec.insert("preemptionPolicy".to_owned(), json!(priority.preemption));
    Ok(())
}

/// A pod keeps the priority that it was made with.
pub(crate) fn carry(before: &Value, pod: &mut Value) {
    let Some(spec) = pod["spec"].as_object_mut() else { return };
    for field in ["priority", "preemptionPolicy"] {
        if spec.get(field).is_none_or(Value::is_null)
            && let Some(old) = before["spec"].get(field)
        {
            spec.insert(field.to_owned(), old.clone());
        }
    }
}

fn classes() -> CollectionId {
    CollectionId::new("scheduling.k8s.io", "priorityclasses")
}

fn find(call: &Call<'_>, class: &str) -> Option<Priority> {
    call.store.get(&classes(), None, class).map(of_class)
}

/// The lowest of the classes that call themselves the default; without one, zero.
fn default_priority(call: &Call<'_>) -> Priority {
    let all = call.store.collection(&classes()).into_iter().flat_map(|classes| classes.objects.values());
    let defaults = all.filter(|stored| stored.value()["globalDefault"].as_bool() == Some(true)).map(of_class);
    defaults.min_by_key(|priority| priority.value).unwrap_or_else(|| Priority {
        class: String::new(),
        value: 0,
        preemption: "PreemptLowerPriority".to_owned(),
    })
}

fn of_class(stored: &Arc<Stored>) -> Priority {
    let class = stored.value();
    let preemption = match text(&class, "preemptionPolicy") {
        "" => "PreemptLowerPriority",
        policy => policy,
    };
    Priority {
        class: stored.header.name.clone(),
        value: class["value"].as_i64().unwrap_or(0),
        preemption: preemption.to_owned(),
    }
}
