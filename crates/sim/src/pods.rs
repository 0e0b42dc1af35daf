//! What is special about pods: binding, and their conditions.

use crate::call::{Call, Reply};
use crate::status_body::{GroupResource, Status};
use crate::times;
use crate::write::{self, text};
use serde_json::{Value, json};

/// A part of a binding, as messages name it.
const BINDING: GroupResource<'_> = GroupResource { group: "", resource: "pods/binding" };

/// Gives a pod its node.
pub(crate) fn bind(call: &mut Call<'_>) -> Result<Reply, Status> {
    let dry_run = call.query.dry_run()?;
    let binding = write::decoded_body(call, ["", "v1", "Binding"])?;
    let metadata = &binding["metadata"];
    if text(metadata, "name") != call.name() {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let node = text(&binding["target"], "name");
    if !matches!(text(&binding["target"], "kind"), "" | "Node") {
        let kind = text(&binding["target"], "kind");
        let problem = format!("target.kind: Unsupported value: \"{kind}\": supported values: \"Node\", \"<empty>\"");
        return Err(Status::server_failure(&problem));
    }
    if node.is_empty() {
        return Err(Status::server_failure("target.name: Required value"));
    }
    let old = call.existing()?;
    let uid = text(metadata, "uid");
    if !uid.is_empty() && uid != old.header.uid {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.header.uid);
        return Err(Status::conflict(call.resource(), call.name(), &why));
    }
    let mut pod = old.value();
    refuse_unfit(call, &pod, old.header.deleting)?;
    pod["spec"]["nodeName"] = json!(node);
    if let Some(status) = pod["status"].as_object_mut() {
        status.remove("nominatedNodeName");
    }
    for (field, values) in [("annotations", &metadata["annotations"]), ("labels", &metadata["labels"])] {
        for (key, value) in values.as_object().into_iter().flatten() {
            pod["metadata"][field][key] = value.clone();
        }
    }
    let now = times::seconds(call.store.now());
    set_condition(&mut pod, json!({ "type": "PodScheduled", "status": "True" }), &now);
    let changed = (!dry_run).then(|| call.store.put(&call.id(), pod));
    Ok(Reply::Status { code: 201, status: Status::success(201, None), changed })
}

fn refuse_unfit(call: &Call<'_>, pod: &Value, deleting: bool) -> Result<(), Status> {
    let name = call.name();
    let assigned = text(&pod["spec"], "nodeName");
    let gates = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    let why = match (deleting, assigned.is_empty(), gates) {
        (true, _, _) => format!("pod {name} is being deleted, cannot be assigned to a host"),
        (_, false, _) => format!("pod {name} is already assigned to node \"{assigned}\""),
        (_, _, true) => format!("pod {name} has non-empty .spec.schedulingGates"),
        (false, true, false) => return Ok(()),
    };
    Err(Status::conflict(BINDING, name, &why))
}

/// Sets a condition of a pod; the time of transition moves only if the condition's status does.
pub(crate) fn set_condition(pod: &mut Value, mut condition: Value, now: &str) {
    condition["lastProbeTime"] = Value::Null;
    let Some(status) = pod["status"].as_object_mut() else { return };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            let is_same = known["status"] == condition["status"];
            let since = if is_same { known["lastTransitionTime"].clone() } else { json!(now) };
            condition["lastTransitionTime"] = since;
            *known = condition;
        }
        None => {
            condition["lastTransitionTime"] = json!(now);
            conditions.push(condition);
        }
    }
}
