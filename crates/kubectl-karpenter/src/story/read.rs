//! Reading objects as JSON: only the few fields that a story needs.

use serde_json::Value;

/// Text at a pointer.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A label.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/labels")?.get(key)?.as_str()
}

/// The reason of a condition that is true.
pub(crate) fn true_condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let condition = condition(object, kind)?;
    (condition.get("status").and_then(Value::as_str) == Some("True"))
        .then(|| condition.get("reason").and_then(Value::as_str).unwrap_or_default())
}

/// A condition.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// Whether the object has to go.
pub(crate) fn is_deleting(object: &Value) -> bool {
    text(object, "/metadata/deletionTimestamp").is_some()
}

/// Kind and name of the controller that owns the object.
pub(crate) fn owner(object: &Value) -> Option<(&str, &str)> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))?;
    Some((owner.get("kind")?.as_str()?, owner.get("name")?.as_str()?))
}

/// A name with its namespace, unless that is the usual one.
pub(crate) fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() || namespace == "default" { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// The workload that a pod belongs to, as people know it: the Deployment rather than its ReplicaSet.
pub(crate) fn workload(pod: &Value) -> String {
    let namespace = text(pod, "/metadata/namespace").unwrap_or_default();
    let own = text(pod, "/metadata/name").unwrap_or_default();
    let name = owner(pod).map_or(own, |(kind, name)| {
        let hash = label(pod, "pod-template-hash").filter(|_| kind == "ReplicaSet");
        hash.and_then(|hash| name.strip_suffix(hash)?.strip_suffix('-')).unwrap_or(name)
    });
    full_name(namespace, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn workloads_are_named_as_people_know_them() {
        let pod = |namespace: &str, kind: &str, owner: &str| {
            json!({"metadata": {
                "namespace": namespace, "name": "pod-1", "labels": {"pod-template-hash": "5d4f"},
                "ownerReferences": [{"kind": kind, "name": owner, "controller": true}],
            }})
        };
        for (pod, name) in [
            (pod("default", "ReplicaSet", "web-5d4f"), "web"),
            (pod("shop", "ReplicaSet", "web-5d4f"), "shop/web"),
            (pod("default", "ReplicaSet", "web"), "web"),
            (pod("default", "StatefulSet", "db"), "db"),
            (json!({"metadata": {"namespace": "default", "name": "lone"}}), "lone"),
        ] {
            assert_eq!(workload(&pod), name);
        }
    }
}
